//! [`CreditLine`] and [`Grants`]: the credit of a sender, and that which its receiver grants it (Ultra Ethernet 1.0,
//! receiver credit-based congestion control).
//!
//! ```text
//! sender: target = granted so far + what it wants ── on every data packet ──> receiver: wants() ──> PullPacer
//!         credit += newly granted                 <── PULL: granted so far ── grant() <── its turn
//! ```
//!
//! Both count the credit granted from the beginning on, in quanta, so that the next PULL makes up for a lost one.

use super::params::RcccParams;
use crate::transports::credit::CreditWant;

/// The credit of a sender, in bytes on the wire. A packet may leave while it is above zero.
#[derive(Debug)]
pub(super) struct CreditLine {
    /// Credit that was granted and not used. Less than zero after a packet that was larger than the rest.
    granted: i64,
    /// Credit that a sender has before the first answer.
    speculative: i64,
    is_speculating: bool,
    /// The quanta granted from the beginning on.
    pulled: u64,
    quantum: u64,
    /// Speculative credit that was dropped, and bytes sent.
    expired: u64,
    used: u64,
}

impl CreditLine {
    /// Makes the credit of a sender that may send `speculative` bytes before it has heard anything.
    pub(super) fn new(params: &RcccParams, speculative: u64) -> CreditLine {
        CreditLine {
            granted: 0,
            speculative: speculative as i64,
            is_speculating: true,
            pulled: 0,
            quantum: params.quantum.get(),
            expired: 0,
            used: 0,
        }
    }

    /// Returns whether a packet may leave, of whichever size.
    pub(super) fn has_credit(&self) -> bool {
        self.granted + self.speculative > 0
    }

    /// A packet of `size` bytes leaves.
    pub(super) fn on_sent(&mut self, size: u64) {
        self.used += size;
        let size = size as i64;
        let of_granted =
            if self.is_speculating && self.speculative > 0 { self.granted.clamp(0, size) } else { size };
        self.granted -= of_granted;
        self.speculative -= size - of_granted;
    }

    /// The first answer of the receiver has arrived: the rest of the speculative credit is dropped.
    pub(super) fn on_feedback(&mut self) {
        if std::mem::take(&mut self.is_speculating) {
            self.expired += self.speculative.max(0) as u64;
            self.granted += self.speculative.min(0);
            self.speculative = 0;
        }
    }

    /// A PULL says that `pulled` quanta were granted from the beginning on, of which it has the low 32 bits.
    pub(super) fn on_pull(&mut self, pulled: u32) {
        let new = pulled.wrapping_sub(self.pulled as u32);
        // Of two PULLs that overtook each other the older one says nothing new.
        if new < u32::MAX / 2 {
            self.pulled += u64::from(new);
            self.granted += (u64::from(new) * self.quantum) as i64;
        }
    }

    /// Returns the quanta that shall have been granted in the end: enough for `wanted` bytes, of which a NIC with
    /// `share` active senders has each ask for its share, though for no less than it lacks of a packet of `mtu` bytes: a
    /// share that leaves a sender without credit would leave it without a packet to ask for more. While nothing was
    /// heard it is for at least a packet. They are at most [`QUANTA_AHEAD`] more than were granted.
    pub(super) fn target(&self, wanted: u64, share: u32, mtu: u64) -> u64 {
        let lacks = wanted as i64 - self.granted - self.speculative;
        let lacks = if self.is_speculating && wanted > 0 { lacks.max(mtu as i64) } else { lacks };
        let lacks = lacks.max(0) as u64;
        let lacks = (lacks / u64::from(share.max(1))).max(lacks.min(mtu));
        self.pulled + lacks.div_ceil(self.quantum).min(QUANTA_AHEAD)
    }

    /// Returns granted, used and expired credit, and the rest of it, in bytes; less than zero where a packet was larger
    /// than the rest.
    #[cfg(test)]
    pub(super) fn accounts(&self) -> [i64; 4] {
        let granted = (self.pulled * self.quantum) as i64;
        [granted, self.used as i64, self.expired as i64, self.granted + self.speculative]
    }
}

/// The most quanta by which a target, and what is granted in advance, may be ahead. A packet holds the low 16 bits of a
/// target: behind it are at most as many granted ahead, as many in advance, and as many again for trimmed packets.
pub(super) const QUANTA_AHEAD: u64 = 10_000;

/// Credit that a receiver has granted a sender.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// The quanta granted from the beginning on, and the sender's target.
    granted: u64,
    target: u64,
    /// The list of the host's pacer in which the sender is.
    pub(super) listed: Option<CreditWant>,
}

impl Grants {
    /// A packet has brought the low 16 bits of its sender's target.
    pub(super) fn on_target(&mut self, target: u16) {
        let ahead = target.wrapping_sub(self.target as u16);
        if ahead < u16::MAX / 2 {
            self.target += u64::from(ahead);
        }
    }

    /// A packet of `size` bytes was trimmed: its sender needs credit for it once more.
    pub(super) fn on_trimmed(&mut self, params: &RcccParams, size: u64) {
        self.target = self.target.max(self.granted) + size.div_ceil(params.quantum.get());
    }

    /// Returns why the sender is to get credit, if it is; in advance it gets up to `most` bytes.
    pub(super) fn wants(&self, params: &RcccParams, most: u64) -> Option<CreditWant> {
        if self.granted < self.target {
            return Some(CreditWant::Backlog);
        }
        let in_advance = self.granted - self.target;
        let may_have_more = in_advance * params.quantum.get() < most && in_advance < QUANTA_AHEAD;
        (self.target > 0 && may_have_more).then_some(CreditWant::Advance)
    }

