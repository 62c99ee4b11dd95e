//! Implements `plimsoll model page`: the time of a page whose retrievals depend on each other.

use anyhow::{Result, anyhow};
use plimsoll_models::chain::{self, Chain};
use plimsoll_units::{Span, whole};

use super::law::{LawName, LawOptions, PolicyOptions, share};
use super::quantity::quantity;
use super::table::Table;
use crate::output::Format;

/// Compute the time of a page that retrieves data again and again, each time with what it got before.
///
/// Steps are independent, and a step ends with the last of `--width` replies. The default distribution is that of
/// DeTail's authors (SIGCOMM 2012 talk): a median of 334 us, 6 % above 2 ms, up to 14 ms, and in between uniform in the
/// logarithm, which the talk does not say. X act on each request; servers are as fast as without them.
#[derive(clap::Args)]
pub(super) struct Page {
    /// Numbers of retrievals, one after the other.
    #[arg(long = "retrievals", value_name = "L", value_delimiter = ',',
        default_values = ["1", "50", "100", "130", "150", "200"], value_parser = whole::<u32>(..))]
    retrievals: Vec<u32>,
    /// Number of requests at once in a retrieval, which ends with the last reply.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole::<u32>(..))]
    width: u32,
    /// Time budget of a page.
    #[arg(long, value_name = "SPAN", default_value = "200ms", value_parser = quantity::<Span>)]
    budget: Span,
    /// Share of the pages that must be within the budget, for the most retrievals that a page can have.
    #[arg(long, value_name = "SHARE", default_value = "99.9%", value_parser = share)]
    share: f64,
    #[command(flatten)]
    law: LawOptions,
    #[command(flatten)]
    policy: PolicyOptions,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Page {
    pub(super) fn printed(&self) -> Result<String> {
        let in_range = |count: &u32| (1..=chain::STEPS_MAX).contains(count);
        if let Some(count) = self.retrievals.iter().find(|count| !in_range(count)) {
            return Err(anyhow!("--retrievals {count}: expected 1 to {}", chain::STEPS_MAX));
        }
        if self.width == 0 {
            return Err(anyhow!("--width 0: expected 1 or more"));
        }
        let described = self.law.law(LawName::Rtts)?;
        let latency = self.policy.redundant(described.law)?;
        let budget_us = self.budget.as_us_f64();
        let row = |&count: &u32| {
            let page = Chain::new(&latency, count, self.width);
            let ms = |us: f64| us / 1e3;
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| ms(page.quantile(share)));
            vec![f64::from(count), ms(page.mean()), p50, p99, p999, 100.0 * page.within(budget_us)]
        };
        let most = chain::longest(&latency, self.width, budget_us, self.share);
        let most = if most == chain::STEPS_MAX { format!("{most} or more") } else { most.to_string() };
        let note = format!(
            "{}\nrequests      {:.3} for each that is needed\nwithin budget {most} retrievals, for {} % of pages in \
             {}\n\n",
            described.line,
            latency.load(),
            100.0 * self.share,
            self.budget
        );
        let head = vec!["retrievals", "mean_ms", "p50_ms", "p99_ms", "p999_ms", "within_percent"];
        Table { note, head, rows: self.retrievals.iter().map(row).collect() }.printed(self.format)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        page: Page,
    }

    fn printed(arguments: &[&str]) -> Result<String> {
        let line = Line::try_parse_from(["page"].iter().chain(arguments));
        line.expect("the arguments are known").page.printed()
    }

    fn p999(arguments: &[&str]) -> f64 {
        let more = [&["--format", "json", "--retrievals", "150"], arguments].concat();
        let json: serde_json::Value =
            serde_json::from_str(&printed(&more).expect("it prints")).expect("it is JSON");
        json[0]["p999_ms"].as_f64().expect("a number")
    }

    #[test]
    fn the_talks_page_takes_200_ms_and_copies_shorten_it() {
        let once = p999(&[]);
        assert!((once / 200.0 - 1.0).abs() < 0.05, "{once}");
        assert_eq!(p999(&["--replicas", "1"]), once);
        assert!(p999(&["--replicas", "2"]) < 0.6 * once);
        assert!(p999(&["--hedge-at", "95%"]) < 0.9 * once);
        assert!(p999(&["--width", "10"]) > once);
    }

    #[test]
    fn bad_input_says_what_is_allowed() {
        for (arguments, part) in [
            (vec!["--retrievals", "0"], "--retrievals 0: expected 1 to 10000"),
            (vec!["--width", "0"], "--width 0: expected 1 or more"),
            (vec!["--replicas", "65"], "--copies 65: expected 1 to 64"),
            (vec!["--timeout", "0us"], "--timeout 0: expected more than 0 us"),
        ] {
            let error = printed(&arguments).expect_err("it cannot be").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
