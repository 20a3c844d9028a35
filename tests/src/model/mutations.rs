//! Each condition taken away, one at a time.
