//! The runtime's options as a command line has them, and a server's life from its first socket to its last reply.
//!
//! ```text
//! options ──> Config ──> Runtime::start ──> "listening on ..." ──> SIGINT, SIGTERM ──> drained
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use plimsoll_http::metrics::Exposition;
use plimsoll_process::note;
use plimsoll_units::{Span, whole};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::metrics::MetricsSocket;
use crate::{
    AcrossNodes, Balancing, ClientVerification, Config, IoBackend, Limits, Listen, LoadMetric, Poll,
    RunningServer, Runtime, Service, StartError, Tls, TlsError, TlsFiles,
};

/// Options that set how the server runs.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Runtime")]
pub struct RuntimeOptions {
    /// Number of worker threads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=Config::THREADS_MAX))]
    pub threads: u32,
    /// Partitions of the state, at least one a thread; 16 a thread if nothing is said.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=Config::PARTITIONS_MAX))]
    pub partitions: Option<u32>,
    /// Behaviour of a thread without work.
    #[arg(long, value_enum, default_value_t = PollOption::Block)]
    pub poll: PollOption,
    /// How threads talk to the kernel.
    #[arg(long, value_enum, default_value_t = IoOption::Fastest)]
    pub io: IoOption,
    /// How often the load balancer looks (20us, 1ms), or `none` to leave partitions where they are; by default 50us for
    /// threads that spin and 1ms for threads that block, which grows to 100ms without load.
    #[arg(long, value_name = "TIME", value_parser = parse_epoch)]
    pub epoch: Option<Epoch>,
    /// How partitions move away from overloaded threads: `on` one by one, `paper` without asking whether chance
    /// explains the load, `split:WAYS` in groups of 2 to 64, which are split while they are hot (`split` is `split:8`).
    #[arg(long, value_name = "HOW", default_value = "on", value_parser = parse_balance)]
    pub balance: BalanceOption,
    /// Whether partitions cross NUMA nodes, where `--processors` are of several; on by default, off with `--balance
    /// paper`.
    #[arg(long, value_enum)]
    pub numa: Option<NumaOption>,
    /// The quantity that the load balancer counts as load.
    #[arg(long, value_enum, default_value_t = LoadOption::Requests)]
    pub load: LoadOption,
    /// The processors that threads are pinned to, one after the other.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub processors: Vec<usize>,
    /// Serve TCP by TLS, with the certificate chain in this file, in PEM; SIGHUP reads it again. UNIX sockets stay in
    /// the clear.
    #[arg(long, value_name = "FILE")]
    pub tls_certificate: Option<PathBuf>,
    /// The private key, in PEM; by default it is read from the file of the chain.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Refuse clients by TLS without a certificate that an authority in this file has signed, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_client_ca: Option<PathBuf>,
    /// Connections of all threads together.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub connections: usize,
    /// Close connections that are silent for this long (30s); by default none are.
    #[arg(long, value_name = "TIME")]
    pub idle: Option<Span>,
    /// Bytes that connections may hold in all: requests that are not whole, and replies that are not fetched.
    /// Connections that hold most of it and fetch nothing are closed when others wait for it; so is one that needs
    /// more.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = Limits::default().memory_bytes as u64,
        value_parser = whole::<u64>(1 << 20..)
    )]
    pub connection_memory: u64,
    /// Serve metrics as OpenMetrics at this address, by HTTP at /metrics: an address and port, or `unix:PATH`. Clients
    /// are not authenticated. Without this option no metrics are served.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
}

/// The identity and the metrics of a server.
pub struct Shown {
    /// The name of the program.
    pub name: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// Writes the server's own metrics, beside its runtime's, without a lock that requests take.
    pub more: Box<dyn Fn(&mut Exposition) + Send + Sync>,
}

/// Behaviour of a thread without work.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum PollOption {
    /// The thread sleeps until something arrives; where requests follow each other, it looks for 30us before.
    Block,
    /// The thread looks again: the shortest latency, for a processor of its own.
    Spin,
}

/// How threads talk to the kernel.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoOption {
    /// io-uring where the kernel has it, else epoll.
    Fastest,
    /// Readiness by epoll, edge-triggered.
    Epoll,
    /// Completions by io_uring; needs Linux 6.1 and the right to use it.
    IoUring,
}

/// The quantity that counts as load.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOption {
    /// Every request counts as one.
    Requests,
    /// Bytes of requests and replies.
    Bytes,
    /// Time spent on requests.
    Time,
}

/// How partitions move away from overloaded threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BalanceOption {
    /// Where a thread has more load than chance explains.
    On,
    /// Where a thread has more load at all.
    Paper,
    /// As `On`, in groups of this many partitions.
    Split(u32),
}

