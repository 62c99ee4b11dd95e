//! `plimsoll model page`: the time of a page whose retrievals depend on each other.

use plimsoll_report::models::NumberTable;
use plimsoll_units::Span;
#[cfg(feature = "command")]
use plimsoll_units::whole;
use serde::Deserialize;

use super::law::{LatencyShare, LawName, LawOptions, PolicyOptions, at_least_one};
use super::{BadModel, ModelQuestion, Result, many};
use crate::chain::{self, Chain};

/// Compute the time of a page that retrieves data again and again, each time with what it got before.
///
/// Steps are independent, and a step ends with the last of `--width` replies. The default distribution is that of
/// DeTail's authors (SIGCOMM 2012 talk): a median of 334 us, 6 % above 2 ms, up to 14 ms, and in between uniform in the
/// logarithm, which the talk does not say. X act on each request; servers are as fast as without them.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "command", derive(clap::Args))]
#[serde(default)]
pub struct Page {
    /// Numbers of retrievals, one after the other.
    #[cfg_attr(feature = "command",
        arg(long = "retrievals", value_name = "L", value_delimiter = ',',
            default_values_t = Page::default().retrievals, value_parser = whole::<u32>(..)))]
    #[serde(deserialize_with = "many")]
    retrievals: Vec<u32>,
    /// Number of requests at once in a retrieval, which ends with the last reply.
    #[cfg_attr(feature = "command",
        arg(long, value_name = "S", default_value_t = Page::default().width,
            value_parser = whole::<u32>(..)))]
    width: u32,
    /// Time budget of a page.
    #[cfg_attr(feature = "command", arg(long, value_name = "SPAN", default_value_t = Page::default().budget))]
    budget: Span,
    /// Share of the pages that must be within the budget, for the most retrievals that a page can have.
    #[cfg_attr(feature = "command", arg(long, value_name = "SHARE", default_value_t = Page::default().share))]
    share: LatencyShare,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    law: LawOptions,
    #[cfg_attr(feature = "command", command(flatten))]
    #[serde(flatten)]
    policy: PolicyOptions,
}

impl Default for Page {
    fn default() -> Page {
        Page {
            retrievals: vec![1, 50, 100, 130, 150, 200],
            width: 1,
            budget: Span::from_ms(200),
            share: LatencyShare(0.999),
            law: LawOptions::default(),
            policy: PolicyOptions::default(),
        }
    }
}

impl ModelQuestion for Page {
    fn table(&self) -> Result<NumberTable> {
        let in_range = |count: &u32| (1..=chain::STEPS_MAX).contains(count);
        if let Some(count) = self.retrievals.iter().find(|count| !in_range(count)) {
            let text = format!("--retrievals {count}: expected 1 to {}", chain::STEPS_MAX);
            return Err(BadModel::new(text));
        }
        at_least_one("--width", &[self.width])?;
        let described = self.law.law(LawName::Rtts)?;
        let latency = self.policy.redundant(described.law)?;
        let budget_us = self.budget.as_us_f64();
        let row = |&count: &u32| {
            let page = Chain::new(&latency, count, self.width);
            let ms = |us: f64| us / 1e3;
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| ms(page.quantile(share)));
            vec![f64::from(count), ms(page.mean()), p50, p99, p999, 100.0 * page.within(budget_us)]
        };
        let most = chain::longest(&latency, self.width, budget_us, self.share.0);
        let most = if most == chain::STEPS_MAX { format!("{most} or more") } else { most.to_string() };
        let note = format!(
            "{}\nrequests      {:.3} for each that is needed\nwithin budget {most} retrievals, for {} % of pages in \
             {}\n\n",
            described.line,
            latency.load(),
            100.0 * self.share.0,
            self.budget
        );
        let head = vec!["retrievals", "mean_ms", "p50_ms", "p99_ms", "p999_ms", "within_percent"];
        Ok(NumberTable { note, head, rows: self.retrievals.iter().map(row).collect() })
    }
}
