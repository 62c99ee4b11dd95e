//! Advice as a terminal table, JSON, CSV and Markdown.

use plimsoll_report::table::{Grid, Row, TableStyle, csv_line, dim, escape_markdown, sentence};
use plimsoll_report::{Format, figures};
use plimsoll_stats::Interval;
use plimsoll_text::{printable, printable_json, shortened};
use serde::Serialize;

use crate::advice::{Advice, CandidateCost, RankedCandidate};

#[derive(Serialize)]
struct AdviceWithWords<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    sentences: Vec<String>,
}

/// The explanation of the table's intervals.
const INTERVALS: &str = "Lines and their 95 % intervals are those of `plimsoll line`; a factor's interval is made of \
                         the ends of both. The strain is the measured number over its limit, in pairs of runs with the \
                         same messages.";

/// The most characters of a reason in the table; a sentence has the whole of it.
const REASON_MAX: usize = 60;

fn shown_interval(interval: Interval) -> String {
    format!("{} .. {}", figures::number(interval.low), figures::number(interval.high))
}

impl Advice {
    /// Renders the advice in one of the forms.
    pub fn render(&self, format: Format, style: &TableStyle) -> String {
        let sentences = self.sentences();
        match format {
            Format::Table => {
                let lines: String = sentences.iter().map(|text| sentence(&printable(text), style)).collect();
                match self.ranking.is_empty() {
                    true => lines,
                    false => {
                        let table = self.grid().to_terminal(style);
                        format!("{table}\n{}\n\n{lines}", dim(&style.prose(INTERVALS), style))
                    }
                }
            }
            Format::Json => {
                let text = serde_json::to_string_pretty(&AdviceWithWords { advice: self, sentences });
                format!("{}\n", printable_json(&text.expect("advice has text keys only")))
            }
            Format::Csv => self.csv(),
            Format::Md => {
                let items: String =
                    sentences.iter().map(|text| format!("* {}\n", escape_markdown(text))).collect();
                match self.ranking.is_empty() {
                    true => items,
                    false => format!("{}\n{INTERVALS}\n\n{items}", self.grid().to_markdown()),
                }
            }
        }
    }

    /// Makes the table with one row a candidate.
    pub fn grid(&self) -> Grid {
        let columns = [
            "load line",
            "95 % interval",
            "factor",
            "factor's interval",
            "strain",
            "runs",
            "search",
            "who pays",
        ];
        let rows = self.ranking.iter().map(|one| {
            Row::plain(
                &one.name,
                [
                    one.line.as_ref().map_or_else(String::new, |line| match line.load() {
                        Some(load) => self.over.shown(load),
                        None => line.brief(|load| self.over.shown(load)),
                    }),
                    self.interval(one),
                    one.factor.map_or_else(String::new, |factor| format!("{}x", figures::number(factor))),
                    one.factor_interval.map_or_else(String::new, shown_interval),
                    one.strain.map_or_else(String::new, figures::number),
                    one.runs.to_string(),
                    one.failed.as_ref().map_or_else(
                        || one.state.words().to_owned(),
                        |reason| format!("{}: {}", one.state.words(), shortened(reason, REASON_MAX)),
                    ),
                    one.paid
                        .iter()
                        .filter(|cost| cost.is_significant())
                        .map(CandidateCost::words)
                        .collect::<Vec<_>>()
                        .join(", "),
                ],
            )
        });
        let title = format!(
            "What raises the load line of {} for {}; strain at {}",
            self.over.key,
            self.objectives,
            self.over.shown(self.tried_at)
        );
        Grid::plain(title, "candidate", &columns, rows)
    }

    fn interval(&self, one: &RankedCandidate) -> String {
        let shown = |load: f64| self.over.shown(load);
        match one.line.as_ref().map(|line| (line.low(), line.high())) {
            Some((Some(low), Some(high))) => format!("{} .. {}", shown(low), shown(high)),
            Some((Some(low), None)) => format!("above {}", shown(low)),
            Some((None, Some(high))) => format!("below {}", shown(high)),
            Some((None, None)) | None => String::new(),
        }
    }

