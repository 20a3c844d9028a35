//! The Lambda function of regions.

shared::main!(list_regions::ListRegions);
