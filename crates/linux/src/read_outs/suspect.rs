//! Tests whether the machine was fast enough for the results that a run reports.

use plimsoll_results::Outcome;
use plimsoll_units::{Rate, Span, Time};

use crate::edge::EdgeCounts;
use crate::read_outs::lateness::{Spread, rough};
use crate::read_outs::machine::TakenShares;

/// A run whose frames are later than this share of the queueing delays it reports, at p99, is suspect.
pub const LATENESS_SHARE: f64 = 0.1;

/// Returns why the run is suspect, if it is, with advice. `fastest` is the fastest host's link.
pub fn lateness(seen: &EdgeCounts, taken: TakenShares, fastest: Rate) -> Option<String> {
    let (late, waited) = (seen.lateness.quantile(0.99), seen.waited.quantile(0.99));
    let allowed = waited.as_secs_f64() * LATENESS_SHARE;
    if late.as_secs_f64() <= allowed {
        return None;
    }
    Some(format!(
        "suspect: frames were handed over up to {} late (p99), more than {:.0} % of the {} that they waited \
         in the fabric (p99); of the time the machine took {:.1} % of the processors for others (steal), and other \
         work kept the fabric's loop waiting {:.1} %. {}",
        rough(late),
        LATENESS_SHARE * 100.0,
        rough(waited),
        taken.stolen * 100.0,
        taken.waited * 100.0,
        advice(late, allowed, fastest)
    ))
}

/// A workload is suspect if its median message takes this many times the time that the fabric explains.
pub const SLOWDOWN_MAX: f64 = 3.0;

/// The least messages of a workload that is judged.
const MESSAGES_MIN: usize = 20;

/// Returns why the times of a workload's messages are not the network's, if so, with advice. It tests messages of at
/// most a segment of their workload, whose request and response are a frame each: the fabric explains their time on
/// idle links and two waits of its frames, and the rest is the time of this kernel and of programs. `fastest` is the
/// fastest host's link.
pub fn slowdown(
    outcome: &Outcome,
    waited: &Spread,
    segment: impl Fn(usize) -> u64,
    fastest: Rate,
) -> Option<String> {
    let waited = waited.quantile(0.99);
    let warmup = Time::ZERO + outcome.warmup;
    let judged = outcome.workloads.iter().enumerate().filter_map(|(number, workload)| {
        let mine = outcome.messages.iter().filter(|message| {
            let is_mine = usize::from(message.workload) == number && message.created >= warmup;
            is_mine && message.bytes <= segment(number)
        });
        let (took, ideal): (Vec<Span>, Vec<Span>) =
            mine.filter_map(|message| Some((message.latency()?, message.ideal))).unzip();
        let count = took.len();
        // Retransmission timeouts are of the network, and last longer than all that waits.
        let is_judged = count >= MESSAGES_MIN && outcome.counters.timeouts * 2 < count as u64;
        let (took, ideal) = (median(took)?, median(ideal)?);
        let allowed = SLOWDOWN_MAX * (ideal + waited * 2).as_secs_f64();
        (is_judged && took.as_secs_f64() > allowed).then_some((&workload.name, took, ideal))
    });
    let share = |took: Span, ideal: Span| took.as_secs_f64() / ideal.as_secs_f64();
    let (name, took, ideal) = judged.max_by(|a, b| share(a.1, a.2).total_cmp(&share(b.1, b.2)))?;
    let allowed = (SLOWDOWN_MAX - 1.0) * ideal.as_secs_f64();
    Some(format!(
        "suspect: half of the messages of `{name}` took more than {}, {:.0} times their {} on idle links, and frames \
         waited at most {} in the fabric (p99): the rest is the time of this kernel and of programs, not of the \
         network. {}",
        rough(took),
        share(took, ideal),
        rough(ideal),
        rough(waited),
        advice(took.saturating_sub(ideal), allowed, fastest)
    ))
}

fn median(mut spans: Vec<Span>) -> Option<Span> {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}

/// Queues of as many bytes take longer at a lower rate, and the machine no longer: in proportion, lateness is small
/// enough at the rate that makes `allowed` as long as `late`.
fn advice(late: Span, allowed: f64, fastest: Rate) -> String {
    let bits = fastest.as_bps() as f64 * allowed / late.as_secs_f64();
    if bits < RATE_MIN {
        return "Hardly anything waited: the run has no delays of the network to measure at any rate"
            .to_owned();
    }
    let digit = 10f64.powf(bits.log10().floor());
    let lower = Rate::from_bps(((bits / digit).floor() * digit) as u64);
    format!("Instead try hosts' links of {lower} rather than {fastest}, and all other rates lower by as much")
}

/// Lower rates are not worth a try, in bits a second.
const RATE_MIN: f64 = 1e6;

#[cfg(test)]
mod tests {
    use plimsoll_results::synthetic::{self, Shape};

    use super::*;

    fn seen(late_us: u64, waited_us: u64) -> EdgeCounts {
        let of = |us: u64| {
            let mut spread = Spread::default();
            spread.record(Span::from_us(us));
            spread
        };
        let (lateness, waited) = (of(late_us), of(waited_us));
        EdgeCounts { lateness, waited, refused: 0, foreign: 0, log: None, capture: None, flows: None }
    }

    #[test]
    fn lateness_is_judged_by_what_frames_waited() {
        let taken = TakenShares { stolen: 0.015, waited: 0.2 };
        let gigabit = Rate::from_gbps(1);
        assert_eq!(lateness(&seen(10, 100), taken, gigabit), None);
        let said = lateness(&seen(40, 100), taken, gigabit).unwrap();
        assert!(said.contains("1.5 %") && said.contains("20.0 %"), "{said}");
        // 10 us may be late and 40 us are: at a quarter of the rate they may, rounded to one digit.
        assert!(said.contains("200Mbps rather than 1Gbps"), "{said}");
        let said = lateness(&seen(40, 0), taken, gigabit).unwrap();
        assert!(said.contains("no delays of the network"), "{said}");
    }

    /// Requests of 900 B in a made-up run, all of which take `took_us` where idle links would take 37 us.
    fn run(took_us: u64, timeouts: u64) -> Outcome {
        let mut outcome = synthetic::outcome(&Shape { requests: 100, ..Shape::default() }, 1, "TCP");
        outcome.warmup = Span::ZERO;
        outcome.counters.timeouts = timeouts;
        outcome.messages.retain(|message| message.workload == 0);
        for message in &mut outcome.messages {
            message.ideal = Span::from_us(37);
            message.completed = Some(message.created + Span::from_us(took_us));
        }
        outcome
    }

    #[test]
    fn a_median_far_above_what_the_fabric_explains_is_suspect() {
        let waited = |us: u64| seen(0, us).waited;
        let gigabit = Rate::from_gbps(1);
        let judged = |took: u64, waited_us: u64, timeouts: u64| {
            slowdown(&run(took, timeouts), &waited(waited_us), |_| 1448, gigabit)
        };
        let said = judged(986, 10, 0).unwrap();
        for words in ["`small` took more than 986us, 27 times their 37us", "70Mbps rather than 1Gbps"] {
            assert!(said.contains(words), "{said}");
        }
        // Three times the time on idle links, or the time that its frames may have waited, is the network's.
        assert_eq!(judged(100, 0, 0), None);
        assert_eq!(judged(986, 150, 0), None);
        // Half of the messages may have waited for a timeout.
        assert_eq!(judged(986, 10, 50), None);
        assert_eq!(
            slowdown(&run(986, 0), &waited(10), |_| 100, gigabit),
            None,
            "messages of several segments"
        );
    }
}
