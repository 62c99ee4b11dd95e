//! [`WorkloadCheck`]: the facts against which a workload's parameters are checked, and the findings, to which the
//! scenario adds file and line.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use std::ops::Range;

use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Rate, Span};

use crate::distribution::{Distribution, DistributionError, DrawnQuantity};
use crate::facts::{Inside, NetworkFacts, TopologyCut};
use crate::hosts::{HostName, HostSet};

/// The size of the largest IP packet.
pub(crate) const PACKET_MAX: Bytes = Bytes::new(65_535);

/// An exponential distribution has one draw in a thousand above this many times its mean.
const CUT_FROM: f64 = 6.9;

/// The largest `transport.header`.
const HEADER_MAX: u64 = 500;

/// The most retrievals of a page, and the most requests that a client keeps in flight.
const MANY: u64 = 1_000_000;

/// The number of host names that are compared for the nearest spelling.
const NAMES_MAX: u32 = 1_000;

/// Reads the files that a workload names; their paths are relative to the scenario.
pub trait FileReader {
    /// Returns the text of a small file, such as a distribution.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is too large.
    fn read(&self, name: &str) -> io::Result<String>;

    /// Returns the text of a flow list, which may be larger than other files.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is too large.
    fn read_flow_list(&self, name: &str) -> io::Result<String>;

    /// Opens the file of a job.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or is too large.
    fn open_job(&self, name: &str) -> io::Result<JobFile<'_>>;
}

/// A value of a workload's table that is invalid, or valid and probably not meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidWorkload {
    /// The dotted key within the workload's table, such as `servers.2`; empty for the table itself.
    pub key: String,
    /// The problem in words, with the value.
    pub problem: String,
    /// The allowed values in words; `None` where the problem says them.
    pub allowed: Option<String>,
    /// Advice: the nearest spelling, or the change to make.
    pub help: Option<String>,
    /// The place in another file, if the value is in a file that the table names.
    pub place: Option<FilePlace>,
}

/// A place in a file that a workload names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePlace {
    /// The name of the file as the scenario writes it.
    pub file: String,
    /// The bytes of the file that are wrong, or of `line`; `None` where `line`, or the first one without it, is wrong
    /// and must not be quoted, because the file may be of any kind.
    pub span: Option<Range<usize>>,
    /// The line with the place, of a file that may be too long to be read again, or without its text where it must not
    /// be quoted.
    pub line: Option<NumberedLine>,
}

/// A line of a file with its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedLine {
    /// Its number, from 1 on.
    pub number: usize,
    /// Its text, without its end.
    pub text: String,
}

/// A file of a job, which may be too long for memory.
pub struct JobFile<'a> {
    /// The text, read as it is needed.
    pub input: Box<dyn BufRead + 'a>,
    /// Whether the scenario keeps the text, as it does with other files.
    pub is_kept: bool,
}

/// The demand of a checked workload, which the scenario sums over workloads.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkloadDemand {
    /// Whether the workload stops by itself: `count`, `size` or `rounds` is given.
    pub ends: bool,
    /// The time at which the workload may send its first message.
    pub start: Span,
    /// The load that some hosts send to others.
    pub directed: Option<Directed>,
    /// The bits per second that each host sends to all others.
    pub between_all: f64,
}

/// Traffic from some hosts to others, spread evenly over both.
#[derive(Clone, PartialEq, Debug)]
pub struct Directed {
    /// The numbers of the sending hosts.
    pub from: Vec<u32>,
    /// The numbers of the receiving hosts.
    pub to: Vec<u32>,
    /// The bits per second of all together.
    pub bits: f64,
}

impl Directed {
    /// Returns the traffic from `from` to `to` of `bits` per second in all; `None` without hosts, or if its rate is
    /// unknown.
    pub fn new(from: Vec<u32>, to: impl IntoIterator<Item = u32>, bits: Option<f64>) -> Option<Directed> {
        let to: Vec<u32> = to.into_iter().collect();
        let bits = bits.filter(|bits| *bits > 0.0 && bits.is_finite())?;
        (!from.is_empty() && !to.is_empty()).then_some(Directed { from, to, bits })
    }
}

/// Checks the parameters of one workload and collects the findings.
pub struct WorkloadCheck<'a> {
    facts: &'a dyn NetworkFacts,
    files: &'a dyn FileReader,
    /// The invalid values that were found so far.
    pub errors: Vec<InvalidWorkload>,
    /// The values that are allowed and probably not meant.
    pub warnings: Vec<InvalidWorkload>,
    /// The key of the longest message so far, and its bytes; `None` for distributions without a bound.
    pub longest: Option<(String, f64)>,
}

