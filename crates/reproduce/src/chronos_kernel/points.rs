//! What the points of the figures run: which servers take turns, and what they are asked.

use std::sync::Arc;

use super::copies;
use super::plan::{Beside, CONTROLLERS, Gauge, Load, Pace, Processors, Program, Side, Stack, TurnsPlan};
use super::tasks;
use crate::chronos::number;
use crate::study::{MakeTask, Named, Point, Task};

/// The tasks of the study's figures, by the names in its file.
pub(crate) const TASKS: Named<MakeTask> = &[
    ("chronos-kernel.given", given),
    ("chronos-kernel.fan-out", fan_out),
    ("chronos-kernel.calls", calls),
    ("chronos-kernel.chain", chain),
    ("chronos-kernel.clients-at-30-percent", |point| paced_clients(point, 0.3)),
    ("chronos-kernel.clients-at-70-percent", |point| paced_clients(point, 0.7)),
    ("chronos-kernel.locks", locks),
    ("chronos-kernel.configurations", configurations),
    ("chronos-kernel.uniform", uniform),
    ("chronos-kernel.clients", clients),
    ("chronos-kernel.bursts-on-one-thread", |point| bursts(point, "fig6.5")),
    ("chronos-kernel.bursts-on-two-threads", |point| bursts(point, "fig6.6")),
    ("chronos-kernel.hot-keys", hot_keys),
    ("chronos-kernel.neighbour", neighbour),
    ("chronos-kernel.copies", copies),
    ("chronos-kernel.openflow", openflow),
    ("chronos-kernel.search", search),
    ("chronos-kernel.udp", udp),
];

/// Numbers beside which another server's are set.
const GAUGES: &[Gauge] = &[Gauge::Mean, Gauge::P50, Gauge::P99, Gauge::Rate, Gauge::Cost, Gauge::Verified];
/// One thread and two, memcached's before ours.
const ONE: &[&str] = &["MC", "CH"];
const TWO: &[&str] = &["MC 2T", "CH 2T"];
const LOCKS: &[&str] = &["MC 2T", "global lock", "reader/writer lock", "partition locks", "steering"];
const CONFIGURATIONS: &[&str] = &["1P 1T", "1P 2T", "2P 1T", "CH 2T"];
/// UDP over veth, through the kernel's stack and past it.
const UDP_ONE: &[&str] = &["MC UDP", "CH UDP", "CH AF_XDP"];
const UDP_TWO: &[&str] = &["MC UDP 2T", "CH UDP 2T", "UNet locks 2T", "Chronos 2T"];
/// The index of the dissertation's Fig. 5.3.
const SEARCH: &[&str] = &["search RW lock", "search RCU", "search Chronos"];
const HOT: &[&str] = &["MC 2T", "static", "100 us", "10 us"];
const NEIGHBOURS: &[&str] = &["MC", "MC beside a job", "CH", "CH beside a job"];
/// Milliseconds of a turn, in full and in a quick look.
const TURN: (u64, u64) = (400, 150);

/// Returns the servers of a figure that take turns with each other.
pub(super) fn groups(figure: &str) -> &'static [&'static [&'static str]] {
    match figure {
        "fig4.2" | "fig4.4" | "chain" | "fig6.5" => &[ONE],
        "fig6.6" => &[TWO],
        "fig5.3" => &[LOCKS],
        "fig6.2" => &[CONFIGURATIONS],
        "fig6.7" => &[HOT],
        "neighbour" => &[NEIGHBOURS],
        "copies" => &[copies::COPIES],
        "search" => &[SEARCH],
        "udp" => &[UDP_ONE, UDP_TWO],
        "table6.1" => &[&CONTROLLERS],
        _ => &[ONE, TWO],
    }
}

/// Returns the servers that take turns with the point's; none but for the first of them.
fn group(figure: &str, point: &Point<'_>) -> Option<Vec<Side>> {
    let of = groups(figure).iter().find(|of| of[0] == point.series)?;
    Some(of.iter().enumerate().map(|(place, series)| side(series, place)).collect())
}

