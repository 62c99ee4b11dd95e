//! [`Entropy`]: the path that a sender chooses for each packet, as an entropy value that switches hash.
//!
//! ```text
//! next() ──> value ──> packet ──> switches: hash of addresses, connection and value ──> a path
//!   ^                                                                                     │
//!   └── on_ack(value, marked), on_nack(value, at the last hop), on_timeout() <── feedback ┘
//! ```
//!
//! A sender knows no path; it only learns which values met marks, trimming or timeouts. Or a value is a [`PathLabel`]:
//! then it says which link the packet takes at each tier, as a source route does, and every path has one value. Facts:
//! Ultra Ethernet 1.0 with its published simulator, REPS (Bonato et al., 2025), and NDP (Handley et al., SIGCOMM 2017).

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
    /// without a mark, or the next of `bitmap`. `random`: each drawn by itself. `permutation`: all values in a random
    /// order, shuffled anew each pass. `penalties`: the same, without the values whose packets are trimmed more often
    /// than those of others (NDP). Default `mixed`, as in the published simulator.
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
    /// One that came back without a mark, or the next of `bitmap`.
    Mixed,
    /// Each drawn by itself.
    Random,
    /// All values in a random order, shuffled anew each pass.
    Permutation,
    /// The same, without those whose packets are trimmed more often than others.
    Penalties,
}

impl EntropyChoice {
    /// Returns whether the values may be any number, as labels of paths are; otherwise it is a power of two.
    pub fn takes_labels(self) -> bool {
        use EntropyChoice::{Flow, Penalties, Permutation, Random};
        matches!(self, Flow | Random | Permutation | Penalties)
    }
}

/// A value that names a path: the link that the packet takes at the first tier at which there is a choice, and at the
/// second. Both count from 0, and are taken modulo the links that a switch has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathLabel(u16);

impl PathLabel {
    /// The most links between which a label can choose at a tier.
    pub const LINKS: u32 = 128;

    /// Returns the label of a value; `None` for a value that is hashed.
    #[inline]
    pub fn of(value: u32) -> Option<PathLabel> {
        (value & LABEL > 0).then_some(PathLabel(value as u16))
    }

    /// Returns the number of the link at tier 0 or 1.
    #[inline]
    pub fn link(self, tier: u32) -> u32 {
        u32::from(self.0) >> (LABEL_BITS * tier.min(1)) & (PathLabel::LINKS - 1)
    }
}

/// The links among which the packets of a sender choose at the tiers on their way: 1 where there is no choice, and at
/// most [`PathLabel::LINKS`] each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathChoices(pub [u16; 2]);

/// The state of one sender's choice: the feedback of its packets decides on the next value.
#[derive(Debug)]
pub struct Entropy {
    choice: EntropyChoice,
    /// The values, and the largest one, which is a mask where they are a power of two.
    values: u16,
    mask: u16,
    /// The links at the first tier, where values are labels.
    labels: Option<u16>,
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
    shuffled: Shuffled,
    /// By value, for `Penalties`. Empty until the first feedback.
    trims: Vec<PathTrims>,
    /// The acknowledgements and trimmed packets of all values.
    trims_of_all: [u32; 2],
}

/// A pass over all values: the next index, and the word that is XORed with each index.
#[derive(Debug, Default)]
struct Walk {
    index: u16,
    order: u16,
}

/// A pass over all values in a random order.
#[derive(Debug, Default)]
struct Shuffled {
    order: Vec<u16>,
    place: usize,
}

/// The feedback of one path, and how often it is skipped for it.
#[derive(Clone, Copy, Debug, Default)]
struct PathTrims {
    acks: u32,
    /// Trimmed packets; one that was sent back counts three times.
    trims: u32,
    /// How often the value is skipped between two uses, and how often still until the next.
    avoid: u32,
    skips: u32,
}

