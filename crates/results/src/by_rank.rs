//! [`SlowdownByRank`]: completion times of messages over their times on idle links, by the rank of their size.
//!
//! ```text
//! flows of a run, sorted by size (ties by creation)
//! |  0 .. 5 %  |  5 .. 10 %  |  ...  |  95 .. 100 %  |      percentiles inside each bin
//! ```
//!
//! All bins have the same number of flows, as in the figures of HPCC and its simulator. A flow that did not finish has
//! a size and so a rank: it takes its place in its bin, and is counted beside the percentiles, which are of the others.

use std::ops::Range;

use plimsoll_text::csv_cell;
use serde::{Deserialize, Serialize};

use crate::by_size::SHARES;
use crate::outcome::{MessageRecord, Outcome};
use crate::stats::percentile;

/// Slowdown of a workload's messages by the rank of their size, over all replicates of a point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SlowdownByRank {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The name of the workload.
    pub workload: String,
    /// The bins, of [`BINS`] equal shares of the ranks, from the smallest flows on.
    pub bins: Vec<RankBin>,
}

/// The messages whose ranks are within one range, and their slowdowns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RankBin {
    /// The largest size of these messages in bytes.
    pub up_to: u64,
    /// The number of these messages.
    pub messages: u64,
    /// The number of them that did not finish.
    pub unfinished: u64,
    /// Percentiles of the slowdown of those that finished, in the order of [`SHARES`]; `None` where the bin has too few
    /// messages to reach beyond the percentile.
    pub slowdown: [Option<f64>; 3],
}

/// A range of ranks by size: from the first share, inclusive, to the second, exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ranks {
    /// The first rank, in parts of [`Ranks::WHOLE`].
    from: u64,
    /// The rank at which the range ends, in the same parts.
    to: u64,
}

/// The number of bins of a figure and its table.
pub const BINS: u64 = 20;

/// The meaning of the slowdown, as a footnote.
pub const DEFINITION: &str = "Slowdown: completion time over ideal time. A message is complete when its last byte \
                              arrives, or, with observe.completion = \"acknowledged\", when its sender has the \
                              acknowledgement. The ideal time is that of the same message, alone on idle links: its \
                              packets with their headers follow each other over the slowest link of the path, and the \
                              last one takes the whole path; stamps of telemetry are not in it.";

impl Ranks {
    /// The number of parts of all ranks: no rounding decides to which bin a flow belongs.
    pub const WHOLE: u64 = 1_000_000_000;

    /// Returns the ranks from `from` to before `to`, both in parts of [`Ranks::WHOLE`]; `None` unless the range has
    /// room.
    pub fn new(from: u64, to: u64) -> Option<Ranks> {
        (from < to && to <= Ranks::WHOLE).then_some(Ranks { from, to })
    }

    /// Reads the two ends of a range in percent, such as `0..65%` or `99.5%..100%`.
    pub fn read(text: &str) -> Option<Ranks> {
        let (from, to) = text.split_once("..")?;
        let parts = |percent: &str| {
            let percent = percent.trim();
            let is_plain = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let percent: f64 = percent.parse().ok().filter(|_| is_plain)?;
            (percent <= 100.0).then(|| (percent * (Ranks::WHOLE / 100) as f64).round() as u64)
        };
        Ranks::new(parts(from.trim().trim_end_matches('%'))?, parts(to.trim().strip_suffix('%')?)?)
    }

    /// Returns the places of the range among `count` flows in the order of their ranks.
    pub fn places(self, count: usize) -> Range<usize> {
        let place = |parts: u64| (u128::from(parts) * count as u128 / u128::from(Ranks::WHOLE)) as usize;
        place(self.from)..place(self.to)
    }

    /// Returns those of the messages whose rank is within the range, in the order in which they were given. Messages
    /// of one size are ranked by creation; those without an ideal time have no rank.
    pub fn of<'a>(self, messages: impl Iterator<Item = &'a MessageRecord>) -> Vec<&'a MessageRecord> {
        let given: Vec<&MessageRecord> = messages.filter(|message| !message.ideal.is_zero()).collect();
        let mut ranked: Vec<usize> = (0..given.len()).collect();
        ranked.sort_by_key(|&place| (given[place].bytes, given[place].created));
        let mut within = ranked[self.places(ranked.len())].to_vec();
        within.sort_unstable();
        within.into_iter().map(|place| given[place]).collect()
    }

    /// Returns the bins of a figure, ascending.
    fn bins() -> impl Iterator<Item = Ranks> {
        let width = Ranks::WHOLE / BINS;
        (0..BINS).map(move |bin| Ranks { from: bin * width, to: (bin + 1) * width })
    }
}

