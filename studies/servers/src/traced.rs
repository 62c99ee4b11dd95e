//! [`TracedTurns`]: servers that take turns between network namespaces, each turn once as it is and once traced.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use plimsoll_breakdown::{Part, Session, Target, privileges};
use plimsoll_chronos_load::arrivals::LoadArrivals;
use plimsoll_chronos_load::bench::{PhaseResults, ServerSet};
use plimsoll_chronos_load::options::LoadOptions;
use plimsoll_chronos_load::phase::{phase, pin};
use plimsoll_chronos_load::process::{Recipe, ServerTransport};
use plimsoll_chronos_load::setup::{self, LoadPhase};
use plimsoll_units::Span;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use serde::Deserialize;

use crate::lock_counter::{COMPILER, LockCounter, MutexCounts};
use crate::parameters::Parameters;
use crate::plan::{Processors, ROUNDS, Rounds, ServerProgram, Side};
use crate::rounds::{TurnReading, in_rounds, medians};
use crate::task::{MakeTask, Measured, Task};
use crate::trace::{RequestTrace, TracedRequests};
use crate::turns::{FIRST, KEYS, check, installed, load, most, network_tools, two_processors, verify};
use crate::veth::VethNetwork;

/// The keys of a figure, beside `groups`: the plan without its servers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    processors: Processors,
    clients: u32,
    pace: TracedPace,
    reads: TracedReads,
}

/// Reads what makes the tasks of a figure.
pub(crate) fn read(mut parameters: Parameters) -> Result<MakeTask, String> {
    let groups = Side::groups(&mut parameters)?;
    Ok(Arc::new(move |point| {
        let (sides, _) = groups.iter().find(|(sides, _)| sides[0].series == point.series)?;
        // Servers are not set beside each other: each has its own highest rate.
        let alone = |side: &Side| Side { beside: Vec::new(), ..side.clone() };
        let sides = sides.iter().map(alone).collect();
        let file = parameters.read(point.x, point.series);
        let PlanFile { processors, clients, pace, reads } =
            file.expect("a test makes every task of every study");
        let plan = Plan { sides, processors, clients, pace, reads };
        let rounds = Rounds::of(point, ROUNDS, TURN_MS);
        let servers = point.servers.to_owned();
        Some(Arc::new(TracedTurns { plan, rounds, seed: point.seed, point: point.name(), servers }))
    }))
}

/// The servers that are traced in turn, and their load.
#[derive(Clone, Debug)]
struct Plan {
    /// The servers that take turns. They are asked over TCP.
    sides: Vec<Side>,
    processors: Processors,
    /// Clients, each with a connection.
    clients: u32,
    pace: TracedPace,
    reads: TracedReads,
}

/// How requests follow each other.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TracedPace {
    /// Requests come at this rate, whatever the server does.
    Rate(f64),
    /// They come at this share of the server's own highest rate.
    Share(f64),
    /// Every client waits for its answer.
    Closed,
}

/// The numbers that are read of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TracedReads {
    /// The parts of a request.
    Parts,
    /// What locks cost.
    Locks,
}

/// A point whose servers take turns.
struct TracedTurns {
    plan: Plan,
    rounds: Rounds,
    seed: u64,
    point: String,
    servers: PathBuf,
}

/// A server that runs, with the programs that trace it.
struct Traced<'a> {
    side: &'a Side,
    bench: ServerSet,
    target: Target,
    session: Session,
    /// Counts the server's locks, where it can.
    counter: Option<&'a LockCounter>,
    pace: setup::Pace,
}

/// What one turn of a server gave.
struct TracedTurn {
    /// The clients' view without tracing, and with.
    plain: PhaseResults,
    traced: PhaseResults,
    trace: RequestTrace,
    /// The locks and the processor time in ns of the turn without tracing.
    locks: Option<MutexCounts>,
    ran_ns: u64,
}

