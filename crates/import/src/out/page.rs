//! What an import has found, for a terminal and as `import.html`.

use plimsoll_report::Findings;
use plimsoll_report::chart::{Axis, Chart, ChartLine, Color, Format, Schemes};
use plimsoll_report::figures::{count, number, rate, size, time};
use plimsoll_report::html::{Article, Figure, PageSection, article};
use plimsoll_report::table::{Grid, Row};
use plimsoll_stats::percentile;
use plimsoll_text::counted;

use super::fit::{ModelFit, POISSON_IN_BURSTS};
use super::gravity;
use super::parts::Workloads;
use super::writing::{ImportWriting, TrafficForm};
use crate::capture::ComparedClass;
use crate::found::{ClassTraffic, ImportFound, Note, Remark, RequestStart, TrafficClass};

/// The most lines of a figure.
const LINES: usize = 8;
/// The number of points with which a distribution is drawn.
const POINTS: usize = 200;

/// Returns the tables of the classes and of the fits, and the notes as sentences.
pub(super) fn findings(found: &ImportFound, workloads: &Workloads, notes: &[Note]) -> Findings {
    let seconds = found.duration.as_secs_f64();
    let sentence = format!(
        "{}, {} in {}.",
        counted(found.hosts.len() as u64, "host"),
        if found.classes.len() == 1 {
            "1 class of traffic".into()
        } else {
            format!("{} classes of traffic", found.classes.len())
        },
        time(seconds * 1e6)
    );
    let columns =
        ["messages", "mean request", "mean size", "p99 size", "load", "p50 latency", "p99 latency", "starts"];
    let mut grids = vec![Grid::plain(
        "Traffic",
        "class",
        &columns,
        found.classes.iter().map(|class| row(class, seconds)),
    )];
    grids.extend((!workloads.fits.is_empty()).then(|| fits(&workloads.fits)));
    let mut warnings = Vec::new();
    for fit in workloads.fits.iter().filter(|fit| !fit.problems.is_empty()) {
        warnings.push(format!(
            "{}: the model is no good fit: {}; `--as replay` keeps every message",
            fit.class,
            fit.problems.join("; ")
        ));
    }
    let mut lines = Vec::new();
    for Note { remark, text } in notes {
        match remark {
            Remark::Found => lines.push(format!("found: {text}")),
            Remark::Assumed => lines.push(format!("assumed: {text}")),
            Remark::Ignored => lines.push(format!("ignored: {text}")),
            Remark::Warning => warnings.push(text.clone()),
        }
    }
    Findings { sentence, grids, closing: lines.join("\n"), warnings }
}

/// Renders `import.html`.
pub(super) fn page(
    found: &ImportFound,
    workloads: &Workloads,
    notes: &[Note],
    findings: &Findings,
    writing: &ImportWriting<'_>,
    scenario: &str,
) -> String {
    let section = |id, name, lead, figures, tables| PageSection { id, name, lead, figures, tables };
    let mut sections =
        vec![section("traffic", "Traffic", "", figures(found), vec![findings.grids[0].clone()])];
    if !workloads.fits.is_empty() {
        let lead = "A Poisson process has a burstiness of 1, and a tenth of its requests in bursts.";
        sections.push(section("fit", "Fit of the model", lead, Vec::new(), vec![fits(&workloads.fits)]));
    }
    if !writing.compared.is_empty() {
        let lead =
            "Compare a run of the scenario with these: `plimsoll run` prints its latencies and losses.";
        sections.push(section(
            "compare",
            "What to compare with",
            lead,
            Vec::new(),
            compared(writing.compared),
        ));
    }
    for (remark, id, name) in [
        (Remark::Found, "found", "Found"),
        (Remark::Assumed, "assumed", "Assumed"),
        (Remark::Ignored, "ignored", "Ignored"),
    ] {
        let mut grid = Grid::plain(name, "", &[], []);
        let of = notes.iter().filter(|note| note.remark == remark);
        grid.notes = of.map(|note| note.text.clone()).collect();
        if !grid.notes.is_empty() {
            sections.push(section(id, name, "", Vec::new(), vec![grid]));
        }
    }
    let form = match writing.form {
        TrafficForm::Replay => "Every message is replayed.",
        TrafficForm::Model => "Messages are drawn from fitted distributions.",
    };
    article(&Article {
        kind: "Plimsoll import",
        title: &format!("Imported from {}", writing.sources),
        description: &format!("{} {form}", findings.sentence),
        found: &[],
        warnings: &findings.warnings,
        sections: &sections,
        schemes: &Schemes::default(),
        command: writing.command,
        seed: None,
        version: writing.version,
        commit: writing.commit,
        runs: 0,
        scenario,
    })
}