    /// Writes the result in sentences, the most important first.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        let (today, at) = (self.over.shown(self.over.start()), self.over.shown(self.tried_at));
        if !self.is_needed {
            let times = figures::number(self.tried_at / self.over.start());
            said.push(format!(
                "nothing is needed: {} meets {} at {at}, which is {times}x today's load of {today}; no candidate was \
                 ranked",
                self.from, self.objectives
            ));
            return said;
        }
        if let Some(impossible) = &self.impossible {
            said.push(format!("{impossible}; no candidate was ranked"));
            return said;
        }
        match self.best() {
            Some(best) if self.is_certain(best) => {
                said.push(format!("turn on {}: {}", best.name, self.words(best)))
            }
            Some(best) => said.push(format!(
                "{} is the best estimate, not significantly better than the scenario as it is: {}",
                best.name,
                self.words(best)
            )),
            None => said.push("no candidate is known to be better than the scenario as it is".to_owned()),
        }
        if let Some(best) = self.best() {
            said.push(format!("who pays: {}; host processors: {}", best.costs, best.processor));
            let paid: Vec<String> = best.paid.iter().map(CandidateCost::words).collect();
            if !paid.is_empty() {
                said.push(format!("measured at {at} beside the scenario as it is: {}", paid.join(", ")));
            }
        }
        if !self.is_met {
            said.push(format!("nothing that was tried is known to meet {}", self.objectives));
        }
        let failed = self.ranking.iter().filter_map(|one| Some((&one.name, one.failed.as_ref()?)));
        said.extend(failed.map(|(name, reason)| format!("{name} could not be run: {reason}")));
        said.extend(self.untried.iter().map(|(name, reason)| format!("{name} was not tried: {reason}")));
        said.extend(self.notes.iter().map(|note| format!("note: {note}")));
        said
    }

    fn csv(&self) -> String {
        let head = [
            "candidate",
            "state",
            "line",
            "line_low",
            "line_high",
            "factor",
            "factor_low",
            "factor_high",
            "strain",
            "runs",
        ];
        let mut text = csv_line(&head.map(str::to_owned));
        for one in &self.ranking {
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let line =
                |of: fn(&plimsoll_line::search::Line) -> Option<f64>| number(one.line.as_ref().and_then(of));
            text.push_str(&csv_line(&[
                one.name.clone(),
                one.state.words().to_owned(),
                line(plimsoll_line::search::Line::load),
                line(plimsoll_line::search::Line::low),
                line(plimsoll_line::search::Line::high),
                number(one.factor),
                number(one.factor_interval.map(|interval| interval.low)),
                number(one.factor_interval.map(|interval| interval.high)),
                number(one.strain),
                one.runs.to_string(),
            ]));
        }
        text
    }
}

impl Advice {
    /// Writes the comparison of the best with the scenario as it is.
    fn words(&self, best: &RankedCandidate) -> String {
        let interval = best.factor_interval.map_or_else(String::new, |i| format!(" ({})", shown_interval(i)));
        let at_least = best.line.as_ref().zip(self.base_line()).and_then(|(line, base)| {
            let load = line.low()?;
            Some(match base.high() {
                Some(high) if base.is_met() => {
                    format!(
                        "at {}, at least {}x its line",
                        self.over.shown(load),
                        figures::number(load / high)
                    )
                }
                _ => format!("at {}, where no load is known to meet them without it", self.over.shown(load)),
            })
        });
        match (best.factor, at_least, best.strain_change) {
            (Some(factor), ..) => format!("{}x its load line{interval}", figures::number(factor)),
            (None, Some(at_least), _) => format!("it meets {} {at_least}", self.objectives),
            (None, None, Some((change, interval))) => format!(
                "the strain changes by {}{} in the trials; no line is known yet",
                figures::number(change),
                interval.map_or_else(String::new, |i| format!(" ({})", shown_interval(i)))
            ),
            (None, None, None) => "no line is known yet".to_owned(),
        }
    }
}

impl CandidateCost {
    /// Returns whether the interval excludes no change.
    fn is_significant(&self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0)
    }

    fn words(&self) -> String {
        let factor = format!("{} {}x", self.measure, figures::number(self.factor));
        match self.interval {
            Some(interval) if self.is_significant() => format!("{factor} ({})", shown_interval(interval)),
            _ => format!("{factor} (not significant)"),
        }
    }
}
