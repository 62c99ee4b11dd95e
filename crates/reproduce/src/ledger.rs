//! The ledger: what became of every published value.
//!
//! ```text
//! rows ──settle──> the second base has no published value (a value counts once, where it is reproduced)
//!                  a row beside another figure's value has no verdict, for the same reason
//!                  a published value without a tolerance of its figure's is held to FACTOR
//!                  every row with a published value, or that is judged, has a State ──> Ledger: how many of each
//! ```
//!
//! All of it follows from `measured`, `published` and the study's files, so that a page can be settled anew without
//! a run.

use std::ops::{Add, AddAssign};

use crate::row::{RowState, StudyRow};
use crate::study::Study;

/// The number of published values in each state.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ledger {
    /// The number of values within their tolerance, or in the published order.
    pub held: usize,
    /// The values that did not, with an experiment that shows why.
    pub explained: usize,
    /// The values that did not come out, or of which nothing can be said.
    pub open: usize,
    /// The values that are inputs, which no other count has.
    pub input: usize,
}

/// The factor to the published number, either way, to which rows are held that no tolerance of a figure is for.
pub const FACTOR: f64 = 1.35;

impl Ledger {
    /// Counts the rows of a study that have a state.
    pub fn of(rows: &[StudyRow]) -> Ledger {
        let count = |state| rows.iter().filter(|row| row.state == Some(state)).count();
        let [held, explained, open, input] =
            [RowState::Held, RowState::Explained, RowState::Open, RowState::Input].map(count);
        Ledger { held, explained, open, input }
    }

    /// Returns how many values were published, without the inputs.
    pub fn published(&self) -> usize {
        self.held + self.explained + self.open
    }
}

impl Add for Ledger {
    type Output = Ledger;

    fn add(self, other: Ledger) -> Ledger {
        Ledger {
            held: self.held + other.held,
            explained: self.explained + other.explained,
            open: self.open + other.open,
            input: self.input + other.input,
        }
    }
}

impl AddAssign for Ledger {
    fn add_assign(&mut self, other: Ledger) {
        *self = *self + other;
    }
}

/// Judges every row that has a published value, and says what became of it.
pub(crate) fn settle(study: &Study, rows: &mut [StudyRow]) {
    for row in rows {
        if row.base != study.bases[0].name() {
            (row.published, row.ratio, row.tolerance, row.within) = (None, None, None, None);
            row.state = None;
            continue;
        }
        if study.repeats.iter().any(|repeats| repeats.has(row)) {
            row.let_go();
            row.state = None;
            continue;
        }
        if study.not_built.iter().any(|rows| rows.has(row)) {
            row.let_go();
            row.state = row.is_published().then_some(RowState::Open);
            continue;
        }
        let as_asked = row.clone();
        row.hold();
        let is_input = study.inputs.iter().any(|inputs| inputs.has(row));
        // An input that does not come out as it was given says something of the model, and counts.
        row.state = if is_input && row.within != Some(false) {
            let is_published = row.is_published();
            *row = as_asked;
            is_published.then_some(RowState::Input)
        } else {
            state(study, row)
        };
    }
}

fn state(study: &Study, row: &StudyRow) -> Option<RowState> {
    let is_explained = || study.explanation(row).is_some();
    match row.within {
        _ if row.suspect || row.quick => row.is_published().then_some(RowState::Open),
        Some(true) => Some(RowState::Held),
        Some(false) if is_explained() => Some(RowState::Explained),
        Some(false) => Some(RowState::Open),
        // The order is not decided.
        None => row.is_published().then_some(RowState::Open),
    }
}

impl StudyRow {
    /// Returns whether a paper has a value, or an order, for the row.
    fn is_published(&self) -> bool {
        self.published.is_some() || self.within.is_some()
    }

    /// Holds the row to [`FACTOR`], or to zero where that is published, unless something else holds it.
    fn hold(&mut self) {
        if self.within.is_some() || self.order_only || self.suspect || self.quick {
            return;
        }
        if let Some(ratio) = self.ratio {
            self.tolerance = Some(FACTOR);
            self.within = Some((1.0 / FACTOR..=FACTOR).contains(&ratio));
        } else if self.published == Some(0.0) {
            self.within = Some(self.measured == 0.0);
        }
    }
}
