//! The circuits of a hybrid network: a timetable of matchings, the bytes of each pair by week, and their tables.
//!
//! After REACToR (Kapoor's thesis): a circuit that is filled to less than 90 % is waste (section 7.1), and the bytes
//! of each configuration over the weeks are Fig. 7.9.

use std::collections::BTreeMap;

use plimsoll_results::circuit_curves::{CircuitCurves, PairBytes};
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::{CircuitSummary, FILLED_ENOUGH};
use plimsoll_results::{Curves, Summary};

use crate::chart::{
    Axis, Body, Chart, ChartLine, Color, Format, RECEIVERS, StackPart, Stroke, TimetableBar, TimetableChart,
};
use crate::figures::{self, SIZES, Unit};
use crate::plots;
use crate::plots::cell_label;
use crate::table::blocks::PERCENT;
use crate::table::numbers::{NumberColumn, assemble};
use crate::table::{Grid, Row};

/// The receivers that have colours of their own, in the order of their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receivers {
    shown: Vec<u32>,
    has_others: bool,
}

impl Receivers {
    /// Chooses the receivers of all circuits of an experiment, or the ones of the most bytes where there are too many.
    pub fn of(curves: &Curves) -> Receivers {
        // The places in the lists of all runs, added up: the least sum has the most bytes.
        let mut places: BTreeMap<u32, usize> = BTreeMap::new();
        for run in &curves.circuits {
            let all = curves.circuits.iter().flat_map(|other| &other.receivers);
            for receiver in all {
                let place = run.receivers.iter().position(|known| known == receiver);
                *places.entry(*receiver).or_default() += place.unwrap_or(run.receivers.len());
            }
        }
        let mut order: Vec<(usize, u32)> = places.into_iter().map(|(host, place)| (place, host)).collect();
        order.sort_unstable();
        let has_others = order.len() > RECEIVERS;
        order.truncate(RECEIVERS);
        let mut shown: Vec<u32> = order.into_iter().map(|(_, host)| host).collect();
        shown.sort_unstable();
        Receivers { shown, has_others }
    }

    fn place(&self, receiver: u32) -> Option<usize> {
        self.shown.iter().position(|shown| *shown == receiver)
    }
}

/// Charts the circuits of the first weeks, one row a sender.
pub fn timetable(curves: &CircuitCurves, receivers: &Receivers) -> Chart {
    let mut keys: Vec<StackPart> = receivers
        .shown
        .iter()
        .enumerate()
        .map(|(place, host)| StackPart { name: format!("to h{host}"), color: Color::Receiver(place, 0) })
        .collect();
    if receivers.has_others {
        keys.push(StackPart { name: "to others".to_owned(), color: Color::Reference });
    }
    let bars = curves.bars.iter().filter_map(|bar| {
        Some(TimetableBar {
            row: curves.senders.iter().position(|sender| *sender == bar.sender)?,
            key: receivers.place(bar.receiver).unwrap_or(receivers.shown.len()),
            week: bar.week,
            from: bar.from,
            until: bar.until,
            name: format!("to h{}", bar.receiver),
            bytes: bar.bytes as f64,
            filled: bar.filled,
        })
    });
    let others = match curves.other_senders {
        0 => String::new(),
        others => format!(" Without {others} other senders, which carried less."),
    };
    Chart {
        title: format!("Circuits of {}, from week {}", curves.variant, curves.first_week),
        note: format!(
            "A row is a sender, a bar a circuit in the colour of its receiver. The solid part of its height is the \
             share that was filled. Blank: the sender has no circuit. Dark: no host has one.{others}"
        ),
        body: Body::Timetable(TimetableChart {
            label: format!("week, of {} each", figures::time(curves.week_us)),
            first: curves.first_week,
            weeks: curves.weeks,
            rows: curves.senders.iter().map(|host| format!("h{host}")).collect(),
            keys,
            bars: bars.collect(),
            night: StackPart { name: "dark".to_owned(), color: Color::Night },
            nights: curves.nights.clone(),
        }),
    }
}

/// Charts the bytes that circuits carried in each week, one line a pair of hosts.
pub fn bytes_by_week(curves: &CircuitCurves, receivers: &Receivers) -> Chart {
    let shown = |pair: &&PairBytes| receivers.place(pair.receiver).is_some();
    let mut series: Vec<ChartLine> = curves
        .pairs
        .iter()
        .filter(shown)
        .map(|pair| {
            let place = receivers.place(pair.receiver).unwrap_or(0);
            let sender = curves.senders.iter().position(|host| *host == pair.sender).unwrap_or(0);
            let color = Color::Receiver(place, sender);
            ChartLine::new(
                &pair_name(pair.sender, pair.receiver),
                color,
                pair.week.clone(),
                pair.bytes.clone(),
            )
        })
        .collect();
    let others = curves.other_pairs + curves.pairs.len() - series.len();
    let ends = series.first().map(|line| (line.x.first().copied(), line.x.last().copied()));
    if let Some((Some(first), Some(last))) = ends {
        let fits = vec![curves.week_bytes; 2];
        let line = ChartLine::new("fits a whole week", Color::Reference, vec![first, last], fits);
        series.push(ChartLine { stroke: Stroke::Dashed, ..line });
    }
    let mean = match curves.weeks_per_value {
        1 => String::new(),
        weeks => format!(" A point is the mean of {weeks} weeks."),
    };
    let others = match others {
        0 => String::new(),
        1 => " Without the pair that circuits carried the fewest bytes of.".to_owned(),
        others => format!(" Without {others} pairs that circuits carried fewer bytes of."),
    };
    Chart::lines(
        format!("Bytes by circuits of {}, week by week", curves.variant),
        format!("Bytes of each pair of hosts, its packets' headers included.{mean}{others}"),
        Axis { label: "week".to_owned(), format: Format::Count, ..Axis::default() },
        Axis::from_zero("bytes a week", Format::Size),
        series,
    )
}