impl TracedTurns {
    fn run(&self, goes_on: &dyn Fn() -> bool) -> anyhow::Result<Vec<Measured>> {
        let cpus = two_processors().map_err(anyhow::Error::msg)?;
        let network = VethNetwork::new(self.plan.sides.len(), 1)?;
        let counter = (self.plan.reads == TracedReads::Locks).then(LockCounter::build).transpose()?;
        // The thread that reads the records is not to take the server's processor.
        let _place = match self.plan.processors {
            Processors::Apart => Some(OnProcessor::new(cpus[1])?),
            Processors::Shared => None,
        };
        network.at_clients(|| self.run_over(&network, counter.as_ref(), cpus, goes_on))
    }

    fn run_over(
        &self,
        network: &VethNetwork,
        counter: Option<&LockCounter>,
        cpus: [usize; 2],
        goes_on: &dyn Fn() -> bool,
    ) -> anyhow::Result<Vec<Measured>> {
        let start = |place| self.start(place, network, counter, cpus);
        let mut servers = (0..self.plan.sides.len()).map(start).collect::<anyhow::Result<Vec<_>>>()?;
        let warm_up = Span::from_ms(self.rounds.warm_up_ms);
        let time = Span::from_ms(self.rounds.turn_ms);
        let turns = in_rounds(servers.len(), self.rounds.count, goes_on, |side, round| {
            let server = &mut servers[side];
            // A phase for each half of a turn: the values that it stores name it, and later ones are taken for wrong.
            let first = FIRST + 2 * round as u8;
            let phases = [first, first + 1].map(|index| phase(index, server.pace, warm_up, time));
            let turn = server.turn(phases, round % 2 == 0);
            turn.with_context(|| format!("{} in round {}", server.side.series, round + 1))
        })?;
        Ok(self.rows(&turns, cpus))
    }

    /// Starts a server with its keys and its tracing programs, and measures the rate that its pace is a share of.
    fn start<'a>(
        &'a self,
        place: usize,
        network: &VethNetwork,
        counter: Option<&'a LockCounter>,
        cpus: [usize; 2],
    ) -> anyhow::Result<Traced<'a>> {
        let (side, address) = (&self.plan.sides[place], network.address(place));
        // Our own servers have no pthread mutexes to count.
        let counter = counter.filter(|_| side.program == ServerProgram::Memcached);
        let own = side.words(&self.servers, (&address.to_string(), &network.near(place)));
        let counted = counter.iter().flat_map(|counter| counter.prefix());
        let words = network.prefix(place).into_iter().chain(counted).chain(own).collect();
        let recipe = Recipe { address, ..Recipe::new(side.series, words) };
        let Plan { processors, clients, .. } = self.plan;
        let LoadOptions { workload, clients, validity, timetable, .. } =
            load(processors, clients, self.seed, cpus, std::iter::empty())?;
        let server_cpus = processors.of_servers(&cpus);
        let bench =
            ServerSet::start(&[recipe], ServerTransport::Tcp, server_cpus, &workload, &clients, validity)?;
        if processors == Processors::Apart {
            network.settle(place, side.stack, cpus)?;
        }
        let process = bench.processes()[0];
        let target = Target::of_process(process)?;
        let session = Session::load(&target, 1)?;
        let pace = self.pace(&bench, timetable.arrivals)?;
        Ok(Traced { side, bench, target, session, counter, pace })
    }

    fn pace(&self, bench: &ServerSet, arrivals: LoadArrivals) -> anyhow::Result<setup::Pace> {
        Ok(match self.plan.pace {
            TracedPace::Rate(rate) => setup::Pace::Open(arrivals, rate),
            TracedPace::Share(share) => {
                let most = most(bench, self.plan.clients, Span::from_ms(self.rounds.warm_up_ms))?;
                setup::Pace::Open(arrivals, share * most)
            }
            TracedPace::Closed => setup::Pace::Closed(1),
        })
    }

    fn rows(&self, turns: &[Vec<TracedTurn>], cpus: [usize; 2]) -> Vec<Measured> {
        let mut rows = Vec::new();
        for (side, turns) in self.plan.sides.iter().zip(turns) {
            let readings = match self.plan.reads {
                TracedReads::Parts => readings_of_parts(),
                TracedReads::Locks => readings_of_locks(side),
            };
            // Threads that have no processor each seldom meet at a lock, and the generator needs one as well.
            let lacks_processors =
                self.plan.reads == TracedReads::Locks && (side.threads as usize) >= cpus.len();
            let is_doubted = |turn: &TracedTurn| {
                lacks_processors || turn.trace.lost > 0 || !turn.plain.report.suspect.is_empty()
            };
            let turns = std::slice::from_ref(turns);
            rows.extend(medians(&[(side.series, &[])], turns, is_doubted, &readings));
        }
        rows
    }
}

