//! [`ServerTurns`]: servers that run at once and are asked one after the other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use plimsoll_chronos_load::bench::{PhaseResults, ServerSet};
use plimsoll_chronos_load::neighbour::{Neighbour, NeighbourLoad};
use plimsoll_chronos_load::options::{self, LoadOptions};
use plimsoll_chronos_load::phase::{allowed_cpus, phase};
use plimsoll_chronos_load::process::{Recipe, ServerTransport};
use plimsoll_chronos_load::setup;
use plimsoll_stats as stats;
use plimsoll_units::Span;
use serde::Deserialize;
use toml::Value;

use crate::parameters::{Parameters, text};
use crate::plan::{MANY_ROUNDS, Processors, ROUNDS, RequestPath, Rounds, Side, SideGroup};
use crate::rounds::{TurnReading, in_rounds, medians};
use crate::task::{MakeTask, Measured, Task, TaskPoint};
use crate::veth::VethNetwork;
use crate::wake_up::WakeUp;

/// The keys of a figure whose servers take turns, beside `groups`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TurnsFile {
    clients: u32,
    pace: LoadPace,
    /// Words of `chronos-load run` beyond the common ones.
    #[serde(default)]
    words: Vec<Value>,
    /// Milliseconds of a turn, in full and in a quick look.
    #[serde(default = "turn_ms")]
    turn_ms: (u64, u64),
    gauges: Vec<TurnGauge>,
    /// Without it, servers of several threads share their processors with the generator.
    processors: Option<Processors>,
    /// The processes of every server, in place of its own number.
    processes: Option<u32>,
    /// Round trips between the processors, in full and in a quick look, which are measured in place of a server by the
    /// scheme that is none.
    round_trips: Option<(u32, u32)>,
}

fn turn_ms() -> (u64, u64) {
    (400, 150)
}

/// Reads what makes the tasks of a figure.
pub(crate) fn read(mut parameters: Parameters) -> Result<MakeTask, String> {
    let groups = Side::groups(&mut parameters)?;
    Ok(Arc::new(move |point| {
        let file = parameters.read(point.x, point.series);
        let file: TurnsFile = file.expect("a test makes every task of every study");
        let group = groups.iter().find(|(sides, _)| sides[0].series == point.series);
        if let Some((full, quick)) = file.round_trips {
            let rounds = if point.quick { quick } else { full };
            let is_server = |(sides, _): &SideGroup| sides.iter().any(|side| side.series == point.series);
            let is_none = !groups.iter().any(is_server);
            return is_none.then(|| Arc::new(WakeUp { rounds }) as Arc<dyn Task>);
        }
        let (sides, own_words) = group?;
        Some(Arc::new(ServerTurns::new(file, sides.clone(), own_words.clone(), point)))
    }))
}

/// Servers that take turns.
#[derive(Clone, Debug)]
struct TurnsPlan {
    /// The servers, the first of which decides the rate.
    sides: Vec<Side>,
    processors: Processors,
    /// The requests that they get.
    load: Load,
    /// The numbers that are read.
    gauges: Vec<TurnGauge>,
}

/// The requests to the servers of a point.
#[derive(Clone, Debug)]
struct Load {
    /// Clients, each with a connection to every process.
    clients: u32,
    pace: LoadPace,
    words: Vec<String>,
    turn_ms: (u64, u64),
}

/// How requests follow each other.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LoadPace {
    /// Every client waits for its answer.
    Closed,
    /// Every client has this number of operations under way, so that the server is at work all the time.
    UnderWay(u32),
    /// A share of the highest rate of the first server, with 32 or more requests outstanding, measured for each point.
    Share(f64),
}

/// A number that is read of a turn.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TurnGauge {
    Mean,
    P50,
    P99,
    /// The number of operations a second.
    Rate,
    /// Processor time of the server for each operation.
    Cost,
    /// Requests at the 99th percentile that fit one after the other into a budget in us.
    Calls(f64),
    /// Of operations, those without an answer.
    Lost,
    /// Values of a turn that were read and were what had been stored.
    Verified,
}

/// A point whose servers take turns.
struct ServerTurns {
    plan: TurnsPlan,
    /// Words of the load that each server has for itself.
    own_words: Vec<Vec<String>>,
    rounds: Rounds,
    seed: u64,
    point: String,
    servers: PathBuf,
}

