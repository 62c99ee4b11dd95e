//! Compares two servers under the same load on the same processors, in turn: A, B, B, A and so on, each newly started,
//! so that a drift of the machine affects both alike. The result is the median of the pairs' ratios.

use std::fmt;

use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::arrivals::LoadArrivals;
use crate::bench::{PhaseResults, ServerSet};
use crate::options::{Clients, RequestMix, ValidityOptions};
use crate::phase::phase;
use crate::process::{Recipe, ServerTransport};
use crate::setup::Pace;

/// The servers to compare, and their load.
#[derive(Clone, Debug)]
pub struct ComparisonPlan {
    /// The two servers; ratios are of the second to the first.
    pub recipes: [Recipe; 2],
    /// The transport of the requests.
    pub transport: ServerTransport,
    /// The processors of the servers; empty leaves the choice to the system.
    pub server_cpus: Vec<usize>,
    /// The requests to send.
    pub workload: RequestMix,
    /// The clients that send them.
    pub clients: Clients,
    /// The length of the load before the measurement.
    pub warm_up: Span,
    /// The measured length of each phase.
    pub time: Span,
    /// The operations outstanding on each connection at saturation; none skips its measurement.
    pub outstanding: Option<u32>,
    /// The open loop that follows; none skips it.
    pub open: Option<OpenLoop>,
    /// The number of pairs, at least 1.
    pub pairs: u32,
    /// The limits beyond which a turn is suspect.
    pub validity: ValidityOptions,
}

/// The load of an open loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OpenLoop {
    /// The distribution of requests over time.
    pub arrivals: LoadArrivals,
    /// The rate of the requests.
    pub rate: OpenRate,
}

/// The rate of an open loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OpenRate {
    /// A rate in operations a second.
    Fixed(f64),
    /// A share of the first server's rate in the first pair.
    OfFirst(f64),
}

/// The results of one server's turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// The results of the closed loop.
    pub saturation: Option<PhaseResults>,
    /// The results of the open loop.
    pub open: Option<PhaseResults>,
}

/// The results of all turns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TurnResults {
    /// The names of the servers.
    pub names: [String; 2],
    /// The turns of both servers, pair by pair.
    pub pairs: Vec<[Turn; 2]>,
    /// The reasons why a figure is suspect.
    pub suspect: Vec<String>,
}

/// A figure that is compared between the two sides.
pub struct ComparedFigure<T> {
    /// The name of the figure, and its unit.
    pub title: &'static str,
    /// Returns the figure of a turn; none if it was not measured.
    pub of: fn(&T) -> Option<f64>,
}

/// Runs two sides in turn: in every other pair, the first side goes first. `tell` is called before each turn.
///
/// # Errors
/// Returns the error of the first turn that fails.
pub fn in_pairs<T>(
    pairs: u32,
    recipes: &[Recipe; 2],
    mut tell: impl FnMut(&str),
    mut turn: impl FnMut(usize) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<[T; 2]>> {
    (0..pairs)
        .map(|pair| {
            let mut turns = [None, None];
            for side in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
                tell(&format!("pair {} of {pairs}: {}", pair + 1, recipes[side].name));
                turns[side] = Some(turn(side)?);
            }
            Ok(turns.map(|turn| turn.expect("both sides have had their turn")))
        })
        .collect()
}

/// Writes every measured figure: the median of the pairs' ratios, then the pairs.
///
/// # Errors
/// Returns the errors of `f`.
pub fn write_figures<T>(
    names: &[String; 2],
    pairs: &[[T; 2]],
    figures: &[ComparedFigure<T>],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let [first, second] = names;
    for ComparedFigure { title, of } in figures {
        let sides: Option<Vec<[f64; 2]>> =
            pairs.iter().map(|[first, second]| Some([of(first)?, of(second)?])).collect();
        let Some(sides) = sides.filter(|sides| !sides.is_empty()) else { continue };
        let ratio = median(sides.iter().map(|[first, second]| second / first).collect());
        writeln!(f, "{title}: {second} to {first} {ratio:.3} (median of {})", sides.len())?;
        for [a, b] in sides {
            writeln!(f, "  {first} {a:12.2}  {second} {b:12.2}  {:.3}", b / a)?;
        }
    }
    Ok(())
}

impl ComparisonPlan {
    /// Runs all pairs; `tell` is called before each turn.
    ///
    /// # Errors
    /// Returns an error if a server cannot be started or does not store the keys.
    pub fn run(&self, tell: impl FnMut(&str)) -> anyhow::Result<TurnResults> {
        let mut rate = match self.open.map(|open| open.rate) {
            Some(OpenRate::Fixed(rate)) => Some(rate),
            Some(OpenRate::OfFirst(_)) | None => None,
        };
        let pairs = in_pairs(self.pairs, &self.recipes, tell, |side| self.turn(side, &mut rate))?;
        let names = self.recipes.clone().map(|recipe| recipe.name);
        let suspect = self.limits(&names, &pairs);
        Ok(TurnResults { names, pairs, suspect })
    }

