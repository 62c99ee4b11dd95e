//! The servers of a point that take turns, as plain data: the programs, and the way of requests to them.

use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use crate::parameters::{self, Parameters};
use crate::task::TaskPoint;

/// A server that takes turns with others.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// Its name in the rows.
    pub(crate) series: &'static str,
    /// The program that is started.
    pub(crate) program: ServerProgram,
    /// Threads of each process.
    pub(crate) threads: u32,
    /// Processes; keys are shared out to them.
    pub(crate) processes: u32,
    /// Words of its command line beyond the common ones.
    pub(crate) options: Vec<String>,
    /// The way on which requests reach it.
    pub(crate) stack: RequestPath,
    /// Whether a job beside it receives bulk streams during the measurement.
    pub(crate) has_neighbour: bool,
    /// The servers that its numbers are set beside.
    pub(crate) beside: Vec<Beside>,
}

/// A server, as the table `servers` of a study describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServerFile {
    program: ServerProgram,
    #[serde(default = "one")]
    threads: u32,
    #[serde(default = "one")]
    processes: u32,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    stack: RequestPath,
    #[serde(default)]
    has_neighbour: bool,
    /// Servers of the same rounds, by the name that ratios have for each; one beside a job is set beside these alone,
    /// any other beside the first server, too.
    #[serde(default)]
    beside: Table,
    /// Words of the load beyond the figure's, for this server alone.
    #[serde(default)]
    words: Vec<String>,
    /// The server as the model of the machine has it, which is read elsewhere.
    #[serde(default, rename = "model")]
    _model: Table,
}

fn one() -> u32 {
    1
}

/// The servers of a study that take turns, in their order, and the words of the load that each has for itself.
pub(crate) type SideGroup = (Vec<Side>, Vec<Vec<String>>);

/// The way on which requests reach a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RequestPath {
    /// TCP over the loopback.
    #[default]
    Loopback,
    /// TCP over a veth pair.
    Streams,
    /// UDP over a veth pair, through the kernel's stack.
    Kernel,
    /// UDP over a veth pair, past the kernel's stack by AF_XDP.
    Bypassed,
}

/// Another server of the same rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beside {
    /// Its place in the order of the servers.
    pub(crate) place: usize,
    /// The name that ratios have for it: `p99_of_first`.
    pub(crate) name: &'static str,
}

impl RequestPath {
    /// Returns whether requests come by TCP; by UDP if not.
    pub(crate) fn is_tcp(self) -> bool {
        matches!(self, RequestPath::Loopback | RequestPath::Streams)
    }
}

impl Beside {
    /// The first server of a figure.
    pub(crate) const FIRST: Beside = Beside { place: 0, name: "first" };
}

/// A program that answers memcached's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServerProgram {
    /// memcached, from the system.
    Memcached,
    /// chronos-memcached, from the folder of the servers.
    Chronos,
    /// chronos-memcached-locked, the lock baselines, from the same folder.
    ChronosLocked,
    /// chronos-search, an index by memcached's protocol, from the same folder.
    Search,
    /// chronos-search-locked, its lock baselines, from the same folder.
    SearchLocked,
}

impl ServerProgram {
    /// Returns the name of a program of this project; None for memcached.
    pub(crate) fn built(self) -> Option<&'static str> {
        match self {
            ServerProgram::Memcached => None,
            ServerProgram::Chronos => Some("chronos-memcached"),
            ServerProgram::ChronosLocked => Some("chronos-memcached-locked"),
            ServerProgram::Search => Some("chronos-search"),
            ServerProgram::SearchLocked => Some("chronos-search-locked"),
        }
    }
}

impl Side {
    /// Reads the groups of servers that take turns with each other, from the key `groups`.
    ///
    /// # Errors
    /// Returns an error if a server is not in the study's table, or its keys are wrong.
    pub(crate) fn groups(parameters: &mut Parameters) -> Result<Vec<SideGroup>, String> {
        let groups = parameters.with.remove("groups").unwrap_or(Value::Array(Vec::new()));
        let groups: Vec<Vec<String>> =
            groups.try_into().map_err(|error: toml::de::Error| format!("groups: {error}"))?;
        let group = |names: &Vec<String>| {
            let names: Vec<&'static str> = names.iter().map(|name| &*name.clone().leak()).collect();
            names
                .iter()
                .enumerate()
                .map(|(place, name)| Side::read(parameters, place, name, &names))
                .collect()
        };
        groups.iter().map(group).collect()
    }

