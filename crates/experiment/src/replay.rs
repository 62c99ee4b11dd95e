//! The packets of a moment of a run: which moment, its recording, and its page.

use plimsoll_report::html;
use plimsoll_results::replay::{Recording, ReplayWindow};
use plimsoll_results::{Digest, Outcome};
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Point, Scenario};
use plimsoll_sim::{Extent, Progress, RecordError};
use plimsoll_units::{Span, Time};

use crate::question::label;

/// The length that is drawn by default, and the least around a message.
pub const LENGTH: Span = Span::from_us(200);

/// The most time before a message that is drawn with it.
const BEFORE: Span = Span::from_us(20);

/// Returns the window around the message that took longest by its time on idle links, of those created after the
/// warm-up; `None` if none has completed.
pub fn worst(outcome: &Outcome) -> Option<ReplayWindow> {
    let counted = outcome.messages.iter().filter(|message| message.created >= Time::ZERO + outcome.warmup);
    let (_, latency, created) = counted
        .filter_map(|message| {
            let latency = message.latency()?;
            let slowdown = latency.as_us_f64() / message.ideal.as_us_f64().max(f64::MIN_POSITIVE);
            Some((slowdown, latency, message.created))
        })
        .max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    let before = BEFORE.min(latency / 10);
    let whole_us = |span: Span| Span::from_us(span.as_ps() / 1_000_000);
    let from = Time::ZERO + whole_us((created.saturating_since(Time::ZERO)).saturating_sub(before));
    let until = created + latency + before;
    Some(ReplayWindow { from, length: LENGTH.max(whole_us(until.saturating_since(from)) + Span::from_us(1)) })
}

/// Records a window. One that has too many packets is shortened, if it may be.
///
/// # Errors
/// Fails as [`plimsoll_sim::record`] does.
pub fn record(
    model: &Model,
    mut window: ReplayWindow,
    extent: Extent,
    may_shorten: bool,
    goes_on: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Recording, Option<Outcome>), RecordError> {
    loop {
        match plimsoll_sim::record(model, window, extent, goes_on) {
            Err(RecordError::TooMany { fits, .. }) if may_shorten && fits < window.length => {
                window.length = fits;
            }
            recorded => return recorded,
        }
    }
}

/// The inputs of a replay's page: the run, its packets and the command.
#[derive(Clone, Copy, Debug)]
pub struct Drawn<'a> {
    /// The scenario of the run.
    pub scenario: &'a Scenario,
    /// The point that was run.
    pub point: &'a Point,
    /// The packets of the window, with their hops and the network.
    pub recording: &'a Recording,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The digest of the run, if it was repeated whole.
    pub digest: Option<Digest>,
    /// The commit of this build, where known.
    pub commit: Option<&'a str>,
}

/// Returns the HTML page of a recording, which needs no network.
pub fn page(drawn: &Drawn<'_>) -> String {
    let digest = drawn.digest.map(|digest| digest.to_string());
    html::replay(&html::ReplayPage {
        title: drawn.scenario.title(),
        run: &label(drawn.point),
        recording: drawn.recording,
        command: drawn.command,
        seed: drawn.point.seed,
        digest: digest.as_deref(),
        version: env!("CARGO_PKG_VERSION"),
        commit: drawn.commit,
    })
}
