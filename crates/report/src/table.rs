//! The table that `plimsoll run` prints, and the same data as JSON, CSV and Markdown.
//!
//! Without a sweep: one row a variant, and for each workload its median and its 99th percentile with intervals. With a
//! sweep: one table a workload and one row a sweep point. Where runs are compared ([`render_compared`]), every paired
//! difference with its interval. Last, one sentence a variant ([`crate::verdict`]) and the warnings. With
//! [`Style::details`] also means and goodputs, the watched queues, the counters of the network and, for each workload,
//! the latency breakdown of its slowest hundredth.

pub(crate) mod blocks;
mod differences;
mod grid;
mod listing;
pub(crate) mod numbers;
mod style;
mod tidy;

use plimsoll_results::Summary;
use plimsoll_results::summary::Warning;
use plimsoll_text::{printable, printable_lines};

use crate::verdict;
pub use differences::differences;
pub use grid::{Column, Grid, Row, TableCell, bold, dim, escape_markdown};
pub use listing::{Listing, ListingColumn};
pub use style::{TableStyle, folded};
pub use tidy::line as csv_line;

/// The forms in which a summary is rendered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Aligned columns for a terminal.
    Table,
    /// The whole summary with the verdicts.
    Json,
    /// One number a row: variant, sweep point, subject, metric, value, interval, samples, warnings.
    Csv,
    /// The table as Markdown.
    Md,
}

/// Renders the tables, sentences and warnings of a summary.
pub fn render(summary: &Summary, format: Format, style: &TableStyle) -> String {
    match format {
        Format::Table => terminal(summary, style),
        Format::Json => tidy::json(summary),
        Format::Csv => tidy::csv(summary),
        Format::Md => markdown(summary, style),
    }
}

/// Renders as [`render`] does, with a table of all paired differences, for runs side by side. JSON has them anyway.
pub fn render_compared(summary: &Summary, format: Format, style: &TableStyle) -> String {
    let table = differences(summary);
    match format {
        Format::Table if !table.rows.is_empty() => {
            tables(summary, style) + &table.to_terminal(style) + "\n" + &sentences(summary, style)
        }
        Format::Md if !table.rows.is_empty() => table.to_markdown() + "\n" + &markdown(summary, style),
        Format::Csv => tidy::csv(summary) + &tidy::differences(summary),
        _ => render(summary, format, style),
    }
}

/// Makes all tables of a summary, for renderers of other forms.
pub fn grids(summary: &Summary) -> Vec<Grid> {
    blocks::grids(summary, true)
}

fn terminal(summary: &Summary, style: &TableStyle) -> String {
    tables(summary, style) + &sentences(summary, style)
}

fn tables(summary: &Summary, style: &TableStyle) -> String {
    let grids = blocks::grids(summary, style.details);
    let mut out = String::new();
    for grid in &grids {
        out.push_str(&grid.to_terminal(style));
        out.push('\n');
    }
    for note in notes(summary, &grids, style.color) {
        out.push_str(&format!("{}\n", dim(&style.prose(&printable_lines(&note)), style)));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Collects the explanations of intervals and bold numbers, where there are any, and the footnotes.
fn notes(summary: &Summary, grids: &[Grid], shows_best: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if has_intervals(summary) {
        notes.push(INTERVALS.to_owned());
    }
    let mut cells = grids.iter().flat_map(|grid| &grid.rows).flat_map(|row| &row.cells);
    if shows_best && cells.any(|cell| cell.best) {
        notes.push(BEST.to_owned());
    }
    for note in grids.iter().flat_map(|grid| &grid.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes.extend(mechanisms(summary));
    notes
}

/// The lines about mechanisms that never acted, about buffers, and about packets that waited for pauses.
pub(crate) fn mechanisms(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    let mechanisms = summary.mechanisms.iter().filter(|used| used.is_notable()).map(ToString::to_string);
    mechanisms.chain(summary.blocked.iter().map(ToString::to_string))
}

/// The sentence below tables with intervals.
pub(crate) const INTERVALS: &str = "(low .. high) is a 95 % confidence interval.";
/// The sentence below tables with bold numbers.
pub(crate) const BEST: &str = "Bold: the lowest value, by a paired difference from the second lowest whose 95 % \
                               interval excludes zero.";

fn sentences(summary: &Summary, style: &TableStyle) -> String {
    let mut out = String::new();
    for text in verdict::sentences(summary) {
        out.push_str(&sentence(&text, style));
    }
    for warning in alarms(summary) {
        let warning = style.prose(&format!("warning: {}", printable_lines(&warning)));
        out.push_str(&warning.replacen("warning:", &grid::yellow("warning:", style), 1));
        out.push('\n');
    }
    out
}

/// Writes a sentence about a variant, whose name is before the colon, as lines of a terminal.
pub fn sentence(text: &str, style: &TableStyle) -> String {
    let text = style.prose(&printable(text));
    let (variant, rest) = text.split_once(':').unwrap_or(("", &text));
    format!("{}:{rest}\n", bold(variant, style))
}

/// The texts of the warnings that are not footnotes.
pub(crate) fn alarms(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    let others = summary.warnings.iter().filter(|warning| !matches!(warning, Warning::TooFewSamples { .. }));
    others.map(ToString::to_string)
}

fn markdown(summary: &Summary, style: &TableStyle) -> String {
    let grids = blocks::grids(summary, style.details);
    let mut out: String = grids.iter().map(|grid| grid.to_markdown() + "\n").collect();
    let notes = notes(summary, &grids, true);
    out.extend(notes.iter().map(|note| format!("{}\n\n", escape_markdown(note))));
    let sentences = verdict::sentences(summary);
    out.extend(sentences.iter().map(|sentence| format!("* {}\n", escape_markdown(sentence))));
    out.extend(alarms(summary).map(|warning| format!("* **Warning:** {}\n", escape_markdown(&warning))));
    out
}

fn has_intervals(summary: &Summary) -> bool {
    let workloads = summary.cells.iter().flat_map(|cell| &cell.workloads);
    workloads.filter_map(|w| w.waited_us()).any(|waited| waited.mean.interval.is_some())
}

#[cfg(test)]
mod tests;