impl Traced<'_> {
    /// Runs the load as it is and traced, in this order or in the other.
    fn turn(&mut self, [first, second]: [LoadPhase; 2], plain_first: bool) -> anyhow::Result<TracedTurn> {
        let ((plain, locks, ran_ns), (traced, trace)) = if plain_first {
            let plain = self.plain(first)?;
            (plain, self.traced(second)?)
        } else {
            let traced = self.traced(first)?;
            (self.plain(second)?, traced)
        };
        ensure!(trace.report.requests > 0, "no request was matched");
        Ok(TracedTurn { plain, traced, trace, locks, ran_ns })
    }

    fn plain(&self, phase: LoadPhase) -> anyhow::Result<(PhaseResults, Option<MutexCounts>, u64)> {
        let read = || self.counter.map(LockCounter::read).transpose();
        let (before, ran) = (read()?, self.target.processor_ns());
        let measure = self.bench.measure(phase)?;
        verify(&measure, self.side.series)?;
        let locks = read()?.zip(before).map(|(now, before)| now.since(before));
        let is_counted = locks.is_none_or(|locks| locks.acquired > 0);
        ensure!(is_counted, "no lock was counted: the server was not linked with the library that counts");
        Ok((measure, locks, self.target.processor_ns().saturating_sub(ran)))
    }

    fn traced(&mut self, phase: LoadPhase) -> anyhow::Result<(PhaseResults, RequestTrace)> {
        let Traced { side, bench, target, session, .. } = self;
        let mut requests = TracedRequests::new();
        let warm_up = Duration::from_nanos(phase.from.as_ps() / 1_000);
        session.attach()?;
        let (measure, before, ran_ns) = thread::scope(|scope| -> anyhow::Result<_> {
            let load = thread::Builder::new().spawn_scoped(scope, || bench.measure(phase));
            let load = load.context("cannot start a thread for the load")?;
            thread::sleep(warm_up);
            // Requests that were traced until now do not count.
            session.poll()?;
            let (before, ran) = (SessionCounts::of(session, side), target.processor_ns());
            while !load.is_finished() {
                thread::sleep(POLL);
                session.poll()?.into_iter().for_each(|request| requests.add(request));
            }
            let ran_ns = target.processor_ns().saturating_sub(ran);
            session.finish()?.into_iter().for_each(|request| requests.add(request));
            let measure = load.join().expect("a thread that panics has said why")?;
            Ok((measure, before, ran_ns))
        })?;
        verify(&measure, side.series)?;
        let now = SessionCounts::of(session, side);
        let mut trace = requests.trace();
        trace.unmatched = now.unmatched - before.unmatched;
        trace.lost = now.lost - before.lost;
        // A futex counts by the operation of its last sleep, which may change.
        trace.asleep =
            (now.sleeps.saturating_sub(before.sleeps), now.asleep_ns.saturating_sub(before.asleep_ns));
        trace.ran_ns = ran_ns;
        Ok((measure, trace))
    }
}

/// The counts of a session since its programs were loaded.
struct SessionCounts {
    unmatched: u64,
    lost: u64,
    sleeps: u64,
    asleep_ns: u64,
}

