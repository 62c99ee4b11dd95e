//! [`Overhead`]: the same load with and without tracing, in pairs, measured from outside.

use std::process::{Command, Stdio};

use serde::Serialize;
use serde_json::Value;

use crate::server::POLL;
use crate::slices::Slices;
use crate::traced::Rise;
use crate::{Error, ProcessorSampler, RequestRecorder, Session, Target};

/// How the cost of tracing is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OverheadOptions<'a> {
    /// The command that loads the server, run by sh; it prints the JSON of `chronos-load run --format json`.
    pub load: &'a str,
    /// The number of pairs of turns.
    pub pairs: u32,
    /// One connection of this many is traced.
    pub sample: u32,
    /// The share of the time in which requests are traced, above 0 and up to 1.
    pub duty: f64,
}

/// The cost of tracing, seen from outside.
#[derive(Clone, PartialEq, Debug)]
pub struct Overhead {
    /// The rise of the median latency, of its 99th percentile, and of the processor time a request.
    pub rises: [Rise; 3],
    /// The turns without tracing.
    pub without: Vec<Turn>,
    /// The turns with tracing.
    pub with: Vec<Turn>,
}

/// The counts of the load generator and of the system in one turn.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Turn {
    /// The median latency at the client, in us.
    pub p50_us: f64,
    /// The 99th percentile of the latency at the client, in us.
    pub p99_us: f64,
    /// The server's processor time for each operation that the client counted, in us.
    pub processor_us: f64,
    /// The operations that the client counted.
    pub operations: u64,
    /// The requests with a breakdown, in a turn with tracing.
    pub matched: u64,
    /// The requests without one.
    pub unmatched: u64,
    /// The records that were lost.
    pub lost_records: u64,
}

impl Overhead {
    /// Runs the pairs of turns; `on_pair` is called before each with its number from 1.
    ///
    /// # Errors
    /// Returns an error if the load or the tracing fails, or `is_stopped`.
    pub fn measure(
        options: &OverheadOptions<'_>,
        target: &Target,
        is_stopped: &dyn Fn() -> bool,
        on_pair: impl Fn(u32),
    ) -> Result<Overhead, Error> {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for pair in 0..options.pairs {
            on_pair(pair + 1);
            // Which turn is first changes from pair to pair, so that a drift of the machine favours neither.
            for traced in if pair % 2 == 0 { [false, true] } else { [true, false] } {
                let turn = turn(options, target, traced, is_stopped)?;
                if traced { with.push(turn) } else { without.push(turn) }
            }
        }
        let rises = [
            Rise::of("median latency", &without, &with, |turn| turn.p50_us),
            Rise::of("99th percentile", &without, &with, |turn| turn.p99_us),
            Rise::of("processor time a request", &without, &with, |turn| turn.processor_us),
        ];
        Ok(Overhead { rises, without, with })
    }

    /// Returns whether the median latency or the processor time rises by more than a tenth.
    pub fn is_too_much(&self) -> bool {
        [&self.rises[0], &self.rises[2]].iter().any(|rise| rise.median > 1.0 + RISE_MAX)
    }
}

/// Runs the load once, with or without tracing.
fn turn(
    options: &OverheadOptions<'_>,
    target: &Target,
    traced: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Turn, Error> {
    let OverheadOptions { load, sample, duty, .. } = *options;
    let mut session = if traced { Some(Session::load(target, sample)?) } else { None };
    let mut slices = session.as_mut().map(|session| Slices::begin(duty, session)).transpose()?;
    let _sampler = traced.then(|| ProcessorSampler::begin(target));
    let mut recorder = RequestRecorder::new(0);
    let before = target.processor_ns();
    let mut child = Command::new("sh")
        .args(["-c", load])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::running("sh"))?;
    while child.try_wait().map_err(Error::running(load))?.is_none() {
        if is_stopped() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Stopped);
        }
        std::thread::sleep(POLL);
        if let (Some(session), Some(slices)) = (&mut session, &mut slices) {
            slices.poll(session)?.into_iter().for_each(|request| recorder.add(request));
        }
    }
    let processor_ns = target.processor_ns().saturating_sub(before);
    let output = child.wait_with_output().map_err(Error::running(load))?;
    let (mut unmatched, mut lost_records) = (0, 0);
    if let Some(session) = &mut session {
        session.finish()?.into_iter().for_each(|request| recorder.add(request));
        (unmatched, lost_records) = (session.matcher().unmatched().total(), session.lost());
    }
    // The generator's status 1 says that the run is suspect, which on a busy machine is so with and without tracing.
    let wrong = |reason| Error::Load { command: load.to_owned(), reason };
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
        let (status, stderr) = (output.status, String::from_utf8_lossy(&output.stderr));
        wrong(format!(
            "printed no JSON ({status}): expected that of `chronos-load run --format json`\n{}",
            stderr.trim()
        ))
    })?;
    let number = |pointer: &str| {
        let found = said.pointer(pointer).and_then(Value::as_f64);
        found.ok_or_else(|| wrong(format!("has no number {pointer} in its JSON")))
    };
    let operations = number("/counts/completed")? as u64;
    if operations == 0 {
        return Err(wrong("completed no operation".to_owned()));
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

/// The rise of the median and of the processor time that is too much.
const RISE_MAX: f64 = 0.1;
