//! memcached's flags, with memcached's letters, names and meanings.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Credentials, GROWTH_FACTOR, MemcachedSettings, Protocol, REQUESTS_PER_TURN};
use anyhow::{Context, Result, bail};
use clap::{ArgAction, Parser};
use plimsoll_chronos::{AcrossNodes, Balancing, Config, DatagramSteering, KeyHash, Limits};

mod conf;
mod extended;
mod memory;
mod places;

use crate::files::ReadFiles;
use conf::ConfFile;
use extended::{EXTENDED_HELP, Extended};
use memory::ServerMemory;
use plimsoll_process::note;
use plimsoll_units::whole;

/// A memcached whose requests go to the thread that owns their data.
///
/// Flags have memcached's letters and meanings. Options of this server alone are under -o chronos_*, and --metrics.
#[derive(Parser, Debug)]
#[command(
    name = "chronos-memcached",
    version = concat!(env!("CARGO_PKG_VERSION"), " (answers as memcached 1.6.18)"),
    disable_version_flag = true,
    // As in getopt: the last of an option counts, and a long name may be abbreviated while it is unique.
    args_override_self = true,
    infer_long_args = true,
    after_help = EXTENDED_HELP
)]
pub struct Options {
    /// TCP port to listen on, 0 for none, -1 for any that is free (see MEMCACHED_PORT_FILENAME) [default: that of -U,
    /// or 11211 without -U]
    #[arg(short = 'p', long, value_name = "num", allow_negative_numbers = true,
          value_parser = whole::<i32>(-1..=65_535))]
    port: Option<i32>,
    /// UDP port to listen on, 0 for none, -1 for any that is free
    #[arg(short = 'U', long, value_name = "num", default_value_t = 0, allow_negative_numbers = true,
          value_parser = whole::<i32>(-1..=65_535))]
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
    #[arg(short = 'm', long, value_name = "num", default_value_t = 64, value_parser = whole::<u64>(0..))]
    memory_limit: u64,
    /// Return an error when memory is used up, instead of evicting
    #[arg(short = 'M', long)]
    disable_evictions: bool,
    /// Connections at a time
    #[arg(short = 'c', long, value_name = "num", default_value_t = 1024, value_parser = whole::<u32>(0..))]
    conn_limit: u32,
    /// Not supported: lock down all paged memory
    #[arg(short = 'k', long)]
    lock_memory: bool,
    /// Print the addresses, refused connections and failed logins; -vv prints no more
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
    #[arg(short = 'n', long, value_name = "bytes", default_value_t = 48, value_parser = whole::<usize>(0..))]
    slab_min_size: usize,
    /// Not supported: large memory pages
    #[arg(short = 'L', long)]
    enable_largepages: bool,
    /// Delimiter of key prefixes, whose statistics are then on from the start [default: ':', off]
    #[arg(short = 'D', value_name = "char")]
    delimiter: Option<char>,
    /// Number of worker threads
    #[arg(short = 't', long, value_name = "num", default_value_t = 4, value_parser = whole::<u32>(0..))]
    threads: u32,
    /// Requests of a connection after which it gives way to others, keys of a get among them (memcached's default is
    /// 20)
    #[arg(short = 'R', long, value_name = "num", default_value_t = REQUESTS_PER_TURN,
          value_parser = whole::<u32>(1..))]
    max_reqs_per_event: u32,
    /// Disable the use of cas values
    #[arg(short = 'C', long)]
    disable_cas: bool,
    /// Connections that wait to be accepted
    #[arg(short = 'b', long, value_name = "num", default_value_t = 1024, value_parser = whole::<u32>(0..))]
    listen_backlog: u32,
    /// ascii, binary, or auto
    #[arg(short = 'B', long, value_name = "name")]
    protocol: Option<String>,
    /// Largest item, with k or m: 1k to 1024m
    #[arg(short = 'I', long, value_name = "num", default_value = "1m", value_parser = item_size)]
    max_item_size: u64,
    /// SASL PLAIN for the binary protocol, with the users of $MEMCACHED_SASL_PWDB (lines user:password)
    #[arg(short = 'S', long)]
    enable_sasl: bool,
    /// Disable the command flush_all
    #[arg(short = 'F', long)]
    disable_flush_all: bool,
    /// Disable stats cachedump and lru_crawler metadump
    #[arg(short = 'X', long)]
    disable_dumping: bool,
    /// No effect: watch is never allowed
    #[arg(short = 'W', long)]
    disable_watch: bool,
    /// Users of the text protocol: lines user:password
    #[arg(short = 'Y', long, value_name = "file")]
    auth_file: Option<PathBuf>,
    /// Keep the items over a restart: SIGUSR1 and "shutdown graceful" write them to this file, and the next start reads
    /// and removes it
    #[arg(short = 'e', long, value_name = "file")]
    memory_file: Option<PathBuf>,
    /// TLS on TCP, with -o ssl_chain_cert=<file>,ssl_key=<file>; an address after "notls:" (-l) has none
    #[arg(short = 'Z', long)]
    enable_ssl: bool,
    /// Not supported: NAPI ids
    #[arg(short = 'N', long, alias = "napi_ids", value_name = "num", value_parser = whole::<u32>(0..))]
    napi_ids: Option<u32>,
    /// Serve metrics as OpenMetrics at this address, by HTTP at /metrics: an address and port, or unix:<file>; not one
    /// of memcached's
    #[arg(long, value_name = "addr")]
    pub metrics: Option<String>,
    /// Read more options from this file, in the form of Debian's /etc/memcached.conf; options of the command line
    /// override those of the file
    #[arg(long, value_name = "file")]
    conf: Option<PathBuf>,
    /// Extended options, comma-separated
    #[arg(short = 'o', long, value_name = "options", value_delimiter = ',')]
    extended: Vec<String>,
    /// The file of `--conf`, for the places of errors.
    #[arg(skip)]
    file: ConfFile,
}

