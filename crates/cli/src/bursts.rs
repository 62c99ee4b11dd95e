//! Implements `plimsoll bursts`, which analyses packet captures.

mod figure;
mod page;
mod tables;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use plimsoll_bursts::{Analyser, Framing, Options, ReadError, Report, Stamp, analyse};
use plimsoll_results::run_dir::SIMULATOR;
use plimsoll_scenario::Registry;
use plimsoll_stdio::note;
use plimsoll_units::text::printable_json;
use plimsoll_units::{Rate, Span, whole};
use serde_json::{Map, Value, json};

use crate::output::{self, Done, Format};
use crate::signals::Interrupt;
use crate::source::quoted;

/// Find bursts, trains, acknowledgements and losses in a packet capture.
///
/// A burst is a run of frames from one source to one destination with gaps below a threshold: 40 ns at 10 Gb/s, as in
/// BulletTrains. A gap runs from the end of a frame on the wire to the start of the next one of the pair. A frame
/// occupies the wire for its captured bytes, padded to 60, and 24 more: preamble (8), frame check sequence (4) and
/// inter-frame gap (12); back-to-back frames have a gap of zero. A train, after Jain, ends when a gap exceeds the
/// maximum inter-car gap.
///
/// Captures are pcap and pcapng files of Ethernet, raw IP or Linux cooked packets, read as streams, so
/// `tcpdump -w - | plimsoll bursts -` works. A run directory of `plimsoll run --pcap` is analysed with the bytes and
/// the clock of the simulated links. If the timestamps are too coarse for the threshold, the floor that was measured
/// takes its place, and no burst is reported that takes less time. A capture that breaks off is reported up to there,
/// and the exit status is 2; Ctrl-C ends a capture from stdin and prints the report.
#[derive(clap::Args)]
pub struct Args {
    /// Packet captures, one after the other; `-` reads stdin. A run directory stands for its only capture.
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// Rate of the captured link.
    #[arg(long, value_name = "RATE", default_value = "10Gbps", value_parser = quantity::<Rate>)]
    rate: Rate,
    /// Threshold of bursts: a gap of so long or longer ends a burst. By default the time of 50 bytes, 40 ns at 10 Gb/s.
    #[arg(long, value_name = "SPAN", value_parser = quantity::<Span>)]
    gap: Option<Span>,
    /// Maximum inter-car gap: a longer gap ends a train.
    #[arg(long, value_name = "SPAN", default_value = "1ms", value_parser = quantity::<Span>)]
    train_gap: Span,
    /// The instant of a frame that its timestamp is of. By default the start, as hardware stamps it; the end for a
    /// simulated run.
    #[arg(long, value_enum, value_name = "INSTANT")]
    timestamps: Option<Instant>,
    /// Bytes that a frame occupies on the wire beyond those of the capture; 24 by default.
    #[arg(long, value_name = "BYTES", value_parser = whole::<u32>(0..=1_000))]
    overhead: Option<u32>,
    /// The most pairs of hosts in tables and figures; JSON and CSV have all.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(0..=10_000))]
    pairs: u32,
    /// Form of the printed results. JSON has all numbers, CSV the number of bursts of each length.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Draw the distribution of burst lengths in packets into this SVG.
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
    /// Write tables and figures into this HTML page.
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// The instant of a frame that its timestamp is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Instant {
    /// The timestamp is of the first bit.
    Start,
    /// The timestamp is of the last bit.
    End,
}

/// Parses an option that is a quantity with its unit.
fn quantity<T: std::str::FromStr>(text: &str) -> Result<T, T::Err> {
    text.parse()
}