/// The last values that came back without a mark, which REPS uses once each, and while frozen again and again.
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
            values: params.values,
            mask: params.values - 1,
            labels: None,
            frozen_for: params.frozen,
            seed,
            draws: 0,
            walk: Walk::default(),
            penalties: Vec::new(),
            recycled: VecDeque::new(),
            reps: Reps::default(),
            shuffled: Shuffled::default(),
            trims: Vec::new(),
            trims_of_all: [0; 2],
        };
        entropy.walk.order = entropy.random();
        entropy
    }

    /// Makes the choice of a sender whose values are labels of the paths, one for each, and whose draws depend on
    /// `seed` alone.
    pub fn labelled(choice: EntropyChoice, PathChoices([first, second]): PathChoices, seed: u64) -> Entropy {
        assert!(choice.takes_labels(), "{choice:?} takes a power of two of values");
        let values = first * second;
        let params = EntropyParams { choice, values, ..EntropyParams::default() };
        let mut entropy = Entropy { labels: Some(first), ..Entropy::new(&params, seed) };
        entropy.walk.order = entropy.below(values);
        entropy
    }

    /// Returns the value of the next packet, which leaves at `now`.
    pub fn next(&mut self, now: Time) -> u16 {
        let value = self.next_value(now);
        match self.labels {
            None => value,
            Some(first) => LABEL as u16 | (value % first) | ((value / first) << LABEL_BITS),
        }
    }

    /// Returns the value of `carried`, which a packet brings back.
    fn value_of(&self, carried: u16) -> u16 {
        match (self.labels, PathLabel::of(carried.into())) {
            (Some(first), Some(label)) => (label.link(0) as u16 + label.link(1) as u16 * first) % self.values,
            _ => carried % self.values,
        }
    }

    fn next_value(&mut self, now: Time) -> u16 {
        match self.choice {
            EntropyChoice::Flow => self.walk.order,
            EntropyChoice::Oblivious => self.walk(),
            EntropyChoice::Bitmap => self.unpenalised(),
            EntropyChoice::Mixed => self.recycled.pop_front().unwrap_or_else(|| self.unpenalised()),
            EntropyChoice::Reps => self.repeated(now),
            EntropyChoice::Random => self.below(self.values),
            EntropyChoice::Permutation => self.shuffled(),
            EntropyChoice::Penalties => self.unavoided(),
        }
    }

    /// A packet with `value` was acknowledged, with or without a mark.
    pub fn on_ack(&mut self, value: u16, is_marked: bool) {
        match (self.choice, is_marked) {
            (EntropyChoice::Bitmap | EntropyChoice::Mixed, true) => self.penalise(value, MARK_PENALTY),
            (EntropyChoice::Mixed, false) => self.recycled.push_back(value),
            (EntropyChoice::Reps, false) => self.store(value),
            (EntropyChoice::Penalties, _) => self.count(value, [1, 0]),
            _ => {}
        }
    }

    /// A packet with `value` was trimmed: `at_last_hop`, where no other path leads by.
    pub fn on_nack(&mut self, value: u16, at_last_hop: bool) {
        match self.choice {
            EntropyChoice::Bitmap | EntropyChoice::Mixed => self.penalise(value, NACK_PENALTY),
            EntropyChoice::Reps if at_last_hop => self.store(value),
            EntropyChoice::Penalties => self.count(value, [0, 1]),
            _ => {}
        }
    }

    /// A packet with `value` was sent back, as not even its header had room.
    pub fn on_bounce(&mut self, value: u16) {
        match self.choice {
            EntropyChoice::Penalties => self.count(value, [0, BOUNCED_TRIMS]),
            _ => self.on_nack(value, false),
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

    /// Returns 64 bits that are well mixed.
    fn draw(&mut self) -> u64 {
        self.draws += 1;
        mix64(self.seed.wrapping_add(self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns a random value, where values are a power of two.
    fn random(&mut self) -> u16 {
        self.draw() as u16 & self.mask
    }

    /// Returns a random number below `end`.
    fn below(&mut self, end: u16) -> u16 {
        ((u64::from(self.draw() as u32) * u64::from(end)) >> 32) as u16
    }

    /// Returns the next value of the present permutation; behind its end it is shuffled.
    fn shuffled(&mut self) -> u16 {
        if self.shuffled.place == self.shuffled.order.len() {
            let mut order = std::mem::take(&mut self.shuffled.order);
            if order.is_empty() {
                order = (0..self.values).collect();
            }
            for end in (2..=self.values).rev() {
                order.swap(usize::from(end) - 1, self.below(end).into());
            }
            self.shuffled = Shuffled { order, place: 0 };
        }
        self.shuffled.place += 1;
        self.shuffled.order[self.shuffled.place - 1]
    }

    /// Returns the next value of the permutations that is not to be skipped.
    fn unavoided(&mut self) -> u16 {
        if self.trims.is_empty() {
            return self.shuffled();
        }
        // A value that is skipped very often ends the search, which must not be long.
        for _ in 0..SKIPS_MAX {
            let value = self.shuffled();
            let of_value = &mut self.trims[usize::from(value)];
            if of_value.skips == 0 {
                of_value.skips = of_value.avoid;
                return value;
            }
            of_value.skips -= 1;
        }
        self.shuffled()
    }

    /// Counts feedback of `carried`, and judges its path: it is bad if more of its packets were trimmed than of others.
    fn count(&mut self, carried: u16, [acks, trims]: [u32; 2]) {
        if self.trims.is_empty() {
            self.trims = vec![PathTrims::default(); self.values.into()];
        }
        let value = self.value_of(carried);
        let of_value = &mut self.trims[usize::from(value)];
        (of_value.acks, of_value.trims) = (of_value.acks + acks, of_value.trims + trims);
        let [all_acks, all_trims] = &mut self.trims_of_all;
        (*all_acks, *all_trims) = (*all_acks + acks, *all_trims + trims);
        let percent = |trims: u32, acks: u32| u64::from(trims) * 100 / u64::from(acks);
        let own = if of_value.acks > NOISE_ACKS { percent(of_value.trims, of_value.acks) } else { 0 };
        let values = u32::from(self.values);
        let [mean_acks, mean_trims] = [*all_acks / values, *all_trims / values];
        let mean = if mean_acks > 0 { percent(mean_trims, mean_acks) } else { 100 };
        let is_judged = of_value.acks + of_value.trims > NOISE_FEEDBACK;
        let is_bad = is_judged && own > BAD_PERCENT && own * 100 > mean * BAD_OF_MEAN_PERCENT;
        of_value.avoid = if is_bad { of_value.avoid + 1 } else { of_value.avoid.saturating_sub(1) };
        if !is_bad {
            of_value.skips = of_value.skips.min(of_value.avoid);
        }
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

    fn repeated(&mut self, now: Time) -> u16 {
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
/// NDP's thresholds: acknowledgements without which a share is none, feedback without which no path is judged, and the
/// percentages of trimmed packets, per acknowledged one and of the mean of all paths, above which a path is bad.
const NOISE_ACKS: u32 = 10;
const NOISE_FEEDBACK: u32 = 100;
const BAD_PERCENT: u64 = 30;
const BAD_OF_MEAN_PERCENT: u64 = 125;
/// The trimmed packets as which one counts that was sent back.
const BOUNCED_TRIMS: u32 = 3;
/// The values in a row that are skipped at most.
const SKIPS_MAX: u32 = 1 << 16;
/// The bit of a value that is a label, and the bits for the link of each tier in one.
const LABEL: u32 = 0x8000;
const LABEL_BITS: u32 = 7;
/// How many values that came back REPS keeps.
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
    fn each_pass_of_a_permutation_has_all_values_in_an_order_of_its_own() {
        let mut permutation = entropy(EntropyChoice::Permutation, 32);
        let passes: Vec<Vec<u16>> = (0..4).map(|_| take(&mut permutation, 32)).collect();
        for pass in &passes {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..32).collect::<Vec<u16>>());
        }
        assert!(passes.windows(2).all(|pair| pair[0] != pair[1]));
        let mut random = entropy(EntropyChoice::Random, 32);
        let mut drawn = take(&mut random, 3_200);
        drawn.sort_unstable();
        let counts: Vec<usize> = drawn.chunk_by(|a, b| a == b).map(<[u16]>::len).collect();
        assert!(counts.len() == 32 && counts.iter().all(|count| (50..150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_label_names_a_link_at_each_tier_and_every_path_has_one() {
        let mut labels = Entropy::labelled(EntropyChoice::Permutation, PathChoices([6, 3]), 3);
        let mut paths: Vec<[u32; 2]> = take(&mut labels, 18)
            .into_iter()
            .map(|value| PathLabel::of(value.into()).expect("a label"))
            .map(|label| [0, 1].map(|tier| label.link(tier)))
            .collect();
        paths.sort_unstable();
        let all: Vec<[u32; 2]> = (0..6).flat_map(|a| (0..3).map(move |b| [a, b])).collect();
        assert_eq!(paths, all);
        assert_eq!(PathLabel::of(4_095), None);
        assert!((0..18).all(|value| {
            let carried = LABEL as u16 | (value % 6) | ((value / 6) << LABEL_BITS);
            labels.value_of(carried) == value
        }));
    }

    #[test]
    fn a_path_that_trims_more_than_others_is_used_less_and_used_again_when_it_is_better() {
        let mut choice = entropy(EntropyChoice::Penalties, 4);
        let share = |choice: &mut Entropy| take(choice, 400).iter().filter(|value| **value == 2).count();
        for _ in 0..60 {
            [0, 1, 3].into_iter().for_each(|value| choice.on_ack(value, false));
            choice.on_ack(2, false);
            choice.on_nack(2, false);
        }
        // From the 101st feedback of the path on: with the 51st acknowledgement, and the 20 that follow.
        assert_eq!(choice.trims[2].avoid, 20);
        assert!((2..25).contains(&share(&mut choice)), "one use in 21");
        for _ in 0..400 {
            choice.on_ack(2, false);
        }
        assert_eq!(choice.trims[2].avoid, 0);
        assert_eq!(share(&mut choice), 100);
        choice.on_bounce(1);
        assert_eq!(choice.trims[1].trims, 3);
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
