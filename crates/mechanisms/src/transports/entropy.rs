//! [`Entropy`]: the path that a sender chooses for each packet, as an entropy value that switches hash.
//!
//! ```text
//! next() ──> value ──> packet ──> switches: hash of addresses, connection and value ──> a path
//!   ^                                                                                     │
//!   └── on_ack(value, marked), on_nack(value, at the last hop), on_timeout() <── feedback ┘
//! ```
//!
//! A sender knows no path; it only learns which values met marks, trimming or timeouts. Facts: Ultra Ethernet 1.0 with
//! its published simulator, and REPS (Bonato et al., 2025).

use std::collections::VecDeque;

use plimsoll_units::{Span, Time, mix64};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;

/// The choice of the entropy value of each packet, by the sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EntropyParams {
    /// `flow`: one value, so that a connection keeps its path. `oblivious`: all values in a new order each pass.
    /// `bitmap`: the same, without the values that met marks, trimming or timeouts. `reps`: the last eight values that
    /// came back without a mark, each once, and a random one where there is none. `mixed`: a value that came back
    /// without a mark, or the next of `bitmap`. Default `mixed`, as in the published simulator.
    pub choice: EntropyChoice,
    /// The number of values: a power of two, 1 to 4096. Default 64.
    pub values: u16,
    /// The time after a timeout for which `reps` only repeats the values that it has: 0 or more. Default 10 ms.
    pub frozen: Span,
}

impl Default for EntropyParams {
    fn default() -> EntropyParams {
        EntropyParams { choice: EntropyChoice::Mixed, values: 64, frozen: Span::from_ms(10) }
    }
}

impl EntropyParams {
    /// Checks that the number of values is allowed; an error names `key`.
    ///
    /// # Errors
    /// Names the first key whose value is outside its range.
    pub fn validate(&self, key: &'static str) -> Result<(), InvalidParam> {
        let ok = self.values.is_power_of_two() && self.values <= 4096;
        InvalidParam::unless(ok, key, self.values, "a power of two from 1 to 4096")
    }
}

/// The rule by which entropy values follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntropyChoice {
    /// One value for all packets.
    Flow,
    /// All values, in a new order each pass.
    Oblivious,
    /// All values in a new order each pass, but those that are penalised.
    Bitmap,
    /// The last eight that came back without a mark, each once; a random one where there is none.
    Reps,
    /// One that came back without a mark, or the next of `Bitmap`.
    Mixed,
}

/// The choice of one sender.
#[derive(Debug)]
pub struct Entropy {
    choice: EntropyChoice,
    mask: u16,
    frozen_for: Span,
    /// The word that all draws depend on, and how many there were.
    seed: u64,
    draws: u64,
    walk: Walk,
    /// By value: how often `Bitmap` still skips it. Empty until something is penalised.
    penalties: Vec<u8>,
    /// Values that came back without a mark, the oldest first, for `Mixed`.
    recycled: VecDeque<u16>,
    reps: Reps,
}

/// A pass over all values: the next index, and the word that is XORed with each index.
#[derive(Debug, Default)]
struct Walk {
    index: u16,
    order: u16,
}

/// The values that REPS repeats.
#[derive(Debug, Default)]
struct Reps {
    /// Values that came back, and whether each is still to be used.
    ring: VecDeque<(u16, bool)>,
    /// When exploring begins again.
    frozen_until: Option<Time>,
    /// The place of the next value while frozen.
    turn: usize,
    /// How many random values come before stored ones.
    explores: u32,
}

impl Entropy {
    /// Makes the choice of a sender whose draws depend on `seed` alone.
    pub fn new(params: &EntropyParams, seed: u64) -> Entropy {
        let mut entropy = Entropy {
            choice: params.choice,
            mask: params.values - 1,
            frozen_for: params.frozen,
            seed,
            draws: 0,
            walk: Walk::default(),
            penalties: Vec::new(),
            recycled: VecDeque::new(),
            reps: Reps::default(),
        };
        entropy.walk.order = entropy.random();
        entropy
    }