impl ServerTurns {
    fn new(
        file: TurnsFile,
        mut sides: Vec<Side>,
        own_words: Vec<Vec<String>>,
        point: &TaskPoint<'_>,
    ) -> ServerTurns {
        let TurnsFile { clients, pace, words, turn_ms, gauges, processes, .. } = file;
        if let Some(processes) = processes {
            sides.iter_mut().for_each(|side| side.processes = processes);
        }
        let is_shared = sides.iter().any(|side| side.threads * side.processes > 1);
        let processors =
            file.processors.unwrap_or(if is_shared { Processors::Shared } else { Processors::Apart });
        let load = Load { clients, pace, words: words.iter().map(text).collect(), turn_ms };
        // Rounds differ by factors where the scheduler divides a processor between a server and a job.
        let is_divided = sides.iter().any(|side| side.has_neighbour);
        let rounds = Rounds::of(point, if is_divided { MANY_ROUNDS } else { ROUNDS }, load.turn_ms);
        let plan = TurnsPlan { sides, processors, load, gauges };
        let servers = point.servers.to_owned();
        ServerTurns { plan, own_words, rounds, seed: point.seed, point: point.name(), servers }
    }

    fn load(&self, cpus: [usize; 2], place: usize) -> anyhow::Result<LoadOptions> {
        let Load { clients, words, .. } = &self.plan.load;
        load(self.plan.processors, *clients, self.seed, cpus, words.iter().chain(&self.own_words[place]))
    }

    fn start(
        &self,
        place: usize,
        network: Option<&VethNetwork>,
        cpus: [usize; 2],
    ) -> anyhow::Result<ServerSet> {
        let side = &self.plan.sides[place];
        let recipe = match network {
            None => Recipe::new(side.series, side.words(&self.servers, ("127.0.0.1", "lo"))),
            Some(network) => {
                let (address, device) = (network.address(place), network.near(place));
                let words = side.words(&self.servers, (&address.to_string(), &device));
                let words = network.prefix(place).into_iter().chain(words).collect();
                Recipe { address, ..Recipe::new(side.series, words) }
            }
        };
        let transport = if side.stack.is_tcp() { ServerTransport::Tcp } else { ServerTransport::Udp };
        let recipes = vec![recipe; side.processes as usize];
        let LoadOptions { workload, clients, validity, .. } = self.load(cpus, place)?;
        let server_cpus = self.plan.processors.of_servers(&cpus);
        let mut bench = ServerSet::start(&recipes, transport, server_cpus, &workload, &clients, validity)?;
        if let Some(network) = network.filter(|_| self.plan.processors == Processors::Apart) {
            bench.count_also(network.settle(place, side.stack, cpus)?);
        }
        Ok(bench)
    }

    fn run(&self, goes_on: &dyn Fn() -> bool) -> anyhow::Result<Vec<Measured>> {
        let sides = &self.plan.sides;
        if sides.iter().all(|side| side.stack == RequestPath::Loopback) {
            return self.run_over(None, goes_on);
        }
        let queues = sides.iter().map(|side| side.threads).max().unwrap_or(1);
        let network = VethNetwork::new(sides.len(), queues)?;
        network.at_clients(|| self.run_over(Some(&network), goes_on))
    }

    fn run_over(
        &self,
        network: Option<&VethNetwork>,
        goes_on: &dyn Fn() -> bool,
    ) -> anyhow::Result<Vec<Measured>> {
        let cpus = two_processors().map_err(anyhow::Error::msg)?;
        let sides = &self.plan.sides;
        let load = self.load(cpus, 0)?;
        let start = |place| self.start(place, network, cpus);
        let benches = (0..sides.len()).map(start).collect::<anyhow::Result<Vec<_>>>()?;
        let warm_up = Span::from_ms(self.rounds.warm_up_ms);
        let time = Span::from_ms(self.rounds.turn_ms);
        let pace = match self.plan.load.pace {
            LoadPace::Closed => setup::Pace::Closed(1),
            LoadPace::UnderWay(count) => setup::Pace::Closed(count),
            LoadPace::Share(share) => {
                let most = most(&benches[0], self.plan.load.clients, warm_up)?;
                setup::Pace::Open(load.timetable.arrivals, share * most)
            }
        };
        let turns = in_rounds(sides.len(), self.rounds.count, goes_on, |side, round| {
            let (count, bits_per_s) = NEIGHBOUR;
            let streams = NeighbourLoad { count, bits_per_s };
            let neighbour =
                sides[side].has_neighbour.then(|| Neighbour::start(streams, &cpus[..1])).transpose()?;
            // All are asked the same in a round.
            let turn = benches[side].measure(phase(FIRST + round as u8, pace, warm_up, time))?;
            drop(neighbour);
            verify(&turn, sides[side].series)?;
            Ok(turn)
        })?;
        Ok(self.rows(&turns))
    }

