//! memcached's flags, with memcached's letters, names and meanings.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{ArgAction, Parser};
use plimsoll_chronos::{AcrossNodes, Balancing, Config, DatagramSteering, KeyHash, Limits};
use plimsoll_chronos_memcached::{Credentials, GROWTH_FACTOR, PARTITIONS_PER_THREAD, Protocol, Settings};

mod extended;
mod places;

use extended::{EXTENDED_HELP, Extended};

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
        let ways = extended.split.unwrap_or(1);
        let partitions = extended.partitions.unwrap_or(self.threads * PARTITIONS_PER_THREAD * ways);
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
        // The paper's algorithm does not know nodes.
        let across_nodes = if extended.as_printed { AcrossNodes::Freely } else { AcrossNodes::default() };
        let balancing = Balancing {
            metric: extended.metric,
            deviations,
            split: extended.split,
            across_nodes: extended.across_nodes.unwrap_or(across_nodes),
            ..Balancing::default()
        };
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

/// A number that nobody knows, so that nobody can choose keys that collide.
fn secret() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use plimsoll_chronos::Listen;

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
        let (_, config) =
            resolve("-l 192.0.2.1,[::1]:6 -p 0 -U 7 -o chronos_xdp=eth0:eth1").expect("devices");
        let shown: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
        let device = |name: &str| format!("device {name}, UDP 192.0.2.1:7 [::1]:6");
        assert_eq!(shown[2..], [device("eth0"), device("eth1")]);
    }

    #[test]
    fn partitions_move_as_the_option_says() {
        for (word, expected) in [("on", Some(4)), ("paper", Some(0)), ("off", None)] {
            let (_, config) = resolve(&format!("-o chronos_balance={word}")).expect("good flags");
            assert_eq!(config.balancing.map(|balancing| balancing.deviations), expected, "{word}");
            assert_eq!(config.balancing.and_then(|balancing| balancing.split), None, "{word}");
        }
        for (words, ways, partitions) in [
            ("split -t 2", 8, 256),
            ("split:4 -t 2", 4, 128),
            ("split:64,chronos_partitions=128 -t 2", 64, 128),
        ] {
            let (settings, config) = resolve(&format!("-o chronos_balance={words}")).expect("good flags");
            assert_eq!(config.balancing.and_then(|balancing| balancing.split), Some(ways), "{words}");
            assert_eq!((settings.partitions, config.partitions()), (partitions, partitions), "{words}");
        }
        for (word, across) in [
            ("chronos_balance=on", AcrossNodes::Overloaded),
            ("chronos_balance=paper", AcrossNodes::Freely),
            ("chronos_balance=paper,chronos_numa=on", AcrossNodes::Overloaded),
            ("chronos_numa=strict", AcrossNodes::Never),
            ("chronos_numa=off", AcrossNodes::Freely),
        ] {
            let (_, config) = resolve(&format!("-o {word}")).expect("good flags");
            assert_eq!(config.balancing.map(|balancing| balancing.across_nodes), Some(across), "{word}");
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
            ("-o chronos_balance=yes", "on, paper, split, split:<ways> and off are allowed"),
            ("-o chronos_balance=slit:8", "did you mean split?"),
            ("-o chronos_balance=split:65", "2 to 64 partitions a group are allowed"),
            (
                "-o chronos_balance=split,chronos_partitions=16",
                "partitions: 16 are not enough for 4 threads with groups of 8",
            ),
            ("-o chronos_numa=strickt", "did you mean strict?"),
            ("-o chronos_xdp=eth0", "needs the UDP port that it is for"),
            ("-U -1 -o chronos_xdp=eth0", "needs the UDP port that it is for"),
            ("-U 7 -s /nonexistent/socket -o chronos_xdp=eth0", "a UNIX socket has no network device"),
            ("-U 7 -o chronos_xdp=eth0:", "names of network devices with ':' between are allowed"),
            ("-U 7 -o chronos_xdp=eth0:eth0", "it is named twice"),
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
