//! The table of marks, cuts and losses by priority, at ports with classes or trimming.

use plimsoll_results::Summary;
use plimsoll_results::outcome::PriorityCounters;
use plimsoll_results::stats::Estimate;

use crate::plots::cell_label;
use crate::table::Grid;
use crate::table::numbers::{NumberColumn, assemble};

/// Makes the table of the priorities with marked, trimmed, bounced or dropped packets, of every variant and sweep
/// point; `None` where there are none.
pub(crate) fn summary_grid(summary: &Summary) -> Option<Grid> {
    let mut rows = Vec::new();
    let mut labels = Vec::new();
    for cell in &summary.cells {
        for (priority, counters) in cell.counters.by_priority.iter().enumerate() {
            if *counters != PriorityCounters::default() {
                let (name, color) = cell_label(summary, cell);
                let name = if name.is_empty() { String::new() } else { format!("{name}, ") };
                labels.push((format!("{name}priority {priority}"), color));
                rows.push(*counters);
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let all = |pick: fn(&PriorityCounters) -> u64| {
        rows.iter().map(|row| Some(Estimate::bare(pick(row) as f64, 1))).collect::<Vec<_>>()
    };
    let (packets, bytes) = ("packets", "bytes");
    let columns = [
        NumberColumn::new(packets, "marked", None, all(|of| of.marked)),
        NumberColumn::new(packets, "trimmed", None, all(|of| of.trimmed)),
        NumberColumn::new(packets, "bounced", None, all(|of| of.bounced)),
        NumberColumn::new(packets, "dropped", None, all(|of| of.dropped)),
        NumberColumn::new(bytes, "payload trimmed", None, all(|of| of.trimmed_bytes)),
        NumberColumn::new(bytes, "dropped", None, all(|of| of.dropped_bytes)),
    ];
    let title = "Ports with classes or trimming, by priority".to_owned();
    Some(assemble(title, "variant", labels, &columns))
}

#[cfg(test)]
mod tests {
    use plimsoll_results::summary::Options;
    use plimsoll_results::synthetic::{self, Shape};

    use super::*;
    use crate::table::{Format, TableStyle, render};

    #[test]
    fn priorities_with_packets_have_a_row() {
        let mut points = synthetic::experiment(&Shape::default(), &["trim"], &[], 1, 1);
        assert!(summary_grid(&Summary::of(&points, &Options::default())).is_none());
        let json = r#"[{}, {}, {}, {"trimmed": 3, "trimmed_bytes": 9}, {}, {}, {}, {"dropped": 2}]"#;
        points[0].outcome.counters.by_priority = serde_json::from_str(json).unwrap();
        let grid = summary_grid(&Summary::of(&points, &Options::default())).unwrap();
        assert_eq!((grid.rows.len(), grid.columns.len()), (2, 6));
        let csv = render(&Summary::of(&points, &Options::default()), Format::Csv, &TableStyle::default());
        let rows: Vec<&str> = csv.lines().filter_map(|row| row.strip_prefix("trim,priority ")).collect();
        let of_3 = ["3,marks,0.0", "3,trimmed,3.0", "3,trimmed_bytes,9.0", "3,bounced,0.0", "3,drops,0.0"];
        for (row, expected) in rows.iter().zip(of_3) {
            assert!(row.starts_with(expected), "{row}");
        }
        assert_eq!(rows.len(), 12, "{csv}");
        assert!(rows[10].starts_with("7,drops,2.0,,,1"), "{csv}");
    }
}
