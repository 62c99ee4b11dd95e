//! Columns of numbers before they are written: one unit a column, and the best value marked where it is significant.

use plimsoll_results::Summary;
use plimsoll_results::stats::{Estimate, samples_needed};
use plimsoll_results::summary::Warning;

use super::grid::{Column, Grid, Row, TableCell};
use crate::chart::Color;
use crate::figures::{self, Unit};

/// A footnote of a column: the percentile needs more samples than some of its cells have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Footnote {
    /// The number that the marks show, from 1.
    pub(crate) number: usize,
    /// The text after the mark.
    pub(crate) text: String,
    /// A cell of fewer samples has the mark.
    pub(crate) needed: u64,
}

impl Footnote {
    /// Makes the footnote of a workload's percentile, if any variant or sweep point has too few samples for it. If the
    /// 99th percentile has a footnote, the 99.9th has the same.
    pub(crate) fn of(summary: &Summary, workload: &str, share: f64) -> Option<Footnote> {
        let needed = samples_needed(share);
        let asked = |warning: &Warning| match warning {
            Warning::TooFewSamples { workload, needed, .. } => Some((*needed, workload.clone())),
            _ => None,
        };
        let mut few: Vec<(u64, String, &Warning)> = summary
            .warnings
            .iter()
            .filter_map(|w| asked(w).map(|(needed, name)| (needed, name, w)))
            .collect();
        // The lower percentiles have the lower numbers, since most tables have no others.
        few.sort_by_key(|(asked, ..)| *asked);
        let number = few.iter().position(|(asked, name, _)| name == workload && *asked <= needed)?;
        Some(Footnote { number: number + 1, text: few[number].2.to_string(), needed })
    }

    fn mark(&self) -> String {
        const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
        let digits = self.number.to_string();
        digits.chars().filter_map(|digit| SUPERSCRIPTS.get(digit.to_digit(10)? as usize)).collect()
    }
}

/// A column of numbers before it is written.
#[derive(Default)]
pub(crate) struct NumberColumn {
    pub(crate) group: String,
    pub(crate) name: &'static str,
    /// The scheme that the group is of.
    pub(crate) scheme: Option<Color>,
    /// The units to choose from; `None` for a plain count.
    pub(crate) units: Option<&'static [Unit]>,
    /// The values that the unit is chosen by, where other columns must have the same; `values` if empty.
    pub(crate) beside: Vec<f64>,
    pub(crate) values: Vec<Option<Estimate>>,
    /// The row of the best value, if its difference from the second best is significant.
    pub(crate) best: Option<usize>,
    pub(crate) footnote: Option<Footnote>,
}

impl NumberColumn {
    /// Makes a column whose unit is chosen by its own values, without a best value.
    pub(crate) fn new(
        group: &str,
        name: &'static str,
        units: Option<&'static [Unit]>,
        values: Vec<Option<Estimate>>,
    ) -> NumberColumn {
        NumberColumn { group: group.to_owned(), name, units, values, ..NumberColumn::default() }
    }

    fn written(&self) -> (Column, Vec<TableCell>) {
        let unit = self.units.map(|units| {
            let mine = self.values.iter().flatten().map(|estimate| estimate.value);
            if self.beside.is_empty() {
                figures::common_unit(mine, units)
            } else {
                figures::common_unit(self.beside.iter().copied(), units)
            }
        });
        let size = unit.map_or(1.0, |unit| unit.size);
        let mut cells: Vec<TableCell> = self
            .values
            .iter()
            .map(|value| match value {
                Some(estimate) if self.units.is_some() => measured(&estimate.scaled(1.0 / size)),
                Some(estimate) => TableCell::plain(figures::count(estimate.value as u64)),
                None => TableCell::default(),
            })
            .collect();
        if let Some(footnote) = &self.footnote {
            for (cell, value) in cells.iter_mut().zip(&self.values) {
                if value.is_some_and(|estimate| estimate.samples < footnote.needed) {
                    cell.spread.push_str(&footnote.mark());
                }
            }
        }
        if let Some(cell) = self.best.and_then(|row| cells.get_mut(row)) {
            cell.best = true;
        }
        let name = unit.map_or(self.name.to_owned(), |unit| format!("{} {}", self.name, unit.name));
        (Column { scheme: self.scheme, ..Column::new(&self.group, name.trim()) }, cells)
    }
}

/// Writes an estimate: its value and, in parentheses, its interval.
fn measured(estimate: &Estimate) -> TableCell {
    let decimals = figures::decimals(estimate.value);
    let spread = estimate.interval.map_or_else(String::new, |interval| {
        format!("({} .. {})", figures::fixed(interval.low, decimals), figures::fixed(interval.high, decimals))
    });
    TableCell { value: figures::number(estimate.value), spread, best: false }
}

/// Makes a table of columns; each row has a label and the scheme that it is of.
pub(crate) fn assemble(
    title: String,
    corner: &str,
    labels: Vec<(String, Option<Color>)>,
    columns: &[NumberColumn],
) -> Grid {
    let (heads, written): (Vec<Column>, Vec<Vec<TableCell>>) =
        columns.iter().map(NumberColumn::written).unzip();
    let mut notes: Vec<&Footnote> = Vec::new();
    for (column, cells) in columns.iter().zip(&written) {
        let Some(note) = &column.footnote else { continue };
        if !notes.iter().any(|known| known.number == note.number)
            && cells.iter().any(|cell| cell.spread.ends_with(&note.mark()))
        {
            notes.push(note);
        }
    }
    notes.sort_by_key(|note| note.number);
    let rows = labels
        .into_iter()
        .enumerate()
        .map(|(row, (label, scheme))| Row {
            label,
            scheme,
            cells: written.iter().map(|column| column.get(row).cloned().unwrap_or_default()).collect(),
        })
        .collect();
    Grid {
        title,
        corner: corner.to_owned(),
        columns: heads,
        rows,
        notes: notes.iter().map(|note| format!("{} {}", note.mark(), note.text)).collect(),
    }
}