pub fn run(args: &Args, _: &Registry) -> Done {
    check_extension("--figure", args.figure.as_deref(), "svg")?;
    check_extension("--out", args.out.as_deref(), "html")?;
    if args.rate.as_bps() < 1_000 {
        return Err(anyhow!("invalid value \"{}\" for --rate: expected at least 1Kbps", args.rate));
    }
    let inputs = args.captures.iter().map(|path| Input::of(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let simulated = inputs.iter().filter(|input| input.is_simulated).count();
    if simulated != 0 && simulated != inputs.len() {
        return Err(anyhow!(
            "simulated and real captures have other bytes on the wire and other timestamps: analyse them apart"
        ));
    }
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let mut analyser = Analyser::new(options(args, simulated > 0));
    let mut ended = None;
    for input in &inputs {
        let before = analyser.frames();
        let result = input.analyse(&mut analyser, &interrupt)?;
        if interrupt.signal().is_some() {
            break;
        }
        if let Err(error) = result {
            ended = Some(anyhow::Error::new(error).context(input.name.clone()));
            break;
        }
        if analyser.frames() == before {
            note!("warning: {} has no packets", input.name);
        }
    }
    let report = analyser.finish();
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let reason = match (&ended, interrupt.signal()) {
        (Some(error), _) => Some(output::reasons(error)),
        (None, Some(_)) => Some("stopped by a signal".to_owned()),
        (None, None) => None,
    };
    if report.frames == 0 {
        return Err(
            ended.unwrap_or_else(|| anyhow!("no packets in {}: nothing to analyse", names.join(", ")))
        );
    }
    show(args, &report, &names, reason.as_deref())?;
    match (ended, interrupt.signal()) {
        (Some(error), _) => {
            Err(error.context(format!("only the first {} packets were analysed", report.frames)))
        }
        (None, Some(signal)) => Ok(ExitCode::from(128 + signal)),
        (None, None) => Ok(ExitCode::SUCCESS),
    }
}

/// Prints the report and writes the files.
fn show(args: &Args, report: &Report, names: &[&str], ended: Option<&str>) -> anyhow::Result<()> {
    let pairs = args.pairs as usize;
    let printed = match args.format {
        Format::Json => as_json(report, names, ended)?,
        Format::Csv => tables::csv(report),
        Format::Table => {
            let mut text = tables::sentence(report) + "\n\n";
            for grid in tables::grids(report, pairs) {
                text += &(grid.to_terminal(&output::style()) + "\n");
            }
            tables::warnings(report).iter().for_each(|warning| text += &format!("warning: {warning}\n"));
            text
        }
        Format::Md => {
            let grids = tables::grids(report, pairs);
            let grids: Vec<String> = grids.iter().map(plimsoll_report::table::Grid::to_markdown).collect();
            let warnings =
                tables::warnings(report).into_iter().map(|text| format!("\n**Warning:** {text}\n"));
            format!("{}\n\n{}{}", tables::sentence(report), grids.join("\n"), warnings.collect::<String>())
        }
    };
    output::print(&printed)?;
    if let Some(path) = &args.figure {
        let chart = figure::of_packets(report, pairs);
        output::write_whole(
            path,
            &plimsoll_report::svg::render(&chart, plimsoll_report::svg::Size::default()),
        )?;
    }
    if let Some(path) = &args.out {
        output::write_whole(path, &page::render(report, names, &command(args), pairs, ended))?;
        note!("Page     {}", path.display());
    }
    Ok(())
}

/// Returns the report as JSON, after the names of the captures; `ended` says why a capture was not read to its end.
fn as_json(report: &Report, names: &[&str], ended: Option<&str>) -> anyhow::Result<String> {
    let mut whole = Map::new();
    whole.insert("captures".to_owned(), json!(names));
    whole.insert("ended".to_owned(), json!(ended));
    whole.insert("ack_ratio_bytes".to_owned(), json!(report.acks.ratio()));
    if let Value::Object(numbers) = serde_json::to_value(report).context("the report is no JSON object")? {
        whole.extend(numbers);
    }
    Ok(format!("{}\n", printable_json(&format!("{:#}", Value::Object(whole)))))
}

fn options(args: &Args, is_simulated: bool) -> Options {
    let framing = if is_simulated { Framing::SIMULATED } else { Framing::ETHERNET };
    let stamp = match args.timestamps {
        Some(Instant::Start) => Stamp::Start,
        Some(Instant::End) => Stamp::End,
        None if is_simulated => Stamp::End,
        None => Stamp::Start,
    };
    let framing = match args.overhead {
        Some(added) => Framing { added, ..framing },
        None => framing,
    };
    Options {
        rate: args.rate,
        gap: args.gap,
        train_gap: args.train_gap,
        stamp,
        framing,
        ..Options::default()
    }
}

/// A capture and where it comes from.
struct Input {
    name: String,
    /// The file, or `None` for stdin.
    file: Option<PathBuf>,
    is_simulated: bool,
}

/// The folder of captures in a run directory.
const CAPTURES: &str = "pcap";

impl Input {
    fn of(path: &Path) -> anyhow::Result<Input> {
        if path == Path::new("-") {
            return Ok(Input { name: "stdin".to_owned(), file: None, is_simulated: false });
        }
        let file = if path.is_dir() { only_capture(path)? } else { path.to_owned() };
        // A file of a run directory: RUN/pcap/POINT.pcapng.
        let folder = file.parent().filter(|parent| parent.ends_with(CAPTURES)).and_then(Path::parent);
        let run = folder.filter(|run| run.join("manifest.json").exists());
        let is_simulated = match run {
            Some(run) => output::open_run(run)?.manifest().carrier == SIMULATOR,
            None => false,
        };
        Ok(Input { name: file.display().to_string(), file: Some(file), is_simulated })
    }

    /// Analyses the capture; the inner error is the capture's own, whose frames up to there have been analysed.
    fn analyse(&self, analyser: &mut Analyser, stop: &Interrupt) -> anyhow::Result<Result<(), ReadError>> {
        let input: Box<dyn Read> = match &self.file {
            None => Box::new(io::stdin().lock()),
            Some(path) => Box::new(File::open(path).with_context(|| format!("cannot open {}", self.name))?),
        };
        Ok(analyse(UntilStopped { input, stop }, analyser))
    }
}

/// An input that ends at a signal, so that a live capture is reported when Ctrl-C ends it.
struct UntilStopped<'a> {
    input: Box<dyn Read>,
    stop: &'a Interrupt,
}

impl Read for UntilStopped<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.signal().is_some() { Ok(0) } else { self.input.read(into) }
    }
}

