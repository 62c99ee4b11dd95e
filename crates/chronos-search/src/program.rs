//! The program chronos-search: reads its flags, indexes files, and serves until a signal ends it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use plimsoll_chronos::options::{RuntimeOptions, Shown, end, parse_listen, secret, serve_with};
use plimsoll_chronos::{Config, Listen, RunningServer, StartError, TlsError};
use plimsoll_chronos_xdp::XdpDevice;
use plimsoll_process::note;
use plimsoll_units::whole;

use crate::{SearchService, SearchSettings, Sets, load};

/// An inverted index in memory: ranked queries by HTTP, posting lists by memcached's ASCII protocol.
///
/// Both protocols are spoken at the same addresses. `docs/chronos/search.md` describes them.
#[derive(Parser)]
#[command(name = "chronos-search", version, max_term_width = 110)]
struct Command {
    /// Files to index: JSONL files (`{"id": ..., "text": ..., "title": ..., "url": ...}` a line), text files, folders
    /// of them. Documents may also be added while it serves.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where clients connect: an address and port, port 0 for any free one, or `unix:PATH`. May be given several times.
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:11311", value_parser = parse_listen)]
    listen: Vec<Listen>,
    /// Where datagrams of memcached's protocol come: an address and port, port 0 for any free one. May be given several
    /// times.
    #[arg(long, value_name = "ADDRESS")]
    udp: Vec<SocketAddr>,
    /// A network device whose datagrams for `--udp` bypass the kernel's network stack, by AF_XDP. May be given several
    /// times.
    #[arg(long, value_name = "DEVICE", requires = "udp")]
    xdp: Vec<String>,
    /// The meaning of KEY in memcached's `set KEY` and `delete KEY`.
    #[arg(long, value_enum, default_value_t = SetsOption::Documents)]
    sets: SetsOption,
    /// Bytes of the longest document, or of the longest value that is set.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = SearchSettings::default().document_bytes_max as u64,
        value_parser = whole::<u64>(1..=1 << 30)
    )]
    document_max: u64,
    /// Bytes of memory that documents, words and values may take; more are refused. Without it they are unlimited.
    #[arg(long, value_name = "BYTES", value_parser = whole::<u64>(1 << 20..))]
    memory_max: Option<u64>,
    /// Read-copy-update on the thread that receives a request, in place of partitions; a baseline for experiments.
    #[arg(long)]
    snapshots: bool,
    /// Seconds that a client has to send the head of a request, or a line of memcached's protocol; then its connection
    /// is closed. 0 is for any number.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = SearchSettings::default().head_seconds,
        value_parser = whole::<u16>(..)
    )]
    head_timeout: u16,
    /// Settings of an experiment; `paper` is `--sets postings --partitions 12`, for a load of 10-byte keys, 1400-byte
    /// values and nine gets to a set (`chronos-load`).
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    #[command(flatten)]
    runtime: RuntimeOptions,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
enum SetsOption {
    /// KEY names a document, whose text is the value.
    Documents,
    /// KEY is a word, whose posting list is the value.
    Postings,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Preset {
    /// The experiment of the Chronos dissertation, section 6.2.5.
    Paper,
}

/// Partitions of the paper's index.
const PAPER_PARTITIONS: u32 = 12;

impl Command {
    fn settings(&self) -> SearchSettings {
        let sets = match (self.preset, self.sets) {
            (Some(Preset::Paper), _) | (None, SetsOption::Postings) => Sets::Postings,
            (None, SetsOption::Documents) => Sets::Documents,
        };
        SearchSettings {
            sets,
            document_bytes_max: self.document_max as usize,
            memory_max: self.memory_max,
            snapshots: self.snapshots,
            head_seconds: self.head_timeout,
        }
    }

    fn config(&self) -> Result<Config, TlsError> {
        /// The line or head before a document, and its end.
        const BESIDE_DOCUMENT: usize = 1 << 17;
        let mut runtime = self.runtime.clone();
        if self.preset == Some(Preset::Paper) {
            runtime.partitions.get_or_insert(PAPER_PARTITIONS);
        }
        let datagrams = self.udp.iter().copied().map(Listen::Udp);
        // The kernel's sockets stay, for other devices, and for fragments.
        let device = |name: &String| Listen::Device {
            device: Arc::new(XdpDevice::new(name)),
            places: self.udp.clone(),
        };
        let listen =
            self.listen.iter().cloned().chain(datagrams).chain(self.xdp.iter().map(device)).collect();
        runtime.config(listen, self.document_max as usize + BESIDE_DOCUMENT)
    }
}

/// Calls `run`, prints its error, and returns the exit status.
pub fn main(run: impl FnOnce() -> Result<()>) -> ExitCode {
    end("chronos-search", run())
}

/// Runs the program with a command line, until it ends; `start` starts the server.
///
/// # Errors
/// If a flag is wrong, a file cannot be read, or the server cannot start or fails.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    start: impl FnOnce(SearchService, &Config) -> Result<RunningServer, StartError>,
) -> Result<()> {
    let command: Command = plimsoll_command_line::parse(arguments);
    let settings = command.settings();
    ensure!(
        settings.sets == Sets::Documents || command.files.is_empty(),
        "there is nothing to index where clients set posting lists: leave out the files, or choose --sets documents"
    );
    let config = command.config()?;
    let search = SearchService::new(settings, config.partitions(), secret());
    for file in &command.files {
        let loaded = load(&search, file)?;
        let left_out = match loaded.left_out {
            0 => String::new(),
            files => format!("; {files} files that are no text are left out"),
        };
        note!("{}: {} documents{left_out}", file.display(), loaded.documents);
    }
    let more = Box::new(search.metrics());
    let shown = Shown { name: "chronos-search", version: env!("CARGO_PKG_VERSION"), more };
    serve_with(|| start(search, &config), &config, &command.runtime, shown)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_version_has_the_name_of_the_program() {
        assert!(Command::command().render_version().starts_with("chronos-search "));
    }

    #[test]
    fn the_manual_page_is_up_to_date() {
        plimsoll_testing::manuals::are_up_to_date("chronos-search", |folder| {
            clap_mangen::generate_to(plimsoll_command_line::command::<Command>(), folder)
        });
    }
}
