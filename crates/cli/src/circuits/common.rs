//! What the subcommands of `plimsoll circuits` have in common: the options for switches, demands, and figures.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use plimsoll_circuits::{Demand, SchedulerKind, Switching};
use plimsoll_files::Origin;
use plimsoll_units::{Rate, Span, Streams};

use crate::output;

/// The circuit switch and the packet switch.
#[derive(clap::Args, Clone)]
pub(super) struct Switches {
    /// Rate of a circuit.
    #[arg(long, value_name = "RATE", default_value = "100Gbps", value_parser = quantity::<Rate>)]
    circuit_rate: Rate,
    /// Rate of a port's link to the packet switch.
    #[arg(long, value_name = "RATE", default_value = "10Gbps", value_parser = quantity::<Rate>)]
    packet_rate: Rate,
    /// How long the circuit switch is dark before each configuration.
    #[arg(long, value_name = "SPAN", default_value = "20us", value_parser = quantity::<Span>)]
    night: Span,
    /// Time in which the demand comes together; TMS, Eclipse and rotor fill it.
    #[arg(long, value_name = "SPAN", default_value = "3ms", value_parser = quantity::<Span>)]
    window: Span,
}

impl Switches {
    pub(super) fn switching(&self) -> Switching {
        Switching {
            circuit_rate: self.circuit_rate,
            packet_rate: self.packet_rate,
            night: self.night,
            window: self.window,
        }
    }
}

/// Parses an option that is a quantity with its unit.
fn quantity<T: std::str::FromStr>(text: &str) -> Result<T, T::Err> {
    text.parse()
}

/// Parses a scheduler's name; the error has the nearest one.
pub(super) fn scheduler(text: &str) -> Result<SchedulerKind, String> {
    text.parse().map_err(|error: plimsoll_circuits::UnknownScheduler| error.to_string())
}

/// Parses a share of one: `4%`, or `0.04`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0% to 100%".to_owned())
}

/// Reads a demand from a file, or from stdin for `-`.
pub(super) fn read_demand(path: &Path) -> Result<Demand> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read stdin")?;
        ("stdin".to_owned(), bytes)
    } else {
        (
            path.display().to_string(),
            plimsoll_files::read(path, Origin::Argument, output::TEXT_BYTES_MAX)
                .with_context(|| format!("cannot read {}", path.display()))?,
        )
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + String::from_utf8_lossy(before).rsplit('\n').next().unwrap_or("").chars().count();
        anyhow!("{name}:{line}:{column}: not UTF-8 text; allowed: CSV of bytes, a row for each sender")
    })?;
    Ok(Demand::parse(&name, &text)?)
}

/// Returns the stream of the n-th generated demand: each has its own, so that more of them leave the others as they
/// are.
pub(super) fn stream(seed: u64, number: u32) -> plimsoll_units::Stream {
    Streams::new(seed).stream(&format!("circuits/demand/{number}"))
}

/// Returns the median time of computing a schedule, in us. The scheduler keeps its memory, as in a control loop.
pub(super) fn compute_us(kind: SchedulerKind, demand: &Demand, switching: &Switching) -> f64 {
    let mut scheduler = kind.make();
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < REPEATED_MOST && (times.len() < REPEATED_LEAST || begin.elapsed() < REPEATED_FOR) {
        let start = Instant::now();
        std::hint::black_box(scheduler.schedule(std::hint::black_box(demand), switching));
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// A slow scheduler is computed this often, a fast one as often as it is within the time below.
const REPEATED_LEAST: usize = 3;
const REPEATED_MOST: usize = 1_001;
const REPEATED_FOR: Duration = Duration::from_millis(50);

/// Writes a figure, whose file name ends in `.svg`.
pub(super) fn write_figure(path: &Path, chart: &plimsoll_report::chart::Chart) -> Result<()> {
    if path.extension().is_none_or(|extension| extension != "svg") {
        return Err(anyhow!(
            "--figure {}: a figure is an SVG; allowed: a name that ends in .svg",
            path.display()
        ));
    }
    output::write_whole(path, &plimsoll_report::svg::render(chart, plimsoll_report::svg::Size::default()))
}
