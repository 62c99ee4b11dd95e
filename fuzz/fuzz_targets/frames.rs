//! Any frames at a fabric's edge: no panic, none lost without being counted, the same in a replay; and marking a frame
//! changes its traffic class and checksum only.
//!
//! The first byte chooses the fabric; `plimsoll_fuzz::turns` describes the rest: a turn is a frame, whose head has the
//! host that sends it and the length to which it is filled up. `make fuzz TARGET=frames`.
//! crates/linux/tests/it/frames.rs does the same with mutations that know Ethernet.

use std::sync::LazyLock;

use judge::{FABRICS, HOSTS, judge, model};
use plimsoll_fabric::net::HostId;
use plimsoll_fuzz::turns::turns;
use plimsoll_linux::frame::{Header, answer, mark};
use plimsoll_scenario::model::Model;

#[path = "../../crates/linux/tests/it/frames/judge.rs"]
mod judge;

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| FABRICS.into_iter().map(model).collect());

/// Bits 2 and 3 of a head: the least bytes of a frame.
const FILLED: [usize; 4] = [0, 60, 1514, 1530];
/// The most frames that are taken from one input.
const FRAMES_MAX: usize = 256;

/// Checks the properties of each frame by itself.
fn judge_alone(bytes: &[u8]) {
    let header = Header::parse(bytes, HOSTS);
    let reply = answer(bytes, HOSTS);
    assert!(reply.is_none_or(|reply| reply.len() >= 42));
    let mut marked = bytes.to_vec();
    mark(&mut marked);
    let changed = bytes.iter().zip(&marked).filter(|(before, after)| before != after).count();
    assert!(marked.len() == bytes.len() && changed <= 3);
    if let Some(header) = header {
        let again = Header::parse(&marked, HOSTS).expect("a marked frame is still one");
        assert_eq!((header.to, header.flow), (again.to, again.flow));
    }
}

/// Checks that the fabric handles the frames of one input.
pub fn check(input: &[u8]) {
    let Some((&choice, input)) = input.split_first() else { return };
    let frames = turns(input).take(FRAMES_MAX).map(|turn| {
        let mut frame = turn.bytes.to_vec();
        frame.resize(frame.len().max(FILLED[usize::from(turn.head >> 2 & 3)]), turn.head);
        judge_alone(&frame);
        (HostId(turn.sender() as u32), frame)
    });
    judge(&MODELS[usize::from(choice) % MODELS.len()], frames.collect());
}
