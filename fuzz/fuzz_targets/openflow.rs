//! Any bytes from switches, of 1.0 and 1.3, several at a time: no panic, whole messages in reply, and the same for any
//! cut and on any thread.
//!
//! The first byte chooses the settings, the second where pieces are cut; `plimsoll_fuzz::turns` describes the rest.
//! With the highest bit of the first, a turn is one message, whose length is made to fit. `make fuzz TARGET=openflow`.
//! crates/chronos-openflow/tests/it/hostile.rs does the same with mutations that know OpenFlow.

use plimsoll_chronos_openflow::{Header, Limits, OpenFlow, OpenFlowSettings, Version, Versions};
use plimsoll_fuzz::turns::fitted;
use plimsoll_fuzz::{Answers, Way, play};

const PARTITIONS: u32 = 4;
const VERSIONS: [Versions; 4] =
    [Versions::ALL, Versions::ALL, Versions::only(Version::V10), Versions::only(Version::V13)];

fn answers(choice: u8, input: &[u8], way: Way) -> Answers {
    let has = |bit: u32| choice >> bit & 1 == 1;
    let settings = OpenFlowSettings {
        versions: VERSIONS[usize::from(choice & 3)],
        message_bytes_max: if has(2) { 128 } else { 512 },
        miss_send_bytes: if has(3) { 64 } else { u16::MAX },
        flow_hard_seconds: if has(4) { 9 } else { 0 },
        addresses: Limits { entries: if has(5) { 3 } else { 64 }, age_seconds: if has(5) { 2 } else { 300 } },
        datapaths_max: if has(6) { 1 } else { 4 },
        ..OpenFlowSettings::default()
    };
    play(OpenFlow::new(settings, PARTITIONS, 7), PARTITIONS, input, way).1
}

/// Writes the length of a message into its header.
fn fit(message: &mut [u8]) {
    let length = message.len().min(usize::from(u16::MAX)) as u16;
    if let [_, _, high, low, ..] = message {
        [*high, *low] = length.to_be_bytes();
    }
}

/// Checks the replies to the messages of one input.
pub fn check(input: &[u8]) {
    let [choice, cuts, input @ ..] = input else { return };
    let fitted = if choice >> 7 == 1 { fitted(input, fit) } else { input.to_vec() };
    let whole = answers(*choice, &fitted, Way::Whole);
    for reply in &whole.connections {
        let mut rest = &reply[..];
        while !rest.is_empty() {
            let header = Header::read(rest).expect("a header");
            rest = rest.get(usize::from(header.length)..).expect("a whole message");
        }
    }
    for way in [Way::Pieces(*cuts), Way::Crossed(*cuts)] {
        assert_eq!(answers(*choice, &fitted, way), whole, "{way:?}");
    }
}