    /// Runs one server's turn. `rate` is set to the rate of the open loop once it is known.
    fn turn(&self, side: usize, rate: &mut Option<f64>) -> anyhow::Result<Turn> {
        let recipe = std::slice::from_ref(&self.recipes[side]);
        let ComparisonPlan { transport, server_cpus, workload, clients, validity, .. } = self;
        let bench = ServerSet::start(recipe, *transport, server_cpus, workload, clients, *validity)?;
        let measure = |index, pace| bench.measure(phase(index, pace, self.warm_up, self.time));
        let saturation =
            self.outstanding.map(|outstanding| measure(1, Pace::Closed(outstanding))).transpose()?;
        if let (Some(OpenLoop { rate: OpenRate::OfFirst(share), .. }), Some(most), None) =
            (self.open, &saturation, &rate)
        {
            *rate = Some(share * most.report.rate);
        }
        let open = match (self.open, *rate) {
            (Some(open), Some(rate)) => Some(measure(2, Pace::Open(open.arrivals, rate))?),
            _ => None,
        };
        Ok(Turn { saturation, open })
    }

    fn limits(&self, names: &[String; 2], pairs: &[[Turn; 2]]) -> Vec<String> {
        let mut found = Vec::new();
        for (pair, turns) in (1..).zip(pairs) {
            for (name, turn) in names.iter().zip(turns) {
                let measures = [("saturation", &turn.saturation), ("open loop", &turn.open)];
                for (what, measure) in measures {
                    let Some(measure) = measure else { continue };
                    for reason in &measure.report.suspect {
                        found.push(format!("pair {pair}, {name}, {what}: {reason}"));
                    }
                }
                let limit = turn.saturation.as_ref().and_then(|measure| self.not_the_server(measure));
                found.extend(limit.map(|reason| format!("pair {pair}, {name}, saturation: {reason}")));
            }
        }
        found
    }
}

impl ComparisonPlan {
    /// Returns why the server was not the limit of the rate; none if it was, if its processors are not known, or if it
    /// shared them with the generator.
    fn not_the_server(&self, most: &PhaseResults) -> Option<String> {
        let cpus = self.server_cpus.len() as f64;
        if cpus == 0.0 || self.validity.shared_cpus || most.server_busy >= SATURATED * cpus {
            return None;
        }
        let busy = 100.0 * most.server_busy / cpus;
        Some(if most.server_waited > (1.0 - SATURATED) * cpus {
            format!("the server ran for {busy:.0} % of the time, because other processes used its processors")
        } else {
            format!(
                "the server was busy for {busy:.0} % of its processors' time, the generator for {:.0} % of its own: \
                 the server could do more; its processor time per operation still holds",
                100.0 * most.report.generator_busy
            )
        })
    }
}

/// Returns the median: the middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

impl fmt::Display for TurnResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reason in &self.suspect {
            writeln!(f, "SUSPECT: {reason}")?;
        }
        write_figures(&self.names, &self.pairs, FIGURES, f)
    }
}

const FIGURES: &[ComparedFigure<Turn>] = &[
    ComparedFigure {
        title: "operations/s at saturation",
        of: |turn| turn.saturation.as_ref().map(|measure| measure.report.rate),
    },
    ComparedFigure {
        title: "server's processor us per operation at saturation",
        of: |turn| turn.saturation.as_ref().map(|measure| measure.server_us_per_operation),
    },
    ComparedFigure {
        title: "p99 us at saturation",
        of: |turn| turn.saturation.as_ref().map(|measure| measure.report.latency.p99),
    },
    ComparedFigure {
        title: "operations/s of the open loop",
        of: |turn| turn.open.as_ref().map(|measure| measure.report.rate),
    },
    ComparedFigure {
        title: "p99 us of the open loop",
        of: |turn| turn.open.as_ref().map(|measure| measure.report.latency.p99),
    },
    ComparedFigure {
        title: "server's processor us per operation of the open loop",
        of: |turn| turn.open.as_ref().map(|measure| measure.server_us_per_operation),
    },
];

/// A server that used less than this share of its processors' time was not the limit.
const SATURATED: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Book;
    use crate::report::{Report, SuspectLimits};
    use plimsoll_units::Time;

    fn turn(rate: u64) -> Turn {
        let mut book = Book::default();
        book.counts.completed = rate;
        Book::record(&mut book.latency, Span::from_us(100));
        let phase = crate::setup::LoadPhase {
            index: 1,
            pace: Pace::Closed(1),
            from: Time::ZERO,
            to: Time::ZERO + Span::from_secs(1),
        };
        let report = Report::new(&book, &phase, 1, SuspectLimits::default());
        let measure = PhaseResults {
            report,
            server_us_per_operation: 1e6 / rate as f64,
            server_busy: 1.0,
            server_waited: 0.0,
        };
        Turn { saturation: Some(measure), open: None }
    }

    #[test]
    fn what_counts_is_the_median_of_ratios() {
        let pairs = [(100, 150), (200, 260), (100, 400)].map(|(a, b)| [turn(a), turn(b)]).to_vec();
        let comparison = TurnResults { names: ["A".to_owned(), "B".to_owned()], pairs, suspect: Vec::new() };
        let text = comparison.to_string();
        assert!(text.starts_with("operations/s at saturation: B to A 1.500 (median of 3)\n"), "{text}");
        assert!(text.contains("  A       200.00  B       260.00  1.300\n"), "{text}");
        assert!(text.contains("per operation at saturation: B to A 0.667"), "{text}");
        assert!(!text.contains("open loop"), "{text}");
        assert_eq!(median(vec![1.0, 2.0]), 1.5);
    }
}