impl<'a> WorkloadCheck<'a> {
    /// Returns a check of one workload's parameters, without findings yet.
    pub fn new(facts: &'a dyn NetworkFacts, files: &'a dyn FileReader) -> WorkloadCheck<'a> {
        WorkloadCheck { facts, files, errors: Vec::new(), warnings: Vec::new(), longest: None }
    }

    /// Returns the facts about the network.
    pub fn facts(&self) -> &'a dyn NetworkFacts {
        self.facts
    }

    /// Reports an invalid value of `key`, with the allowed values in words.
    pub fn error(&mut self, key: &str, problem: impl Into<String>, allowed: impl Into<String>) {
        self.errors.push(InvalidWorkload::new(key, problem, Some(allowed.into()), None));
    }

    /// Reports a value that is allowed and probably not meant.
    pub fn warn(&mut self, key: &str, problem: impl Into<String>, help: impl Into<String>) {
        self.warnings.push(InvalidWorkload::new(key, problem, None, Some(help.into())));
    }

    /// Returns the text of a flow list that a key names, or reports that it cannot be read.
    pub fn flow_list(&mut self, key: &str, file: &str) -> Option<String> {
        match self.files.read_flow_list(file) {
            Ok(text) => Some(text),
            Err(error) => {
                let problem = format!("cannot read \"{file}\": {error}");
                self.error(key, problem, "a file, its path relative to the scenario");
                None
            }
        }
    }

    /// Opens the file of a job that a key names, or reports that it cannot be read.
    pub fn job_file(&mut self, key: &str, file: &str) -> Option<Box<dyn BufRead + 'a>> {
        match self.files.open_job(file) {
            Ok(JobFile { input, is_kept }) => {
                if !is_kept {
                    let problem = format!("\"{file}\" is too long to be kept with results");
                    self.warn(key, problem, "keep the file: a run directory does not have it");
                }
                Some(input)
            }
            Err(error) => {
                let problem = format!("cannot read \"{file}\": {error}");
                self.error(key, problem, "a file, its path relative to the scenario");
                None
            }
        }
    }

    /// Returns the number of a host, or reports the nearest name.
    pub fn host(&mut self, key: &str, name: &HostName) -> Option<u32> {
        self.host_named(key, &name.0)
    }

    fn host_named(&mut self, key: &str, name: &str) -> Option<u32> {
        let found = self.facts.host(name);
        if found.is_none() {
            self.errors.push(unknown_host(self.facts, key, name));
        }
        found
    }

    /// Returns the hosts of a selection; an empty selection, unknown hosts and the host at the other end are errors.
    pub fn hosts(&mut self, key: &str, hosts: &HostSet, other: Option<u32>) -> Vec<u32> {
        self.host_names(key, hosts);
        let Ok(found) = hosts.resolve(self.facts, other) else { return Vec::new() };
        self.some_hosts(key, &found, other.as_slice());
        found
    }

    /// Returns the hosts of a selection that takes each of them once; an empty selection, unknown hosts, a host named
    /// twice and hosts at the other end are errors.
    pub fn members(&mut self, key: &str, hosts: &HostSet, others: &[u32]) -> Vec<u32> {
        self.host_names(key, hosts);
        let Ok(found) = hosts.resolve_except(self.facts, others) else { return Vec::new() };
        self.some_hosts(key, &found, others);
        let mut known = BTreeSet::new();
        if let Some(&host) = found.iter().find(|&&host| !known.insert(host)) {
            let problem = format!("host `{}` is named twice", self.facts.host_name(host));
            self.error(key, problem, "each host once");
        }
        found
    }

    fn host_names(&mut self, key: &str, hosts: &HostSet) {
        match hosts {
            HostSet::List(names) => {
                for (index, name) in names.iter().enumerate() {
                    self.host(&format!("{key}.{index}"), name);
                }
            }
            HostSet::Selector(text) if text != "all" => match text.split_once("..") {
                Some((first, last)) => {
                    self.host_named(key, first.trim());
                    self.host_named(key, last.trim());
                }
                None => {
                    self.host_named(key, text);
                }
            },
            HostSet::Selector(_) | HostSet::Others => {}
        }
    }

    fn some_hosts(&mut self, key: &str, found: &[u32], others: &[u32]) {
        if found.is_empty() {
            self.error(key, "no host is left", "at least one host");
        }
        let known: BTreeSet<u32> = found.iter().copied().collect();
        if let Some(&other) = others.iter().find(|other| known.contains(other)) {
            let problem = format!("host `{}` would talk to itself", self.facts.host_name(other));
            self.error(key, problem, "hosts other than the one at the other end; \"others\" leaves it out");
        }
    }

    /// Reports an error if `number` is 0; `problem` describes the effect of a 0.
    pub fn at_least_one(&mut self, key: &str, number: u64, problem: &str) {
        if number == 0 {
            self.error(key, problem, "at least 1");
        }
    }

    /// Reports a number that is 0 or more than a million; `things` is the plural of the counted things.
    pub fn one_to_many(&mut self, key: &str, number: u64, things: &str) {
        if !(1..=MANY).contains(&number) {
            self.error(key, format!("{number} {things}"), format!("1 to {MANY}"));
        }
    }

    /// Reports a list of numbers whose sum is not 1 to a million.
    pub fn levels(&mut self, key: &str, levels: &[u32]) -> u64 {
        let total: u64 = levels.iter().map(|&level| u64::from(level)).sum();
        if levels.is_empty() || levels.contains(&0) || total > MANY {
            let problem = format!("levels with {levels:?} retrievals");
            self.error(key, problem, format!("one level or more, each 1 to {MANY} in all"));
        }
        total
    }

    /// Reports a rate of events that is not positive; `things` is the plural of the events.
    pub fn per_second(&mut self, key: &str, rate: f64, things: &str) -> bool {
        let positive = rate > 0.0 && rate.is_finite();
        if !positive {
            self.error(key, format!("{rate} {things} per second"), "more than 0");
        }
        positive
    }

    /// Reports an error if `interval` is 0.
    pub fn interval(&mut self, key: &str, interval: Span) {
        if interval.is_zero() {
            self.error(key, "all at once", "more than 0s");
        }
    }

    /// Reports an error if `timeout` is 0.
    pub fn timeout(&mut self, key: &str, timeout: Span) {
        if timeout.is_zero() {
            self.error(key, "every answer is late", "more than 0s");
        }
    }

    /// Reports an error if a deadline is given and 0.
    pub fn deadline(&mut self, key: &str, deadline: Option<Span>) {
        if deadline == Some(Span::ZERO) {
            self.error(key, "every response misses a deadline of 0s", "more than 0s");
        }
    }

    /// Reports an error if messages of `size` have 0 bytes.
    pub fn some_bytes(&mut self, key: &str, size: Bytes) {
        if size == Bytes::ZERO {
            self.error(key, "a message without bytes", "at least 1B");
        }
        self.may_be_longest(key, size.get() as f64);
    }

    /// Takes note of a message of `bytes` bytes.
    pub fn may_be_longest(&mut self, key: &str, bytes: f64) {
        if self.longest.as_ref().is_none_or(|(_, longest)| bytes > *longest) {
            self.longest = Some((key.to_owned(), bytes));
        }
    }

    /// Reports a message that does not fit into one packet, to which the transport's header is added.
    pub fn one_packet(&mut self, key: &str, size: Bytes) {
        self.some_bytes(key, size);
        let most = PACKET_MAX.get() - HEADER_MAX;
        if size.get() > most {
            self.error(key, format!("{size} in one packet"), format!("at most {most}B"));
        }
    }

    /// Reports sizes of raw packets, header included, that no IP packet has. Draws of a distribution without a bound
    /// are cut there, which is a warning where one in a thousand may be.
    pub fn raw_packet(&mut self, key: &str, size: &Distribution<Bytes>) {
        let (most, allowed) = (PACKET_MAX.get() as f64, format!("at most {}B", PACKET_MAX.get()));
        match (size.largest(), size) {
            (Some(largest), _) if largest > most => {
                let which = if matches!(size, Distribution::Constant(_)) { "" } else { "up to " };
                self.error(key, format!("a packet of {which}{}", Bytes::new(largest as u64)), allowed);
            }
            (None, size) if size.known_mean().is_some_and(|mean| mean > most / CUT_FROM) => {
                self.warn(key, "packets of more than 65535B are cut to that", "a smaller mean, or a bound");
            }
            _ => {}
        }
    }

    /// Checks a distribution and loads its points.
    pub fn distribution<Q: DrawnQuantity>(&mut self, key: &str, distribution: &mut Distribution<Q>) {
        if let Distribution::Constant(value) = distribution
            && Q::NAME == "size"
            && value.to_f64() == 0.0
        {
            return self.error(key, "a message without bytes", "at least 1B");
        }
        match distribution.validate().and_then(|()| distribution.load(&|name| self.files.read(name))) {
            Ok(()) => {
                if let Some(largest) = distribution.largest().filter(|_| Q::NAME == "size") {
                    self.may_be_longest(key, largest);
                }
            }
            Err(DistributionError::Parameter { key: inner, value, allowed }) => {
                self.error(&format!("{key}.{inner}"), format!("{value} does not fit"), allowed);
            }
            Err(DistributionError::Choice { message, allowed }) => self.error(key, message, allowed),
            Err(DistributionError::Cdf(error)) => {
                let key = format!("{key}.{}", error.key);
                self.errors.push(InvalidWorkload::new(&key, error.message, error.allowed, error.help));
            }
        }
    }

    /// Returns the bits per second of a load; a load above 1 is a warning. Without a link (an unknown host) the load is
    /// not checked.
    pub fn load(&mut self, key: &str, load: Load, link: Option<Rate>) -> f64 {
        let Some(link) = link else { return 0.0 };
        let bits = load.bits_per_second(link);
        if !(bits > 0.0 && bits.is_finite()) {
            self.error(key, format!("a load of {load}"), "a share more than 0, or a rate more than 0bps");
        } else if link > Rate::ZERO && load.share_of(link) > 1.0 {
            let problem = format!("load {:.3} of a link of {link}", load.share_of(link));
            self.warn(key, problem, "queues grow as long as the run lasts; lower the load");
        }
        bits
    }

    /// Warns of a server that cannot keep up with its requests; the service time is in picoseconds.
    pub fn service(&mut self, key: &str, per_second: f64, service_ps: f64) {
        let busy = per_second * service_ps / 1e12;
        if busy >= 1.0 {
            let problem = format!("each server is asked to work {busy:.3} of its time");
            self.warn(
                key,
                problem,
                "its queue grows as long as the run lasts; lower the load or add servers",
            );
        }
    }
}