impl RankBin {
    /// Returns the percentages of ranks at which the bin of this number begins and ends.
    pub fn percent(number: usize) -> (f64, f64) {
        let at = |number: usize| (number * 100) as f64 / BINS as f64;
        (at(number), at(number + 1))
    }
}

impl SlowdownByRank {
    /// Returns how many flows did not finish, of how many, in words for a footnote; `None` if all finished.
    pub fn unfinished(&self) -> Option<String> {
        let sum = |count: fn(&RankBin) -> u64| self.bins.iter().map(count).sum::<u64>();
        let (unfinished, all) = (sum(|bin| bin.unfinished), sum(|bin| bin.messages));
        let verb = if unfinished == 1 { "is" } else { "are" };
        (unfinished > 0).then(|| {
            format!("{unfinished} of {all} flows did not finish and {verb} not in these percentiles")
        })
    }
}

/// Returns the bins of a workload over its runs: messages that count. Empty where a run has fewer than [`BINS`] of
/// them.
pub(crate) fn bins(workload: &str, outcomes: &[&Outcome]) -> Vec<RankBin> {
    let counted: Vec<Vec<&MessageRecord>> =
        outcomes.iter().map(|outcome| crate::by_size::counted(workload, outcome).collect()).collect();
    if counted.iter().any(|messages| messages.len() < BINS as usize) {
        return Vec::new();
    }
    let bin = |ranks: Ranks| {
        let within = counted.iter().flat_map(|messages| ranks.of(messages.iter().copied()));
        let within: Vec<&MessageRecord> = within.collect();
        let mut slowdowns: Vec<f64> = within.iter().filter_map(|message| message.slowdown()).collect();
        slowdowns.sort_unstable_by(f64::total_cmp);
        RankBin {
            up_to: within.iter().map(|message| message.bytes).max().unwrap_or(0),
            messages: within.len() as u64,
            unfinished: (within.len() - slowdowns.len()) as u64,
            slowdown: SHARES.map(|(share, _)| {
                let beyond = slowdowns.len() as f64 * (1.0 - share);
                percentile(&slowdowns, share).filter(|_| beyond >= 1.0 - 1e-9)
            }),
        }
    };
    Ranks::bins().map(bin).collect()
}

