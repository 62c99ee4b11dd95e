//! Implements `plimsoll bursts`, which analyses packet captures.

mod input;
#[cfg(target_os = "linux")]
mod live;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use plimsoll_bursts::{Analyser, Framing, Options, Report, Stamp};
use plimsoll_process::note;
use plimsoll_report::{FindingsPage, bursts as shown};
use plimsoll_scenario::Registry;
use plimsoll_text::{csv_cell, printable_json};
use plimsoll_units::{Rate, Span, whole};
use serde_json::Value;

use crate::files;
use crate::output::{self, Done, Format};
use crate::signals::Interrupt;
use input::CaptureInput;
pub use input::open;
use plimsoll_experiment::question::quoted;

/// Find bursts, trains, acknowledgements and losses in a packet capture.
///
/// A burst is a run of frames from one source to one destination with gaps below a threshold: 40 ns at 10 Gb/s, as in
/// BulletTrains. A gap runs from the end of a frame on the wire to the start of the next one of the pair. A frame
/// occupies the wire for its captured bytes, padded to 60, and 24 more: preamble (8), frame check sequence (4) and
/// inter-frame gap (12); back-to-back frames have a gap of zero. A train, after Jain, ends when a gap exceeds the
/// maximum inter-car gap.
///
/// Captures are pcap and pcapng files of Ethernet, Linux cooked packets, raw IP, PPP and others, read as streams, so
/// `tcpdump -w - | plimsoll bursts -` works. A run directory of `plimsoll run --pcap` is analysed with the bytes and
/// the clock of the simulated links. If the timestamps are too coarse for the threshold, the floor that was measured
/// takes its place, and no burst is reported that takes less time. A capture that breaks off is reported up to there,
/// and the exit status is 2; Ctrl-C ends a capture from stdin and prints the report.
///
/// `-i DEV` captures the headers that a device of this host sends and receives, which needs CAP_NET_RAW, until `--time`
/// or `--packets` or Ctrl-C. Timestamps are those of the NIC where that is switched on.
#[derive(clap::Args)]
pub struct Args {
    /// Packet captures, one after the other; `-` reads stdin. A run directory stands for each of its captures, which
    /// have a report of their own.
    #[arg(required_unless_present = "interface", value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// Capture live from this network device instead.
    #[arg(long, short, value_name = "DEV", conflicts_with = "captures")]
    interface: Option<String>,
    /// End a live capture after so long.
    #[arg(long, value_name = "SPAN")]
    time: Option<Span>,
    /// End a live capture after so many packets.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    packets: Option<u64>,
    /// Rate of the captured link.
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    rate: Rate,
    /// Threshold of bursts: a gap of so long or longer ends a burst. By default the time of 50 bytes, 40 ns at 10 Gb/s.
    #[arg(long, value_name = "SPAN")]
    gap: Option<Span>,
    /// Maximum inter-car gap: a longer gap ends a train.
    #[arg(long, value_name = "SPAN", default_value = "1ms")]
    train_gap: Span,
    /// The instant of a frame that its timestamp is of. By default the start, as hardware stamps it; the end for a
    /// simulated run.
    #[arg(long, value_enum, value_name = "INSTANT")]
    timestamps: Option<Instant>,
    /// Bytes that a frame occupies on the wire beyond those of the capture; 24 by default.
    #[arg(long, value_name = "BYTES", value_parser = whole::<u32>(0..=1_000))]
    overhead: Option<u32>,
    /// Look into tunnels: the hosts are those of the packets inside VXLAN, GENEVE, GRE, ERSPAN and IP in IP.
    #[arg(long)]
    decapsulate: bool,
    /// Bursts and trains of packets with data alone: TCP segments without payload are left out, so that
    /// acknowledgements are no bursts of one.
    #[arg(long)]
    data: bool,
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

impl Args {
    /// Returns the option that asks for a file, if one does.
    fn file_option(&self) -> Option<&'static str> {
        self.figure.as_ref().map(|_| "--figure").or(self.out.as_ref().map(|_| "--out"))
    }
}