    /// Grants the quanta of a PULL, or the rest of the target. Returns the quanta.
    pub(super) fn grant(&mut self, params: &RcccParams) -> u64 {
        let all = u64::from(params.quanta);
        let quanta = if self.granted < self.target { all.min(self.target - self.granted) } else { all };
        self.granted += quanta;
        quanta
    }

    /// Returns the low bits of the quanta granted from the beginning on.
    pub(super) fn pulled(&self) -> u32 {
        self.granted as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn speculative_credit_ends_with_the_first_answer() {
        let params = RcccParams::default();
        let mut line = CreditLine::new(&params, 10_000);
        for _ in 0..2 {
            assert!(line.has_credit());
            line.on_sent(4_150);
        }
        line.on_feedback();
        assert!(!line.has_credit());
        assert_eq!(line.accounts(), [0, 8_300, 1_700, 0]);
        line.on_pull(16);
        assert!(line.has_credit());
        line.on_sent(4_150);
        assert_eq!(line.accounts(), [4_096, 12_450, 1_700, -54]);
        // A PULL that was overtaken grants nothing again.
        line.on_pull(15);
        assert!(!line.has_credit());
    }

    #[test]
    fn a_target_asks_for_what_is_lacking_divided_among_a_nics_senders() {
        let params = RcccParams::default();
        let mut line = CreditLine::new(&params, 8_192);
        // While nothing was heard, at least a packet.
        assert_eq!(line.target(4_000, 1, 4_150), 17);
        line.on_feedback();
        assert_eq!(line.target(51_200, 1, 4_150), 200);
        assert_eq!(line.target(51_200, 4, 4_150), 50);
        // A share of less than a packet would not let the next packet leave, which alone can ask for more.
        assert_eq!(line.target(51_200, 100, 4_150), 17);
        assert_eq!(line.target(300, 100, 4_150), 2);
        line.on_pull(64);
        assert_eq!(line.target(51_200, 1, 4_150), 64 + 136);
        assert_eq!(line.target(0, 1, 4_150), 64);
    }

    #[test]
    fn targets_of_large_windows_fit_into_their_bits() {
        let params = RcccParams::default();
        let (mut line, mut grants) = (CreditLine::new(&params, 0), Grants::default());
        line.on_feedback();
        // Ten rounds of which every PULL is lost but the last.
        for _ in 0..10 {
            let target = line.target(1 << 40, 1, 4_150);
            grants.on_target(target as u16);
            assert_eq!(grants.target, target);
            while grants.wants(&params, 1 << 40).is_some() {
                grants.grant(&params);
            }
            (0..500).for_each(|_| grants.on_trimmed(&params, 4_150));
            grants.on_target(line.target(1 << 40, 1, 4_150) as u16);
            assert!(grants.target < target + 2 * QUANTA_AHEAD + 10_000, "{} {target}", grants.target);
            line.on_pull(grants.pulled());
            grants.target = grants.granted;
        }
        assert!(line.accounts()[0] > 10 * QUANTA_AHEAD as i64 * 256);
    }

    #[test]
    fn a_receiver_grants_up_to_the_target_then_some_in_advance() {
        let params = RcccParams::default();
        let mut grants = Grants::default();
        assert_eq!(grants.wants(&params, 32_768), None);
        grants.on_target(100);
        assert_eq!(grants.wants(&params, 32_768), Some(CreditWant::Backlog));
        assert_eq!((grants.grant(&params), grants.grant(&params)), (64, 36));
        let mut advance = 0;
        while grants.wants(&params, 32_768) == Some(CreditWant::Advance) {
            advance += grants.grant(&params);
        }
        assert_eq!(advance * 256, 32_768);
        // A trimmed packet is a backlog again, and an old target changes nothing.
        grants.on_trimmed(&params, 4_150);
        grants.on_target(100);
        assert_eq!((grants.wants(&params, 32_768), grants.grant(&params)), (Some(CreditWant::Backlog), 17));
    }

    proptest! {
        /// Credit is conserved, whichever PULLs are lost or overtake each other.
        #[test]
        fn credit_is_conserved(
            steps in prop::collection::vec((0u8..4, any::<bool>()), 1..200),
            speculative in 0u64..100_000,
        ) {
            let params = RcccParams::default();
            let (mut line, mut grants) = (CreditLine::new(&params, speculative), Grants::default());
            let mut in_flight: Vec<u32> = Vec::new();
            for (step, choice) in steps {
                match step {
                    0 if line.has_credit() => {
                        line.on_sent(4_150);
                        grants.on_target(line.target(500_000, 1, 4_150) as u16);
                    }
                    1 => {
                        grants.grant(&params);
                        in_flight.push(grants.pulled());
                    }
                    2 if choice => { in_flight.pop(); }
                    2 | 3 if !in_flight.is_empty() => {
                        line.on_feedback();
                        let at = if choice { 0 } else { in_flight.len() - 1 };
                        line.on_pull(in_flight.remove(at));
                    }
                    _ => {}
                }
                let [granted, used, expired, left] = line.accounts();
                prop_assert_eq!(granted + speculative as i64, used + expired + left);
            }
            // The last PULL makes all that were lost good.
            line.on_feedback();
            line.on_pull(grants.pulled());
            prop_assert_eq!(line.accounts()[0], (grants.granted * 256) as i64);
        }
    }
}
