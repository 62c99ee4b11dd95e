//! Implements `plimsoll check`, which tests whether this system meets the requirements of `plimsoll emulate`.

use std::process::ExitCode;

use plimsoll_linux::features;
use plimsoll_scenario::Registry;

use crate::output::{self, Done};

/// List the requirements of `plimsoll emulate`, and whether this system meets them.
///
/// Ends with 1 if a requirement is missing without which no emulation works.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: &Args, _: &Registry) -> Done {
    let all = features();
    let width = all.iter().map(|feature| feature.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for feature in &all {
        let state = match (feature.found, feature.required) {
            (true, _) => "found",
            (false, true) => "missing",
            (false, false) => "not found",
        };
        text.push_str(&format!("{:<width$}  {state:<9}  {}\n", feature.name, feature.needed_for));
    }
    output::print(&text)?;
    let lacks = all.iter().any(|feature| feature.required && !feature.found);
    Ok(if lacks { ExitCode::from(output::FINDING) } else { ExitCode::SUCCESS })
}
