//! Parses the extended options, which `-o` takes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plimsoll_chronos::{AcrossNodes, Balancing, ClientVerification, IoBackend, LoadMetric, Poll, TlsFiles};
use plimsoll_process::note;
use plimsoll_units::Span;

/// The part of `-h` about them.
pub const EXTENDED_HELP: &str = "\
Extended options (-o):
  idle_timeout=<seconds>       close connections that say nothing (default: 0, never)
  lru_crawler, no_lru_crawler  whether idle threads look for expired items (default: they do; no_modern: they do not)
  chronos_partitions=<num>     parts that the data is split into (default: 16 for each thread, 16 groups \
with split; fewer
                               with little memory)
  chronos_poll=block|spin      what a thread without work does; spinning needs a processor for each (default: block)
  chronos_balance=on|paper|split[:<ways>]|off
                               move partitions away from overloaded threads; paper does so without asking whether
                               chance explains the load, split in groups of 8 or <ways> (2 to 64), which are split while
                               they are hot (default: on)
  chronos_numa=on|strict|off   threads pinned to processors of several NUMA nodes: on moves partitions across only when
                               a whole node is overloaded, strict never, off as within a node (default: on, off for
                               paper)
  chronos_epoch=<time>         how often, such as 50us or 1ms (default: 50us spinning, 1ms blocking)
  chronos_metric=requests|bytes|time
                               what load is (default: requests)
  chronos_pin=<num>:<num>...   processors that threads are pinned to (default: none)
  chronos_io=epoll|uring|fastest
                               how threads talk to the kernel; fastest is uring where the kernel has it \
(default: fastest)
  chronos_steering=on|off      have the kernel, or chronos_xdp's program before it, deliver a datagram to the
                               thread that owns its key (default: off)
  chronos_vbuckets=on|off      a binary request belongs to the partition that its vBucket field names, modulo their
                               number, so that clients choose it; all requests for a key must name the same (default:
                               off, the partition of its key)
  chronos_xdp=<device>:<device>...
                               take the datagrams that come by these network devices past the kernel's stack; with -U,
                               for addresses (-l) of theirs (default: none)
  chronos_connection_memory=<num>
                               megabytes that connections may hold in all: requests that are not whole, and replies that
                               are not fetched (default: a quarter of -m, 32 and four times -I at least)
  chronos_udp_amplification=<num>
                               bytes of a reply over UDP for each byte of its request; a longer reply is an error, or
                               none (default: 0, any number)
  ssl_chain_cert=<file>        certificate chain in PEM, with -Z
  ssl_key=<file>               private key in PEM, with -Z (default: in the file of the chain)
  ssl_ca_cert=<file>           certificates in PEM of the authorities that may sign those of clients
  ssl_verify_mode=0|1|2|3      certificates of clients: not asked for, verified if shown, or required (2 and 3, which
                               are one here) (default: 0)
memcached's other extended options are accepted, and have no effect here; each says so.";

/// memcached's extended options for parts that this server does not have.
const WITHOUT_EFFECT: [&str; 41] = [
    "maxconns_fast",
    "hashpower",
    "tail_repair_time",
    "hash_algorithm",
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
    "slab_reassign",
    "slab_automove",
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "inline_ascii_resp",
    "resp_obj_mem_limit",
    "sock_cookie_id",
    "lru_segmented",
    "no_lru_maintainer",
    "no_hashexpand",
    "no_maxconns_fast",
    "no_slab_reassign",
    "no_inline_ascii_resp",
    "drop_privileges",
    "no_drop_privileges",
    "no_slab_automove",
    "no_chunked_items",
    "slab_sizes",
    "ssl_wbuf_size",
    "ssl_session_cache",
    "ssl_kernel_tls",
    // An option of memcached's debugging build, whose tests pass it.
    "relaxed_privileges",
];
/// memcached's options that turn the search for expired items on or off.
const CRAWLER: [&str; 4] = ["lru_crawler", "no_lru_crawler", "modern", "no_modern"];
/// memcached's TLS options, with the values that this server already satisfies.
const MET: [(&str, &[&str]); 2] = [("ssl_keyformat", &["1"]), ("ssl_min_version", &["0", "1", "2"])];
const WITH_EFFECT: [&str; 18] = [
    "idle_timeout",
    "chronos_partitions",
    "chronos_poll",
    "chronos_balance",
    "chronos_numa",
    "chronos_epoch",
    "chronos_metric",
    "chronos_pin",
    "chronos_io",
    "chronos_steering",
    "chronos_vbuckets",
    "chronos_xdp",
    "chronos_connection_memory",
    "chronos_udp_amplification",
    "ssl_chain_cert",
    "ssl_key",
    "ssl_ca_cert",
    "ssl_verify_mode",
];

