//! [`Datapath`]: a learning switch's decision on a packet, without the protocol.

use plimsoll_openflow::Ethernet;

use crate::addresses::{Addresses, Learned, Limits};

/// The state of one switch.
#[derive(Default)]
pub struct Datapath {
    /// The addresses that were learned, with their ports.
    pub addresses: Addresses,
    /// The time of its last message, in seconds since the server's start.
    pub heard_seconds: u32,
}

/// The decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet is dropped: too short, for the bridge itself, or its receiver is behind the port that it arrived by.
    Drop,
    /// To every port, since the receiver's port is unknown, or the receiver is a group.
    Flood,
    /// To the receiver's port; a flow forwards the following packets.
    Forward(u32),
}

/// The verdict on a packet, and the change that its sender made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The decision on the packet.
    pub verdict: Verdict,
    /// True if the sender was behind another port before, so that flows towards it are wrong.
    pub moved: bool,
}

impl Datapath {
    /// Handles a packet that arrived by `port`.
    pub fn on_packet(&mut self, frame: &Ethernet, port: u32, now_seconds: u32, limits: Limits) -> Decision {
        self.heard_seconds = now_seconds;
        let moved =
            !frame.from_nobody() && self.addresses.learn(frame, port, now_seconds, limits) == Learned::Moved;
        let verdict = if frame.to_bridge() {
            Verdict::Drop
        } else if frame.to_group() {
            Verdict::Flood
        } else {
            match self.addresses.find(frame, now_seconds, limits) {
                None => Verdict::Flood,
                Some(behind) if behind == port => Verdict::Drop,
                Some(behind) => Verdict::Forward(behind),
            }
        };
        Decision { verdict, moved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { entries: 100, age_seconds: 300 };

    #[test]
    fn packets_go_where_their_receivers_are() {
        let (a, b, all) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [0xff; 6]);
        let (bridge, group) = ([1, 0x80, 0xc2, 0, 0, 0xe], [1, 0, 0x5e, 0, 0, 1]);
        let stays = |verdict| Decision { verdict, moved: false };
        let cases = [
            ("nobody knows b", a, b, 1, stays(Verdict::Flood)),
            ("a is known", b, a, 2, stays(Verdict::Forward(1))),
            ("now both are", a, b, 1, stays(Verdict::Forward(2))),
            ("a broadcast", a, all, 1, stays(Verdict::Flood)),
            ("a group", a, group, 1, stays(Verdict::Flood)),
            ("spanning tree and LLDP stay", a, bridge, 1, stays(Verdict::Drop)),
            ("b is behind the same port", a, b, 2, Decision { verdict: Verdict::Drop, moved: true }),
            ("a group sends nothing", group, b, 3, stays(Verdict::Forward(2))),
        ];
        let mut datapath = Datapath::default();
        for (what, source, destination, port, expected) in cases {
            let frame = Ethernet { source, destination, vlan: None };
            assert_eq!(datapath.on_packet(&frame, port, 5, LIMITS), expected, "{what}");
        }
    }
}
