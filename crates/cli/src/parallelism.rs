//! Implements `plimsoll run --plan`, which prints what more threads could gain, measured in runs on one thread.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use plimsoll_experiment::BenchWatch as _;
use plimsoll_experiment::question::label;
use plimsoll_process::note;
use plimsoll_report::table::{Listing, ListingColumn};
use plimsoll_scenario::Point;
use plimsoll_sim::{DividedLoad, Parallelism, ProcessLoad, Progress, RunError};
use plimsoll_text::printable_json;
use plimsoll_units::Time;
use serde_json::{Value, json};

use crate::memory::Memory;
use crate::output::{self, Done, Format};
use crate::progress::{Board, Show};
use crate::signals::Interrupt;

/// Runs each point's first replicate on one thread, and prints how `threads` threads would divide it.
pub fn print(points: &[&Point], threads: usize, memory: Memory, show: Show, format: Format) -> Done {
    let points: Vec<&Point> = points.iter().copied().filter(|point| point.replicate == 0).collect();
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let board = Board::new(&points, show, interrupt, memory);
    let mut measured = Vec::new();
    for (index, point) in points.iter().enumerate() {
        board.on_start(index);
        let mut progress = |progress: Progress| {
            board.on_progress(index, share(progress), progress);
            board.goes_on()
        };
        let parallelism = match plimsoll_sim::plan(&point.model, threads, &mut progress) {
            Ok(parallelism) => parallelism,
            Err(error) => {
                board.clear();
                return stop(error, &board, memory, point);
            }
        };
        board.on_run(index, hops(&parallelism));
        measured.push((*point, parallelism));
    }
    board.clear();
    let text = match format {
        Format::Json => {
            let points: Vec<Value> =
                measured.iter().map(|(point, parallelism)| as_json(point, parallelism)).collect();
            format!("{}\n", printable_json(&format!("{:#}", json!({ "threads": threads, "points": points }))))
        }
        Format::Table => {
            let table = listing(&measured, false).written(format.of_report());
            table + "\n" + &limits(&measured) + &output::folded(EXPLANATION, "", "")
        }
        Format::Csv | Format::Md => listing(&measured, true).written(format.of_report()),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The description of the columns.
const EXPLANATION: &str = "\
Measured on one thread. hosts, switches: of each process. cut links: between processes. mean, p10: events of a \
process in a window, which is as long as the lookahead. imbalance: work of the busiest process of each window, of an \
equal share. messages: packets and pauses between processes in a window. speed-up: the bound without the cost of \
messages and of waiting. An event at a switch counts as 1, a packet at its host as 2.3. divided: whether a run begins \
with enough events in a window to leave its one thread.";

/// Returns the finished part of a run that has a duration.
fn share(progress: Progress) -> Option<f64> {
    let horizon = progress.horizon;
    (horizon < Time::MAX).then(|| progress.now.as_secs_f64() / horizon.as_secs_f64().max(f64::MIN_POSITIVE))
}

fn stop(error: RunError, board: &Board<'_>, memory: Memory, point: &Point) -> Done {
    match (error, board.interrupt.signal()) {
        (_, Some(signal)) => {
            note!("cancelled");
            Ok(ExitCode::from(128 + signal))
        }
        (RunError::Cancelled, _) if memory.is_exceeded() => Err(memory.error().into()),
        (error, _) => Err(anyhow!(error).context(label(point))),
    }
}

fn hops(parallelism: &Parallelism) -> u64 {
    match parallelism {
        Parallelism::Whole(_) => 0,
        Parallelism::Divided(load) => load.packet_hops,
    }
}

/// Returns the table of all points; `with_limits` adds a column of what limits them.
fn listing(measured: &[(&Point, Parallelism)], with_limits: bool) -> Listing {
    let text = |name: &str| ListingColumn { name: name.to_owned(), width: 0, is_text: true };
    let number = |name: &&str| ListingColumn { is_text: false, ..text(name) };
    let mut columns = vec![text("point")];
    columns.extend(NUMBERS.iter().map(number));
    columns.extend(with_limits.then(|| text("limit")));
    let row = |(point, parallelism): &(&Point, Parallelism)| {
        let mut row = vec![label(point)];
        match parallelism {
            Parallelism::Divided(load) => row.extend(cells(load)),
            Parallelism::Whole(_) => {
                row.push("1".to_owned());
                row.resize(columns.len() - usize::from(with_limits), String::new());
            }
        }
        row.extend(with_limits.then(|| limit(parallelism).unwrap_or_default()));
        row
    };
    let rows = measured.iter().map(row).collect();
    Listing { columns, rows }
}

/// The columns behind the name of the point, which `EXPLANATION` describes.
const NUMBERS: [&str; 13] = [
    "processes",
    "hosts",
    "switches",
    "cut links",
    "lookahead",
    "events",
    "windows",
    "mean",
    "p10",
    "imbalance",
    "messages",
    "speed-up",
    "divided",
];

/// Returns what keeps a run on one thread, or all hosts in one process, if anything does.
fn limit(parallelism: &Parallelism) -> Option<String> {
    match parallelism {
        Parallelism::Whole(reason) => Some(format!("one thread: {reason}")),
        Parallelism::Divided(load) => {
            load.hosts_together.as_ref().map(|reason| format!("all hosts in one process: {reason}"))
        }
    }
}

/// Returns a line for each limit with the points that have it.
fn limits(measured: &[(&Point, Parallelism)]) -> String {
    let mut points: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (point, parallelism) in measured {
        limit(parallelism).into_iter().for_each(|limit| points.entry(limit).or_default().push(label(point)));
    }
    let line = |(limit, points): (String, Vec<String>)| match points.len() == measured.len() {
        true => format!("{limit}\n"),
        false => format!("{limit}: {}\n", points.join("; ")),
    };
    points.into_iter().map(line).collect()
}

/// Returns the cells of a divided run after the point's name.
fn cells(load: &DividedLoad) -> [String; 13] {
    let range = |count: fn(&ProcessLoad) -> u64| {
        let counts = load.processes.iter().map(count);
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        if least == most { least.to_string() } else { format!("{least} .. {most}") }
    };
    [
        load.processes.len().to_string(),
        range(|process| process.hosts),
        range(|process| process.switches),
        load.cut_links.to_string(),
        load.lookahead.to_string(),
        load.events.to_string(),
        load.windows.to_string(),
        format!("{:.1}", load.window_events()),
        load.window_events_p10().to_string(),
        format!("{:.2}", load.imbalance()),
        format!("{:.1}", load.window_messages()),
        format!("{:.2}", load.speed_up_bound()),
        if load.is_worth_it { "yes" } else { "no" }.to_owned(),
    ]
}

fn as_json(point: &Point, parallelism: &Parallelism) -> Value {
    let process = |process: &ProcessLoad| {
        json!({ "hosts": process.hosts, "switches": process.switches, "events": process.events,
                "work": process.work as f64 / 10.0 })
    };
    let (obstacle, divided) = match parallelism {
        Parallelism::Whole(reason) => (json!(reason), Value::Null),
        Parallelism::Divided(load) => {
            let divided = json!({
                "processes": load.processes.iter().map(process).collect::<Vec<Value>>(),
                "cut_links": load.cut_links,
                "lookahead_ps": load.lookahead.as_ps(),
                "events": load.events,
                "windows": load.windows,
                "window_events_mean": load.window_events(),
                "window_events_p10": load.window_events_p10(),
                "imbalance": load.imbalance(),
                "window_messages": load.window_messages(),
                "speed_up_bound": load.speed_up_bound(),
                "hosts_together": load.hosts_together,
                "is_divided_by_run": load.is_worth_it,
            });
            (Value::Null, divided)
        }
    };
    json!({
        "point": point.id,
        "variant": point.variant,
        "sweep": point.sweep.iter().cloned().collect::<BTreeMap<String, String>>(),
        "one_thread": obstacle,
        "divided": divided,
    })
}
