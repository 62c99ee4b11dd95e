//! Whether the machine was fast enough for what a run reports.

use plimsoll_units::{Rate, Span};

use crate::edge::Seen;
use crate::lateness::rough;
use crate::machine::Taken;

/// A run whose frames are later than this share of the queueing delays it reports, at p99, is suspect.
pub const LATENESS_SHARE: f64 = 0.1;

/// Why the run is not to be believed, if so, with what to do instead. `fastest` is the fastest host's link.
pub fn lateness(seen: &Seen, taken: Taken, fastest: Rate) -> Option<String> {
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

/// Queues of as many bytes take longer at a lower rate, and the machine no longer: in proportion, lateness is small
/// enough at the rate that makes `allowed` as long as `late`.
fn advice(late: Span, allowed: f64, fastest: Rate) -> String {
    let bits = fastest.as_bps() as f64 * allowed / late.as_secs_f64();
    if bits < RATE_MIN {
        return "Hardly anything waited: the run has no queueing delays to measure at any rate".to_owned();
    }
    let digit = 10f64.powf(bits.log10().floor());
    let lower = Rate::from_bps(((bits / digit).floor() * digit) as u64);
    format!("Instead try hosts' links of {lower} rather than {fastest}, and all other rates lower by as much")
}

/// Lower rates are not worth a try, in bits a second.
const RATE_MIN: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lateness::Spread;

    fn seen(late_us: u64, waited_us: u64) -> Seen {
        let of = |us: u64| {
            let mut spread = Spread::default();
            spread.record(Span::from_us(us));
            spread
        };
        let (lateness, waited) = (of(late_us), of(waited_us));
        Seen { lateness, waited, refused: 0, foreign: 0, log: None, capture: None, flows: None }
    }

    #[test]
    fn lateness_is_judged_by_what_frames_waited() {
        let taken = Taken { stolen: 0.015, waited: 0.2 };
        let gigabit = Rate::from_gbps(1);
        assert_eq!(lateness(&seen(10, 100), taken, gigabit), None);
        let said = lateness(&seen(40, 100), taken, gigabit).unwrap();
        assert!(said.contains("1.5 %") && said.contains("20.0 %"), "{said}");
        // 10 us may be late and 40 us are: at a quarter of the rate they may, rounded to one digit.
        assert!(said.contains("200Mbps rather than 1Gbps"), "{said}");
        let said = lateness(&seen(40, 0), taken, gigabit).unwrap();
        assert!(said.contains("no queueing delays"), "{said}");
    }
}