/// Returns the server of that name.
fn side(series: &'static str, place: usize) -> Side {
    use Program::{Chronos, ChronosLocked, Memcached, Search, SearchLocked};
    let options = |options: &'static [&'static str], side: Side| Side { options, ..side };
    let past =
        |options: &'static [&'static str], side: Side| Side { stack: Stack::Bypassed, options, ..side };
    let over_veth =
        |options: &'static [&'static str], side: Side| Side { stack: Stack::Streams, options, ..side };
    let two = || Side::new(series, Chronos, 2);
    let side = match series {
        "MC 2T" | "1P 2T" => Side::new(series, Memcached, 2),
        "2P 1T" => Side { processes: 2, ..Side::new(series, Memcached, 1) },
        "CH" => Side::new(series, Chronos, 1),
        "CH 2T" | "steering" => two(),
        "global lock" => options(&["--lock=global"], Side::new(series, ChronosLocked, 2)),
        "reader/writer lock" => options(&["--lock=rwlock"], Side::new(series, ChronosLocked, 2)),
        "partition locks" => options(&["--lock=partition"], Side::new(series, ChronosLocked, 2)),
        "static" => options(&["-o", "chronos_balance=off"], two()),
        "100 us" => options(&["-o", "chronos_epoch=100us"], two()),
        "10 us" => options(&["-o", "chronos_epoch=10us"], two()),
        "MC UDP" => Side { stack: Stack::Kernel, ..Side::new(series, Memcached, 1) },
        "CH UDP" => Side { stack: Stack::Kernel, ..Side::new(series, Chronos, 1) },
        "CH AF_XDP" => past(&["-o", "chronos_xdp={device}"], Side::new(series, Chronos, 1)),
        "MC UDP 2T" => Side { stack: Stack::Kernel, ..Side::new(series, Memcached, 2) },
        "CH UDP 2T" => Side { stack: Stack::Kernel, ..options(&["-o", "chronos_steering=on"], two()) },
        "UNet locks 2T" => {
            past(&["--lock=global", "-o", "chronos_xdp={device}"], Side::new(series, ChronosLocked, 2))
        }
        "Chronos 2T" => past(&["-o", "chronos_xdp={device},chronos_steering=on"], two()),
        "search RW lock" => over_veth(&["--lock=rwlock"], Side::new(series, SearchLocked, 2)),
        "search RCU" => over_veth(&["--snapshots"], Side::new(series, Search, 2)),
        "search Chronos" => over_veth(&[], Side::new(series, Search, 2)),
        "MC beside a job" => Side { has_neighbour: true, ..Side::new(series, Memcached, 1) },
        "CH beside a job" => Side { has_neighbour: true, ..Side::new(series, Chronos, 1) },
        _ => Side::new(series, Memcached, 1),
    };
    let beside = match (place, side.has_neighbour) {
        (0, _) => Vec::new(),
        // It follows the same server without its neighbour.
        (_, true) => vec![Beside { place: place - 1, name: "alone" }],
        _ => {
            let others = PAIRS.iter().filter(|(one, ..)| *one == series);
            let others = others.map(|&(_, place, name)| Beside { place, name });
            std::iter::once(Beside::FIRST).chain(others).collect()
        }
    };
    Side { beside, ..side }
}

/// Returns how a server's numbers are set beside another one's of the figure; None if they are not.
pub(super) fn beside(figure: &str, series: &str, other: &str) -> Option<Beside> {
    if CONTROLLERS[1..].contains(&series) && other == CONTROLLERS[0] {
        return Some(Beside::FIRST);
    }
    let of = groups(figure).iter().find(|of| of.contains(&series))?;
    let place = of.iter().position(|name| *name == series)?;
    let side = side(of[place], place);
    side.beside.into_iter().find(|beside| of[beside.place] == other)
}

/// Servers whose numbers are set beside another one's as well as the first one's: the other's place among those that
/// take turns, and its name in ratios.
const PAIRS: &[(&str, usize, &str)] = &[
    ("steering", 2, "lock"),
    ("search Chronos", 1, "rcu"),
    ("100 us", 1, "static"),
    ("10 us", 2, "100us"),
    ("Chronos 2T", 2, "locks"),
];

fn turns(figure: &str, point: &Point<'_>, load: Load, gauges: &[Gauge]) -> Option<Arc<dyn Task>> {
    let sides = group(figure, point)?;
    let is_shared = sides.iter().any(|side| side.threads * side.processes > 1);
    let processors = if is_shared { Processors::Shared } else { Processors::Apart };
    Some(tasks::turns(TurnsPlan { sides, processors, load, gauges: gauges.to_vec() }, point))
}

/// Returns the requests of so many clients.
fn load(clients: u32, pace: Pace, words: &[&str]) -> Load {
    Load { clients, pace, words: words.iter().map(|word| (*word).to_owned()).collect(), turn_ms: TURN }
}

/// Reads a share of the highest rate, which the x axis has in per cent.
fn share(point: &Point<'_>) -> Pace {
    Pace::Share(number(point.x) / 100.0)
}

/// Measures the parameters that the model has from this machine.
fn given(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    match (point.x, point.series) {
        ("wake-up", "this machine") => Some(tasks::wake_up(if point.quick { 1_000 } else { 10_000 })),
        ("saturation", _) => turns("given", point, load(32, Pace::Closed, &[]), GAUGES),
        ("low load", _) => turns("given", point, load(32, Pace::Share(LOW), &[]), GAUGES),
        _ => None,
    }
}

/// A load at which hardly anything waits.
const LOW: f64 = 0.05;

/// Asks for the last of S answers of lightly loaded servers.
fn fan_out(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let words = ["--fan-out", point.x, "--ratio", "1:0"];
    let mut sides = group("fig4.2", point)?;
    sides.iter_mut().for_each(|side| side.processes = number(point.x) as u32);
    let gauges = [Gauge::Mean, Gauge::P50, Gauge::P99, Gauge::Rate, Gauge::Verified];
    let load = load(8, Pace::Share(LOW), &words);
    // All of them on the one processor.
    let plan = TurnsPlan { sides, processors: Processors::Apart, load, gauges: gauges.to_vec() };
    Some(tasks::turns(plan, point))
}

