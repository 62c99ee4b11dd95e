//! The tables of breakdowns, and their CSV.

use plimsoll_breakdown::{FutexSleeps, HERTZ, Layer, ProfileReport, Quantiles, Report, SlowRequest, Traced};

use crate::figures::{self, count, fixed, number, time};
use crate::table::{Grid, Row, csv_line};

/// Returns the findings: how many requests, how long they took, and which layer owns the slowest ones.
pub(super) fn sentence(traced: &Traced) -> String {
    let report = &traced.report;
    let mut text = format!(
        "{} requests in {} of tracing ({} a second): median {}, 99th percentile {} in the server.",
        count(report.requests),
        time(report.seconds * 1e6),
        number(report.requests as f64 / report.seconds.max(1e-9)),
        us(report.latency.p50_ns),
        us(report.latency.p99_ns),
    );
    if let (Some(layer), Some(part)) = (report.owner_of_tail(), report.largest_part_of_tail()) {
        text += &format!(
            " Of the slowest 1 % (from {} on), {} of the time is {}; the largest part is {} ({}: {}).",
            us(report.slowest_from_ns),
            percent(layer.share_of_slowest),
            owner(layer.layer),
            part.name,
            percent(part.share_of_slowest),
            part.part.meaning(),
        );
    }
    text + &format!(
        " Not matched: {} of the requests.",
        if report.unmatched.requests == 0 { "none".to_owned() } else { percent(report.unmatched.share) }
    )
}

fn owner(layer: Layer) -> &'static str {
    match layer {
        Layer::Network => "the network's and the peer's",
        Layer::Kernel => "the kernel's",
        Layer::Scheduler => "a wait for a processor",
        Layer::Queueing => "a wait for a thread that is busy with other requests",
        Layer::Server => "the server's own",
        Layer::Remainder => "not explained",
    }
}

