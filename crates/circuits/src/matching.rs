//! [`Matching`]: which sender a circuit switch connects to which receiver.

use std::fmt;

/// The receiver of each sender that has a circuit. No receiver has two senders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Matching(Vec<Option<u32>>);

impl Matching {
    /// Returns the matching of `ports` ports without a circuit.
    pub fn dark(ports: usize) -> Matching {
        Matching(vec![None; ports])
    }

    /// Returns the matching that gives each sender this receiver.
    ///
    /// # Panics
    /// If two senders have the same receiver, or one is not a port.
    pub fn new(receivers: Vec<Option<u32>>) -> Matching {
        let mut taken = vec![false; receivers.len()];
        for receiver in receivers.iter().flatten() {
            let twice = std::mem::replace(&mut taken[*receiver as usize], true);
            assert!(!twice, "port {receiver} receives from two senders");
        }
        Matching(receivers)
    }

    /// Returns the matching of a graph, which gives no receiver to two senders.
    pub(crate) fn of_graph(receivers: impl Iterator<Item = Option<u32>>) -> Matching {
        Matching(receivers.collect())
    }

    /// Returns the same matching without the circuits that `keeps` does not keep.
    pub fn filtered(&self, keeps: impl Fn(usize, usize) -> bool) -> Matching {
        let mut receivers = self.0.clone();
        for (sender, receiver) in self.circuits().filter(|(sender, receiver)| !keeps(*sender, *receiver)) {
            debug_assert_eq!(receivers[sender], Some(receiver as u32));
            receivers[sender] = None;
        }
        Matching(receivers)
    }

    /// Returns the number of ports.
    pub fn ports(&self) -> usize {
        self.0.len()
    }

    /// Returns the receiver to which `sender` has a circuit.
    #[inline]
    pub fn receiver(&self, sender: usize) -> Option<u32> {
        self.0[sender]
    }

    /// Returns the receivers by sender.
    pub fn receivers(&self) -> &[Option<u32>] {
        &self.0
    }

    /// Returns sender and receiver of every circuit.
    pub fn circuits(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().enumerate().filter_map(|(sender, receiver)| receiver.map(|to| (sender, to as usize)))
    }
}

impl fmt::Display for Matching {
    /// Writes sender and receiver of each circuit: `0>3 2>1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (sender, receiver)) in self.circuits().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{sender}>{receiver}")?;
        }
        Ok(())
    }
}