/// Counts the requests of a chain within 10 ms, each at its 99th percentile.
fn calls(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    turns(
        "fig4.4",
        point,
        load(32, share(point), &[]),
        &[Gauge::P99, Gauge::Calls(10_000.0), Gauge::Verified],
    )
}

/// Asks for ten requests, each after the answer to the one before.
fn chain(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let gauges = [Gauge::Mean, Gauge::P99, Gauge::Rate, Gauge::Verified];
    turns("chain", point, load(32, share(point), &["--chain", &CHAIN.to_string(), "--ratio", "1:0"]), &gauges)
}

/// The number of requests in a chain.
pub(super) const CHAIN: usize = 10;

fn paced_clients(point: &Point<'_>, share: f64) -> Option<Arc<dyn Task>> {
    turns("fig5.1", point, load(number(point.x) as u32, Pace::Share(share), &[]), GAUGES)
}

/// Measures locks and steering on two threads.
fn locks(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    turns("fig5.3", point, load(number(point.x) as u32, Pace::Closed, &[]), GAUGES)
}

/// Measures processes and threads of memcached.
fn configurations(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    turns("fig6.2", point, load(number(point.x) as u32, Pace::Closed, &[]), GAUGES)
}

/// Measures uniform load from ten open-loop clients.
fn uniform(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let gauges = [GAUGES, &[Gauge::Lost]].concat();
    turns("fig6.3", point, load(10, share(point), &["--arrivals", "uniform"]), &gauges)
}

/// Measures closed-loop clients.
fn clients(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    turns("fig6.4", point, load(number(point.x) as u32, Pace::Closed, &[]), GAUGES)
}

/// Measures bursts of ten times the rate.
fn bursts(point: &Point<'_>, figure: &str) -> Option<Arc<dyn Task>> {
    let words = ["--arrivals", "bursts:10,1ms,10%"];
    // A period has 100 ms.
    let load = Load { turn_ms: (1_200, 300), ..load(10, share(point), &words) };
    turns(figure, point, load, GAUGES)
}

/// Measures requests of which three keys have 99 %, by the balancer's epoch.
fn hot_keys(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let popularity = format!("hot:3,99%,{}", point.x.to_owned() + "ms");
    turns("fig6.7", point, load(32, Pace::Share(0.6), &["--popularity", &popularity]), GAUGES)
}

/// Measures servers beside a job that receives six streams of 440 Mb/s.
fn neighbour(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    // The scheduler's time slices are milliseconds: a turn has a thousand of them, so that rounds are alike.
    let load = Load { turn_ms: (4_000, 300), ..load(21, share(point), &[]) };
    turns("neighbour", point, load, GAUGES)
}

/// Measures reads from two servers with the same keys.
fn copies(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let mut sides = group("copies", point)?;
    sides.iter_mut().for_each(|side| side.processes = 2);
    // Both servers on the one processor, so that the generator has the other to itself.
    let plan = TurnsPlan {
        sides,
        processors: Processors::Apart,
        load: load(16, share(point), &["--ratio", "1:0"]),
        gauges: vec![
            Gauge::Mean,
            Gauge::P50,
            Gauge::P99,
            Gauge::Rate,
            Gauge::Cost,
            Gauge::Lost,
            Gauge::Verified,
        ],
    };
    Some(tasks::turns(plan, point))
}

/// Measures an index under a lock, by read-copy-update, and in partitions: keys of 10 bytes, values of 1400.
fn search(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let words = ["--key-size", "10", "--value-size", "1400"];
    turns("search", point, load(number(point.x) as u32, Pace::Closed, &words), GAUGES)
}

/// Measures UDP and the binary protocol through the kernel's stack and past it.
fn udp(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let words = |more: &[&'static str]| [&["--protocol", "binary"][..], more].concat();
    let load = match point.x {
        "saturation" => load(32, UNDER_WAY, &words(&[])),
        "one key" => load(32, UNDER_WAY, &words(&["--popularity", "hot:1,100%,static"])),
        _ => load(32, share(point), &words(&[])),
    };
    turns("udp", point, load, &[GAUGES, &[Gauge::Lost]].concat())
}

/// What a server past the kernel's stack needs to be at work all the time: with one operation of each client under way
/// it waits for the generator.
const UNDER_WAY: Pace = Pace::UnderWay(4);

/// Measures an OpenFlow controller, by the number of switches.
fn openflow(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    if point.series != CONTROLLERS[0] {
        return None;
    }
    let (switches, outstanding) = match point.x {
        "1" => (1, 1),
        "16" => (16, 1),
        "1, as many as they answer" => (1, 256),
        _ => (16, 256),
    };
    Some(tasks::controllers(switches, outstanding, point))
}
