//! The Lambda function of regions.

use std::process::ExitCode;

use list_regions::ListRegions;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<ListRegions>()
}
