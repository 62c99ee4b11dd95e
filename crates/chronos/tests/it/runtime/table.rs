//! One table of requests and replies, in every mode.

use crate::runtime::client::{all_modes, start};
use crate::runtime::exchanges;

#[test]
fn every_mode_answers_alike() {
    exchanges::table(all_modes(), start);
}
