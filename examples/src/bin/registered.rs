//! The `plimsoll` command with three mechanisms of one's own, which every scenario may name.

use std::process::ExitCode;

use plimsoll_examples::codel::{CoDel, CoDelParams};
use plimsoll_examples::two_choices::{TwoChoices, TwoChoicesParams};
use plimsoll_examples::vegas::{Vegas, VegasParams};
use plimsoll_scenario::Registry;

fn main() -> ExitCode {
    let registry = Registry::new()
        .queue_discipline("codel", "1", |params: &CoDelParams, _| Box::new(CoDel::new(params)))
        .congestion_controller("vegas", "1", |params: &VegasParams| Box::new(Vegas::new(params)))
        .path_selector("two-choices", "1", |_: &TwoChoicesParams| Box::new(TwoChoices));
    plimsoll_cli::main_with(&registry)
}
