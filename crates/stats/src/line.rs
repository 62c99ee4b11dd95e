//! [`Line`]: the result of a search. It has an estimate only where a load met every objective.

use serde::{Deserialize, Serialize};

/// The kinds of result that a search has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// Already the lowest load violates an objective, or no load can meet all; or both ends of a range of another key
    /// violate one.
    Never,
    /// No load is known to meet every objective, and the lowest is not known to violate one; or the runs at an end of a
    /// range of another key do not decide.
    Undecided,
    /// Even the highest load meets every objective; or both ends of a range of another key do.
    Always,
    /// The line lies above a load that meets every objective.
    Line,
}

/// The side of a line on which the objectives are met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Values below the line meet them, as loads do.
    #[default]
    Below,
    /// Values above the line meet them, as sizes of a buffer may.
    Above,
}

impl Side {
    /// Returns whether `one` lies nearer to this side than `other`.
    pub fn is_nearer(self, one: f64, other: f64) -> bool {
        match self {
            Side::Below => one < other,
            Side::Above => one > other,
        }
    }

    /// Returns the two ends of a range: the one of this side, and the other.
    pub fn ends<T>(self, low: T, high: T) -> (T, T) {
        match self {
            Side::Below => (low, high),
            Side::Above => (high, low),
        }
    }

    fn is_below(&self) -> bool {
        *self == Side::Below
    }
}

/// The line of one variant. Its load exists only together with a load that met every objective.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Judged", into = "Judged")]
pub struct Line(Judged);

/// Result of the judged loads of a search, in the form of a line in JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// The kind of result that the ends of the range show.
    pub found: Found,
    /// The estimate of the highest load that meets every objective, in the unit of the load.
    pub load: Option<f64>,
    /// The lower end of the interval: the highest load that meets them at the level of the interval; `None` where none
    /// does.
    pub low: Option<f64>,
    /// The upper end of the interval: the lowest load that violates one at that level; `None` where none does.
    pub high: Option<f64>,
    /// The number of the objective that is violated first.
    pub binding: Option<usize>,
    /// A load above a violated one met every objective.
    pub not_monotone: bool,
    /// The side on which the objectives are met: where it is not that of loads, `high` meets them and `low` violates
    /// one.
    #[serde(default, skip_serializing_if = "Side::is_below")]
    pub side: Side,
}

impl From<Judged> for Line {
    /// Drops an estimate without a load that met the objectives, also in the file of an earlier version.
    fn from(judged: Judged) -> Line {
        let (met, violated) = judged.side.ends(judged.low, judged.high);
        let found = match (judged.found, met, violated) {
            (Found::Never, None, _) => Found::Never,
            (_, None, _) => Found::Undecided,
            (Found::Always, Some(_), None) => Found::Always,
            (_, Some(_), _) => Found::Line,
        };
        // Without the end that is violated, the other one is not an estimate.
        let met = met.filter(|_| violated.is_some());
        let load = judged.load.or(met).filter(|_| found == Found::Line);
        let binding = judged.binding.filter(|_| found != Found::Always);
        Line(Judged { found, load, binding, ..judged })
    }
}

impl From<Line> for Judged {
    fn from(line: Line) -> Judged {
        line.0
    }
}

impl Line {
    /// Returns the kind of result.
    pub fn found(&self) -> Found {
        self.0.found
    }

    /// Returns the estimate of the highest load that meets every objective, in the unit of the load; `None` unless the
    /// result is [`Found::Line`].
    pub fn load(&self) -> Option<f64> {
        self.0.load
    }

    /// Returns the lower end of the interval: of a load, the highest that meets every objective at its level; `None`
    /// where none does.
    pub fn low(&self) -> Option<f64> {
        self.0.low
    }

    /// Returns the upper end of the interval: of a load, the lowest that violates an objective at its level; `None`
    /// where none does.
    pub fn high(&self) -> Option<f64> {
        self.0.high
    }

    /// Returns the side of the line on which the objectives are met.
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// Returns the end of the interval that meets every objective.
    pub fn met(&self) -> Option<f64> {
        self.0.side.ends(self.0.low, self.0.high).0
    }

    /// Returns the end of the interval that violates an objective.
    pub fn violated(&self) -> Option<f64> {
        self.0.side.ends(self.0.low, self.0.high).1
    }

    /// Returns the number of the objective that is violated first.
    pub fn binding(&self) -> Option<usize> {
        self.0.binding
    }

    /// Returns whether a load above a violated one met every objective.
    pub fn is_not_monotone(&self) -> bool {
        self.0.not_monotone
    }

    /// Returns whether some load meets every objective.
    pub fn is_met(&self) -> bool {
        self.met().is_some()
    }

    /// Writes the result in short: `never`, `undecided`, `always`, or the two ends of the interval.
    pub fn brief(&self, shown: impl Fn(f64) -> String) -> String {
        let end = |load: Option<f64>| load.map_or_else(|| "?".to_owned(), &shown);
        match self.0.found {
            Found::Never => "never".to_owned(),
            Found::Always => "always".to_owned(),
            Found::Undecided | Found::Line => format!("{} to {}", end(self.0.low), end(self.0.high)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_load_is_a_line_without_one_that_met_the_objectives() {
        let judged = |found, low, high| Judged {
            found,
            load: Some(0.4),
            low,
            high,
            binding: Some(0),
            not_monotone: false,
            side: Side::Below,
        };
        for (found, low, high, expected, load) in [
            (Found::Line, None, Some(0.5), Found::Undecided, None),
            (Found::Line, None, None, Found::Undecided, None),
            (Found::Always, None, None, Found::Undecided, None),
            (Found::Never, None, Some(0.1), Found::Never, None),
            (Found::Never, Some(0.3), Some(0.5), Found::Line, Some(0.4)),
            (Found::Line, Some(0.3), None, Found::Line, Some(0.4)),
            (Found::Always, Some(0.3), None, Found::Always, None),
        ] {
            let line = Line::from(judged(found, low, high));
            assert_eq!((line.found(), line.load(), line.low()), (expected, load, low), "{found:?}");
            // The same, seen from the other side.
            let mirrored = Judged { side: Side::Above, ..judged(found, high, low) };
            let line = Line::from(mirrored);
            assert_eq!((line.found(), line.load(), line.met()), (expected, load, low), "{found:?}");
            assert_eq!((line.high(), line.violated()), (low, high), "{found:?}");
        }
    }
}