impl SessionCounts {
    fn of(session: &Session, side: &Side) -> SessionCounts {
        let (sleeps, asleep_ns) = session.locks().sum(lock_operation(side));
        SessionCounts {
            unmatched: session.matcher().unmatched().total(),
            lost: session.lost(),
            sleeps,
            asleep_ns,
        }
    }
}

/// Returns the futex operation in which threads of a server sleep at locks; none if no operation is only
/// of locks, so that all sleeps count.
fn lock_operation(side: &Side) -> Option<&'static str> {
    (side.program == ServerProgram::Memcached).then_some("FUTEX_WAIT")
}

fn reading(
    metric: &'static str,
    unit: &'static str,
    read: impl Fn(&TracedTurn) -> f64 + 'static,
) -> TurnReading<'static, TracedTurn> {
    TurnReading { metric, unit, is_compared: false, read: Box::new(read) }
}

/// Returns the rows of the parts: the clients' view, Table 5.1's rows, and their parts.
fn readings_of_parts() -> Vec<TurnReading<'static, TracedTurn>> {
    let mut all = readings_of_clients();
    all.extend([
        reading("traced_p50_of_plain", "x", |turn| {
            turn.traced.report.latency.p50 / turn.plain.report.latency.p50
        }),
        reading("server_us_mean", "us", |turn| turn.trace.report.latency.mean_ns / 1e3),
        reading("server_us_p50", "us", |turn| turn.trace.report.latency.p50_ns as f64 / 1e3),
        reading("server_us_p99", "us", |turn| turn.trace.report.latency.p99_ns as f64 / 1e3),
        reading("serialisation_us", "us", |turn| turn.trace.report.serialisation_ns(LINK_BPS) / 1e3),
        reading("kernel_us_mean", "us", |turn| turn.trace.kernel_mean()),
        reading("kernel_us_p50", "us", |turn| turn.trace.kernel_at(0.5)),
        reading("kernel_us_p99", "us", |turn| turn.trace.kernel_at(0.99)),
        reading("kernel_percent", "%", |turn| 100.0 * turn.trace.kernel_share()),
        reading("kernel_percent_of_slowest", "%", |turn| 100.0 * turn.trace.kernel_of_slowest),
        reading("application_percent", "%", |turn| 100.0 * turn.trace.share(Part::Application)),
        reading("remainder_percent", "%", |turn| 100.0 * turn.trace.share(Part::Remainder)),
    ]);
    for (part, [mean, p50, p99]) in SHOWN {
        all.push(reading(mean, "us", move |turn| turn.trace.report.parts[part as usize].time.mean_ns / 1e3));
        let of = move |turn: &TracedTurn| turn.trace.report.parts[part as usize].time;
        all.push(reading(p50, "us", move |turn| of(turn).p50_ns as f64 / 1e3));
        all.push(reading(p99, "us", move |turn| of(turn).p99_ns as f64 / 1e3));
    }
    all.extend(readings_of_matching());
    all
}

/// Returns the rows of the locks; the library's counts only for the server that it is loaded into.
fn readings_of_locks(side: &Side) -> Vec<TurnReading<'static, TracedTurn>> {
    let mut all = readings_of_clients();
    if side.program == ServerProgram::Memcached {
        let of = |turn: &TracedTurn| turn.locks.unwrap_or_default();
        all.extend([
            reading("acquisitions_per_request", "", move |turn| {
                let counts = turn.plain.report.counts;
                of(turn).acquired as f64 / (counts.gets + counts.sets).max(1) as f64
            }),
            reading("contended_percent", "%", move |turn| {
                100.0 * of(turn).contended as f64 / of(turn).acquired.max(1) as f64
            }),
            reading("waiting_percent", "%", move |turn| percent_of_both(of(turn).waited_ns, turn.ran_ns)),
        ]);
    }
    all.extend([
        reading("futex_sleeps_per_request", "", |turn| turn.trace.asleep.0 as f64 / turn.trace.requests()),
        reading("asleep_percent", "%", |turn| percent_of_both(turn.trace.asleep.1, turn.trace.ran_ns)),
    ]);
    all.extend(readings_of_matching());
    all
}

