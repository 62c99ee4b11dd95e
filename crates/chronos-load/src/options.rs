//! The options of the command line that describe the load, and their meaning.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, bail, ensure};
use clap::parser::ValueSource;
use clap::{ArgGroup, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use plimsoll_files::Origin;
use plimsoll_units::{Span, whole};

use crate::arrivals::LoadArrivals;
use crate::drive::IdleWait;
use crate::endpoint::ServerAddress;
use crate::keys::{KeyChoice, KeyText, Popularity};
use crate::phase::{ClientThreads, GeneratorShare};
use crate::placement::{KeyPlacement, Sharding};
use crate::protocol::{Protocol, Texts};
use crate::report::SuspectLimits;
use crate::setup::{LaterCopies, ReplyCheck, Setup, Shape};
use crate::values::{ValueSizes, Values};

/// The requests to send.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Requests", group = ArgGroup::new("shape").multiple(false))]
pub struct RequestMix {
    /// Protocol of the requests
    #[arg(long, value_enum, default_value_t = Protocol::Ascii)]
    pub protocol: Protocol,
    /// Number of different keys
    #[arg(help_heading = "Keys and values", long, default_value_t = 100_000,
          value_parser = whole::<u64>(1..=1 << 28))]
    pub keys: u64,
    /// Length of a key in bytes
    #[arg(help_heading = "Keys and values", long, default_value_t = 64)]
    pub key_size: usize,
    /// Prefix of the keys
    #[arg(help_heading = "Keys and values", long, default_value = "key:")]
    pub key_prefix: String,
    /// Request the lines of this file instead, each a key
    #[arg(help_heading = "Keys and values", long, value_name = "FILE", conflicts_with_all = ["keys", "key_size",
          "key_prefix"])]
    pub terms: Option<PathBuf>,
    /// Distribution of requests over keys: uniform, zipf:S, or hot:KEYS,SHARE,EPOCH (EPOCH such as 100us, or static)
    #[arg(help_heading = "Keys and values", long, default_value = "uniform")]
    pub popularity: Popularity,
    /// Length of a value in bytes: a number, uniform:LEAST,MOST, exponential:MEAN, or etc (Facebook's ETC pool)
    #[arg(help_heading = "Keys and values", long, default_value = "1024")]
    pub value_size: ValueSizes,
    /// Ratio of gets to sets
    #[arg(long, default_value = "9:1", value_parser = parse_ratio, value_name = "GETS:SETS")]
    pub ratio: f64,
    /// Number of keys in a get
    #[arg(long, default_value_t = 1, value_parser = whole::<u32>(1..=1000))]
    pub multi_get: u32,
    /// Number of virtual buckets in the binary protocol's vBucket field; 0 leaves it 0
    #[arg(long, default_value_t = 0, value_parser = whole::<u16>(..))]
    pub vbuckets: u16,
    /// Send a get to each of this many servers at once; the operation ends with the last reply
    #[arg(long, group = "shape", value_name = "SERVERS", value_parser = whole::<u32>(..))]
    pub fan_out: Option<u32>,
    /// Send this many requests in a row, each after the reply to the one before
    #[arg(long, group = "shape", value_name = "LENGTH", value_parser = whole::<u32>(1..=256))]
    pub chain: Option<u32>,
    /// Send a get to this many servers that have the key; the operation ends with the first value
    #[arg(long, group = "shape", value_name = "SERVERS", value_parser = whole::<u32>(..))]
    pub replicas: Option<u32>,
    /// Send each further copy of --replicas only when there was no value for this long (a hedge)
    #[arg(long, value_name = "SPAN", requires = "replicas", conflicts_with = "retry", value_parser = parse_length)]
    pub hedge: Option<Span>,
    /// Give a get up after this long, and send the next copy of --replicas instead
    #[arg(long, value_name = "SPAN", requires = "replicas", value_parser = parse_length)]
    pub retry: Option<Span>,
    /// Mapping of keys to servers
    #[arg(long, value_enum, default_value_t = Sharding::Modulo)]
    pub sharding: Sharding,
    /// Do not store all keys first; values that others have stored are accepted, too
    #[arg(help_heading = "Keys and values", long)]
    pub no_load: bool,
    /// Do not check values
    #[arg(help_heading = "Validity", long)]
    pub no_check: bool,
    /// Seed of all random draws
    #[arg(long, default_value_t = 1, value_parser = whole::<u64>(..))]
    pub seed: u64,
    /// How long to wait for a reply: to each datagram, and after the run
    #[arg(help_heading = "Time", long, default_value = "500ms")]
    pub timeout: Span,
    /// Most operations outstanding; those beyond are not sent, and counted
    #[arg(help_heading = "Load", long, default_value_t = 100_000)]
    pub outstanding_max: usize,
}