/// The most rows of the table of pairs.
const PAIRS_SHOWN: usize = 40;

/// Makes the table of the pairs that had circuits in the timetable's weeks.
pub fn pairs_grid(curves: &CircuitCurves) -> Grid {
    #[derive(Default)]
    struct Sum {
        circuits: u64,
        weeks: f64,
        bytes: u64,
    }
    let mut sums: BTreeMap<(u32, u32), Sum> = BTreeMap::new();
    for bar in &curves.bars {
        let sum = sums.entry((bar.sender, bar.receiver)).or_default();
        sum.circuits += 1;
        sum.weeks += bar.until - bar.from;
        sum.bytes += bar.bytes;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    let others = sums.len().saturating_sub(PAIRS_SHOWN);
    sums.truncate(PAIRS_SHOWN);
    let rows = sums.iter().map(|((sender, receiver), sum)| {
        let filled = if sum.weeks > 0.0 { sum.bytes as f64 / (sum.weeks * curves.week_bytes) } else { 0.0 };
        let cells = [
            figures::count(sum.circuits),
            figures::time(sum.weeks * curves.week_us),
            figures::size(sum.bytes as f64),
            figures::fixed(100.0 * filled, 1),
        ];
        Row::plain(pair_name(*sender, *receiver), cells)
    });
    let weeks = format!("weeks {} to {}", curves.first_week, curves.first_week + curves.weeks.max(1) - 1);
    let columns = ["circuits", "time", "bytes", "filled %"];
    let mut grid = Grid::plain(format!("Pairs of {}", at_point(curves)), &weeks, &columns, rows);
    grid.notes.extend((others > 0).then(|| format!("{others} further pairs carried less.")));
    grid
}

/// Makes the table of the bytes of each pair by week.
pub fn weeks_grid(curves: &CircuitCurves) -> Grid {
    let pairs: Vec<String> = curves.pairs.iter().map(|pair| pair_name(pair.sender, pair.receiver)).collect();
    let columns: Vec<&str> = pairs.iter().map(String::as_str).collect();
    let weeks = curves.pairs.first().map_or(&[][..], |pair| &pair.week);
    let rows = weeks.iter().enumerate().map(|(number, week)| {
        let bytes =
            |pair: &PairBytes| pair.bytes.get(number).map_or_else(String::new, |bytes| figures::size(*bytes));
        Row::plain(week.to_string(), curves.pairs.iter().map(bytes))
    });
    Grid::plain(format!("Bytes a week of {}", at_point(curves)), "week", &columns, rows)
}

fn pair_name(sender: u32, receiver: u32) -> String {
    format!("h{sender} to h{receiver}")
}

fn at_point(curves: &CircuitCurves) -> String {
    match plots::point_name(&curves.sweep) {
        point if point.is_empty() => curves.variant.clone(),
        point => format!("{}, {point}", curves.variant),
    }
}

const PLAIN: &[Unit] = &[Unit { name: "", size: 1.0 }, Unit { name: "", size: 1.0 }];

/// Makes the table of the circuits of every variant and sweep point; `None` where there are none.
pub(crate) fn summary_grid(summary: &Summary) -> Option<Grid> {
    let known: Vec<_> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.circuits.as_ref()?))).collect();
    if known.is_empty() {
        return None;
    }
    let all = |pick: fn(&CircuitSummary) -> f64| {
        known.iter().map(|(_, circuits)| Some(Estimate::bare(pick(circuits), 1))).collect::<Vec<_>>()
    };
    let (switch, bytes) = ("circuit switch", "bytes by");
    let columns = [
        NumberColumn::new("circuits", "filled", Some(PERCENT), all(|c| 100.0 * c.filled)),
        NumberColumn::new("circuits", "wasted", Some(PERCENT), all(|c| 100.0 * c.wasted)),
        NumberColumn::new(switch, "dark", Some(PERCENT), all(|c| 100.0 * c.dark)),
        NumberColumn::new(switch, "configurations a week", Some(PLAIN), all(|c| c.configurations_per_week)),
        NumberColumn::new(switch, "lost packets", None, all(|c| (c.lost_dark + c.lost_unmatched) as f64)),
        NumberColumn::new(bytes, "circuits", Some(SIZES), all(|c| c.circuit_bytes as f64)),
        NumberColumn::new(bytes, "packet switch", Some(SIZES), all(|c| c.packet_bytes as f64)),
    ];
    let labels = known.iter().map(|(cell, _)| cell_label(summary, cell)).collect();
    let mut grid = assemble("Circuits".to_owned(), "variant", labels, &columns);
    grid.notes.push(format!(
        "Wasted: the share of circuit time in circuits that carried less than {:.0} % of what fits.",
        100.0 * FILLED_ENOUGH
    ));
    Some(grid)
}