impl Options {
    /// Returns the options of the command line `arguments`, of which these are the parsed ones, and of the file that it
    /// names.
    ///
    /// # Errors
    /// If the file cannot be read, or a line of it is wrong; the error has the number of the line.
    pub fn with_file(self, arguments: &[OsString]) -> Result<Options> {
        match &self.conf {
            Some(path) => ConfFile::read(path)?.join(arguments, &self),
            None => Ok(self),
        }
    }

    /// Returns the configuration of the server and its threads. It fits into `group_limit`, the bytes of memory that
    /// the control group allows; where that is less than the flags ask for, a printed line has the bytes of each part.
    ///
    /// # Errors
    /// If a flag is wrong; the error names the flag and the allowed values, and its place in the file of `--conf`.
    pub fn resolve(&self, group_limit: Option<u64>) -> Result<(MemcachedSettings, Config, ReadFiles)> {
        self.resolve_all(group_limit).map_err(|error| match self.file.place_of(&error.to_string()) {
            Some(place) => error.context(place),
            None => error,
        })
    }

    fn resolve_all(&self, group_limit: Option<u64>) -> Result<(MemcachedSettings, Config, ReadFiles)> {
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
        if extended.verification > 0 && !self.enable_ssl {
            bail!(
                "-o ssl_verify_mode={} needs -Z: there are no certificates without TLS",
                extended.verification
            );
        }
        if extended.by_vbucket && self.memory_file.is_some() {
            bail!("-e and -o chronos_vbuckets: the file does not have the vBuckets of items");
        }
        let (protocol, credentials) = self.access()?;
        let ways = extended.split.unwrap_or(1);
        let memory = self.memory(&extended, group_limit)?;
        let memory_limit = memory.items;
        let partitions = extended
            .partitions
            .unwrap_or_else(|| MemcachedSettings::partitions_for(memory_limit, self.threads, ways));
        let settings = MemcachedSettings {
            memory_limit,
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
            requests_per_turn: self.max_reqs_per_event,
            tcp_port: self.tcp_port(),
            udp_port: self.udp_port,
            listen: (!self.listen.is_empty()).then(|| self.listen.join(",")),
            dump: !self.disable_dumping,
            crawler: !extended.no_crawler,
            unix_socket: self.unix_socket.clone(),
            unix_mask: self.unix_mask,
            backlog: self.listen_backlog,
            verbosity: u32::from(self.verbose),
            tls: self.enable_ssl.then(|| extended.tls_files().ok()).flatten(),
            tls_authority: extended.authority.clone(),
            tls_verification: extended.verification,
            tls_write_bytes: extended.tls_write_bytes.unwrap_or(MemcachedSettings::default().tls_write_bytes),
            memory_file: self.memory_file.as_ref().map(std::path::absolute).transpose().context("-e")?,
            idle_timeout: extended.idle_timeout,
            partitions,
            by_vbucket: extended.by_vbucket,
            udp_amplification: extended.udp_amplification,
            hash_secret: secret(),
        };
        let config = self.config(&settings, &extended, memory.connections)?;
        let files = ReadFiles::new(self.users_file(), &settings, &config)?;
        Ok((settings, config, files))
    }

