//! [`ActiveQueuePairs`]: the queue pairs that each NIC sends from, where a NIC has a limit (`roce.nic.active`).
//!
//! ```text
//! data to send ──> active, if there is a place ──> the NIC takes their packets in turn
//!                   ^   │ a message has ended, or no data is left
//!                   │   v
//!                  line: all others, in the order in which they came
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_fabric::net::HostId;
use plimsoll_traffic::ConnectionEnd as End;

/// An end of a connection, by the connection's number.
type Sender = (u32, End);

/// The active queue pairs of all NICs.
#[derive(Debug, Default)]
pub(super) struct ActiveQueuePairs {
    by_nic: BTreeMap<u32, NicSenders>,
}

#[derive(Debug, Default)]
struct NicSenders {
    /// Those that may send: the number of the connection, and whether it is the server's end.
    active: BTreeSet<(u32, bool)>,
    line: VecDeque<Sender>,
}

impl ActiveQueuePairs {
    /// Returns whether `sender`, which has a packet for the NIC `nic`, is one of the `limit` queue pairs that it sends
    /// from; otherwise it waits in line.
    pub(super) fn admits(&mut self, nic: HostId, limit: u32, sender: Sender) -> bool {
        let NicSenders { active, line } = self.by_nic.entry(nic.0).or_default();
        if active.contains(&key(sender)) {
            return true;
        }
        let has_place = active.len() < limit as usize;
        if has_place {
            active.insert(key(sender));
        } else if !line.contains(&sender) {
            line.push_back(sender);
        }
        has_place
    }

    /// `sender` has sent a message to its end, or has no data left: returns the queue pair that takes its place, which
    /// is to send now.
    pub(super) fn leave(&mut self, nic: HostId, sender: Sender) -> Option<Sender> {
        let NicSenders { active, line } = self.by_nic.get_mut(&nic.0)?;
        if !active.remove(&key(sender)) {
            return None;
        }
        let next = line.pop_front();
        active.extend(next.map(key));
        next
    }
}

fn key((number, end): Sender) -> (u32, bool) {
    (number, end == End::Server)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIC: HostId = HostId(3);

    #[test]
    fn a_place_changes_hands_when_a_message_has_ended() {
        let mut pairs = ActiveQueuePairs::default();
        let [a, b, c] = [0, 1, 2].map(|number| (number, End::Client));
        assert!(pairs.admits(NIC, 1, a));
        assert!(!pairs.admits(NIC, 1, b));
        assert!(pairs.admits(HostId(4), 1, b), "a limit is a NIC's own");
        assert!(!pairs.admits(NIC, 1, c));
        assert!(!pairs.admits(NIC, 1, b), "it keeps its place in the line");
        assert!(pairs.admits(NIC, 1, a), "within a message");
        assert_eq!(pairs.leave(NIC, a), Some(b));
        assert!(!pairs.admits(NIC, 1, a) && pairs.admits(NIC, 1, b));
        assert_eq!(pairs.leave(NIC, b), Some(c));
        assert_eq!(pairs.leave(NIC, b), None, "it has no place");
        assert_eq!(pairs.leave(NIC, c), Some(a));
        assert_eq!(pairs.leave(NIC, a), None, "nobody waits");
        assert!(pairs.admits(NIC, 2, a) && pairs.admits(NIC, 2, b) && !pairs.admits(NIC, 2, c));
    }
}
