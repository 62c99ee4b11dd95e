//! [`Latencies`]: the completion times of a workload at a point of a run.

use std::collections::BTreeMap;

use plimsoll_text::spelling::did_you_mean;

use crate::{Outcome, PointOutcome};

/// The completion times of a workload at a point, of all its replicates together, as far as they were created after
/// the warm-up.
#[derive(Clone, PartialEq, Debug)]
pub struct Latencies {
    /// The latencies of the completed messages in us, of which there is at least one.
    pub us: Vec<f64>,
    /// The number of messages that were unfinished when the run ended.
    pub unfinished: u64,
}

/// A workload or a point of a run cannot be chosen, or has no latency. The message lists the allowed names.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoLatencies(String);

impl Latencies {
    /// Takes the latencies of the workload and the point of these names; only where a run has several, they must be
    /// named.
    ///
    /// # Errors
    /// Returns an error for a name that the run does not have, and where no message has completed.
    pub fn of(
        points: &[PointOutcome],
        workload: Option<&str>,
        point: Option<&str>,
    ) -> Result<Latencies, NoLatencies> {
        let mut of_point: BTreeMap<String, Vec<&PointOutcome>> = BTreeMap::new();
        for point in points {
            of_point.entry(label(point)).or_default().push(point);
        }
        let labels: Vec<&str> = of_point.keys().map(String::as_str).collect();
        let label = only("--point", point, &labels)?;
        let replicates = &of_point[label];
        let workloads = &replicates[0].outcome.workloads;
        let names: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
        let name = only("--workload", workload, &names)?;
        let number = names.iter().position(|known| *known == name);
        let number = number.and_then(|number| u16::try_from(number).ok());
        let mut latencies = Latencies { us: Vec::new(), unfinished: 0 };
        for Outcome { messages, warmup, .. } in replicates.iter().map(|replicate| &replicate.outcome) {
            let counted = messages.iter().filter(|message| {
                Some(message.workload) == number && message.created.as_ps() >= warmup.as_ps()
            });
            for message in counted {
                match message.latency() {
                    Some(latency) => latencies.us.push(latency.as_us_f64()),
                    None => latencies.unfinished += 1,
                }
            }
        }
        if latencies.us.is_empty() {
            return Err(NoLatencies(format!(
                "workload `{name}` has no completed message after the warm-up at point {label}"
            )));
        }
        Ok(latencies)
    }
}

/// Returns the name of a point without its replicate.
fn label(point: &PointOutcome) -> String {
    let sweep = point.key.sweep_label();
    if sweep.is_empty() { point.key.variant.clone() } else { format!("{}, {sweep}", point.key.variant) }
}

/// Returns the name that was asked for, or the only one.
fn only<'a>(option: &str, asked: Option<&str>, allowed: &[&'a str]) -> Result<&'a str, NoLatencies> {
    let listed = || {
        let mut names: Vec<String> = allowed.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
        if allowed.len() > LISTED {
            names.push(format!("and {} more", allowed.len() - LISTED));
        }
        names.join("; ")
    };
    match (asked, allowed) {
        (_, []) => Err(NoLatencies("the run has no finished point with a workload".to_owned())),
        (None, [only]) => Ok(only),
        (None, _) => Err(NoLatencies(format!("the run has several; name one with {option}: {}", listed()))),
        (Some(asked), _) => allowed.iter().find(|name| **name == asked).copied().ok_or_else(|| {
            let hint =
                did_you_mean(asked, allowed.iter().copied()).map_or_else(String::new, |hint| hint + " ");
            NoLatencies(format!("{option} {asked}: {hint}allowed: {}", listed()))
        }),
    }
}

/// The most names in an error.
const LISTED: usize = 20;
