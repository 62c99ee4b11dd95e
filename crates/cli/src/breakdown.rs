//! Implements `plimsoll breakdown`, which shows where the time of a running server's requests goes.

#[cfg(feature = "kernel")]
mod live;
#[cfg(not(feature = "kernel"))]
mod live {
    /// Returns the error that says what this build lacks.
    pub(super) fn run(_: &super::Args) -> crate::output::Done {
        Err(anyhow::anyhow!(crate::output::NO_PROGRAMS))
    }
}

use std::ffi::OsString;
use std::path::PathBuf;

use plimsoll_scenario::Registry;
use plimsoll_units::{Rate, Span, whole};

use crate::output::{Done, Format};

/// Show where the time of a running server's requests goes: kernel, busy threads and processors, or the server itself.
///
/// Follows each request of a TCP or UDP server from the device to the socket, the wake-up, the run queue, the reading
/// system calls, the application, the send path and back to the device, by tracepoints of the kernel (tp_btf); the
/// server is not changed. The parts of each request add up to its latency inside the server. Requests that cannot be
/// matched are counted, with the reason, and their share is printed. Nothing stays in the kernel when this command
/// ends, however it ends.
///
/// A request is data on a connection up to the reply's first byte: one at a time. Needs root, or CAP_BPF, CAP_PERFMON,
/// CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, and a kernel with BTF. docs/breakdown.md explains each part.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("server").required(true).multiple(true).args(["pid", "port", "command"]))]
pub struct Args {
    /// Process of the server; its listening ports are traced.
    #[arg(long, value_name = "PID", value_parser = whole::<u32>(1..=4_194_304))]
    pid: Option<u32>,
    /// Port of the server, TCP or UDP. With --pid or a command, only this one of its ports.
    #[arg(long, value_name = "PORT", value_parser = whole::<u16>(1..=65_535))]
    port: Option<u16>,
    /// How long to trace; Ctrl-C ends it earlier, with the report.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    duration: Span,
    /// Share of the time in which requests are traced, in slices of 0.5 s: what tracing costs shrinks with it. 100%
    /// traces without a pause, which requests of more than half a second need.
    #[arg(long, value_name = "SHARE", default_value = "25%", value_parser = duty)]
    duty: f64,
    /// Trace one connection of so many, for a server under high load; for UDP, one client.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=1_000_000))]
    sample: u32,
    /// Slowest requests to list; the JSON, the page and the timeline have up to 1,000.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(0..=1_000))]
    slowest: u32,
    /// Rate of the server's link, for the serialisation that no event shows. By default, what the device reports.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Form of the printed results. JSON has all numbers, CSV one row a part.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write tables and figures into this HTML page.
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Write the slowest and the first requests as a timeline into this file, which https://ui.perfetto.dev shows.
    #[arg(long, value_name = "FILE.json")]
    timeline: Option<PathBuf>,
    /// Write the call stacks of all samples of the processors into this file, a line a stack, for programs that draw
    /// flame graphs (flamegraph.pl, inferno, speedscope).
    #[arg(long, value_name = "FILE", conflicts_with = "overhead")]
    stacks: Option<PathBuf>,
    /// Measure what tracing costs instead: run the load of --load in so many pairs of turns, with and without tracing,
    /// and compare the client's latency and the server's processor time. The exit status is 1 for a rise above 10 %.
    #[arg(long, value_name = "PAIRS", requires = "load", value_parser = whole::<u32>(1..=1_000))]
    overhead: Option<u32>,
    /// Load for --overhead, run by sh, that prints the JSON of `chronos-load run --format json`.
    #[arg(long, value_name = "COMMAND", requires = "overhead")]
    load: Option<String>,
    /// Server to run and trace; it is ended with SIGTERM afterwards.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "pid")]
    command: Vec<OsString>,
}

/// Parses the share of the time in which requests are traced.
fn duty(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).map_err(|error| error.to_string())?;
    if (0.01..=1.0).contains(&share) { Ok(share) } else { Err("expected a share from 1% to 100%".to_owned()) }
}

pub fn run(args: &Args, _: &Registry) -> Done {
    live::run(args)
}
