//! `plimsoll breakdown --overhead`: the same load with and without tracing, in pairs, measured from outside.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, anyhow};
use plimsoll_breakdown::{Recorder, Sampler, Session, Target};
use plimsoll_process::note;
use plimsoll_report::figures::{fixed, time};
use plimsoll_report::table::{Cell, Column, Grid, Row};
use plimsoll_text::printable_json;
use serde::Serialize;
use serde_json::{Value, json};

use super::Args;
use super::server::POLL;
use super::slices::Slices;
use crate::output::{self, Done, FINDING, Format};
use crate::signals::Interrupt;

/// What the load generator and the system counted in one turn.
#[derive(Clone, Copy, Debug, Serialize)]
struct Turn {
    /// The median latency at the client, in us.
    p50_us: f64,
    /// The 99th percentile of the latency at the client, in us.
    p99_us: f64,
    /// The server's processor time for each operation that the client counted, in us.
    processor_us: f64,
    /// The operations that the client counted.
    operations: u64,
    /// The requests with a breakdown, in a turn with tracing.
    matched: u64,
    /// The requests without one.
    unmatched: u64,
    /// The records that were lost.
    lost_records: u64,
}

/// Runs the pairs and prints them. The exit status is 1 where the median or the processor time rises by more than
/// [`RISE_MAX`].
pub(super) fn run(args: &Args, target: &Target, pairs: u32, interrupt: &Interrupt) -> Done {
    let load = args.load.as_deref().ok_or_else(|| anyhow!("--overhead needs --load COMMAND"))?;
    let mut without = Vec::new();
    let mut with = Vec::new();
    for pair in 0..pairs {
        note!("Pair     {} of {pairs}", pair + 1);
        // Which turn is first changes from pair to pair, so that a drift of the machine favours neither.
        for traced in if pair % 2 == 0 { [false, true] } else { [true, false] } {
            let turn = turn(args, target, load, traced, interrupt)?;
            if traced { with.push(turn) } else { without.push(turn) }
        }
    }
    let rises = [
        Rise::of("median latency", &without, &with, |turn| turn.p50_us),
        Rise::of("99th percentile", &without, &with, |turn| turn.p99_us),
        Rise::of("processor time a request", &without, &with, |turn| turn.processor_us),
    ];
    match args.format {
        Format::Json => {
            let options = json!({"sample": args.sample, "duty": args.duty});
            let whole =
                json!({"load": load, "options": options, "rises": rises, "without": without, "with": with});
            output::print(&format!("{}\n", printable_json(&format!("{whole:#}"))))?;
        }
        _ => {
            let grid = grid(&rises, pairs);
            let text = if args.format == Format::Md {
                grid.to_markdown()
            } else {
                grid.to_terminal(&output::style())
            };
            let matched: u64 = with.iter().map(|turn| turn.matched).sum();
            let unmatched: u64 = with.iter().map(|turn| turn.unmatched).sum();
            let lost: u64 = with.iter().map(|turn| turn.lost_records).sum();
            output::print(&format!(
                "{text}\nTraced: {matched} requests matched, {unmatched} not, {lost} records lost.\n"
            ))?;
        }
    }
    let too_much = [&rises[0], &rises[2]].iter().any(|rise| rise.median > 1.0 + RISE_MAX);
    Ok(if too_much { ExitCode::from(FINDING) } else { ExitCode::SUCCESS })
}

/// Runs the load once, with or without tracing.
fn turn(
    args: &Args,
    target: &Target,
    load: &str,
    traced: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Turn> {
    let mut session = if traced { Some(Session::load(target, args.sample)?) } else { None };
    let mut slices = session.as_mut().map(|session| Slices::begin(args.duty, session)).transpose()?;
    let _sampler = traced.then(|| Sampler::begin(target));
    let mut recorder = Recorder::new(0);
    let before = target.processor_ns();
    let mut child = Command::new("sh")
        .args(["-c", load])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run sh")?;
    while child.try_wait().context("cannot wait for the load")?.is_none() {
        if let Some(signal) = interrupt.signal() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(anyhow!("stopped by signal {signal}"));
        }
        std::thread::sleep(POLL);
        if let (Some(session), Some(slices)) = (&mut session, &mut slices) {
            slices.poll(session)?.into_iter().for_each(|request| recorder.add(request));
        }
    }
    let processor_ns = target.processor_ns().saturating_sub(before);
    let output = child.wait_with_output().context("cannot read what the load printed")?;
    let (mut unmatched, mut lost_records) = (0, 0);
    if let Some(session) = &mut session {
        session.finish()?.into_iter().for_each(|request| recorder.add(request));
        (unmatched, lost_records) = (session.matcher().unmatched().total(), session.lost());
    }
    // The generator's status 1 says that the run is suspect, which on a busy machine is so with and without tracing.
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
        anyhow!(
            "`{load}` printed no JSON ({}): expected that of `chronos-load run --format json`\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )
    })?;
    let number = |pointer: &str| {
        let found = said.pointer(pointer).and_then(Value::as_f64);
        found.ok_or_else(|| anyhow!("`{load}`: no number {pointer} in its JSON"))
    };
    let operations = number("/counts/completed")? as u64;
    if operations == 0 {
        return Err(anyhow!("`{load}` completed no operation"));
    }
    Ok(Turn {
        p50_us: number("/latency/p50")?,
        p99_us: number("/latency/p99")?,
        processor_us: processor_ns as f64 / 1e3 / operations as f64,
        operations,
        matched: recorder.requests(),
        unmatched,
        lost_records,
    })
}

/// How much a quantity rises with tracing: the paired ratios.
#[derive(Clone, Debug, Serialize)]
struct Rise {
    quantity: &'static str,
    /// The median without tracing, in us.
    without_us: f64,
    /// The median with tracing, in us.
    with_us: f64,
    /// The median of the ratios, with to without, of the pairs.
    median: f64,
    /// The least and the largest ratio: for six pairs or more, a 95 % interval of the median or wider.
    low: f64,
    high: f64,
}

impl Rise {
    fn of(quantity: &'static str, without: &[Turn], with: &[Turn], value: fn(&Turn) -> f64) -> Rise {
        let mut ratios: Vec<f64> =
            without.iter().zip(with).map(|(without, with)| value(with) / value(without).max(1e-9)).collect();
        ratios.sort_by(f64::total_cmp);
        Rise {
            quantity,
            without_us: median(without.iter().map(value)),
            with_us: median(with.iter().map(value)),
            median: median(ratios.iter().copied()),
            low: ratios.first().copied().unwrap_or(f64::NAN),
            high: ratios.last().copied().unwrap_or(f64::NAN),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[length / 2],
        length => f64::midpoint(values[length / 2 - 1], values[length / 2]),
    }
}

fn grid(rises: &[Rise], pairs: u32) -> Grid {
    let row = |rise: &Rise| Row {
        label: rise.quantity.to_owned(),
        scheme: None,
        cells: vec![
            Cell::plain(time(rise.without_us)),
            Cell::plain(time(rise.with_us)),
            Cell::plain(fixed(rise.median, 3)),
            Cell::plain(format!("{} .. {}", fixed(rise.low, 3), fixed(rise.high, 3))),
        ],
    };
    Grid {
        title: format!("What tracing costs, over {pairs} pairs of turns"),
        corner: "seen by the client".to_owned(),
        columns: ["without", "with", "ratio", "least .. most"].map(|name| Column::new("", name)).into(),
        rows: rises.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

/// The rise of the median and of the processor time above which the exit status is 1.
const RISE_MAX: f64 = 0.1;