    /// Returns the value of the next packet, which leaves at `now`.
    pub fn next(&mut self, now: Time) -> u16 {
        match self.choice {
            EntropyChoice::Flow => self.walk.order,
            EntropyChoice::Oblivious => self.walk(),
            EntropyChoice::Bitmap => self.unpenalised(),
            EntropyChoice::Mixed => self.recycled.pop_front().unwrap_or_else(|| self.unpenalised()),
            EntropyChoice::Reps => self.from_ring(now),
        }
    }

    /// A packet with `value` was acknowledged, with or without a mark.
    pub fn on_ack(&mut self, value: u16, is_marked: bool) {
        match (self.choice, is_marked) {
            (EntropyChoice::Bitmap | EntropyChoice::Mixed, true) => self.penalise(value, MARK_PENALTY),
            (EntropyChoice::Mixed, false) => self.recycled.push_back(value),
            (EntropyChoice::Reps, false) => self.store(value),
            _ => {}
        }
    }

    /// A packet with `value` was trimmed: `at_last_hop`, where no other path leads by.
    pub fn on_nack(&mut self, value: u16, at_last_hop: bool) {
        match self.choice {
            EntropyChoice::Bitmap | EntropyChoice::Mixed => self.penalise(value, NACK_PENALTY),
            EntropyChoice::Reps if at_last_hop => self.store(value),
            _ => {}
        }
    }

    /// No answer has arrived for a packet with `value`.
    pub fn on_timeout(&mut self, now: Time, value: u16) {
        match self.choice {
            EntropyChoice::Bitmap | EntropyChoice::Mixed => self.penalise(value, TIMEOUT_PENALTY),
            EntropyChoice::Reps => self.reps.frozen_until = Some(now.saturating_add(self.frozen_for)),
            _ => {}
        }
    }

    /// Returns 16 bits that are well mixed.
    fn random(&mut self) -> u16 {
        self.draws += 1;
        mix64(self.seed.wrapping_add(self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15))) as u16 & self.mask
    }

    fn walk(&mut self) -> u16 {
        let value = self.walk.index ^ self.walk.order;
        self.walk.index += 1;
        if self.walk.index > self.mask {
            self.walk = Walk { index: 0, order: self.random() };
        }
        value
    }

    /// Returns the next value of the walk without a penalty. The first one that is skipped loses a part of its own.
    fn unpenalised(&mut self) -> u16 {
        let mut has_lowered = false;
        for _ in 0..=self.mask {
            let value = self.walk();
            match self.penalties.get_mut(usize::from(value)) {
                None | Some(0) => return value,
                Some(penalty) if !has_lowered => (*penalty, has_lowered) = (*penalty - 1, true),
                Some(_) => {}
            }
        }
        self.walk()
    }

    fn penalise(&mut self, value: u16, by: u8) {
        if self.penalties.is_empty() {
            self.penalties = vec![0; usize::from(self.mask) + 1];
        }
        let penalty = &mut self.penalties[usize::from(value & self.mask)];
        *penalty = (*penalty + by).min(PENALTY_MAX);
    }

    fn store(&mut self, value: u16) {
        if self.reps.ring.len() == RING {
            self.reps.ring.pop_front();
        }
        self.reps.ring.push_back((value, true));
    }

    fn from_ring(&mut self, now: Time) -> u16 {
        let reps = &mut self.reps;
        if let Some(until) = reps.frozen_until {
            if now < until && !reps.ring.is_empty() {
                reps.turn = (reps.turn + 1) % reps.ring.len();
                return reps.ring[reps.turn].0;
            }
            if now >= until {
                *reps = Reps { explores: EXPLORES, ..Reps::default() };
            }
        }
        if reps.explores > 0 {
            reps.explores -= 1;
        } else if let Some((value, is_fresh)) = reps.ring.iter_mut().find(|(_, is_fresh)| *is_fresh) {
            *is_fresh = false;
            return *value;
        }
        self.random()
    }
}

