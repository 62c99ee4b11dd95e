//! Columns of numbers before they are written: one unit a column, the best marked.

use plimsoll_results::stats::Estimate;

use super::grid::{Cell, Column, Grid, Row};
use crate::figures::{self, Unit};

/// Which end of a column is the good one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Good {
    Low,
    High,
    Neither,
}

/// A column of numbers before it is written.
pub(crate) struct Numbers {
    pub(crate) group: String,
    pub(crate) name: &'static str,
    /// `None` for a plain count.
    pub(crate) units: Option<&'static [Unit]>,
    /// What the unit is chosen by, where other columns must have the same; `values` if empty.
    pub(crate) beside: Vec<f64>,
    pub(crate) good: Good,
    pub(crate) values: Vec<Option<Estimate>>,
}

impl Numbers {
    /// A column whose unit is chosen by its own values.
    pub(crate) fn new(
        group: &str,
        name: &'static str,
        units: Option<&'static [Unit]>,
        good: Good,
        values: Vec<Option<Estimate>>,
    ) -> Numbers {
        Numbers { group: group.to_owned(), name, units, beside: Vec::new(), good, values }
    }

    fn written(&self) -> (Column, Vec<Cell>) {
        let unit = self.units.map(|units| {
            let mine = self.values.iter().flatten().map(|estimate| estimate.value);
            if self.beside.is_empty() {
                figures::common_unit(mine, units)
            } else {
                figures::common_unit(self.beside.iter().copied(), units)
            }
        });
        let size = unit.map_or(1.0, |unit| unit.size);
        let mut cells: Vec<Cell> = self
            .values
            .iter()
            .map(|value| match value {
                Some(estimate) if self.units.is_some() => measured(&estimate.scaled(1.0 / size)),
                Some(estimate) => Cell { value: figures::count(estimate.value as u64), ..Cell::default() },
                None => Cell::default(),
            })
            .collect();
        let sizes: Vec<Option<f64>> = self.values.iter().map(|value| value.map(|v| v.value)).collect();
        mark_best(&mut cells, &sizes, self.good);
        let name = unit.map_or(self.name.to_owned(), |unit| format!("{} {}", self.name, unit.name));
        (Column { group: self.group.clone(), name: name.trim().to_owned() }, cells)
    }
}

fn measured(estimate: &Estimate) -> Cell {
    let decimals = figures::decimals(estimate.value);
    Cell {
        value: figures::number(estimate.value),
        spread: estimate
            .half_width()
            .map_or(String::new(), |half| format!("±{}", figures::fixed(half, decimals))),
        best: false,
    }
}

/// Marks the best value, unless all look the same.
pub(super) fn mark_best(cells: &mut [Cell], sizes: &[Option<f64>], good: Good) {
    let written: Vec<&str> = cells.iter().map(|c| c.value.as_str()).filter(|v| !v.is_empty()).collect();
    let differ = written.windows(2).any(|pair| pair[0] != pair[1]);
    let known = sizes.iter().flatten().copied();
    let best = match good {
        Good::Low => known.fold(f64::INFINITY, f64::min),
        Good::High => known.fold(f64::NEG_INFINITY, f64::max),
        Good::Neither => return,
    };
    if differ {
        for (cell, size) in cells.iter_mut().zip(sizes) {
            cell.best = *size == Some(best);
        }
    }
}

/// A table of columns with these row labels.
pub(crate) fn assemble(title: String, corner: &str, labels: Vec<String>, columns: &[Numbers]) -> Grid {
    let (heads, written): (Vec<Column>, Vec<Vec<Cell>>) = columns.iter().map(Numbers::written).unzip();
    let rows = labels
        .into_iter()
        .enumerate()
        .map(|(row, label)| Row {
            label,
            cells: written.iter().map(|column| column.get(row).cloned().unwrap_or_default()).collect(),
        })
        .collect();
    Grid { title, corner: corner.to_owned(), columns: heads, rows }
}