/// The values of the extended options (`-o`).
#[derive(Default)]
pub struct Extended {
    /// True if idle threads do not look for expired items, until a client enables it.
    pub no_crawler: bool,
    /// Seconds after which a silent connection is closed, 0 for never.
    pub idle_timeout: u32,
    /// The number of partitions.
    pub partitions: Option<u32>,
    /// Behaviour of a thread without work.
    pub poll: Poll,
    /// True if partitions do not move.
    pub still: bool,
    /// True if partitions move as in the paper, without asking whether chance explains the load.
    pub as_printed: bool,
    /// The number of partitions that move as a group, which is split while it is hot.
    pub split: Option<u32>,
    /// Whether partitions move from one NUMA node to another.
    pub across_nodes: Option<AcrossNodes>,
    /// The interval at which load is examined.
    pub epoch: Option<Duration>,
    /// The quantity that counts as load.
    pub metric: LoadMetric,
    /// The processors that threads are pinned to.
    pub processors: Vec<usize>,
    /// How threads talk to the kernel.
    pub io: IoBackend,
    /// True if the kernel delivers datagrams to their owners.
    pub steering: bool,
    /// True if a binary request's vBucket field selects its partition.
    pub by_vbucket: bool,
    /// Network devices whose datagrams bypass the kernel's stack.
    pub devices: Vec<String>,
    /// Bytes that connections may hold in all.
    pub connection_memory: Option<usize>,
    /// Bytes of a reply for each byte of the datagram that it answers, 0 for any number.
    pub udp_amplification: u32,
    /// A certificate chain in PEM.
    pub certificate: Option<PathBuf>,
    /// Certificates in PEM with which clients' certificates are verified, if `verification` asks for that.
    pub authority: Option<PathBuf>,
    /// memcached's mode of verification: 0 none, 1 of clients that show a certificate, 2 and 3 of all clients.
    pub verification: u32,
    /// Bytes of memcached's buffer for TLS.
    pub tls_write_bytes: Option<u32>,
    /// A private key in PEM.
    pub key: Option<PathBuf>,
}

impl Extended {
    /// Reads the options, word by word.
    ///
    /// # Errors
    /// If an option is wrong; the error names the option and the allowed values.
    pub fn read(words: &[String]) -> Result<Extended> {
        let mut extended = Extended::default();
        for word in words.iter().filter(|word| !word.is_empty()) {
            let (name, value) =
                word.split_once('=').map_or((&word[..], None), |(name, value)| (name, Some(value)));
            if MET
                .iter()
                .any(|(met, values)| *met == name && value.is_some_and(|value| values.contains(&value)))
            {
                continue;
            }
            // In KiB, and shown in `stats settings` only.
            if name == "ssl_wbuf_size" {
                let bytes = value
                    .and_then(|value| value.parse::<u32>().ok())
                    .and_then(|number| number.checked_mul(1 << 10));
                extended.tls_write_bytes =
                    Some(bytes.context("-o ssl_wbuf_size: a number of KiB is allowed")?);
            }
            // A user who asks for these wants security: starting without them would be worse than not starting.
            if name.starts_with("ssl_") && !WITH_EFFECT.contains(&name) && !WITHOUT_EFFECT.contains(&name) {
                bail!("-o {name} is not supported: TLS 1.2 and 1.3, with the ciphers of their library");
            }
            // The last one counts, as with memcached.
            match name {
                "lru_crawler" | "modern" => extended.no_crawler = false,
                "no_lru_crawler" | "no_modern" => extended.no_crawler = true,
                _ => {}
            }
            if CRAWLER.contains(&name) {
                continue;
            }
            if WITHOUT_EFFECT.contains(&name) || name.starts_with("ext_") {
                note!(
                    "-o {name} has no effect: it steers a part of memcached that this server does not have"
                );
                continue;
            }
            if !WITH_EFFECT.contains(&name) {
                let near = nearest(name, &[&WITH_EFFECT[..], &WITHOUT_EFFECT, &CRAWLER].concat());
                bail!("-o {name}: there is no such option; did you mean {near}?");
            }
            let value = value.with_context(|| format!("-o {name} needs a value: {name}=..."))?;
            extended.set(name, value).with_context(|| format!("-o {name}={value}"))?;
        }
        if extended.verification == 0 && extended.authority.is_some() {
            note!(
                "-o ssl_ca_cert has no effect without ssl_verify_mode: clients are asked for no certificates"
            );
        }
        Ok(extended)
    }