/// Returns the rows that the clients measure without tracing.
fn readings_of_clients() -> Vec<TurnReading<'static, TracedTurn>> {
    vec![
        reading("requests_per_s", "1/s", |turn| turn.plain.report.rate),
        reading("client_us_mean", "us", |turn| turn.plain.report.latency.mean),
        reading("client_us_p50", "us", |turn| turn.plain.report.latency.p50),
        reading("client_us_p99", "us", |turn| turn.plain.report.latency.p99),
    ]
}

/// Returns the rows that say how much of the requests was seen.
fn readings_of_matching() -> [TurnReading<'static, TracedTurn>; 3] {
    [
        reading("requests_matched", "requests", |turn| turn.trace.report.requests as f64),
        reading("unmatched_percent", "%", |turn| {
            100.0 * turn.trace.unmatched as f64 / turn.trace.requests().max(1.0)
        }),
        reading("records_lost", "records", |turn| turn.trace.lost as f64),
    ]
}

/// Returns the per cent that waiting is of the time in which threads ran or waited.
fn percent_of_both(waited_ns: u64, ran_ns: u64) -> f64 {
    100.0 * waited_ns as f64 / (waited_ns + ran_ns).max(1) as f64
}

impl Task for TracedTurns {
    fn settings(&self) -> String {
        let TracedTurns { plan, rounds, seed, point, .. } = self;
        format!("{point}: {plan:?}, {rounds:?}, {KEYS} keys, link of {LINK_BPS} bit/s, seed {seed}")
    }

    fn check(&self) -> Result<(), String> {
        check(&self.plan.sides, &self.servers)?;
        if self.plan.reads == TracedReads::Locks {
            installed(COMPILER, "gcc")?;
        }
        network_tools()?;
        privileges::check().map_err(|error| error.to_string())
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        self.run(goes_on).map_err(|error| format!("{error:#}"))
    }
}

/// Keeps the calling thread and its children on one processor as long as this value exists.
struct OnProcessor(CpuSet);

impl OnProcessor {
    fn new(cpu: usize) -> anyhow::Result<OnProcessor> {
        let before = sched_getaffinity(None).context("cannot read the processors of this thread")?;
        pin(&[cpu])?;
        Ok(OnProcessor(before))
    }
}

impl Drop for OnProcessor {
    fn drop(&mut self) {
        // The processors were this thread's before.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// The parts that are shown, each with the names of its mean, its median and its 99th percentile. The others are 0 on
/// a veth pair, or are in a row of their own.
const SHOWN: [(Part, [&str; 3]); 9] = [
    (Part::Receive, ["receive_us_mean", "receive_us_p50", "receive_us_p99"]),
    (Part::Busy, ["busy_us_mean", "busy_us_p50", "busy_us_p99"]),
    (Part::WakeUp, ["wake_up_us_mean", "wake_up_us_p50", "wake_up_us_p99"]),
    (Part::RunQueue, ["run_queue_us_mean", "run_queue_us_p50", "run_queue_us_p99"]),
    (Part::Read, ["read_us_mean", "read_us_p50", "read_us_p99"]),
    (Part::Application, ["application_us_mean", "application_us_p50", "application_us_p99"]),
    (Part::Blocked, ["asleep_us_mean", "asleep_us_p50", "asleep_us_p99"]),
    (Part::Preempted, ["preempted_us_mean", "preempted_us_p50", "preempted_us_p99"]),
    (Part::Send, ["send_us_mean", "send_us_p50", "send_us_p99"]),
];
/// Milliseconds of a turn, in full and in a quick look.
const TURN_MS: (u64, u64) = (1_000, 200);
/// How often records are read: the ring buffer holds half a second of them.
const POLL: Duration = Duration::from_millis(10);
/// The rate of the study's links, for the serialisation, which veth has not.
const LINK_BPS: u64 = 10_000_000_000;