/// The instant of a frame that its timestamp is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Instant {
    /// The timestamp is of the first bit.
    Start,
    /// The timestamp is of the last bit.
    End,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    files::check_extension("--figure", args.figure.as_deref(), "svg")?;
    files::check_extension("--out", args.out.as_deref(), "html")?;
    if args.rate.as_bps() < 1_000 {
        return Err(anyhow!("invalid value \"{}\" for --rate: expected at least 1Kbps", args.rate));
    }
    if args.interface.is_none() && (args.time.is_some() || args.packets.is_some()) {
        return Err(anyhow!("--time and --packets end a capture from a device: name one by -i DEV"));
    }
    let groups = match &args.interface {
        Some(device) => vec![vec![CaptureInput::of_device(device, args.time, args.packets)]],
        None => input::groups(&args.captures)?,
    };
    if let (true, Some(option)) = (groups.len() > 1, args.file_option()) {
        return Err(anyhow!(
            "{option} is of one capture, and {} has {}; name one of them:\n{}",
            args.captures[0].display(),
            groups.len(),
            input::listed(groups.iter().flatten().map(|input| input.name.as_str()))
        ));
    }
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let mut all = Vec::new();
    for inputs in &groups {
        let analysed = Analysed::of(args, inputs, &interrupt)?;
        let is_cut = analysed.ended.is_some() || interrupt.signal().is_some();
        if analysed.report.frames > 0 {
            all.push(analysed);
        } else if is_cut || groups.len() == 1 {
            all.push(analysed);
            break;
        }
        if is_cut {
            break;
        }
    }
    // Ctrl-C is how a capture of a device ends.
    let signal = interrupt.signal().filter(|_| args.interface.is_none());
    let shown: Vec<&Analysed> = all.iter().filter(|analysed| analysed.report.frames > 0).collect();
    if shown.is_empty() {
        let names: Vec<&str> = groups.iter().flatten().map(|input| input.name.as_str()).collect();
        if let Some(signal) = signal {
            note!("stopped by a signal, without a packet in {}", names.join(", "));
            return Ok(ExitCode::from(128 + signal));
        }
        let ended = all.pop().and_then(|analysed| analysed.ended);
        return Err(
            ended.unwrap_or_else(|| anyhow!("no packets in {}: nothing to analyse", names.join(", ")))
        );
    }
    show(args, &shown, signal.is_some())?;
    match (all.pop(), signal) {
        (Some(Analysed { ended: Some(error), report, .. }), _) => {
            Err(error.context(format!("only the first {} packets were analysed", report.frames)))
        }
        (_, Some(signal)) => Ok(ExitCode::from(128 + signal)),
        (_, None) => Ok(ExitCode::SUCCESS),
    }
}

/// The report of captures that were analysed one after the other.
struct Analysed {
    names: Vec<String>,
    report: Report,
    /// Why the last capture was not read to its end.
    ended: Option<anyhow::Error>,
}

