//! Distributions of sizes as other simulators keep them: a value and a share a line, the share up to 1 or to 100;
//! or three columns, as ns-2 has them, of which the middle one means nothing. A number alone in the first line is the
//! mean that some generators of traffic keep there.

use std::collections::BTreeSet;
use std::fmt::Write;

use plimsoll_text::counted;

use super::{Imported, Lines};
use crate::error::ScenarioError;

/// A distribution in bytes as CSV. `unit` is the number of bytes of a value of 1: 1, or a packet's payload.
///
/// # Errors
/// At the first word that does not fit, or if the shares do not ascend to 1 or 100.
pub fn cdf(name: &str, text: &str, unit: u64) -> Result<Imported, Box<ScenarioError>> {
    const ROW: &str = "a value and the share that is at most so large, ascending to 1 or to 100";
    let mut lines = Lines::new(name, text.trim_start_matches('\u{feff}'));
    let mut names = None;
    let mut points: Vec<(&str, f64, f64)> = Vec::new();
    let mut mean = None;
    while let Some(words) = lines.next() {
        let cells: Vec<&str> =
            words.iter().flat_map(|word| word.split(',')).filter(|c| !c.is_empty()).collect();
        if let (&[word], true, None) = (cells.as_slice(), points.is_empty(), mean) {
            mean = Some(lines.number::<f64>(word, "mean")?).filter(|mean| mean.is_finite());
            continue;
        }
        let (value, share) = match cells.as_slice() {
            &[value, share] | &[value, _, share] => (value, share),
            _ => return Err(lines.error(lines.line, counted(cells.len() as u64, "column"), ROW)),
        };
        let is_word = |cell: &str| !cell.contains(|c: char| c.is_ascii_digit());
        if points.is_empty() && names.is_none() && is_word(value) && is_word(share) {
            names = Some(cells.join(" "));
            continue;
        }
        let at_most = lines.number::<f64>(share, "share")?;
        let value: f64 = lines.number(value, "size")?;
        let (_, value_before, share_before) = points.last().copied().unwrap_or(("", 0.0, 0.0));
        // Written so that NaN fails.
        if !(value >= value_before && at_most >= share_before && value.is_finite()) {
            return Err(lines.error(lines.line, "it does not ascend from the line before", ROW));
        }
        points.push((share, value, at_most));
    }
    let whole = match points.last() {
        Some((_, _, 1.0)) => 1.0,
        Some((_, _, 100.0)) => 100.0,
        Some((word, ..)) => return Err(lines.error(word, format!("the last share is {word}"), ROW)),
        None => return Err(lines.error("", "no points", ROW)),
    };
    let mut out = "bytes,cdf\n".to_owned();
    for (_, value, share) in &points {
        let _ = writeln!(out, "{},{}", value * unit as f64, share / whole);
    }
    let note = format!("values times {unit}: they are packets of so many bytes");
    let mut notes = if unit == 1 { Vec::new() } else { vec![note] };
    notes.extend(names.map(|names| format!("the first line, `{names}`, is taken for the names of columns")));
    if let Some(mean) = mean {
        // Linear between the points, as the distribution is read.
        let of_points: f64 = points
            .iter()
            .zip(points.iter().skip(1))
            .map(|(low, high)| (low.1 + high.1) / 2.0 * (high.2 - low.2) / whole)
            .sum();
        notes.push(format!(
            "the first line, {mean}, is taken for the mean; that of the points is {of_points:.1}"
        ));
    }
    let summary = counted(points.len() as u64, "point");
    Ok(Imported { text: out, summary, notes, hosts: BTreeSet::new(), links: Vec::new() })
}