/// Returns the row of a class, over a number of seconds.
fn row(class: &TrafficClass, seconds: f64) -> Row {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let none = String::new;
    let load = |bytes: f64| if seconds > 0.0 { rate(bytes * 8.0 / seconds / 1e6) } else { none() };
    let cells = match &class.traffic {
        ClassTraffic::Exchanges(exchanges) => {
            let requests: Vec<f64> = exchanges.iter().map(|exchange| exchange.request as f64).collect();
            let sizes = sizes(class);
            let latencies = latencies(class);
            let at = |share| percentile(&latencies, share).map(time).unwrap_or_default();
            let waits = exchanges.iter().any(|exchange| matches!(exchange.start, RequestStart::After(_)));
            let bytes = requests.iter().chain(&sizes).sum();
            [
                count(exchanges.len() as u64),
                size(mean(&requests)),
                size(mean(&sizes)),
                percentile(&sizes, 0.99).map(size).unwrap_or_default(),
                load(bytes),
                at(0.5),
                at(0.99),
                if waits { "after responses" } else { "at times" }.to_owned(),
            ]
        }
        ClassTraffic::Flows(flows) => {
            let sizes = sizes(class);
            [
                count(flows.len() as u64),
                none(),
                size(mean(&sizes)),
                percentile(&sizes, 0.99).map(size).unwrap_or_default(),
                load(sizes.iter().sum()),
                none(),
                none(),
                "at times".to_owned(),
            ]
        }
        ClassTraffic::Rates(rates) => {
            let bits = gravity::total(rates);
            [none(), none(), none(), none(), rate(bits / 1e6), none(), none(), "mean rates".to_owned()]
        }
    };
    Row::plain(&class.name, cells)
}

/// Returns the sizes of responses or flows, ascending.
fn sizes(class: &TrafficClass) -> Vec<f64> {
    let mut sizes: Vec<f64> = match &class.traffic {
        ClassTraffic::Exchanges(all) => all.iter().map(|exchange| exchange.response as f64).collect(),
        ClassTraffic::Flows(all) => all.iter().map(|flow| flow.bytes as f64).collect(),
        ClassTraffic::Rates(_) => Vec::new(),
    };
    sizes.sort_by(f64::total_cmp);
    sizes
}

/// Returns the latencies of requests, or the durations of flows, in microseconds, ascending.
fn latencies(class: &TrafficClass) -> Vec<f64> {
    let mut times: Vec<f64> = match &class.traffic {
        ClassTraffic::Exchanges(all) => all.iter().map(|exchange| exchange.latency.as_us_f64()).collect(),
        ClassTraffic::Flows(all) => {
            all.iter().map(|flow| flow.end.saturating_sub(flow.start).as_us_f64()).collect()
        }
        ClassTraffic::Rates(_) => Vec::new(),
    };
    times.sort_by(f64::total_cmp);
    times
}

