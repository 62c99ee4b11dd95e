//! The runtime's options as a command line has them, and a server's life from its first socket to its last reply.
//!
//! ```text
//! options ──> Config ──> Runtime::start ──> "listening on ..." ──> SIGINT, SIGTERM ──> drained
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use plimsoll_chronos::{
    Access, AcrossNodes, Balancing, Config, IoBackend, Limits, Listen, LoadMetric, Poll, Runtime, Service,
};
use plimsoll_units::Span;
use signal_hook::consts::{SIGINT, SIGTERM};

/// How the server runs.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Runtime")]
pub struct RuntimeOptions {
    /// Worker threads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(Config::THREADS_MAX)))]
    pub threads: u32,
    /// Partitions of the state, at least one a thread; 16 a thread if nothing is said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(Config::PARTITIONS_MAX)))]
    pub partitions: Option<u32>,
    /// What a thread without work does.
    #[arg(long, value_enum, default_value_t = PollOption::Block)]
    pub poll: PollOption,
    /// How threads talk to the kernel.
    #[arg(long, value_enum, default_value_t = IoOption::Fastest)]
    pub io: IoOption,
    /// Who may run a request; all but `owner` are baselines for experiments.
    #[arg(long, value_enum, default_value_t = AccessOption::Owner)]
    pub access: AccessOption,
    /// How often the load balancer looks (20us, 1ms), or `none` to leave partitions where they are; 50us for threads
    /// that spin and 1ms for threads that block, which grows to 100ms without load, if nothing is said.
    #[arg(long, value_name = "TIME", value_parser = parse_epoch)]
    pub epoch: Option<Epoch>,
    /// How partitions move away from overloaded threads: `on` one by one, `paper` without asking whether chance explains
    /// the load, `split:WAYS` in groups of 2 to 64, which are split while they are hot (`split` is `split:8`).
    #[arg(long, value_name = "HOW", default_value = "on", value_parser = parse_balance)]
    pub balance: BalanceOption,
    /// Whether partitions cross NUMA nodes, where `--processors` are of several; on if nothing is said, off with
    /// `--balance paper`.
    #[arg(long, value_enum)]
    pub numa: Option<NumaOption>,
    /// What the load balancer takes for load.
    #[arg(long, value_enum, default_value_t = LoadOption::Requests)]
    pub load: LoadOption,
    /// The processors that threads are pinned to, one after the other.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub processors: Vec<usize>,
    /// Connections of all threads together.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub connections: usize,
    /// Close connections that say nothing for so long (30s); none are if nothing is said.
    #[arg(long, value_name = "TIME")]
    pub idle: Option<Span>,
}

/// What a thread without work does.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum PollOption {
    /// It sleeps until something comes.
    Block,
    /// It looks again: the shortest latency, for a processor of its own.
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

/// Who may run a request.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessOption {
    /// The thread that owns its partition, without locks.
    Owner,
    /// Any thread, one at a time over all partitions.
    GlobalLock,
    /// Any thread; those that only read at the same time.
    ReaderWriterLock,
    /// Any thread, one at a time in each partition.
    PartitionLocks,
}

/// What the load balancer takes for load.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOption {
    /// Requests, all alike.
    Requests,
    /// Bytes of requests and replies.
    Bytes,
    /// Time spent on requests.
    Time,
}

/// How partitions move away from overloaded threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BalanceOption {
    /// Where a thread has more than chance explains.
    On,
    /// Where it has more at all.
    Paper,
    /// As `On`, in groups of so many.
    Split(u32),
}

/// Whether partitions cross NUMA nodes.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumaOption {
    /// Only when a whole node is overloaded.
    On,
    /// Never.
    Strict,
    /// As within a node.
    Off,
}

/// How often the load balancer looks; None is never.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch(pub Option<Duration>);