/// Whether partitions cross NUMA nodes.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumaOption {
    /// Only when a whole node is overloaded.
    On,
    /// Partitions never cross nodes.
    Strict,
    /// Partitions cross nodes as they move within one.
    Off,
}

/// The interval of the load balancer; None turns it off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch(pub Option<Duration>);

impl RuntimeOptions {
    /// Returns the runtime's configuration. `input_bytes` is the largest request.
    ///
    /// # Errors
    /// If the files for TLS cannot be used.
    pub fn config(&self, listen: Vec<Listen>, input_bytes: usize) -> Result<Config, TlsError> {
        let listen = self.secure(listen)?;
        // Where an IPv4 address is named too, the IPv6 socket must not take it.
        let ipv6_only = listen.iter().any(|place| address(place).is_some_and(|address| address.is_ipv4()));
        Ok(Config {
            threads: self.threads,
            partitions: self.partitions,
            poll: match self.poll {
                PollOption::Block => Poll::Block,
                PollOption::Spin => Poll::Spin,
            },
            io: match self.io {
                IoOption::Fastest => IoBackend::Fastest,
                IoOption::Epoll => IoBackend::Epoll,
                IoOption::IoUring => IoBackend::IoUring,
            },
            balancing: self.balancing(),
            listen,
            ipv6_only,
            limits: Limits {
                connections: self.connections,
                idle: self.idle.map(duration),
                input_bytes,
                memory_bytes: usize::try_from(self.connection_memory).unwrap_or(usize::MAX),
                ..Limits::default()
            },
            processors: self.processors.clone(),
            ..Config::default()
        })
    }

    /// Returns `listen`, with TLS where it is asked for.
    fn secure(&self, listen: Vec<Listen>) -> Result<Vec<Listen>, TlsError> {
        let Some(tls) = self.read_certificate()? else { return Ok(listen) };
        let secured = |place| match place {
            Listen::Tcp(address) => Listen::Tls { address, tls: tls.clone() },
            other => other,
        };
        Ok(listen.into_iter().map(secured).collect())
    }

    fn read_certificate(&self) -> Result<Option<Tls>, TlsError> {
        let Some(certificate) = &self.tls_certificate else { return Ok(None) };
        let clients = self.tls_client_ca.clone();
        let files = TlsFiles {
            chain: certificate.clone(),
            key: self.tls_key.as_ref().unwrap_or(certificate).clone(),
            clients: clients.map(|authorities| ClientVerification { authorities, required: true }),
        };
        files.read().map(Some)
    }

    /// Shows the certificate that is in the files by now; one that cannot be used is reported, and changes nothing.
    fn refresh(&self, listen: &[Listen]) {
        match self.read_certificate() {
            Ok(read) => {
                let read = read.as_ref();
                for place in listen {
                    if let (Listen::Tls { tls, .. }, Some(read)) = (place, read) {
                        tls.replace(read);
                    }
                }
            }
            Err(error) => note!("SIGHUP: {error}; what was read before stays"),
        }
    }

    fn balancing(&self) -> Option<Balancing> {
        let metric = match self.load {
            LoadOption::Requests => LoadMetric::Requests,
            LoadOption::Bytes => LoadMetric::Bytes,
            LoadOption::Time => LoadMetric::Nanoseconds,
        };
        let default = Balancing::default();
        let (deviations, split) = match self.balance {
            BalanceOption::On => (default.deviations, None),
            BalanceOption::Paper => (0, None),
            BalanceOption::Split(ways) => (default.deviations, Some(ways)),
        };
        let across_nodes = match self.numa {
            Some(NumaOption::On) => AcrossNodes::Overloaded,
            Some(NumaOption::Strict) => AcrossNodes::Never,
            Some(NumaOption::Off) => AcrossNodes::Freely,
            // The paper's algorithm does not know nodes.
            None if self.balance == BalanceOption::Paper => AcrossNodes::Freely,
            None => default.across_nodes,
        };
        let default = Balancing { metric, deviations, split, across_nodes, ..default };
        match self.epoch {
            None => Some(default),
            Some(Epoch(None)) => None,
            Some(Epoch(Some(epoch))) => {
                let epoch_idle = default.epoch_idle.max(epoch);
                Some(Balancing { epoch, epoch_blocking: epoch, epoch_idle, ..default })
            }
        }
    }
}

/// Returns the address of a place, unless it is a path.
fn address(place: &Listen) -> Option<SocketAddr> {
    match place {
        Listen::Tcp(address) | Listen::Tls { address, .. } | Listen::Udp(address) => Some(*address),
        Listen::Unix { .. } | Listen::Device { .. } => None,
    }
}

