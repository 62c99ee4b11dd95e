//! memcached's flags, with memcached's letters, names and meanings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{ArgAction, Parser};
use plimsoll_chronos::{
    Access, Balancing, Config, DatagramSteering, IoBackend, KeyHash, Limits, Listen, LoadMetric, Poll, Tls,
};
use plimsoll_chronos_memcached::{Credentials, GROWTH_FACTOR, PARTITIONS_PER_THREAD, Protocol, Settings};

/// A memcached whose requests go to the thread that owns their data.
///
/// Flags have memcached's letters and meanings. What is ours is under -o chronos_*.
#[derive(Parser, Debug)]
#[command(
    name = "chronos-memcached",
    version = concat!(env!("CARGO_PKG_VERSION"), " (answers as memcached 1.6.18)"),
    disable_version_flag = true,
    after_help = EXTENDED_HELP
)]
pub struct Options {
    /// TCP port to listen on, 0 for none, -1 for any that is free (see MEMCACHED_PORT_FILENAME)
    #[arg(short = 'p', long, value_name = "num", default_value_t = 11_211, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i32).range(-1..=65_535))]
    port: i32,
    /// UDP port to listen on, 0 for none, -1 for any that is free
    #[arg(short = 'U', long, value_name = "num", default_value_t = 0, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i32).range(-1..=65_535))]
    udp_port: i32,
    /// UNIX socket to listen on (disables network support)
    #[arg(short = 's', long, value_name = "file")]
    unix_socket: Option<PathBuf>,
    /// Permissions of the UNIX socket, in octal
    #[arg(short = 'a', long, value_name = "mask", default_value = "700", value_parser = octal)]
    unix_mask: u32,
    /// Enable the text command "shutdown"
    #[arg(short = 'A', long)]
    enable_shutdown: bool,
    /// Addresses to listen on, with or without a port, comma-separated or repeated [default: all]
    #[arg(short = 'l', long, value_name = "addr", value_delimiter = ',')]
    listen: Vec<String>,
    /// Run in the background
    #[arg(short = 'd', long)]
    pub daemon: bool,
    /// Maximise the limit on core files
    #[arg(short = 'r', long)]
    pub enable_coredumps: bool,
    /// User to run as (needed, and used, only as root)
    #[arg(short = 'u', long, value_name = "user")]
    pub user: Option<String>,
    /// Item memory in megabytes
    #[arg(short = 'm', long, value_name = "num", default_value_t = 64)]
    memory_limit: u64,
    /// Return an error when memory is used up, instead of evicting
    #[arg(short = 'M', long)]
    disable_evictions: bool,
    /// Connections at a time
    #[arg(short = 'c', long, value_name = "num", default_value_t = 1024)]
    conn_limit: u32,
    /// Not supported: lock down all paged memory
    #[arg(short = 'k', long)]
    lock_memory: bool,
    /// Say what happens; -vv says more
    #[arg(short = 'v', long, action = ArgAction::Count)]
    verbose: u8,
    /// Print the licence and exit
    #[arg(short = 'i', long)]
    pub license: bool,
    /// Print the version and exit
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// Write the process id to this file (with -d)
    #[arg(short = 'P', long, value_name = "file")]
    pub pidfile: Option<PathBuf>,
    /// Factor from one chunk size to the next (memcached's default is 1.25)
    #[arg(short = 'f', long, value_name = "num", default_value_t = GROWTH_FACTOR)]
    slab_growth_factor: f64,
    /// Bytes for key and value in the smallest chunk
    #[arg(short = 'n', long, value_name = "bytes", default_value_t = 48)]
    slab_min_size: usize,
    /// Not supported: large memory pages
    #[arg(short = 'L', long)]
    enable_largepages: bool,
    /// Delimiter of key prefixes, whose statistics are then on from the start [default: ':', off]
    #[arg(short = 'D', value_name = "char")]
    delimiter: Option<char>,
    /// Threads
    #[arg(short = 't', long, value_name = "num", default_value_t = 4)]
    threads: u32,
    /// No effect: a connection gives way after what it sent at once
    #[arg(short = 'R', long, value_name = "num")]
    max_reqs_per_event: Option<u32>,
    /// Disable cas values
    #[arg(short = 'C', long)]
    disable_cas: bool,
    /// Connections that wait to be accepted
    #[arg(short = 'b', long, value_name = "num", default_value_t = 1024)]
    listen_backlog: u16,
    /// ascii, binary, or auto
    #[arg(short = 'B', long, value_name = "name")]
    protocol: Option<String>,
    /// Largest item, with k or m: 1k to 1024m
    #[arg(short = 'I', long, value_name = "num", default_value = "1m", value_parser = item_size)]
    max_item_size: u64,
    /// SASL PLAIN for the binary protocol, with the users of $MEMCACHED_SASL_PWDB (lines user:password)
    #[arg(short = 'S', long)]
    enable_sasl: bool,
    /// Disable flush_all
    #[arg(short = 'F', long)]
    disable_flush_all: bool,
    /// No effect: there is no cachedump
    #[arg(short = 'X', long)]
    disable_dumping: bool,
    /// No effect: there is no watch
    #[arg(short = 'W', long)]
    disable_watch: bool,
    /// Users of the text protocol: lines user:password
    #[arg(short = 'Y', long, value_name = "file")]
    auth_file: Option<PathBuf>,
    /// Not supported: a file for item memory
    #[arg(short = 'e', long, value_name = "file")]
    memory_file: Option<PathBuf>,
    /// TLS on TCP, with -o ssl_chain_cert=<file>,ssl_key=<file>; an address after "notls:" (-l) has none
    #[arg(short = 'Z', long)]
    enable_ssl: bool,
    /// Not supported: NAPI ids
    #[arg(short = 'N', long, value_name = "num")]
    napi_ids: Option<u32>,
    /// Extended options, comma-separated
    #[arg(short = 'o', long, value_name = "options", value_delimiter = ',')]
    extended: Vec<String>,
}

