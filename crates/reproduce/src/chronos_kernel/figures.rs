//! The figures: which servers take turns at which points, and what they are asked.

use std::sync::Arc;

use super::plan::{Beside, CONTROLLERS, Gauge, Load, Pace, Processors, Program, Side, TurnsPlan};
use super::tasks;
use crate::chronos::{MakeTask, number, task_figure};
use crate::study::{Base, Case, Figure, Point, Task};

/// Every figure, in the page's order.
pub(super) fn figures() -> Vec<Figure> {
    vec![
        given(),
        fan_out(),
        sequential(),
        chains(),
        by_clients(
            "fig5.1",
            "Latency at 30 % of the first server's most, by the number of clients",
            |point| paced_clients(point, 0.3),
        ),
        by_clients(
            "fig5.2",
            "Latency at 70 % of the first server's most, by the number of clients",
            |point| paced_clients(point, 0.7),
        ),
        locks(),
        configurations(),
        uniform(),
        clients(),
        bursts("fig6.5", "Bursts of ten times the rate, one thread", ONE),
        bursts("fig6.6", "Bursts of ten times the rate, two threads", TWO),
        hot_keys(),
        neighbour(),
        openflow(),
    ]
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "fig4.2" => &["latency_us_p50", "latency_us_p99"],
        "fig4.4" => &["calls"],
        "fig5.1" | "fig5.2" | "fig6.3" => &["latency_us_mean", "latency_us_p99"],
        "chain" | "fig6.5" | "fig6.6" | "fig6.7" => &["latency_us_p99"],
        "fig5.3" | "fig6.2" | "fig6.4" => &["requests_per_s", "latency_us_p99"],
        _ => &[],
    }
}

/// Numbers beside which another server's are set.
const GAUGES: &[Gauge] = &[Gauge::Mean, Gauge::P50, Gauge::P99, Gauge::Rate, Gauge::Cost, Gauge::Verified];
/// One thread and two, memcached's before ours.
const ONE: &[&str] = &["MC", "CH"];
const TWO: &[&str] = &["MC 2T", "CH 2T"];
const ALL: &[&str] = &["MC", "CH", "MC 2T", "CH 2T"];
const LOCKS: &[&str] = &["MC 2T", "global lock", "reader/writer lock", "partition locks", "steering"];
const CONFIGURATIONS: &[&str] = &["1P 1T", "1P 2T", "2P 1T", "CH 2T"];
const HOT: &[&str] = &["MC 2T", "static", "100 us", "10 us"];
const NEIGHBOURS: &[&str] = &["MC", "MC beside a job", "CH", "CH beside a job"];
/// Milliseconds of a turn, in full and in a quick look.
const TURN: (u64, u64) = (400, 150);

fn figure(id: &'static str, title: &'static str, task: MakeTask, xs: &[&str]) -> Figure {
    Figure { bases: &[Base::Kernel], ..task_figure(id, title, task, xs) }
}

/// The servers of a figure that take turns with each other.
pub(super) fn groups(figure: &str) -> &'static [&'static [&'static str]] {
    match figure {
        "fig4.2" | "fig4.4" | "chain" | "fig6.5" => &[ONE],
        "fig6.6" => &[TWO],
        "fig5.3" => &[LOCKS],
        "fig6.2" => &[CONFIGURATIONS],
        "fig6.7" => &[HOT],
        "neighbour" => &[NEIGHBOURS],
        "table6.1" => &[&CONTROLLERS],
        _ => &[ONE, TWO],
    }
}

/// The servers whose turns are taken with those of the point's; none but for the first of them.
fn group(figure: &str, point: &Point<'_>) -> Option<Vec<Side>> {
    let of = groups(figure).iter().find(|of| of[0] == point.series)?;
    Some(of.iter().enumerate().map(|(place, series)| side(series, place)).collect())
}