/// Returns the capture of a run directory that has one.
fn only_capture(run: &Path) -> anyhow::Result<PathBuf> {
    let folder = run.join(CAPTURES);
    let entries = std::fs::read_dir(&folder).map_err(|error| {
        anyhow!(
            "{} has no captured packets ({error}); `plimsoll run SCENARIO --pcap` and `plimsoll emulate SCENARIO \
             --capture` keep them below {CAPTURES}/ of the run directory",
            run.display()
        )
    })?;
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "pcapng") {
            found.push(path);
        }
    }
    found.sort();
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(anyhow!("{} has no .pcapng file", folder.display())),
        many => {
            let names: Vec<String> =
                many.iter().take(20).map(|path| format!("  {}", path.display())).collect();
            Err(anyhow!(
                "{} has {} captures; name one of them:\n{}",
                run.display(),
                many.len(),
                names.join("\n")
            ))
        }
    }
}

fn check_extension(option: &str, path: Option<&Path>, wanted: &str) -> anyhow::Result<()> {
    match path {
        Some(path) if path.extension().is_none_or(|extension| extension != wanted) => {
            Err(anyhow!("{option} {}: allowed: a name that ends in .{wanted}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Returns the command that makes the page again.
fn command(args: &Args) -> String {
    let mut words = vec!["plimsoll bursts".to_owned()];
    words.extend(args.captures.iter().map(|path| quoted(&path.to_string_lossy())));
    words.push(format!("--rate {}", args.rate));
    words.extend(args.gap.map(|gap| format!("--gap {gap}")));
    words.push(format!("--train-gap {}", args.train_gap));
    words.extend(
        args.timestamps.map(|instant| {
            format!("--timestamps {}", if instant == Instant::Start { "start" } else { "end" })
        }),
    );
    words.extend(args.overhead.map(|bytes| format!("--overhead {bytes}")));
    words.push(format!("--pairs {}", args.pairs));
    words.extend(args.out.as_ref().map(|path| format!("--out {}", quoted(&path.to_string_lossy()))));
    words.join(" ")
}