const EXTENDED_HELP: &str = "\
Extended options (-o):
  idle_timeout=<seconds>       close connections that say nothing (default: 0, never)
  chronos_partitions=<num>     parts that the data is split into (default: 16 for each thread)
  chronos_poll=block|spin      what a thread without work does; spinning needs a processor for each (default: block)
  chronos_access=owned|global|rwlock|partition
                               who runs a request: the owner of its partition, or any thread under one lock, a
                               reader/writer lock, or a lock for each partition (default: owned)
  chronos_balance=on|paper|off move partitions away from overloaded threads; paper does so without asking whether
                               chance explains the load (default: on)
  chronos_epoch=<time>         how often, with us or ms (default: 50us spinning, 1ms blocking)
  chronos_metric=requests|bytes|time
                               what load is (default: requests)
  chronos_pin=<num>:<num>...   processors that threads are pinned to (default: none)
  chronos_io=epoll|uring|fastest
                               how threads talk to the kernel; fastest is uring where the kernel has it (default: fastest)
  chronos_steering=on|off      have the kernel take a datagram to the owner of its key (default: off)
  ssl_chain_cert=<file>        certificate chain in PEM, with -Z
  ssl_key=<file>               private key in PEM, with -Z
memcached's other extended options are accepted, and have no effect here; each says so.";

/// memcached's extended options that steer what this server does not have.
const WITHOUT_EFFECT: [&str; 37] = [
    "maxconns_fast",
    "hashpower",
    "tail_repair_time",
    "hash_algorithm",
    "lru_crawler",
    "lru_crawler_sleep",
    "lru_crawler_tocrawl",
    "read_buf_mem_limit",
    "lru_maintainer",
    "hot_lru_pct",
    "warm_lru_pct",
    "hot_max_factor",
    "warm_max_factor",
    "temporary_ttl",
    "slab_chunk_max",
    "watcher_logbuf_size",
    "worker_logbuf_size",
    "track_sizes",
    "hashexpand",
    "modern",
    "slab_reassign",
    "slab_automove",
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "inline_ascii_resp",
    "resp_obj_mem_limit",
    "sock_cookie_id",
    "lru_segmented",
    "no_lru_crawler",
    "no_lru_maintainer",
    "no_hashexpand",
    "no_modern",
    "no_maxconns_fast",
    "no_slab_reassign",
    "no_inline_ascii_resp",
    "drop_privileges",
];
const WITH_EFFECT: [&str; 12] = [
    "idle_timeout",
    "chronos_partitions",
    "chronos_poll",
    "chronos_access",
    "chronos_balance",
    "chronos_epoch",
    "chronos_metric",
    "chronos_pin",
    "chronos_io",
    "chronos_steering",
    "ssl_chain_cert",
    "ssl_key",
];

