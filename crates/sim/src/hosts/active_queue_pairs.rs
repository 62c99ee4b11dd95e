//! [`ActiveQueuePairs`]: the queue pairs that each NIC sends from, where a NIC has a limit (`roce.nic.active`).
//!
//! ```text
//! data to send ──> active, if there is a place ──> the NIC takes their packets in turn
//!                   ^   │ a message has ended, the turn (`roce.nic.turn`) is over, or no data is left
//!                   │   v
//!                  line: all others, in the order in which they came
//! ```

use std::collections::{BTreeMap, VecDeque};

use plimsoll_fabric::net::HostId;
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::Bytes;

/// An end of a connection, by the connection's number.
type Sender = (u32, End);

/// The active queue pairs of all NICs.
#[derive(Debug, Default)]
pub(super) struct ActiveQueuePairs {
    by_nic: BTreeMap<u32, NicSenders>,
}

#[derive(Debug, Default)]
struct NicSenders {
    /// The payload that each one that may send has sent in its turn, by the number of the connection and whether it is
    /// the server's end.
    active: BTreeMap<(u32, bool), u64>,
    line: VecDeque<Sender>,
}

impl ActiveQueuePairs {
    /// Returns whether `sender`, which has a packet for the NIC `nic`, is one of the `limit` queue pairs that it sends
    /// from; otherwise it waits in line.
    pub(super) fn admits(&mut self, nic: HostId, limit: u32, sender: Sender) -> bool {
        let NicSenders { active, line } = self.by_nic.entry(nic.0).or_default();
        if active.contains_key(&key(sender)) {
            return true;
        }
        let has_place = active.len() < limit as usize;
        if has_place {
            active.insert(key(sender), 0);
        } else if !line.contains(&sender) {
            line.push_back(sender);
        }
        has_place
    }

    /// `sender` has sent `bytes` bytes more. Returns whether its turn of `turn` bytes is over.
    pub(super) fn ends_turn(&mut self, nic: HostId, sender: Sender, bytes: u32, turn: Option<Bytes>) -> bool {
        let Some(turn) = turn else { return false };
        let NicSenders { active, .. } = self.by_nic.entry(nic.0).or_default();
        let Some(sent) = active.get_mut(&key(sender)) else { return false };
        *sent += u64::from(bytes);
        *sent >= turn.get()
    }

    /// `sender` has sent a message to its end or its turn is over, or has no data left: returns the queue pair that
    /// takes its place, which is to send now.
    pub(super) fn leave(&mut self, nic: HostId, sender: Sender) -> Option<Sender> {
        let NicSenders { active, line } = self.by_nic.get_mut(&nic.0)?;
        active.remove(&key(sender))?;
        let next = line.pop_front();
        active.extend(next.map(|next| (key(next), 0)));
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

    #[test]
    fn a_turn_is_over_after_its_bytes() {
        let mut pairs = ActiveQueuePairs::default();
        let [a, b] = [0, 1].map(|number| (number, End::Client));
        let turn = Some(Bytes::new(2_500));
        assert!(pairs.admits(NIC, 1, a) && !pairs.admits(NIC, 1, b));
        let sends = |pairs: &mut ActiveQueuePairs, sender| pairs.ends_turn(NIC, sender, 1_000, turn);
        assert_eq!([(); 3].map(|()| sends(&mut pairs, a)), [false, false, true]);
        assert_eq!(pairs.leave(NIC, a), Some(b));
        assert!(!pairs.admits(NIC, 1, a));
        assert_eq!([(); 3].map(|()| sends(&mut pairs, b)), [false, false, true]);
        assert_eq!(pairs.leave(NIC, b), Some(a));
        assert!(!sends(&mut pairs, a), "a new turn");
        assert!(!pairs.ends_turn(NIC, a, 10_000, None), "a message to its end");
    }
}