/// The server of that name.
fn side(series: &'static str, place: usize) -> Side {
    use Program::{Chronos, ChronosLocked, Memcached};
    let options = |options: &'static [&'static str], side: Side| Side { options, ..side };
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
        "MC beside a job" => Side { has_neighbour: true, ..Side::new(series, Memcached, 1) },
        "CH beside a job" => Side { has_neighbour: true, ..Side::new(series, Chronos, 1) },
        _ => Side::new(series, Memcached, 1),
    };
    let beside = match (place, side.has_neighbour) {
        (0, _) => None,
        // It follows the same server without its neighbour.
        (_, true) => Some(Beside { place: place - 1, name: "alone" }),
        _ => Some(Beside::FIRST),
    };
    Side { beside, ..side }
}

fn turns(figure: &str, point: &Point<'_>, load: Load, gauges: &[Gauge]) -> Option<Arc<dyn Task>> {
    let sides = group(figure, point)?;
    let is_shared = sides.iter().any(|side| side.threads * side.processes > 1);
    let processors = if is_shared { Processors::Shared } else { Processors::Apart };
    Some(tasks::turns(TurnsPlan { sides, processors, load, gauges: gauges.to_vec() }, point))
}

/// Requests of so many clients.
fn load(clients: u32, pace: Pace, words: &[&str]) -> Load {
    Load { clients, pace, words: words.iter().map(|word| (*word).to_owned()).collect(), turn_ms: TURN }
}

/// A share of the most, which the x axis has in per cent.
fn share(point: &Point<'_>) -> Pace {
    Pace::Share(number(point.x) / 100.0)
}

/// What the model is told of this machine.
fn given() -> Figure {
    let task: MakeTask = |point| match (point.x, point.series) {
        ("wake-up", "this machine") => Some(tasks::wake_up(if point.quick { 1_000 } else { 10_000 })),
        ("saturation", _) => turns("given", point, load(32, Pace::Closed, &[]), GAUGES),
        ("low load", _) => turns("given", point, load(32, Pace::Share(LOW), &[]), GAUGES),
        _ => None,
    };
    Figure {
        series: &["MC", "CH", "MC 2T", "CH 2T", "this machine"],
        quick: &["wake-up", "saturation", "low load"],
        ..figure("given", "What the model is told", task, &["wake-up", "saturation", "low load"])
    }
}

/// A load at which hardly anything waits.
const LOW: f64 = 0.05;

fn fan_out() -> Figure {
    let task: MakeTask = |point| {
        let words = ["--fan-out", point.x, "--ratio", "1:0"];
        let mut sides = group("fig4.2", point)?;
        sides.iter_mut().for_each(|side| side.processes = number(point.x) as u32);
        let gauges = [Gauge::Mean, Gauge::P50, Gauge::P99, Gauge::Rate, Gauge::Verified];
        let load = load(8, Pace::Share(LOW), &words);
        // All of them on the one processor.
        let plan = TurnsPlan { sides, processors: Processors::Apart, load, gauges: gauges.to_vec() };
        Some(tasks::turns(plan, point))
    };
    Figure {
        axis: "servers asked at once",
        series: ONE,
        ..figure("fig4.2", "The last of S answers of lightly loaded servers", task, &["1", "2", "4", "8"])
    }
}

fn sequential() -> Figure {
    let task: MakeTask = |point| {
        turns(
            "fig4.4",
            point,
            load(32, share(point), &[]),
            &[Gauge::P99, Gauge::Calls(10_000.0), Gauge::Verified],
        )
    };
    Figure {
        axis: "load (% of memcached's most)",
        series: ONE,
        ..figure(
            "fig4.4",
            "Requests in a chain within 10 ms, each at its 99th percentile",
            task,
            &["5", "30", "60", "90"],
        )
    }
}

fn chains() -> Figure {
    let task: MakeTask = |point| {
        let gauges = [Gauge::Mean, Gauge::P99, Gauge::Rate, Gauge::Verified];
        turns(
            "chain",
            point,
            load(32, share(point), &["--chain", &CHAIN.to_string(), "--ratio", "1:0"]),
            &gauges,
        )
    };
    Figure {
        axis: "load (% of memcached's most)",
        series: ONE,
        ..figure("chain", "Ten requests, each after the answer to the one before", task, &["5", "30", "60"])
    }
}