/// The clients that send requests.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Clients")]
pub struct Clients {
    /// Number of clients, each with a connection to every server
    #[arg(long, default_value_t = 32, value_parser = whole::<u32>(1..=100_000))]
    pub connections: u32,
    /// Number of threads of the generator
    #[arg(long, default_value_t = 1, value_parser = whole::<u32>(1..=1024))]
    pub threads: u32,
    /// Processors of the threads, such as 1 or 1,3
    #[arg(long, value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// How threads wait when there is no work
    #[arg(long, value_enum, default_value_t = IdleWait::Spin)]
    pub wait: IdleWait,
    /// The clients' TCP congestion control, such as reno; the system's if not given
    #[arg(long)]
    pub congestion: Option<String>,
}

/// The length of the run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct Times {
    /// Length of the load before the measurement
    #[arg(long, default_value = "500ms")]
    pub warm_up: Span,
    /// Length of the measurement
    #[arg(long, default_value = "5s", value_parser = parse_length)]
    pub time: Span,
}

/// The distribution of operations over time.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub struct OperationSchedule {
    /// How requests of an open loop are spread: poisson, uniform, or bursts:RATIO,DURATION,SHARE such as
    /// bursts:10,1ms,10%
    #[arg(long, default_value = "poisson")]
    pub arrivals: LoadArrivals,
}

/// The limits beyond which a run is suspect.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Validity")]
pub struct ValidityOptions {
    /// Share of the latency that the generator's own lag may be before the run is marked SUSPECT
    #[arg(long, default_value = "50%", value_parser = crate::arrivals::parse_share)]
    pub lag_share: f64,
    /// Let generator and server share processors on purpose: waiting for one does not mark a run
    #[arg(long)]
    pub shared_cpus: bool,
}

impl ValidityOptions {
    /// Returns the limits that the report applies.
    pub fn limits(self) -> SuspectLimits {
        let limits = SuspectLimits { lag_share: self.lag_share, ..SuspectLimits::default() };
        if self.shared_cpus { SuspectLimits { waited_share: f64::INFINITY, ..limits } } else { limits }
    }
}

/// The load, without its servers, rate and length.
#[derive(Clone, Debug, Args)]
pub struct LoadOptions {
    #[command(flatten)]
    /// The requests to send.
    pub workload: RequestMix,
    /// The clients that send them.
    #[command(flatten)]
    pub clients: Clients,
    /// The distribution of an open loop's requests over time.
    #[command(flatten)]
    pub timetable: OperationSchedule,
    /// The limits beyond which it is suspect.
    #[command(flatten)]
    pub validity: ValidityOptions,
}

/// Options together with their words, so that another process can be given the same.
#[derive(Clone, Debug)]
pub struct Recorded<T> {
    /// The meaning of the options.
    pub options: T,
    /// The options that the command line has, each as `--name=value` or `--name`.
    pub words: Vec<String>,
}