/// Returns the reasons of unmatched requests with their numbers; none without such requests.
pub fn reasons(report: &Report) -> Option<String> {
    let mut all: Vec<String> = report
        .unmatched
        .by_reason
        .iter()
        .map(|(reason, requests)| format!("{}: {}", count(*requests), reason.text()))
        .collect();
    if report.unmatched.cut_off > 0 && report.requests == 0 {
        all.push(format!("{}: cut off by the begin or the end of tracing", count(report.unmatched.cut_off)));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns a sentence on what tracing cost.
pub(super) fn cost(traced: &Traced) -> String {
    match traced.cost {
        Some(cost) if cost.server_ns > 0.0 => format!(
            "While it was on, for {} of the time, tracing took {} of processor time a request at packets and sockets \
             ({} runs of programs), {} of the {} that the server takes without it; of one processor, {} at the \
             scheduler and {} to join the records.",
            percent(traced.duty),
            time(cost.kernel_ns / 1e3),
            number(cost.runs),
            percent(cost.share()),
            time((cost.server_ns - cost.kernel_ns).max(0.0) / 1e3),
            percent(cost.scheduler_processors),
            percent(cost.own_processors),
        ),
        _ => NOT_MEASURED.to_owned(),
    }
}

/// Returns what limits the validity of the numbers.
pub(super) fn warnings(traced: &Traced) -> Vec<String> {
    let report = &traced.report;
    let mut all = Vec::new();
    if report.unmatched.requests > 0 {
        all.push(format!(
            "{} of {} requests are not matched ({}): {}",
            count(report.unmatched.requests),
            count(report.unmatched.requests + report.requests),
            percent(report.unmatched.share),
            reasons(report).unwrap_or_default()
        ));
    }
    if traced.lost_records > 0 {
        all.push(format!(
            "{} of {} records were lost or late, so requests of these moments are missing: trace fewer with --sample",
            count(traced.lost_records),
            count(traced.records + traced.lost_records)
        ));
    }
    if let Some(cost) = traced.cost.filter(|cost| cost.share() * traced.duty > COST_MAX) {
        let duty = (100.0 * COST_MAX / cost.share()).floor().max(1.0);
        all.push(format!(
            "tracing took {} of the server's processor time: `--duty {duty}%` traces for less of the time, for \
             about {}",
            percent(cost.share() * traced.duty),
            percent(COST_MAX)
        ));
    }
    if report.requests < TAIL_REQUESTS_MIN {
        all.push(format!(
            "a 99th percentile needs at least {} requests (has {}): trace longer with --duration",
            count(TAIL_REQUESTS_MIN),
            count(report.requests)
        ));
    }
    let remainder = report.layers.iter().find(|layer| layer.layer == Layer::Remainder);
    if let Some(remainder) = remainder.filter(|layer| layer.share > REMAINDER_MAX) {
        all.push(format!(
            "{} of the time is explained by no event: the kernel misses programs in some soft interrupts",
            percent(remainder.share)
        ));
    }
    if report.unmatched.cut_off > report.requests / 100 && traced.duty < 1.0 {
        all.push(format!(
            "{} requests were cut off by the begin or the end of a slice of 0.5 s: slow ones are missing, and \
             `--duty 100%` traces without a pause",
            count(report.unmatched.cut_off)
        ));
    }
    all.extend(
        traced.profile.as_ref().err().map(|error| format!("the use of processors was not sampled: {error}")),
    );
    if let Some(profile) = traced.profile.as_ref().ok().filter(|profile| profile.lost > 0) {
        all.push(format!("{} samples of processors found no room", count(profile.lost)));
    }
    all.extend(traced.ended.as_ref().map(|ended| format!("the trace is shorter than asked for: {ended}")));
    all
}

/// Makes the tables, with `slowest` of the slowest requests.
pub(super) fn grids(traced: &Traced, slowest: usize) -> Vec<Grid> {
    let mut all = vec![parts(&traced.report), layers(traced)];
    if slowest > 0 {
        all.push(slow(&traced.report, slowest));
    }
    if !traced.locks.is_empty() {
        all.push(locks(traced));
    }
    all.extend(traced.profile.as_ref().ok().filter(|profile| profile.samples > 0).map(functions));
    all
}

fn parts(report: &Report) -> Grid {
    let parts = report.parts.iter();
    let parts =
        parts.map(|part| timed(part.name, part.source, &part.time, [part.share, part.share_of_slowest]));
    let total = timed("total", "measured", &report.latency, [1.0, 1.0]);
    Grid::plain("Parts of a request", "part", &COLUMNS, parts.chain([total]))
}

/// Makes the table of layers, after Table 5.1 of the study: given, measured, and the remainder.
fn layers(traced: &Traced) -> Grid {
    let report = &traced.report;
    let outside = |label: &str, source: &str, mean: Option<f64>| {
        let mut cells = vec![String::new(); COLUMNS.len()];
        source.clone_into(&mut cells[0]);
        cells[1] = mean.map_or_else(String::new, |ns| time(ns / 1e3));
        Row::plain(label, cells)
    };
    let serialisation = match traced.link_bps {
        Some(bps) => outside(
            &format!("serialisation at {}", figures::rate(bps as f64 / 1e6)),
            "given",
            Some(report.serialisation_ns(bps)),
        ),
        None => outside("serialisation", "needs --rate", None),
    };
    let layers = report.layers.iter().map(|layer| {
        let source = if layer.layer == Layer::Remainder { "remainder" } else { "measured" };
        timed(layer.name, source, &layer.time, [layer.share, layer.share_of_slowest])
    });
    let mut rows = vec![outside("wire, switches, DMA", "not visible", None), serialisation];
    rows.extend(layers);
    rows.push(timed("total in the server", "measured", &report.latency, [1.0, 1.0]));
    Grid::plain("Layers", "layer", &COLUMNS, rows)
}

/// The columns of the tables of parts and layers.
const COLUMNS: [&str; 7] = ["source", "mean", "median", "p99", "max", "% of time", "% of slowest 1 %"];

/// Makes a row of [`COLUMNS`].
fn timed(label: &str, source: &str, times: &Quantiles, shares: [f64; 2]) -> Row {
    let mut cells = vec![source.to_owned(), time(times.mean_ns / 1e3)];
    cells.extend([times.p50_ns, times.p99_ns, times.max_ns].map(us));
    cells.extend(shares.map(|share| fixed(100.0 * share, 1)));
    Row::plain(label, cells)
}

/// Makes the table of the slowest requests, each with its largest parts.
fn slow(report: &Report, slowest: usize) -> Grid {
    let begin = report.slowest.iter().map(|slow| slow.received_ns).min().unwrap_or(0);
    let rows = report.slowest.iter().take(slowest).enumerate().map(|(number, slow)| {
        let at = time((slow.received_ns - begin) as f64 / 1e3);
        let cells = [us(slow.latency_ns), at, slow.client.clone(), largest(slow)];
        Row::plain((number + 1).to_string(), cells)
    });
    Grid::plain("Slowest requests", "rank", &["latency", "at", "client", "largest parts"], rows)
}

/// Makes the table of the futexes at which threads slept.
fn locks(traced: &Traced) -> Grid {
    let rows = traced.locks.iter().map(|lock| {
        let cells = [
            lock.operation.to_owned(),
            count(lock.waits),
            number(lock.waits as f64 / traced.report.requests.max(1) as f64),
            time(lock.total_ns as f64 / 1e3 / lock.waits.max(1) as f64),
            us(lock.max_ns),
            time(lock.total_ns as f64 / 1e3),
            callers(lock),
        ];
        let place = if lock.place.is_empty() { "?" } else { &lock.place };
        Row::plain(format!("{} {place}", lock.address), cells)
    });
    let columns = ["operation", "sleeps", "a request", "mean", "max", "sum", "called from"];
    Grid::plain("Sleeps at futexes: locks, conditions, idle threads", "address", &columns, rows)
}

/// Lists the functions that called a futex, the innermost first.
fn callers(lock: &FutexSleeps) -> String {
    let functions = lock.callers.iter().take(CALLERS_SHOWN);
    functions.map(|symbol| format!("{} ({})", symbol.function, symbol.module)).collect::<Vec<_>>().join(" < ")
}

/// Makes the table of the functions that the processors ran.
fn functions(profile: &ProfileReport) -> Grid {
    let rows = profile.hottest.iter().map(|hot| {
        let shares = [hot.share, hot.share_with_callees].map(|share| fixed(100.0 * share, 1));
        let cells = [hot.symbol.module.clone(), count(hot.samples)].into_iter().chain(shares);
        Row::plain(&hot.symbol.function, cells)
    });
    let title = format!(
        "Processor use by function: {} samples at {HERTZ} a second, {} in the kernel, {} without known callers",
        count(profile.samples),
        percent(profile.kernel_share),
        percent(profile.share_without_callers)
    );
    let mut grid = Grid::plain(title, "function", &["in", "samples", "% of samples", "% with callees"], rows);
    if profile.share_without_callers > CALLERS_MISSING_MAX {
        grid.notes.push(NO_FRAME_POINTERS.to_owned());
    }
    grid
}

/// The share of samples without callers above which frame pointers are likely missing.
const CALLERS_MISSING_MAX: f64 = 0.5;
const NO_FRAME_POINTERS: &str = "The server's code has no frame pointers, so callers are not known, and a function's \
     share with its callees is too small. Built with -fno-omit-frame-pointer, or by \
     RUSTFLAGS=-Cforce-frame-pointers=yes, it has them.";

/// Lists the largest parts of a request, up to nine tenths of its latency, at most two.
fn largest(slow: &SlowRequest) -> String {
    let mut parts = slow.parts();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let mut covered = 0;
    let mut text: Vec<String> = Vec::new();
    for (part, ns) in parts.into_iter().take(2).filter(|(_, ns)| *ns > 0) {
        if covered * 10 >= slow.latency_ns * 9 {
            break;
        }
        covered += ns;
        text.push(format!("{} {}", part.name(), us(ns)));
    }
    text.join(", ")
}

/// Writes the parts and the total as CSV, times in ns.
pub fn csv(report: &Report) -> String {
    let mut text = csv_line(&CSV_COLUMNS.map(str::to_owned));
    let mut line = |name: &str, layer: &str, source: &str, times: &Quantiles, shares: [f64; 2]| {
        let ns = [times.p50_ns, times.p90_ns, times.p99_ns, times.p999_ns, times.max_ns];
        let mut cells = vec![name.to_owned(), layer.to_owned(), source.to_owned(), fixed(times.mean_ns, 1)];
        cells.extend(ns.map(|ns| ns.to_string()));
        cells.extend(shares.map(|share| fixed(share, 6)));
        text += &csv_line(&cells);
    };
    for part in &report.parts {
        let shares = [part.share, part.share_of_slowest];
        line(part.part.key(), part.layer.name(), part.source, &part.time, shares);
    }
    line("total", "", "measured", &report.latency, [1.0, 1.0]);
    text
}

fn us(ns: u64) -> String {
    time(ns as f64 / 1e3)
}

fn percent(share: f64) -> String {
    format!("{} %", number(100.0 * share))
}

/// The callers of a futex that a table has; the JSON has all.
const CALLERS_SHOWN: usize = 4;
const CSV_COLUMNS: [&str; 11] = [
    "part",
    "layer",
    "source",
    "mean_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "share",
    "share_of_slowest",
];
const NOT_MEASURED: &str = "What tracing cost was not measured: that needs CAP_SYS_ADMIN, and requests in the first \
                            half second.";
/// Fewer requests have no 99th percentile to speak of.
const TAIL_REQUESTS_MIN: u64 = 1_000;
/// The share of the server's processor time that tracing may take.
const COST_MAX: f64 = 0.05;
/// The share of unexplained time above which the report says so.
const REMAINDER_MAX: f64 = 0.05;