/// Writes the bins as CSV, one row for each variant, sweep point, workload and bin.
pub fn csv(all: &[SlowdownByRank]) -> String {
    let keys = all.first().map_or(&[][..], |first| &first.sweep);
    let mut head = vec!["variant"];
    head.extend(keys.iter().map(|(key, _)| key.as_str()));
    head.extend(["workload", "rank_from", "rank_to", "up_to_bytes", "messages", "unfinished"]);
    head.extend(SHARES.map(|(_, name)| name));
    let line = |cells: Vec<String>| {
        let cells: Vec<_> = cells.iter().map(|cell| csv_cell(cell)).collect();
        format!("{}\n", cells.join(","))
    };
    let mut out = line(head.into_iter().map(str::to_owned).collect());
    for of in all {
        for (number, bin) in of.bins.iter().enumerate() {
            let (from, to) = RankBin::percent(number);
            let mut cells = vec![of.variant.clone()];
            cells.extend(of.sweep.iter().map(|(_, value)| value.clone()));
            cells.push(of.workload.clone());
            cells.extend([from, to].map(|percent| format!("{:?}", percent / 100.0)));
            cells.extend([bin.up_to, bin.messages, bin.unfinished].map(|count| count.to_string()));
            cells.extend(
                bin.slowdown.map(|value| value.map_or_else(String::new, |value| format!("{value:?}"))),
            );
            out.push_str(&line(cells));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Span, Time};

    use super::*;
    use crate::outcome::{Split, Supply, WorkloadInfo};

    /// A flow of `bytes` that takes `factor` times its ideal time of 10 us, or does not finish.
    fn flow(index: u64, bytes: u64, factor: Option<u64>) -> MessageRecord {
        let created = Time::ZERO + Span::from_us(index);
        MessageRecord {
            workload: 0,
            index,
            query: None,
            source: 0,
            destination: 1,
            bytes,
            created,
            completed: factor.map(|factor| created + Span::from_us(10 * factor)),
            ideal: Span::from_us(10),
            split: Split::default(),
        }
    }

    fn outcome(messages: Vec<MessageRecord>) -> Outcome {
        let info = WorkloadInfo {
            name: "w".to_owned(),
            kind: "flows".to_owned(),
            deadline: None,
            observed: None,
            supply: Supply::Duration,
            groups: Vec::new(),
        };
        Outcome { workloads: vec![info], messages, ..Outcome::default() }
    }

    #[test]
    fn ranges_of_ranks_are_read_in_percent() {
        let places = |text: &str, count| Ranks::read(text).map(|ranks| ranks.places(count));
        for (text, count, expected) in [
            ("0..65%", 20, Some(0..13)),
            ("0%..65%", 20, Some(0..13)),
            ("95 .. 100%", 20, Some(19..20)),
            // In floating point, 29 % of 100 is below 29.
            ("29..58%", 100, Some(29..58)),
            ("5..10%", 7, Some(0..0)),
            ("99.5..100%", 400, Some(398..400)),
            ("0..100%", 3, Some(0..3)),
            ("0..65", 20, None),
            ("65..0%", 20, None),
            ("5..5%", 20, None),
            ("5..101%", 20, None),
            ("-5..10%", 20, None),
            ("1e1..20%", 20, None),
            ("5%", 20, None),
        ] {
            assert_eq!(places(text, count), expected, "{text}");
        }
    }

    /// Sizes 5, 3, 3, 1, 9: by rank they are the flows 3, 1, 2, 0, 4.
    #[test]
    fn flows_are_ranked_by_size_and_equal_ones_by_creation() {
        let flows: Vec<MessageRecord> =
            (0..).zip([5, 3, 3, 1, 9]).map(|(index, bytes)| flow(index, bytes, Some(2))).collect();
        let of = |text: &str| {
            let found = Ranks::read(text).unwrap().of(flows.iter());
            found.into_iter().map(|flow| flow.index).collect::<Vec<_>>()
        };
        assert_eq!(of("0..20%"), [3]);
        assert_eq!(of("20..40%"), [1]);
        assert_eq!(of("20..60%"), [1, 2]);
        assert_eq!(of("40..80%"), [0, 2], "in the order of creation");
        assert_eq!(of("0..100%"), [0, 1, 2, 3, 4]);
    }

    /// 40 flows of 1,000 to 40,000 bytes with slowdowns 1 to 40; the last but one never finishes.
    #[test]
    fn unfinished_flows_keep_their_rank_and_are_counted() {
        let factor = |index: u64| (index != 38).then_some(index + 1);
        let flows = |from| (0..40).map(move |n| flow(n, 1_000 * (n + 1), factor(n).filter(|_| n >= from)));
        let of = |outcomes: &[&Outcome]| SlowdownByRank {
            variant: "A".to_owned(),
            sweep: vec![("k".to_owned(), "=1".to_owned())],
            workload: "w".to_owned(),
            bins: bins("w", outcomes),
        };
        let all = of(&[&outcome(flows(0).collect())]);
        assert_eq!(all.bins.len(), 20);
        assert_eq!(
            all.bins[0],
            RankBin { up_to: 2_000, messages: 2, unfinished: 0, slowdown: [Some(1.5), None, None] }
        );
        assert_eq!(all.bins[19], RankBin { up_to: 40_000, messages: 2, unfinished: 1, slowdown: [None; 3] });
        let sentence = "1 of 40 flows did not finish and is not in these percentiles";
        assert_eq!(all.unfinished().as_deref(), Some(sentence));
        // Each run has ranks of its own, and their flows are pooled.
        let (whole, cut) = (outcome(flows(0).collect()), outcome(flows(2).collect()));
        let both = of(&[&whole, &cut]);
        assert_eq!((both.bins[0].messages, both.bins[0].unfinished), (4, 2));
        assert_eq!(
            both.unfinished().as_deref(),
            Some("4 of 80 flows did not finish and are not in these percentiles")
        );
        let text = csv(&[all]);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(
            rows[0],
            "variant,k,workload,rank_from,rank_to,up_to_bytes,messages,unfinished,p50,p95,p99"
        );
        assert_eq!(rows[1], "A,'=1,w,0.0,0.05,2000,2,0,1.5,,");
        assert_eq!((rows[20], rows.len()), ("A,'=1,w,0.95,1.0,40000,2,1,,,", 21));
        assert!(bins("w", &[&outcome(flows(0).take(19).collect())]).is_empty());
    }
}