/// Ends a program called `name`: an error is reported on standard error, with exit status 2.
pub fn end(name: &str, done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("{name}: {error:#}");
            ExitCode::from(ERROR)
        }
    }
}

/// Exit status of an error.
const ERROR: u8 = 2;

/// Parses `127.0.0.1:11211`, `[::1]:0`, or `unix:PATH`.
///
/// # Errors
/// If it is none of these.
pub fn parse_listen(text: &str) -> Result<Listen, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Listen::Unix { path: path.into(), mode: 0o700 });
    }
    let address: Result<SocketAddr, _> = text.parse();
    address
        .map(Listen::Tcp)
        .map_err(|_| "not an address and port (127.0.0.1:11211, [::1]:0) or unix:PATH".to_owned())
}

/// Serves until SIGINT or SIGTERM, then sends the replies that are due. Prints its addresses on standard output, one a
/// line, once it listens. With TLS, SIGHUP reads the certificate again. `config` is of `runtime`.
///
/// # Errors
/// If the server cannot start, or a thread fails.
pub fn serve<S: Service>(service: S, config: &Config, runtime: &RuntimeOptions, shown: Shown) -> Result<()> {
    serve_with(|| Runtime::start(service, config), config, runtime, shown)
}

/// Serves as [`serve`] does, with a server that `start` starts.
///
/// # Errors
/// If the server cannot start, or a thread fails.
pub fn serve_with(
    start: impl FnOnce() -> Result<RunningServer, StartError>,
    config: &Config,
    runtime: &RuntimeOptions,
    shown: Shown,
) -> Result<()> {
    let bind = |address| MetricsSocket::bind(address).with_context(|| format!("--metrics {address}"));
    let metrics = runtime.metrics.as_deref().map(bind).transpose()?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("signals")?;
    if runtime.tls_certificate.is_some() {
        signals.add_signal(SIGHUP).context("signals")?;
    }
    let running = start()?;
    if let Some(metrics) = metrics {
        note!("metrics at {}, path /metrics", metrics.address());
        metrics.serve(shown.name, shown.version, (&running, config), shown.more).context("--metrics")?;
    }
    let places: String = running.bound().iter().map(listening).collect();
    // The server keeps serving when its stdout is closed.
    if let Err(error) = plimsoll_process::print(&places) {
        note!("cannot write to stdout: {error}\n{}", places.trim_end());
    }
    let stop = running.stop_handle();
    let (runtime, listen) = (runtime.clone(), config.listen.clone());
    let handle = move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                runtime.refresh(&listen);
            } else {
                stop.stop();
            }
        }
    };
    std::thread::Builder::new().spawn(handle).context("cannot start a thread for signals")?;
    running.join()?;
    Ok(())
}

fn listening(place: &Listen) -> String {
    match place {
        Listen::Tcp(address) | Listen::Tls { address, .. } | Listen::Udp(address) => {
            format!("listening on {address}\n")
        }
        Listen::Unix { path, .. } => format!("listening on unix:{}\n", path.display()),
        Listen::Device { .. } => format!("listening on {place}\n"),
    }
}

/// Returns a random number, for hashes that no client can foresee.
pub fn secret() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn parse_epoch(text: &str) -> Result<Epoch, String> {
    if text == "none" {
        return Ok(Epoch(None));
    }
    let span: Span = text.parse().map_err(|error| format!("{error}; or none"))?;
    if span.is_zero() {
        return Err("0 is not allowed; none leaves partitions where they are".to_owned());
    }
    Ok(Epoch(Some(duration(span))))
}

fn parse_balance(text: &str) -> Result<BalanceOption, String> {
    let words = ["on", "paper", "split"];
    match text.split_once(':').map_or((text, None), |(word, ways)| (word, Some(ways))) {
        ("on", None) => Ok(BalanceOption::On),
        ("paper", None) => Ok(BalanceOption::Paper),
        ("split", None) => Ok(BalanceOption::Split(Balancing::WAYS)),
        ("split", Some(ways)) => match ways.parse() {
            Ok(ways @ 2..=Balancing::WAYS_MAX) => Ok(BalanceOption::Split(ways)),
            _ => Err(format!("2 to {} partitions a group are allowed", Balancing::WAYS_MAX)),
        },
        (word, _) => {
            let near = words.iter().min_by_key(|known| strsim::levenshtein(known, word));
            let near = near.expect("there are some");
            Err(format!(
                "on, paper, split and split:WAYS are allowed; did you mean {near}? (--epoch none leaves partitions \
                 where they are)"
            ))
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_ps() / 1000)
}

#[cfg(test)]
mod tests;