/// The penalties of the published simulator.
const MARK_PENALTY: u8 = 1;
const NACK_PENALTY: u8 = 4;
const TIMEOUT_PENALTY: u8 = 15;
const PENALTY_MAX: u8 = 15;
/// The values that REPS keeps.
const RING: usize = 8;
/// The random values with which REPS begins anew after it was frozen.
const EXPLORES: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy(choice: EntropyChoice, values: u16) -> Entropy {
        Entropy::new(&EntropyParams { choice, values, ..EntropyParams::default() }, 7)
    }

    fn take(entropy: &mut Entropy, count: usize) -> Vec<u16> {
        (0..count).map(|_| entropy.next(Time::ZERO)).collect()
    }

    #[test]
    fn a_flow_keeps_its_value_and_each_oblivious_pass_has_all() {
        let mut flow = entropy(EntropyChoice::Flow, 64);
        let first = flow.next(Time::ZERO);
        assert!(take(&mut flow, 100).iter().all(|value| *value == first));
        let mut oblivious = entropy(EntropyChoice::Oblivious, 64);
        let passes: Vec<Vec<u16>> = (0..4).map(|_| take(&mut oblivious, 64)).collect();
        for pass in &passes {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..64).collect::<Vec<u16>>());
        }
        assert_ne!(passes[0], passes[1]);
    }

    #[test]
    fn a_bitmap_skips_what_is_penalised_as_often_as_that() {
        let mut bitmap = entropy(EntropyChoice::Bitmap, 4);
        bitmap.on_ack(2, true);
        bitmap.on_nack(3, false);
        let counts =
            |values: Vec<u16>| [0, 1, 2, 3].map(|value| values.iter().filter(|v| **v == value).count());
        // Of 2 and 3 that are skipped in one call, the first loses a part of its penalty.
        let early = counts(take(&mut bitmap, 4));
        assert_eq!(early[3], 0);
        assert!(early[2] <= 1);
        let late = counts(take(&mut bitmap, 400));
        assert!(late.iter().all(|count| *count > 90), "{late:?}");
    }

    #[test]
    fn a_mixed_choice_prefers_values_that_came_back() {
        let mut mixed = entropy(EntropyChoice::Mixed, 64);
        [9, 9, 33].into_iter().for_each(|value| mixed.on_ack(value, false));
        mixed.on_ack(40, true);
        assert_eq!(take(&mut mixed, 3), [9, 9, 33]);
        assert!(!take(&mut mixed, 63).contains(&40));
    }

    #[test]
    fn reps_uses_a_value_once_keeps_eight_and_repeats_them_while_frozen() {
        let mut reps = entropy(EntropyChoice::Reps, 4096);
        (0..10).for_each(|value| reps.on_ack(value, false));
        reps.on_ack(77, true);
        assert_eq!(take(&mut reps, 8), (2..10).collect::<Vec<u16>>());
        let beyond = take(&mut reps, 8);
        assert!(beyond.iter().any(|value| !(2..10).contains(value)), "random values follow: {beyond:?}");
        let at = Time::ZERO + Span::from_us(50);
        reps.on_timeout(at, 5);
        let frozen: Vec<u16> = (0..16).map(|_| reps.next(at)).collect();
        assert_eq!(frozen[..8], frozen[8..]);
        let mut sorted = frozen[..8].to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (2..10).collect::<Vec<u16>>());
        let thawed = at + Span::from_ms(10);
        reps.on_ack(5, false);
        let fresh: Vec<u16> = (0..16).map(|_| reps.next(thawed)).collect();
        assert!(fresh.iter().filter(|value| (2..10).contains(*value)).count() < 3, "{fresh:?}");
        reps.on_nack(123, true);
        reps.on_nack(124, false);
        assert_eq!(reps.next(thawed), 123);
    }
}