/// Returns the links between tiers that are loaded most, and the load as a share of their capacity: each host sends
/// `between_all` bits per second to all others, and some hosts send to others beside.
pub fn busiest_cut(
    facts: &dyn NetworkFacts,
    between_all: f64,
    directed: &[Directed],
) -> Option<(&'static str, f64)> {
    let all = f64::from(facts.host_count());
    // The traffic that `inside` hosts send to all others.
    let leaving = |inside: f64| between_all * inside * (all - inside) / (all - 1.0);
    let share = |cut: TopologyCut| {
        let load = leaving(cut.inside.len() as f64) + most_across(&cut.inside, directed);
        (cut.links, load / cut.bits_per_second)
    };
    facts.cuts().into_iter().map(share).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns the bits per second that enter or leave the busiest group of hosts.
fn most_across(inside: &Inside, directed: &[Directed]) -> f64 {
    // The bits per second that leave and that enter each group.
    let mut across = BTreeMap::<u32, [f64; 2]>::new();
    for Directed { from, to, bits } in directed {
        let mut shares = BTreeMap::<u32, [f64; 2]>::new();
        for (side, hosts) in [from, to].into_iter().enumerate() {
            for group in hosts.iter().filter_map(|host| inside.group_of(*host)) {
                shares.entry(group).or_default()[side] += 1.0 / hosts.len() as f64;
            }
        }
        for (group, [sends, receives]) in shares {
            let [leaves, enters] = across.entry(group).or_default();
            *leaves += bits * sends * (1.0 - receives);
            *enters += bits * receives * (1.0 - sends);
        }
    }
    across.into_values().flatten().fold(0.0, f64::max)
}

impl InvalidWorkload {
    pub(crate) fn new(
        key: &str,
        problem: impl Into<String>,
        allowed: Option<String>,
        help: Option<String>,
    ) -> InvalidWorkload {
        InvalidWorkload { key: key.to_owned(), problem: problem.into(), allowed, help, place: None }
    }
}

/// Returns the report that no host has a name, with the nearest one.
pub fn unknown_host(facts: &dyn NetworkFacts, key: &str, name: &str) -> InvalidWorkload {
    let count = facts.host_count();
    let names: Vec<String> = (0..count.min(NAMES_MAX)).map(|host| facts.host_name(host)).collect();
    let help = did_you_mean(name, names.iter().map(String::as_str).chain(["client"]));
    let last = facts.host_name(count.saturating_sub(1));
    let allowed = format!("\"client\", \"{}\" to \"{last}\"", facts.host_name(0));
    InvalidWorkload::new(key, format!("there is no host `{name}`"), Some(allowed), help)
}