impl RuntimeOptions {
    /// The runtime's configuration. `input_bytes` is the largest request.
    pub fn config(&self, listen: Vec<Listen>, input_bytes: usize) -> Config {
        Config {
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
            access: match self.access {
                AccessOption::Owner => Access::Owner,
                AccessOption::GlobalLock => Access::GlobalLock,
                AccessOption::ReaderWriterLock => Access::ReaderWriterLock,
                AccessOption::PartitionLocks => Access::PartitionLocks,
            },
            balancing: self.balancing(),
            listen,
            limits: Limits {
                connections: self.connections,
                idle: self.idle.map(duration),
                input_bytes,
                ..Limits::default()
            },
            processors: self.processors.clone(),
            ..Config::default()
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

/// `127.0.0.1:11211`, `[::1]:0`, or `unix:PATH`.
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

/// Serves until SIGINT or SIGTERM, then sends what is still to be sent. Says on standard output where it listens, a
/// line an address, once it does.
///
/// # Errors
/// If the server cannot start, or a thread fails.
pub fn serve<S: Service>(service: S, config: &Config) -> Result<()> {
    let (mut signalled, signal) = UnixStream::pair().context("signals")?;
    for number in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(number, signal.try_clone()?).context("signals")?;
    }
    let running = Runtime::start(service, config)?;
    let mut output = io::stdout().lock();
    for listen in running.bound() {
        match listen {
            Listen::Tcp(address) | Listen::Tls { address, .. } | Listen::Udp(address) => {
                writeln!(output, "listening on {address}")?
            }
            Listen::Unix { path, .. } => writeln!(output, "listening on unix:{}", path.display())?,
            Listen::Device { .. } => writeln!(output, "listening on {listen}")?,
        }
    }
    output.flush()?;
    let stop = running.stop_handle();
    std::thread::spawn(move || {
        // An error is no signal, but nobody could signal after it.
        let _ = signalled.read(&mut [0]);
        stop.stop();
    });
    running.join()?;
    Ok(())
}

/// A random number, for hashes that nobody outside can foresee.
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
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        runtime: RuntimeOptions,
    }

    fn config(arguments: &[&str]) -> Result<Config, String> {
        let all = ["server"].iter().chain(arguments);
        let command = Command::try_parse_from(all).map_err(|error| error.to_string())?;
        Ok(command.runtime.config(Vec::new(), 1 << 16))
    }

    #[test]
    fn defaults_are_the_runtimes() {
        let limits = Limits { input_bytes: 1 << 16, ..Limits::default() };
        assert_eq!(config(&[]), Ok(Config { limits, ..Config::default() }));
    }

    #[test]
    fn the_help_tells_true_epochs() {
        let help = Command::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let Balancing { epoch, epoch_blocking, epoch_idle, .. } = Balancing::default();
        let told = format!(
            "{epoch:?} for threads that spin and {epoch_blocking:?} for threads that block, which grows to {epoch_idle:?}"
        );
        assert!(help.contains(&told.replace('µ', "u")), "{told}\n{help}");
        assert!(
            help.contains(&format!("{} a thread if nothing is said", Config::PARTITIONS_PER_THREAD)),
            "{help}"
        );
    }

    #[test]
    fn options_reach_the_runtime() {
        let all = config(&[
            "--threads=2",
            "--partitions=12",
            "--poll=spin",
            "--access=reader-writer-lock",
            "--epoch=20us",
            "--balance=split:4",
            "--numa=strict",
            "--load=time",
            "--processors=0,1",
            "--connections=7",
            "--idle=30s",
        ]);
        let all = all.unwrap();
        assert_eq!((all.threads, all.partitions(), all.poll), (2, 12, Poll::Spin));
        assert_eq!((all.access, &all.processors[..]), (Access::ReaderWriterLock, &[0, 1][..]));
        assert_eq!((all.limits.connections, all.limits.idle), (7, Some(Duration::from_secs(30))));
        let balancing = all.balancing.unwrap();
        assert_eq!((balancing.epoch, balancing.metric), (Duration::from_micros(20), LoadMetric::Nanoseconds));
        assert_eq!((balancing.split, balancing.across_nodes), (Some(4), AcrossNodes::Never));
        let moves = |argument| {
            let balancing = config(&[argument]).unwrap().balancing.unwrap();
            (balancing.deviations, balancing.split, balancing.across_nodes)
        };
        assert_eq!(moves("--balance=split"), (4, Some(Balancing::WAYS), AcrossNodes::Overloaded));
        assert_eq!(moves("--balance=paper"), (0, None, AcrossNodes::Freely));
        assert_eq!(moves("--numa=off"), (4, None, AcrossNodes::Freely));
        assert_eq!(config(&["--epoch=none"]).unwrap().balancing, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (argument, reason) in [
            ("--threads=0", "1..=1024"),
            ("--epoch=0s", "none leaves partitions"),
            ("--epoch=fast", "or none"),
            ("--access=lock", "partition-locks"),
            ("--balance=splt", "did you mean split?"),
            ("--balance=off", "--epoch none"),
            ("--balance=split:1", "2 to 64 partitions a group are allowed"),
            ("--numa=strikt", "strict"),
        ] {
            let error = config(&[argument]).unwrap_err();
            assert!(error.contains(reason), "{argument}: {error}");
        }
        for text in ["localhost", "80", "127.0.0.1"] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
        assert!(matches!(parse_listen("unix:/run/x"), Ok(Listen::Unix { .. })));
    }
}
