//! Values on the wire and in the tables: each reads back as it was written, and is accepted exactly when the
//! rules say so.

mod configuration;
mod criteria;
mod identifiers;
mod names;
mod places;