/// What `-o` says.
#[derive(Default)]
struct Extended {
    idle_timeout: u32,
    partitions: Option<u32>,
    poll: Poll,
    access: Access,
    still: bool,
    as_printed: bool,
    epoch: Option<Duration>,
    metric: LoadMetric,
    processors: Vec<usize>,
    io: IoBackend,
    steering: bool,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Options {
    /// What the server and its threads are told.
    ///
    /// # Errors
    /// Names the flag, and what is allowed.
    pub fn resolve(&self) -> Result<(Settings, Config)> {
        self.refuse_unsupported()?;
        let extended = Extended::read(&self.extended)?;
        if !(1..=Config::THREADS_MAX).contains(&self.threads) {
            bail!("-t {}: 1 to {} threads are allowed", self.threads, Config::THREADS_MAX);
        }
        if self.slab_growth_factor <= 1.0 || !self.slab_growth_factor.is_finite() {
            bail!("-f {}: the factor must be greater than 1", self.slab_growth_factor);
        }
        if self.conn_limit == 0 {
            bail!("-c 0: at least one connection must be allowed");
        }
        let (protocol, credentials) = self.access()?;
        let partitions = extended.partitions.unwrap_or(self.threads * PARTITIONS_PER_THREAD);
        let settings = Settings {
            memory_limit: self.memory_limit.checked_mul(1 << 20).context("-m is too large")?,
            item_size_max: self.max_item_size,
            evict: !self.disable_evictions,
            cas: !self.disable_cas,
            flush: !self.disable_flush_all,
            shutdown: self.enable_shutdown,
            growth_factor: self.slab_growth_factor,
            chunk_size: self.slab_min_size,
            prefix_delimiter: match self.delimiter {
                None => b':',
                Some(letter) => u8::try_from(letter).context("-D: the delimiter must be one byte")?,
            },
            detail: self.delimiter.is_some(),
            protocol,
            credentials,
            sasl: self.enable_sasl,
            threads: self.threads,
            connections_max: self.conn_limit,
            tcp_port: if self.unix_socket.is_some() { 0 } else { u16::try_from(self.port).unwrap_or(0) },
            udp_port: if self.unix_socket.is_some() { 0 } else { u16::try_from(self.udp_port).unwrap_or(0) },
            listen: (!self.listen.is_empty()).then(|| self.listen.join(",")),
            unix_socket: self.unix_socket.clone(),
            unix_mask: self.unix_mask,
            backlog: u32::from(self.listen_backlog),
            verbosity: u32::from(self.verbose),
            idle_timeout: extended.idle_timeout,
            partitions,
            hash_secret: secret(),
        };
        let config = self.config(&settings, &extended)?;
        Ok((settings, config))
    }

    fn refuse_unsupported(&self) -> Result<()> {
        for (given, flag, what) in [
            (self.lock_memory, "-k", "locking memory"),
            (self.enable_largepages, "-L", "large memory pages"),
            (self.memory_file.is_some(), "-e", "a file for item memory (a restart begins empty)"),
            (self.napi_ids.is_some(), "-N", "NAPI ids"),
        ] {
            if given {
                bail!("{flag} is not supported: {what}");
            }
        }
        if self.max_reqs_per_event.is_some() {
            eprintln!("-R has no effect: a connection gives way after what it sent at once");
        }
        Ok(())
    }

    /// The protocols that are spoken, and who may log in.
    fn access(&self) -> Result<(Protocol, Option<Credentials>)> {
        let protocol = match self.protocol.as_deref() {
            None | Some("auto") => Protocol::Unknown,
            Some("ascii") => Protocol::Text,
            Some("binary") => Protocol::Binary,
            Some(other) => bail!("-B {other}: ascii, binary and auto are allowed"),
        };
        if self.auth_file.is_some() && self.udp_port != 0 {
            bail!("-Y and -U: a datagram cannot log in");
        }
        match (&self.auth_file, self.enable_sasl) {
            (None, false) => Ok((protocol, None)),
            (Some(_), true) => bail!("-Y and -S: one is for the text protocol, the other for the binary one"),
            (Some(_), false) if protocol == Protocol::Binary => {
                bail!("-Y and -B binary: the file is for the text protocol")
            }
            (Some(path), false) => Ok((Protocol::Text, Some(Credentials::read(path)?))),
            (None, true) if protocol == Protocol::Text => {
                bail!("-S and -B ascii: SASL is for the binary protocol")
            }
            (None, true) => {
                let path = std::env::var_os("MEMCACHED_SASL_PWDB")
                    .context("-S needs a file of lines user:password, named by MEMCACHED_SASL_PWDB")?;
                Ok((Protocol::Binary, Some(Credentials::read(&PathBuf::from(path))?)))
            }
        }
    }

    fn config(&self, settings: &Settings, extended: &Extended) -> Result<Config> {
        /// Bytes of a request beside its value: a get of many keys, say.
        const REQUEST_BYTES_BESIDE: usize = 16 << 20;
        let deviations = if extended.as_printed { 0 } else { Balancing::default().deviations };
        let balancing = Balancing { metric: extended.metric, deviations, ..Balancing::default() };
        let balancing = match extended.epoch {
            None => balancing,
            Some(epoch) => Balancing {
                epoch,
                epoch_blocking: epoch,
                epoch_idle: balancing.epoch_idle.max(epoch),
                ..balancing
            },
        };
        let config = Config {
            threads: self.threads,
            partitions: Some(settings.partitions),
            poll: extended.poll,
            access: extended.access,
            balancing: (!extended.still).then_some(balancing),
            io: extended.io,
            datagram_steering: extended
                .steering
                .then(|| DatagramSteering { hash: KeyHash::new(settings.hash_secret), by_vbucket: false }),
            listen: self.places(extended)?,
            limits: Limits {
                connections: self.conn_limit as usize,
                idle: (extended.idle_timeout > 0).then(|| Duration::from_secs(extended.idle_timeout.into())),
                input_bytes: settings.item_size_max as usize + REQUEST_BYTES_BESIDE,
                backlog: self.listen_backlog,
                ..Limits::default()
            },
            processors: extended.processors.clone(),
            ..Config::default()
        };
        config.check()?;
        Ok(config)
    }

    fn places(&self, extended: &Extended) -> Result<Vec<Listen>> {
        if let Some(path) = &self.unix_socket {
            return Ok(vec![Listen::Unix { path: path.clone(), mode: self.unix_mask }]);
        }
        let tls = self.tls(extended)?;
        let mut places = Vec::new();
        let any = [everywhere().to_string()];
        let given: &[String] = if self.listen.is_empty() { &any } else { &self.listen };
        // -1 is the kernel's 0.
        let port = |given: i32| u16::try_from(given).unwrap_or(0);
        for text in given {
            let plain = text.strip_prefix("notls:");
            let text = plain.unwrap_or(text);
            if self.port != 0 {
                places.extend(addresses(text, port(self.port))?.into_iter().map(|address| match &tls {
                    Some(tls) if plain.is_none() => Listen::Tls { address, tls: tls.clone() },
                    _ => Listen::Tcp(address),
                }));
            }
            if self.udp_port != 0 {
                places.extend(addresses(text, port(self.udp_port))?.into_iter().map(Listen::Udp));
            }
        }
        if places.is_empty() {
            bail!("-p 0 and -U 0: there is nothing to listen on");
        }
        Ok(places)
    }

    fn tls(&self, extended: &Extended) -> Result<Option<Tls>> {
        if !self.enable_ssl {
            return Ok(None);
        }
        let (Some(certificate), Some(key)) = (&extended.certificate, &extended.key) else {
            bail!("-Z needs -o ssl_chain_cert=<file>,ssl_key=<file>");
        };
        Ok(Some(Tls::from_pem_files(certificate, key).context("-Z")?))
    }
}

impl Extended {
    fn read(words: &[String]) -> Result<Extended> {
        let mut extended = Extended::default();
        for word in words.iter().filter(|word| !word.is_empty()) {
            let (name, value) =
                word.split_once('=').map_or((&word[..], None), |(name, value)| (name, Some(value)));
            // Whoever asks for these wants to be safe: to go on without would be worse than to stop.
            if name.starts_with("ssl_") && !WITH_EFFECT.contains(&name) {
                bail!("-o {name} is not supported: TLS 1.2 and 1.3, without client certificates");
            }
            if WITHOUT_EFFECT.contains(&name) || name.starts_with("ext_") {
                eprintln!(
                    "-o {name} has no effect: it steers a part of memcached that this server does not have"
                );
                continue;
            }
            if !WITH_EFFECT.contains(&name) {
                let known = WITH_EFFECT.iter().chain(&WITHOUT_EFFECT);
                let near =
                    known.min_by_key(|known| strsim::levenshtein(known, name)).expect("there are some");
                bail!("-o {name}: there is no such option; did you mean {near}?");
            }
            let value = value.with_context(|| format!("-o {name} needs a value: {name}=..."))?;
            extended.set(name, value).with_context(|| format!("-o {name}={value}"))?;
        }
        Ok(extended)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let allowed = |choices: &str| format!("{choices} are allowed");
        match (name, value) {
            ("idle_timeout", _) => self.idle_timeout = value.parse().with_context(|| allowed("seconds"))?,
            ("chronos_partitions", _) => {
                self.partitions = Some(value.parse().with_context(|| allowed("whole numbers"))?)
            }
            ("chronos_poll", "block") => self.poll = Poll::Block,
            ("chronos_poll", "spin") => self.poll = Poll::Spin,
            ("chronos_poll", _) => bail!(allowed("block and spin")),
            ("chronos_access", "owned") => self.access = Access::Owner,
            ("chronos_access", "global") => self.access = Access::GlobalLock,
            ("chronos_access", "rwlock") => self.access = Access::ReaderWriterLock,
            ("chronos_access", "partition") => self.access = Access::PartitionLocks,
            ("chronos_access", _) => bail!(allowed("owned, global, rwlock and partition")),
            ("chronos_balance", "on") => (self.still, self.as_printed) = (false, false),
            ("chronos_balance", "paper") => (self.still, self.as_printed) = (false, true),
            ("chronos_balance", "off") => self.still = true,
            ("chronos_balance", _) => bail!(allowed("on, paper and off")),
            ("chronos_epoch", _) => self.epoch = Some(duration(value)?),
            ("chronos_metric", "requests") => self.metric = LoadMetric::Requests,
            ("chronos_metric", "bytes") => self.metric = LoadMetric::Bytes,
            ("chronos_metric", "time") => self.metric = LoadMetric::Nanoseconds,
            ("chronos_metric", _) => bail!(allowed("requests, bytes and time")),
            ("chronos_pin", _) => {
                let numbers = value.split(':').map(str::parse).collect::<Result<_, _>>();
                self.processors =
                    numbers.with_context(|| allowed("numbers of processors with ':' between"))?;
            }
            ("chronos_io", "epoll") => self.io = IoBackend::Epoll,
            ("chronos_io", "uring") => self.io = IoBackend::IoUring,
            ("chronos_io", "fastest") => self.io = IoBackend::Fastest,
            ("chronos_io", _) => bail!(allowed("epoll, uring and fastest")),
            ("chronos_steering", "on") => self.steering = true,
            ("chronos_steering", "off") => self.steering = false,
            ("ssl_chain_cert", _) => self.certificate = Some(PathBuf::from(value)),
            ("ssl_key", _) => self.key = Some(PathBuf::from(value)),
            _ => bail!(allowed("on and off")),
        }
        Ok(())
    }
}

/// All addresses: over IPv6, which takes IPv4 too, where there is IPv6.
fn everywhere() -> IpAddr {
    if UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// The addresses that `text` means, at `port` unless it has one of its own.
fn addresses(text: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, digits)) => {
            (host, digits.parse().with_context(|| format!("-l {text}: {digits} is no port"))?)
        }
        None => (text, port),
    };
    let found = (host, port).to_socket_addrs().with_context(|| format!("-l {text}: cannot find {host}"))?;
    Ok(found.collect())
}

fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mask @ 0..=0o777) => Ok(mask),
        _ => Err("permissions are three octal digits, such as 700".to_owned()),
    }
}

fn item_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)) {
        Some(bytes @ 0x400..=0x4000_0000) => Ok(bytes),
        _ => Err("1k to 1024m is allowed".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().context("a number with us or ms is allowed")?;
    match &text[digits.len()..] {
        "us" if number > 0 => Ok(Duration::from_micros(number)),
        "ms" if number > 0 => Ok(Duration::from_millis(number)),
        _ => bail!("a number above 0 with us or ms is allowed"),
    }
}

/// A number that nobody knows, so that nobody can choose keys that collide.
fn secret() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(words: &str) -> Result<(Settings, Config)> {
        Options::try_parse_from(std::iter::once("chronos-memcached").chain(words.split_whitespace()))?
            .resolve()
    }

    #[test]
    fn defaults_are_memcacheds() {
        let (settings, config) = resolve("").expect("no flags");
        assert_eq!((settings.memory_limit, settings.item_size_max, settings.threads), (64 << 20, 1 << 20, 4));
        assert_eq!((settings.tcp_port, settings.udp_port, settings.connections_max), (11_211, 0, 1024));
        assert_eq!(config.listen.len(), 1);
    }

    #[test]
    fn flags_have_memcacheds_letters() {
        let (settings, config) =
            resolve("-p 0 -U 11311 -l 127.0.0.1 -m 128 -M -c 10 -t 2 -C -F -I 2m -n 100 -f 1.5 -D / -o idle_timeout=9")
                .expect("good flags");
        assert!(!settings.evict && !settings.cas && !settings.flush && settings.detail);
        assert_eq!(
            (settings.item_size_max, settings.prefix_delimiter, settings.idle_timeout),
            (2 << 20, b'/', 9)
        );
        assert_eq!(config.listen, [Listen::Udp("127.0.0.1:11311".parse().expect("an address"))]);
        let (_, config) = resolve("-l 127.0.0.1:5,[::1] -p 6 -U 7").expect("addresses");
        let shown: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["TCP 127.0.0.1:5", "UDP 127.0.0.1:5", "TCP [::1]:6", "UDP [::1]:7"]);
    }

    #[test]
    fn partitions_move_as_the_option_says() {
        for (word, expected) in [("on", Some(4)), ("paper", Some(0)), ("off", None)] {
            let (_, config) = resolve(&format!("-o chronos_balance={word}")).expect("good flags");
            assert_eq!(config.balancing.map(|balancing| balancing.deviations), expected, "{word}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, expected) in [
            ("-Z", "-Z needs -o ssl_chain_cert"),
            ("-o ssl_verify_mode=2", "not supported"),
            ("-L", "-L is not supported"),
            ("-o chronos_pol=spin", "did you mean chronos_poll?"),
            ("-o chronos_poll=sleep", "block and spin are allowed"),
            ("-o chronos_balance=yes", "on, paper and off are allowed"),
            ("-o chronos_epoch=5", "us or ms"),
            ("-o idle_timeout", "needs a value"),
            ("-t 0", "1 to 1024"),
            ("-f 1", "greater than 1"),
            ("-B text", "ascii, binary and auto"),
            ("-I 5", "1k to 1024m"),
            ("-p 0", "nothing to listen on"),
            ("-S -B ascii", "SASL is for the binary protocol"),
            ("-Y /nonexistent/users", "cannot read the authentication file"),
        ] {
            let error = format!("{:#}", resolve(words).expect_err(words));
            assert!(error.contains(expected), "{words}: {error}");
        }
    }
}