    fn rows(&self, turns: &[Vec<PhaseResults>]) -> Vec<Measured> {
        let sides: Vec<_> = self.plan.sides.iter().map(|side| (side.series, &side.beside[..])).collect();
        let reading = |gauge: &TurnGauge| {
            let (gauge, (metric, unit)) = (*gauge, gauge.name());
            TurnReading {
                metric,
                unit,
                is_compared: matches!(
                    gauge,
                    TurnGauge::Mean | TurnGauge::P99 | TurnGauge::Rate | TurnGauge::Cost
                ),
                read: Box::new(move |turn| gauge.read(turn)),
            }
        };
        let readings: Vec<TurnReading<'_, PhaseResults>> = self.plan.gauges.iter().map(reading).collect();
        medians(&sides, turns, |turn| !turn.report.suspect.is_empty(), &readings)
    }
}

/// Reads the load of a number of clients, with words beyond the common ones.
pub(crate) fn load<'w>(
    processors: Processors,
    clients: u32,
    seed: u64,
    [server, generator]: [usize; 2],
    words: impl Iterator<Item = &'w String>,
) -> anyhow::Result<LoadOptions> {
    let place = match processors {
        Processors::Apart => format!("--cpus {generator} --wait spin"),
        Processors::Shared => format!("--threads 2 --cpus {server},{generator} --wait block --shared-cpus"),
    };
    let common = format!("--keys {KEYS} --connections {clients} --seed {seed} --timeout 2s {place}");
    let words: Vec<&str> = common.split(' ').chain(words.map(|word| &**word)).collect();
    Ok(options::read(&words)?)
}

/// Measures the highest rate of a server: the median of three closed loops of its clients.
pub(crate) fn most(bench: &ServerSet, clients: u32, warm_up: Span) -> anyhow::Result<f64> {
    let mut rates = Vec::new();
    for index in 0..MOST_TURNS {
        let phase = phase(index, setup::Pace::Closed(OUTSTANDING.div_ceil(clients)), warm_up, MOST_TIME);
        rates.push(bench.measure(phase)?.report.rate);
    }
    Ok(stats::median(&rates).map_or(0.0, |median| median.value))
}

/// Checks that every value that was read is what had been stored, and that nothing was refused: else numbers mean
/// nothing.
pub(crate) fn verify(turn: &PhaseResults, series: &str) -> anyhow::Result<()> {
    let counts = turn.report.counts;
    anyhow::ensure!(
        (counts.wrong, counts.refused, counts.closed, counts.misses) == (0, 0, 0, 0),
        "{series}: {} values were wrong, {} operations refused, {} connections lost, {} keys without a value: {}",
        counts.wrong,
        counts.refused,
        counts.closed,
        counts.misses,
        turn.report.examples.join("; ")
    );
    Ok(())
}

impl TurnGauge {
    /// Returns its name and its unit in the rows, which are the server model's where it has them.
    fn name(self) -> (&'static str, &'static str) {
        match self {
            TurnGauge::Mean => ("latency_us_mean", "us"),
            TurnGauge::P50 => ("latency_us_p50", "us"),
            TurnGauge::P99 => ("latency_us_p99", "us"),
            TurnGauge::Rate => ("requests_per_s", "1/s"),
            TurnGauge::Cost => ("server_us_per_request", "us"),
            TurnGauge::Calls(_) => ("calls", "requests"),
            TurnGauge::Lost => ("lost_percent", "%"),
            TurnGauge::Verified => ("values_verified", "values"),
        }
    }