/// Requests of a chain.
pub(super) const CHAIN: usize = 10;

fn paced_clients(point: &Point<'_>, share: f64) -> Option<Arc<dyn Task>> {
    turns("fig5.1", point, load(number(point.x) as u32, Pace::Share(share), &[]), GAUGES)
}

fn by_clients(id: &'static str, title: &'static str, task: MakeTask) -> Figure {
    Figure { axis: "clients", series: ALL, ..figure(id, title, task, &["7", "46", "161"]) }
}

fn locks() -> Figure {
    let task: MakeTask =
        |point| turns("fig5.3", point, load(number(point.x) as u32, Pace::Closed, &[]), GAUGES);
    Figure {
        axis: "clients",
        series: LOCKS,
        ..figure("fig5.3", "Locks and steering, two threads", task, &["1", "10", "40", "160"])
    }
}

fn configurations() -> Figure {
    let task: MakeTask =
        |point| turns("fig6.2", point, load(number(point.x) as u32, Pace::Closed, &[]), GAUGES);
    Figure {
        axis: "clients",
        series: CONFIGURATIONS,
        ..figure("fig6.2", "Processes (P) and threads (T) of memcached", task, &["4", "20", "80", "140"])
    }
}

fn uniform() -> Figure {
    let task: MakeTask = |point| {
        let gauges = [GAUGES, &[Gauge::Lost]].concat();
        turns("fig6.3", point, load(10, share(point), &["--arrivals", "uniform"]), &gauges)
    };
    Figure {
        axis: "load (% of memcached's most)",
        log: true,
        series: ALL,
        ..figure(
            "fig6.3",
            "Uniform load from ten open-loop clients",
            task,
            &["10", "30", "50", "70", "90", "110"],
        )
    }
}

fn clients() -> Figure {
    let task: MakeTask =
        |point| turns("fig6.4", point, load(number(point.x) as u32, Pace::Closed, &[]), GAUGES);
    Figure {
        axis: "clients",
        series: ALL,
        ..figure("fig6.4", "Closed-loop clients", task, &["1", "8", "40", "120", "400"])
    }
}

fn bursts(id: &'static str, title: &'static str, series: &'static [&'static str]) -> Figure {
    let task: MakeTask = |point| {
        let figure = if point.series == ONE[0] { "fig6.5" } else { "fig6.6" };
        let words = ["--arrivals", "bursts:10,1ms,10%"];
        // A period has 100 ms.
        let load = Load { turn_ms: (1_200, 300), ..load(10, share(point), &words) };
        turns(figure, point, load, GAUGES)
    };
    Figure {
        axis: "load (% of memcached's most)",
        log: true,
        series,
        ..figure(id, title, task, &["3", "10", "30"])
    }
}

fn hot_keys() -> Figure {
    let task: MakeTask = |point| {
        let popularity = format!("hot:3,99%,{}", point.x.to_owned() + "ms");
        turns("fig6.7", point, load(32, Pace::Share(0.6), &["--popularity", &popularity]), GAUGES)
    };
    Figure {
        axis: "how long three keys stay hot (ms)",
        series: HOT,
        ..figure(
            "fig6.7",
            "Three keys have 99 % of the requests, by the balancer's epoch; two threads",
            task,
            &["0.1", "1", "10", "100"],
        )
    }
}

fn neighbour() -> Figure {
    let task: MakeTask = |point| turns("neighbour", point, load(21, share(point), &[]), GAUGES);
    Figure {
        axis: "load (% of memcached's most)",
        series: NEIGHBOURS,
        ..figure("neighbour", "Beside a job that receives six streams of 440 Mb/s", task, &["30", "50"])
    }
}

fn openflow() -> Figure {
    let task: MakeTask = |point| {
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
    };
    let xs = ["1", "16", "1, as many as they answer", "16, as many as they answer"];
    let cases = xs.iter().map(|x| Case { x: (*x).to_owned(), ..Case::default() }).collect();
    Figure {
        cases,
        series: &CONTROLLERS,
        quick: &["1", "16"],
        ..figure("table6.1", "An OpenFlow controller, by the number of switches", task, &[])
    }
}
