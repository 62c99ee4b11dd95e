//! A path selector of one's own: of two ports drawn at random, the one before which less waits (the power of two
//! choices, Mitzenmacher, IEEE TPDS 2001; per packet in a fabric: DRILL, SIGCOMM 2017).

use plimsoll_fabric::net::{Packet, SelectPath};
use plimsoll_scenario::Parameters;
use plimsoll_units::Time;
use serde::{Deserialize, Serialize};

/// The table of the selector in a scenario, which has no keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoChoicesParams {}

impl Parameters for TwoChoicesParams {}

/// The selector of all switches.
#[derive(Debug)]
pub struct TwoChoices;

impl SelectPath for TwoChoices {
    fn choose(
        &mut self,
        _: Time,
        _switch: u32,
        _: &Packet,
        count: u32,
        drain_bytes: &dyn Fn(u32) -> u64,
        draw: &mut dyn FnMut() -> u64,
    ) -> u32 {
        let mut any = || ((u128::from(draw()) * u128::from(count)) >> 64) as u32;
        let (one, other) = (any(), any());
        if drain_bytes(other) < drain_bytes(one) { other } else { one }
    }
}
