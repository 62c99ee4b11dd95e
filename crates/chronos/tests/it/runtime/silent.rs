//! Long pipelines of requests that are not answered, in every mode.

use plimsoll_chronos::{Config, Poll};

use crate::runtime::client::{all_modes, backends, config, start};
use crate::runtime::exchanges;

/// Returns every backend and way to wait, with two threads, one and four.
fn modes() -> Vec<Config> {
    let mut modes = all_modes();
    for threads in [1, 4] {
        for poll in [Poll::Block, Poll::Spin] {
            modes.extend(backends().into_iter().map(|io| Config { poll, io, ..config(threads) }));
        }
    }
    modes
}

#[test]
fn long_silent_pipelines_end_in_an_answer() {
    exchanges::silent_pipelines(modes(), start);
}

#[test]
fn clients_that_leave_amid_a_silent_pipeline_are_gone() {
    exchanges::clients_that_leave(modes(), start);
}