    /// Returns the memory that the flags ask for, as far as the control group allows it.
    fn memory(&self, extended: &Extended, group_limit: Option<u64>) -> Result<ServerMemory> {
        /// A few megabytes are too little for the partitions of several threads.
        const ITEMS_LEAST: u64 = 8 << 20;
        let items = self.memory_limit.checked_mul(1 << 20).context("-m is too large")?;
        let connections = extended.connection_memory.map(|bytes| bytes as u64);
        let asked = ServerMemory {
            items,
            connections: connections.unwrap_or_else(|| connection_memory(items, self.max_item_size)),
            program: ServerMemory::of_program(self.threads, self.conn_limit),
        };
        let Some(limit) = group_limit else { return Ok(asked) };
        let connections_least = connections.unwrap_or(ITEMS_OF_CONNECTIONS * self.max_item_size);
        let memory = asked.within(limit, connections_least, ITEMS_LEAST.max(2 * self.max_item_size));
        if memory != asked || memory.total() > limit {
            let total = memory.total().div_ceil(1 << 20);
            let advice = if memory.total() <= limit {
                String::new()
            } else {
                format!("; the kernel may end it, so give the group {total} MiB, or use fewer threads (-t)")
            };
            note!("-m {}: its control group has {} MiB: {memory}{advice}", self.memory_limit, limit >> 20);
        }
        Ok(memory)
    }

    /// Returns the TCP port: as with memcached, that of `-U` if only that is given.
    fn tcp_port(&self) -> i32 {
        const DEFAULT: i32 = 11_211;
        self.port.unwrap_or(if self.udp_port == 0 { DEFAULT } else { self.udp_port })
    }

    fn refuse_unsupported(&self) -> Result<()> {
        for (given, flag, what) in [
            (self.lock_memory, "-k", "locking memory"),
            (self.enable_largepages, "-L", "large memory pages"),
            (self.napi_ids.is_some(), "-N", "NAPI ids"),
        ] {
            if given {
                bail!("{flag} is not supported: {what}");
            }
        }
        Ok(())
    }

    /// Returns the protocols that are spoken, and the users who may log in.
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
                let path = self
                    .users_file()
                    .context("-S needs a file of lines user:password, named by MEMCACHED_SASL_PWDB")?;
                Ok((Protocol::Binary, Some(Credentials::read(&path)?)))
            }
        }
    }

    fn users_file(&self) -> Option<PathBuf> {
        let sasl = || std::env::var_os("MEMCACHED_SASL_PWDB").filter(|_| self.enable_sasl).map(PathBuf::from);
        self.auth_file.clone().or_else(sasl)
    }

    fn config(
        &self,
        settings: &MemcachedSettings,
        extended: &Extended,
        connection_memory: u64,
    ) -> Result<Config> {
        /// Bytes of a request beside its value: a get of many keys, for example.
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
            balancing: (!extended.still).then_some(balancing),
            io: extended.io,
            datagram_steering: extended.steering.then(|| DatagramSteering {
                hash: KeyHash::new(settings.hash_secret),
                by_vbucket: settings.by_vbucket,
            }),
            listen: self.places(extended)?,
            // memcached's sockets of IPv6 never take IPv4. Without `-l`, one socket takes both.
            ipv6_only: !self.listen.is_empty(),
            limits: Limits {
                connections: self.conn_limit as usize,
                idle: (extended.idle_timeout > 0).then(|| Duration::from_secs(extended.idle_timeout.into())),
                input_bytes: settings.item_size_max as usize + REQUEST_BYTES_BESIDE,
                memory_bytes: usize::try_from(connection_memory).unwrap_or(usize::MAX),
                backlog: u16::try_from(self.listen_backlog).unwrap_or(u16::MAX),
                turn: settings.requests_per_turn,
                ..Limits::default()
            },
            processors: extended.processors.clone(),
            ..Config::default()
        };
        config.check()?;
        Ok(config)
    }
}

/// Returns the default bytes that connections may hold in all: a part of the item memory, and enough for a few of the
/// largest items, each of which may exist as a request, as its copy for another thread, and as a reply.
fn connection_memory(items: u64, item_size_max: u64) -> u64 {
    const PART: u64 = 4;
    const LEAST: u64 = 32 << 20;
    (items / PART).max(LEAST).max(item_size_max * ITEMS_OF_CONNECTIONS)
}

/// The least number of largest items that the memory of connections holds.
const ITEMS_OF_CONNECTIONS: u64 = 4;

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

/// Returns a secret random number, so that an attacker cannot choose keys that collide.
fn secret() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests;