fn figures(found: &ImportFound) -> Vec<Figure> {
    let of = [
        ("sizes", "Sizes", "Of responses and flows.", Axis::log("size", Format::Size), sizes as ClassValues),
        (
            "latencies",
            "Latency",
            "Of requests, and durations of flows.",
            Axis::log("time", Format::Time),
            latencies,
        ),
    ];
    let figure = |(id, title, note, x, values): (&str, &str, &str, Axis, ClassValues)| {
        let classes = found.classes.iter().take(LINES).enumerate();
        let lines = classes.filter_map(|(place, class)| line(place, &class.name, &values(class)));
        let lines: Vec<ChartLine> = lines.collect();
        let y = Axis { max: Some(1.0), ..Axis::from_zero("share", Format::Percent) };
        (!lines.is_empty())
            .then(|| Figure::new(id.to_owned(), Chart::lines(title, note, x, y, lines), Vec::new()))
    };
    of.into_iter().filter_map(figure).collect()
}

/// The values of a class, sorted, of which a figure shows the distribution.
type ClassValues = fn(&TrafficClass) -> Vec<f64>;

/// Returns the line of a distribution on a logarithmic axis; `None` without values above zero.
fn line(place: usize, name: &str, sorted: &[f64]) -> Option<ChartLine> {
    let (mut x, mut y): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for point in 0..=POINTS {
        let share = point as f64 / POINTS as f64;
        let value = percentile(sorted, share)?;
        if value <= 0.0 {
            continue;
        }
        match x.last() {
            Some(last) if *last >= value => *y.last_mut()? = share,
            _ => {
                x.push(value);
                y.push(share);
            }
        }
    }
    (!x.is_empty()).then(|| ChartLine::new(name, Color::Scheme(place), x, y))
}

fn fits(fits: &[ModelFit]) -> Grid {
    let columns = ["burstiness", "in bursts", "Poisson", "largest error of a quantile", "verdict"];
    let row = |fit: &ModelFit| {
        let rows = fit.quantiles.iter().flat_map(|of| of.rows.iter().map(move |row| (of.name, row)));
        let error = |(name, (share, measured, fitted)): (&'static str, &(f64, f64, f64))| {
            let difference = (measured - fitted).abs();
            let relative = if difference == 0.0 { 0.0 } else { difference / measured.abs().max(1e-12) };
            (relative, format!("{:.1} % ({name} at {share})", 100.0 * relative))
        };
        let worst = rows.map(error).max_by(|one, other| one.0.total_cmp(&other.0));
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let shown = |value: Option<f64>, of: &dyn Fn(f64) -> String| value.map(of).unwrap_or_default();
        Row::plain(
            &fit.class,
            [
                shown(fit.burstiness, &number),
                shown(fit.in_bursts, &percent),
                shown(fit.in_bursts, &|_| percent(POISSON_IN_BURSTS)),
                worst.map(|(_, text)| text).unwrap_or_default(),
                if fit.problems.is_empty() { "good" } else { "replay it" }.to_owned(),
            ],
        )
    };
    Grid::plain("Fit of the model", "class", &columns, fits.iter().map(row))
}

/// Returns the tables of measurements that a run can be compared with.
fn compared(all: &[ComparedClass]) -> Vec<Grid> {
    let counts = ["connections", "data packets", "retransmitted", "filled gaps", "resets", "unanswered"];
    let counted = all.iter().map(|of| {
        let numbers =
            [of.connections, of.data_packets, of.retransmitted, of.filled, of.resets, of.unanswered];
        Row::plain(&of.class, numbers.map(count))
    });
    let columns = ["number", "p50", "p99", "largest"];
    let times = all.iter().flat_map(|of| {
        let named = [
            ("handshake", of.handshake),
            ("to the server and back", of.to_server),
            ("to the client and back", of.to_client),
            ("latency", of.latency),
        ];
        named.into_iter().filter(|(_, times)| times.count > 0).map(|(name, times)| {
            let cells = [count(times.count), time(times.p50_us), time(times.p99_us), time(times.max_us)];
            Row::plain(format!("{}: {name}", of.class), cells)
        })
    });
    vec![
        Grid::plain("Packets", "class", &counts, counted),
        Grid::plain("Times from the place of the capture", "class", &columns, times),
    ]
}