    /// Returns the files of the certificate chain, of the private key, and of the authorities of clients.
    ///
    /// # Errors
    /// If the chain is missing, or the authorities are and clients are to be verified.
    pub fn tls_files(&self) -> Result<TlsFiles> {
        let chain = self.certificate.clone().context("-Z needs -o ssl_chain_cert=<file>,ssl_key=<file>")?;
        let key = self.key.clone().unwrap_or_else(|| chain.clone());
        let mode = self.verification;
        let clients = match (mode, &self.authority) {
            (0, _) => None,
            (_, None) => {
                bail!(
                    "-o ssl_verify_mode={mode} needs -o ssl_ca_cert=<file>, with which clients are verified"
                )
            }
            (_, Some(path)) => Some(ClientVerification { authorities: path.clone(), required: mode > 1 }),
        };
        Ok(TlsFiles { chain, key, clients })
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
            ("chronos_balance", _) => self.set_balance(value)?,
            ("chronos_numa", "on") => self.across_nodes = Some(AcrossNodes::Overloaded),
            ("chronos_numa", "strict") => self.across_nodes = Some(AcrossNodes::Never),
            ("chronos_numa", "off") => self.across_nodes = Some(AcrossNodes::Freely),
            ("chronos_numa", _) => {
                bail!(
                    "on, strict and off are allowed; did you mean {}?",
                    nearest(value, &["on", "strict", "off"])
                )
            }
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
            ("chronos_vbuckets", "on") => self.by_vbucket = true,
            ("chronos_vbuckets", "off") => self.by_vbucket = false,
            ("chronos_xdp", _) => {
                self.devices = value.split(':').map(str::to_owned).collect();
                if self.devices.iter().any(String::is_empty) {
                    bail!(allowed("names of network devices with ':' between"));
                }
            }
            ("chronos_connection_memory", _) => {
                let bytes = value.parse::<usize>().ok().filter(|&megabytes| megabytes > 0);
                let bytes = bytes.and_then(|megabytes| megabytes.checked_mul(1 << 20));
                self.connection_memory = Some(bytes.with_context(|| allowed("1 and more megabytes"))?);
            }
            ("chronos_udp_amplification", _) => {
                self.udp_amplification = value.parse().with_context(|| allowed("whole numbers"))?;
            }
            ("ssl_chain_cert", _) => self.certificate = Some(PathBuf::from(value)),
            ("ssl_key", _) => self.key = Some(PathBuf::from(value)),
            ("ssl_ca_cert", _) => self.authority = Some(PathBuf::from(value)),
            ("ssl_verify_mode", _) => {
                let mode = value.parse().ok().filter(|mode| *mode <= 3);
                self.verification =
                    mode.with_context(|| allowed("0 (none), 1 (if shown), 2 and 3 (required)"))?;
            }
            _ => bail!(allowed("on and off")),
        }
        Ok(())
    }

    fn set_balance(&mut self, value: &str) -> Result<()> {
        let (word, ways) = value.split_once(':').map_or((value, None), |(word, ways)| (word, Some(ways)));
        (self.still, self.as_printed, self.split) = match (word, ways) {
            ("on", None) => (false, false, None),
            ("paper", None) => (false, true, None),
            ("off", None) => (true, false, None),
            ("split", None) => (false, false, Some(Balancing::WAYS)),
            ("split", Some(ways)) => match ways.parse() {
                Ok(ways @ 2..=Balancing::WAYS_MAX) => (false, false, Some(ways)),
                _ => bail!("2 to {} partitions a group are allowed", Balancing::WAYS_MAX),
            },
            _ => {
                let near = nearest(word, &["on", "paper", "split", "off"]);
                bail!("on, paper, split, split:<ways> and off are allowed; did you mean {near}?");
            }
        };
        Ok(())
    }
}

fn nearest<'a>(word: &str, known: &[&'a str]) -> &'a str {
    known.iter().min_by_key(|known| strsim::levenshtein(known, word)).expect("there are some")
}

fn duration(text: &str) -> Result<Duration> {
    let span: Span = text.parse()?;
    // The balancer's clock counts nanoseconds.
    match span.as_ps() / 1000 {
        0 => bail!("a length of time above 0, such as 50us or 1ms, is allowed"),
        nanoseconds => Ok(Duration::from_nanos(nanoseconds)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Every option that memcached's own help names, in the form `- name:`, is accepted, or refused because it asks for
    /// more than TLS has here.
    #[test]
    fn memcacheds_options_are_known() {
        let words = |text: &str| Extended::read(&[text.to_owned()]);
        // Options that its help leaves out.
        let mut names: Vec<String> =
            ["no_drop_privileges", "no_slab_automove", "no_chunked_items", "slab_sizes=100-200", "no_modern"]
                .map(str::to_owned)
                .to_vec();
        match Command::new("memcached").arg("-h").output() {
            Err(_) => plimsoll_testing::skipped!(
                "memcached's help: it is not installed (apt-get install memcached)"
            ),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let of_line = |line: &str| Some(line.strip_prefix("   - ")?.split_once(':')?.0.to_owned());
                names.extend(text.lines().filter_map(of_line).filter(|name| !name.starts_with("ssl_c")));
                assert!(names.len() > 40, "{text}");
            }
        }
        for name in names {
            let value = match &*name {
                "idle_timeout" => "=5",
                "ssl_key" => "=key.pem",
                "ssl_verify_mode" => "=0",
                "ssl_keyformat" => "=1",
                "ssl_wbuf_size" => "=16",
                "ssl_min_version" => "=2",
                _ => "",
            };
            if name.starts_with("External storage") {
                continue;
            }
            words(&format!("{name}{value}")).expect(&name);
        }
        for refused in ["ssl_ciphers=x", "ssl_min_version=3"] {
            let error = words(refused).err().expect(refused).to_string();
            assert!(error.contains("not supported"), "{refused}: {error}");
        }
    }
}
