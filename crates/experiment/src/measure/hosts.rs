//! Measures of the stacks of hosts: throughput, and the use of their processors.

use plimsoll_results::outcome::Outcome;

use super::asked::QuantityQuestion;

/// Returns how busy the busiest core of a host's processor was after the warm-up, in percent.
pub(super) fn processor(of: &QuantityQuestion<'_>) -> Option<f64> {
    let (outcome, host) = (of.outcome, of.host());
    let totals = outcome.processors.iter().find(|totals| totals.host == host)?;
    let seconds = outcome.end.as_secs_f64() - outcome.warmup.as_secs_f64();
    let busiest = totals.busy.iter().max()?;
    (seconds > 0.0).then(|| 100.0 * busiest.as_secs_f64() / seconds)
}

/// Returns the time that all cores of a host's processor worked for each kilobyte that was delivered anywhere after the
/// warm-up, in ns.
pub(super) fn processor_per_kb(of: &QuantityQuestion<'_>) -> Option<f64> {
    let (outcome, host) = (of.outcome, of.host());
    let totals = outcome.processors.iter().find(|totals| totals.host == host)?;
    let seconds = outcome.end.as_secs_f64() - outcome.warmup.as_secs_f64();
    let busy: f64 = totals.busy.iter().map(|core| core.as_secs_f64()).sum();
    let gbps = delivered_gbps(outcome, 1).filter(|gbps| *gbps > 0.0)?;
    (seconds > 0.0).then(|| 8e3 * busy / seconds / gbps)
}

/// Returns the number of packets that found no room in receive rings; `None` where hosts have no processors.
pub(super) fn ring_drops(of: &QuantityQuestion<'_>) -> Option<f64> {
    let lost = of.outcome.processors.iter().map(|totals| totals.ring_drops);
    lost.reduce(|sum, one| sum + one).map(|sum| sum as f64)
}

pub(super) fn delivered(of: &QuantityQuestion<'_>) -> Option<f64> {
    delivered_gbps(of.outcome, of.count(0) as u32)
}

/// Returns the payload that was delivered in the whole intervals after the warm-up, in Gb/s for each of a number of
/// `senders`.
fn delivered_gbps(outcome: &Outcome, senders: u32) -> Option<f64> {
    let ends = outcome.end.as_ps();
    let whole = outcome.goodput.iter().filter(|interval| {
        interval.time.as_ps() >= outcome.warmup.as_ps()
            && interval.time.as_ps() + interval.length.as_ps() <= ends
    });
    let (mut bytes, mut first, mut last) = (0, u64::MAX, 0);
    for interval in whole {
        bytes += interval.delivered.get();
        first = first.min(interval.time.as_ps());
        last = last.max(interval.time.as_ps() + interval.length.as_ps());
    }
    (last > first).then(|| bytes as f64 * 8.0 * 1e3 / (last - first) as f64 / f64::from(senders.max(1)))
}

#[cfg(test)]
mod tests {
    use plimsoll_results::outcome::{GoodputInterval, ProcessorTotals};
    use plimsoll_units::{Bytes, Span, Time};

    use super::*;
    use crate::Measure;

    #[test]
    fn only_whole_intervals_after_the_warm_up_count() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let interval = |ms, workload, bytes| GoodputInterval {
            time: at(ms),
            length: Span::from_ms(1),
            workload,
            sent: Bytes::ZERO,
            delivered: Bytes::new(bytes),
        };
        let goodput = vec![
            interval(0, 0, 9_000_000),
            interval(1, 0, 1_000_000),
            interval(1, 1, 500_000),
            interval(2, 0, 1_000_000),
            interval(3, 0, 9_000_000),
        ];
        let busy = vec![Span::from_ms(1), Span::from_us(500)];
        let processors = vec![
            ProcessorTotals { host: 1, busy, ring_drops: 3, ..ProcessorTotals::default() },
            ProcessorTotals { host: 2, ring_drops: 4, ..ProcessorTotals::default() },
        ];
        let end = at(3) + Span::from_us(500);
        let outcome = Outcome { goodput, processors, end, warmup: Span::from_ms(1), ..Outcome::default() };
        let samples = |text: &str| Measure::parse(text).unwrap().samples(&outcome, Span::ZERO);
        // 2.5 MB in 2 ms, of two senders.
        assert_eq!(samples("delivered(2)"), [5.0]);
        assert_eq!(samples("processor(host.1)"), [40.0]);
        // 1.5 ms of work in 2.5 ms, at 1,250 KB/ms.
        assert_eq!(samples("processor_per_kb(host.1)")[0].round(), 480.0);
        assert_eq!((samples("processor(host.3)"), samples("ring_drops()")), (vec![], vec![7.0]));
        let ring_drops = Measure::parse("ring_drops()").unwrap();
        assert_eq!(ring_drops.samples(&Outcome::default(), Span::ZERO), [0.0; 0]);
    }
}