impl<T: Args> Args for Recorded<T> {
    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Args> FromArgMatches for Recorded<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Recorded<T>, clap::Error> {
        let words = words_of::<T>(matches);
        Ok(Recorded { options: T::from_arg_matches(matches)?, words })
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Recorded<T>, clap::Error> {
        // Parsing takes the values out.
        let words = words_of::<T>(matches);
        Ok(Recorded { options: T::from_arg_matches_mut(matches)?, words })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.words.extend(words_of::<T>(matches));
        self.options.update_from_arg_matches(matches)
    }
}

/// Returns the options of `T` that a command line has.
fn words_of<T: Args>(matches: &ArgMatches) -> Vec<String> {
    let mut words = Vec::new();
    for argument in T::augment_args(Command::new("chronos-load")).get_arguments() {
        let (Some(name), id) = (argument.get_long(), argument.get_id().as_str()) else { continue };
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        if argument.get_action().takes_values() {
            let values = matches.get_raw(id).into_iter().flatten();
            words.extend(values.map(|value| format!("--{name}={}", value.to_string_lossy())));
        } else {
            words.push(format!("--{name}"));
        }
    }
    words
}

/// The form of a printed report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// A table with aligned columns.
    #[default]
    Table,
    /// JSON with all numbers.
    Json,
}