impl Analysed {
    fn of(args: &Args, inputs: &[CaptureInput], interrupt: &Interrupt) -> anyhow::Result<Analysed> {
        let is_simulated = inputs.first().is_some_and(|input| input.is_simulated);
        if inputs.iter().any(|input| input.is_simulated != is_simulated) {
            return Err(anyhow!(
                "simulated and real captures have other bytes on the wire and other timestamps: analyse them apart"
            ));
        }
        let mut analyser = Analyser::new(options(args, is_simulated));
        let mut ended = None;
        for input in inputs {
            let before = analyser.frames();
            let result = input.analyse(&mut analyser, interrupt)?;
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
        let names = inputs.iter().map(|input| input.name.clone()).collect();
        Ok(Analysed { names, report: analyser.finish(), ended })
    }

    /// Returns why not all was read, in words.
    fn reason(&self, is_stopped: bool) -> Option<String> {
        let stopped = is_stopped.then(|| "stopped by a signal".to_owned());
        self.ended.as_ref().map(output::reasons).or(stopped)
    }
}

/// Prints the reports and writes the files, which only one report has.
fn show(args: &Args, all: &[&Analysed], is_stopped: bool) -> anyhow::Result<()> {
    let pairs = args.pairs as usize;
    let last = all.len() - 1;
    let reason = |place: usize| all[place].reason(is_stopped && place == last);
    let each = |mark: &str, written: &dyn Fn(&Report) -> String| {
        let one = |one: &&Analysed| match all.len() {
            1 => written(&one.report),
            _ => format!("{mark}{}\n\n{}", one.names.join(", "), written(&one.report)),
        };
        all.iter().map(one).collect::<Vec<_>>().join("\n")
    };
    let printed = match args.format {
        Format::Json => {
            let json = |(place, one): (usize, &&Analysed)| {
                shown::json(&one.report, &one.names, reason(place).as_deref())
            };
            let mut reports: Vec<Value> = all.iter().enumerate().map(json).collect();
            let whole = if last == 0 { reports.remove(0) } else { Value::Array(reports) };
            format!("{}\n", printable_json(&format!("{whole:#}")))
        }
        Format::Csv if last == 0 => shown::csv(&all[0].report),
        Format::Csv => {
            let named =
                |one: &&Analysed| (csv_cell(&one.names.join(" ")).into_owned(), shown::csv(&one.report));
            shown::joined_csv(all.iter().map(named))
        }
        Format::Table => each("", &|report| shown::findings(report, pairs).to_terminal(&output::style())),
        Format::Md => each("## ", &|report| shown::findings(report, pairs).to_markdown()),
    };
    if args.format == Format::Csv {
        for one in all {
            let of = if last == 0 { String::new() } else { format!("{}: ", one.names.join(" ")) };
            shown::warnings(&one.report).iter().for_each(|warning| note!("warning: {of}{warning}"));
        }
    }
    output::print(&printed)?;
    let Analysed { names, report, .. } = all[0];
    if let Some(path) = &args.figure {
        files::write_svg(path, &shown::of_packets(report, pairs))?;
    }
    if let Some(path) = &args.out {
        let mut findings = shown::findings(report, pairs);
        findings.warnings.extend(reason(0).map(|ended| format!("analysed up to there: {ended}")));
        let page = findings.to_page(FindingsPage {
            kind: "Plimsoll bursts",
            title: &format!("Bursts of {}", names.join(", ")),
            figures: shown::figures(report, pairs),
            command: &command(args),
            version: output::VERSION,
            commit: output::commit(),
        });
        output::write_whole(path, &page)?;
        note!("Page     {}", path.display());
    }
    Ok(())
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
        decapsulate: args.decapsulate,
        data_only: args.data,
        ..Options::default()
    }
}

/// Returns the command that makes the page again.
fn command(args: &Args) -> String {
    let mut words = vec!["plimsoll bursts".to_owned()];
    words.extend(args.captures.iter().map(|path| quoted(&path.to_string_lossy())));
    words.extend(args.interface.as_ref().map(|device| format!("-i {}", quoted(device))));
    words.extend(args.time.map(|time| format!("--time {time}")));
    words.extend(args.packets.map(|packets| format!("--packets {packets}")));
    words.push(format!("--rate {}", args.rate));
    words.extend(args.gap.map(|gap| format!("--gap {gap}")));
    words.push(format!("--train-gap {}", args.train_gap));
    words.extend(
        args.timestamps.map(|instant| {
            format!("--timestamps {}", if instant == Instant::Start { "start" } else { "end" })
        }),
    );
    words.extend(args.overhead.map(|bytes| format!("--overhead {bytes}")));
    words.extend(args.decapsulate.then(|| "--decapsulate".to_owned()));
    words.extend(args.data.then(|| "--data".to_owned()));
    words.push(format!("--pairs {}", args.pairs));
    words.extend(args.out.as_ref().map(|path| format!("--out {}", quoted(&path.to_string_lossy()))));
    words.join(" ")
}
