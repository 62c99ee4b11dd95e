//! Implements `plimsoll import capture`.

use std::path::PathBuf;

use clap::ValueEnum;
use plimsoll_experiment::question::quoted;
use plimsoll_import::capture::{self, CaptureClassBy, CaptureOptions, NamedCapture, StartBy};
use plimsoll_units::{Span, whole};

use super::shared::Shared;
use crate::bursts;
use crate::output::Done;

/// Turn packet captures into a scenario: requests with responses, and flows.
///
/// Captures are pcap and pcapng files of one host, of several, or of a switch; several files are read on one clock, and
/// a packet that was captured at several places counts once. A message of TCP ends when the direction changes and the
/// other side has everything; bytes that both sides send at once are flows. Requests keep their times, or, where the
/// capture shows that clients wait for responses, their think times. Addresses become h0, h1, ... in their order.
///
/// A run directory of `plimsoll run --pcap` or `plimsoll emulate --capture` stands for the captures of its only point.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Packet captures; `-` reads stdin.
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    #[command(flatten)]
    shared: Shared,
    /// What separates classes of traffic, each of which is a workload. By default the server's port; one class where
    /// Plimsoll made the ports up.
    #[arg(long, value_enum, value_name = "BY")]
    class: Option<ClassOption>,
    /// When requests start. By default as the capture shows.
    #[arg(long, value_enum, value_name = "WHEN")]
    starts: Option<Starts>,
    /// A pause that ends a message to which nothing comes back.
    #[arg(long, value_name = "SPAN", default_value = "100ms")]
    idle: Span,
    /// The most messages; the rest of the capture is left out.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = whole::<u32>(1..=2_000_000))]
    messages_max: u32,
    /// Look into tunnels: the hosts are those of the packets inside VXLAN, GENEVE, GRE, ERSPAN and IP in IP.
    #[arg(long)]
    decapsulate: bool,
}

/// What separates classes of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ClassOption {
    /// A class for each port of a server.
    Port,
    /// The DSCP of the first packet.
    Dscp,
    /// Nothing: all is of one class.
    One,
}

/// The rule by which requests start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Starts {
    /// At their times in the capture.
    Time,
    /// So long after the response before as in the capture.
    Response,
}

impl Args {
    fn options(&self) -> CaptureOptions {
        CaptureOptions {
            idle: self.idle,
            class: self.class.map(|class| match class {
                ClassOption::Port => CaptureClassBy::Port,
                ClassOption::Dscp => CaptureClassBy::Dscp,
                ClassOption::One => CaptureClassBy::One,
            }),
            starts: match self.starts {
                None => StartBy::Shown,
                Some(Starts::Time) => StartBy::Time,
                Some(Starts::Response) => StartBy::Response,
            },
            messages_max: self.messages_max as usize,
            decapsulate: self.decapsulate,
            ..CaptureOptions::default()
        }
    }

    /// Returns the command without the options that all imports have.
    fn command(&self) -> String {
        let name = |value: clap::builder::PossibleValue| value.get_name().to_owned();
        let mut words = vec!["plimsoll import capture".to_owned()];
        words.extend(self.captures.iter().map(|path| quoted(&path.to_string_lossy())));
        words.extend(
            self.class.and_then(|class| class.to_possible_value()).map(|of| format!("--class {}", name(of))),
        );
        words.extend(
            self.starts
                .and_then(|starts| starts.to_possible_value())
                .map(|of| format!("--starts {}", name(of))),
        );
        words.push(format!("--idle {}", self.idle));
        words.push(format!("--messages-max {}", self.messages_max));
        words.extend(self.decapsulate.then(|| "--decapsulate".to_owned()));
        words.join(" ")
    }
}

pub fn run(args: &Args) -> Done {
    let mut inputs = Vec::new();
    let mut names = Vec::new();
    for path in &args.captures {
        let short = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        names.push(if short == "-" { "stdin".to_owned() } else { short });
        inputs.extend(bursts::open(path)?.into_iter().map(|(name, input)| NamedCapture { name, input }));
    }
    let found = capture::read(inputs, &args.options())?;
    args.shared.write(found.found, &found.compared, &names.join(", "), &args.command())
}