/// Parses options from words, as a command line would. Other options have their defaults.
///
/// # Errors
/// Returns an error if a word is not an option, or its value is invalid.
pub fn read<A: Args>(words: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(Command::new("chronos-load").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Parses the share of gets from `GETS:SETS`.
fn parse_ratio(text: &str) -> Result<f64, String> {
    let parts = text
        .split_once(':')
        .and_then(|(gets, sets)| Some((gets.parse::<f64>().ok()?, sets.parse::<f64>().ok()?)));
    match parts {
        Some((gets, sets)) if gets >= 0.0 && sets >= 0.0 && gets + sets > 0.0 => Ok(gets / (gets + sets)),
        _ => Err(format!("`{text}` is not a ratio; write GETS:SETS, such as 9:1, or 1:0 for gets alone")),
    }
}

/// Parses a length of time above 0.
pub fn parse_length(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: plimsoll_units::ParseQuantityError| error.to_string())?;
    if span.is_zero() { Err(format!("`{text}` is zero; write more than 0s")) } else { Ok(span) }
}

impl RequestMix {
    /// Returns whether all keys are stored first.
    pub fn loads(&self) -> bool {
        !self.no_load && self.protocol != Protocol::Search
    }

    /// Resolves the options for `servers` and this many clients.
    ///
    /// # Errors
    /// Returns an error if options contradict each other.
    pub fn setup(&self, servers: &[ServerAddress], clients: u32) -> anyhow::Result<Arc<Setup>> {
        let (keys, count) = self.key_text()?;
        let datagrams = servers.iter().any(ServerAddress::is_datagrams);
        ensure!(
            servers.iter().all(|server| server.is_datagrams() == datagrams),
            "--server: UDP and other servers cannot be mixed"
        );
        if datagrams {
            let most = Protocol::value_bytes_max_udp(self.key_size);
            ensure!(
                self.value_size.range().1 as usize <= most || (self.ratio == 1.0 && !self.loads()),
                "--value-size: a set over UDP is one datagram, so with keys of {} bytes a value has at most {most}",
                self.key_size
            );
        }
        let search = self.protocol == Protocol::Search;
        let check = match (self.no_check, search) {
            (true, _) => ReplyCheck::Nothing,
            (false, true) => ReplyCheck::SameEachTime((0..count).map(|_| AtomicU64::new(0)).collect()),
            (false, false) => ReplyCheck::Stored,
        };
        let names: Vec<String> = servers.iter().map(ToString::to_string).collect();
        Ok(Arc::new(Setup {
            protocol: self.protocol,
            datagrams,
            texts: Texts {
                keys,
                values: Values::new(self.value_size, clients, self.loads()),
                vbuckets: self.vbuckets,
            },
            choice: KeyChoice::new(self.popularity, count, self.seed),
            get_share: if search { 1.0 } else { self.ratio },
            multi_get: self.multi_get,
            shape: self.shape(servers.len())?,
            later: self
                .hedge
                .or(self.retry)
                .map(|after| LaterCopies { after, gives_up: self.retry.is_some() }),
            placement: KeyPlacement::new(self.sharding, &names),
            seed: self.seed,
            timeout: self.timeout,
            check,
            outstanding_max: self.outstanding_max,
        }))
    }

    fn key_text(&self) -> anyhow::Result<(KeyText, u64)> {
        let Some(path) = &self.terms else {
            let text =
                KeyText::numbered(&self.key_prefix, self.key_size, self.keys).map_err(anyhow::Error::msg);
            return Ok((text.context("--keys and --key-size")?, self.keys));
        };
        let terms = read_terms(path)?;
        let count = terms.len() as u64;
        Ok((KeyText::Listed(terms), count))
    }

    fn shape(&self, servers: usize) -> anyhow::Result<Shape> {
        let at_most_all = |name: &str, count: u32| {
            ensure!(
                (1..=servers).contains(&(count as usize)),
                "{name}: {count} servers; there are {servers} (each --server is one)"
            );
            Ok(count)
        };
        Ok(match (self.fan_out, self.chain, self.replicas) {
            (Some(width), ..) => Shape::FanOut(at_most_all("--fan-out", width)?),
            (_, Some(length), _) => Shape::Chain(length),
            (.., Some(copies)) => Shape::Replicas(at_most_all("--replicas", copies)?),
            _ => Shape::Single,
        })
    }
}

/// The largest file of keys that is read, in bytes.
const TERMS_BYTES_MAX: u64 = 1 << 30;

/// Reads the lines of `path`.
fn read_terms(path: &Path) -> anyhow::Result<Vec<Box<[u8]>>> {
    let text = plimsoll_files::read_text(path, Origin::Argument, TERMS_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut terms = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.is_empty() || line.len() > 250 || line.contains([' ', '\t', '\r']) {
            bail!(
                "{}:{number}: `{line}` is not a key: expected 1 to 250 bytes without a space",
                path.display()
            );
        }
        terms.push(line.as_bytes().into());
    }
    ensure!(!terms.is_empty(), "{} has no lines", path.display());
    Ok(terms)
}

impl Clients {
    /// Returns these clients with connections to `servers`.
    pub fn client_threads(&self, servers: Vec<ServerAddress>) -> ClientThreads {
        ClientThreads {
            servers,
            clients: self.connections,
            threads: self.threads.min(self.connections),
            cpus: self.cpus.clone(),
            wait: self.wait,
            congestion: self.congestion.clone(),
            share: GeneratorShare::WHOLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(words: &[&str], servers: &[&str]) -> String {
        let servers: Vec<ServerAddress> = servers.iter().map(|server| server.parse().unwrap()).collect();
        match read::<RequestMix>(words) {
            Ok(workload) => format!("{:#}", workload.setup(&servers, 1).unwrap_err()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn recorded_options_say_the_same_again() {
        let words =
            ["--keys", "500", "--ratio=5:5", "--no-check", "--value-size", "uniform:1,9", "--retry=9ms"];
        let read_again = [&words[..], &["--replicas=2"]].concat();
        let recorded: Recorded<RequestMix> = read(&read_again).unwrap();
        assert_eq!(
            recorded.words,
            [
                "--keys=500",
                "--value-size=uniform:1,9",
                "--ratio=5:5",
                "--replicas=2",
                "--retry=9ms",
                "--no-check"
            ]
        );
        let again: RequestMix = read(&recorded.words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{:?}", recorded.options));
    }

    #[test]
    fn contradictions_are_told_with_what_is_allowed() {
        let one = ["127.0.0.1:1"];
        for (words, servers, part) in [
            (&["--keys", "0"][..], &one[..], "write a whole number from 1 to 268435456"),
            (&["--key-size", "3"], &one, "100000 keys cannot be of 3 bytes"),
            (&["--ratio", "nine"], &one, "write GETS:SETS"),
            (&["--protocol", "asci"], &one, "a similar value exists: 'ascii'"),
            (&["--fan-out", "2"], &one, "--fan-out: 2 servers; there are 1"),
            (&["--fan-out", "1", "--chain", "2"], &one, "cannot be used with"),
            (&["--value-size", "1400"], &["udp:127.0.0.1:1"], "a value has at most 1264"),
            (&[], &["udp:127.0.0.1:1", "127.0.0.1:1"], "UDP and other servers cannot be mixed"),
        ] {
            let found = error(words, servers);
            assert!(found.contains(part), "{words:?}: {found}");
        }
    }
}