    /// Reads a server of a group. Names are kept as long as the program runs, as studies are.
    fn read(
        parameters: &Parameters,
        place: usize,
        series: &'static str,
        group: &[&'static str],
    ) -> Result<(Side, Vec<String>), String> {
        let wrong = |problem: String| format!("server `{series}`: {problem}");
        let file: ServerFile = parameters::read(parameters.server(series)?).map_err(wrong)?;
        let mut beside = Vec::new();
        if place > 0 && !file.has_neighbour {
            beside.push(Beside::FIRST);
        }
        for (name, other) in file.beside {
            let other = other.as_str().and_then(|other| group.iter().position(|known| *known == other));
            let place = other.ok_or_else(|| {
                wrong(format!("`beside.{name}` is no server of its group; allowed: {}", group.join(", ")))
            })?;
            beside.push(Beside { place, name: name.leak() });
        }
        let ServerFile { program, threads, processes, options, stack, has_neighbour, words, .. } = file;
        Ok((Side { series, program, threads, processes, options, stack, has_neighbour, beside }, words))
    }

    /// Returns the words of its command line, with `{port}` still in them; `place` is its address and its device.
    pub(crate) fn words(&self, servers: &Path, (address, device): (&str, &str)) -> Vec<String> {
        let own = self.program.built().map(|name| servers.join(name).display().to_string());
        let program = own.unwrap_or_else(|| "memcached".to_owned());
        let threads = self.threads.to_string();
        let own = self.options.iter().map(|word| word.replace("{device}", device));
        let listen = format!("{address}:{{port}}");
        let is_search = matches!(self.program, ServerProgram::Search | ServerProgram::SearchLocked);
        let common: Vec<&str> = match (is_search, self.stack.is_tcp()) {
            (true, true) => vec!["--listen", &listen, "--preset", "paper", "--threads", &threads],
            // Any place for connections, which the index listens for as well.
            (true, false) => {
                vec!["--listen", "127.0.0.1:0", "--udp", &listen, "--preset", "paper", "--threads", &threads]
            }
            (false, is_tcp) => {
                let (tcp, udp) = if is_tcp { ("{port}", "0") } else { ("0", "{port}") };
                vec!["-u", "root", "-l", address, "-p", tcp, "-U", udp, "-m", "256", "-t", &threads]
            }
        };
        std::iter::once(program).chain(common.into_iter().map(str::to_owned)).chain(own).collect()
    }
}

/// The processors on which servers and generator run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Processors {
    /// Servers on the first, the generator on the second, where it spins.
    Apart,
    /// Both on both, and a generator of two threads that sleep when there is nothing to do.
    Shared,
}

impl Processors {
    /// Returns the processors of the servers, of both.
    pub(crate) fn of_servers(self, both: &[usize; 2]) -> &[usize] {
        if self == Processors::Apart { &both[..1] } else { both }
    }
}

/// How often every server has its turn, and how long a turn is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) count: u32,
    pub(crate) warm_up_ms: u64,
    pub(crate) turn_ms: u64,
}

impl Rounds {
    /// Returns the rounds of a point: `count` in full, of turns of these milliseconds in full and in a quick look.
    pub(crate) fn of(point: &TaskPoint<'_>, count: u32, (full, quick): (u64, u64)) -> Rounds {
        if point.quick {
            Rounds { count: ROUNDS_QUICK, warm_up_ms: 50, turn_ms: quick }
        } else {
            Rounds { count, warm_up_ms: 100, turn_ms: full }
        }
    }
}

/// Pairs: enough for an interval of the median.
pub(crate) const ROUNDS: u32 = 7;
/// The number of rounds where the ratios of seven leave no order: the interval is then between the fourth least and the
/// fourth largest of them.
pub(crate) const MANY_ROUNDS: u32 = 15;
const ROUNDS_QUICK: u32 = 3;