    fn read(self, turn: &PhaseResults) -> f64 {
        let report = &turn.report;
        let all = report.counts.due.max(1) as f64;
        match self {
            TurnGauge::Mean => report.latency.mean,
            TurnGauge::P50 => report.latency.p50,
            TurnGauge::P99 => report.latency.p99,
            TurnGauge::Rate => report.rate,
            TurnGauge::Cost => turn.server_us_per_operation,
            TurnGauge::Calls(us) => (us / report.latency.p99.max(1e-3)).floor(),
            TurnGauge::Lost => 100.0 * (report.counts.lost + report.counts.unsent) as f64 / all,
            TurnGauge::Verified => report.counts.hits as f64,
        }
    }
}

impl Task for ServerTurns {
    fn settings(&self) -> String {
        let ServerTurns { plan, rounds, seed, point, .. } = self;
        format!("{point}: {plan:?}, {rounds:?}, {KEYS} keys, neighbour {NEIGHBOUR:?}, seed {seed}")
    }

    fn check(&self) -> Result<(), String> {
        check(&self.plan.sides, &self.servers)?;
        for side in &self.plan.sides {
            match side.stack {
                RequestPath::Loopback => {}
                RequestPath::Streams | RequestPath::Kernel => network_tools()?,
                RequestPath::Bypassed => {
                    network_tools()?;
                    bypasses(&side.words(&self.servers, ("127.0.0.1", "no-such-device")))?;
                }
            }
        }
        Ok(())
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        self.run(goes_on).map_err(|error| format!("{error:#}"))
    }
}

/// Returns the two processors that servers and generator have.
pub(crate) fn two_processors() -> Result<[usize; 2], String> {
    let cpus = allowed_cpus().map_err(|error| format!("cannot ask which processors there are: {error}"))?;
    match cpus[..] {
        [server, generator, ..] => Ok([server, generator]),
        _ => {
            Err(format!("a server and its clients need two processors; this process may use {}", cpus.len()))
        }
    }
}

/// Checks that there are two processors and the programs of servers.
pub(crate) fn check(sides: &[Side], servers: &Path) -> Result<(), String> {
    two_processors()?;
    sides.iter().try_for_each(|side| match side.program.built() {
        None => installed("memcached", "memcached"),
        Some(name) => built(servers, name),
    })
}

/// Checks that a program of this project is in the folder of the servers.
pub(crate) fn built(servers: &Path, name: &str) -> Result<(), String> {
    let path = servers.join(name);
    if path.is_file() {
        return Ok(());
    }
    Err(format!(
        "there is no {}; `make servers` builds it beside plimsoll, or name its folder with --server-dir",
        path.display()
    ))
}

/// Checks that a program of the system is in the search path.
pub(crate) fn installed(name: &str, package: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(name).is_file()) {
        return Ok(());
    }
    Err(format!("{name} is not installed (Debian: apt-get install {package}); --only leaves its figures out"))
}

/// Checks that this process may lay a network, and has the programs for it.
pub(crate) fn network_tools() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("network namespaces and AF_XDP need root; --only leaves their figures out".to_owned());
    }
    installed("ip", "iproute2")?;
    ["nsenter", "taskset", "chrt"].into_iter().try_for_each(|name| installed(name, "util-linux"))
}

/// Checks that a server is built with the programs that AF_XDP needs. It is started by `words` for a device that does
/// not exist, and ends with the reason.
fn bypasses(words: &[String]) -> Result<(), String> {
    let [server, arguments @ ..] = words else { return Err("a server without a program".to_owned()) };
    let arguments = arguments.iter().map(|word| word.replace("{port}", "9"));
    let output = Command::new(server).args(arguments).output();
    let output = output.map_err(|error| format!("cannot start {server}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("there is no such device") {
        return Ok(());
    }
    Err(format!(
        "{server} cannot bypass the kernel's stack: {}; `make servers` builds it with that where clang and libelf are",
        said.trim()
    ))
}

/// Keys of 64 bytes with values of 1 KB, as in the dissertation: 24 MB in memory.
pub(crate) const KEYS: u32 = 20_000;
/// Requests outstanding where the first server's most is measured, at least.
const OUTSTANDING: u32 = 32;
const MOST_TURNS: u8 = 3;
const MOST_TIME: Span = Span::from_ms(300);
/// The phase of the first round: other phases draw other requests.
pub(crate) const FIRST: u8 = 16;
/// Six clients of 440 Mb/s (section 6.3 of the dissertation).
const NEIGHBOUR: (usize, f64) = (6, 440e6);
