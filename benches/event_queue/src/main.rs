//! Which event queue? Prints nanoseconds (or instructions) a hop for each candidate, as markdown.
//!
//! ```text
//! event-queue-bench [time [NAME [CASE]]]  nanoseconds a hop, all candidates in turn; of those (and of
//!                                         the cases) whose name contains NAME (A+B: A or B)
//! event-queue-bench instructions          the same in instructions, by callgrind
//! event-queue-bench stress                nanoseconds a pop and push under loads made to hurt
//! event-queue-bench one CANDIDATE CASE POPS    one run, for a profiler
//! ```

mod candidates;
#[cfg_attr(not(test), allow(dead_code, reason = "live worlds ask for its length and next time; here only its tests do"))]
/// The winner, where it lives.
#[path = "../../../crates/fabric/src/engine/calendar.rs"]
mod chosen;
#[cfg(test)]
mod differential;
mod model;
mod stress;

use std::process::{Command, ExitCode};
use std::time::Instant;

use candidates::EventQueue;
use candidates::binary_heap::StdHeap;
use candidates::delay_fifos::DelayFifos;
use candidates::fixed_calendar::FixedCalendar;
use candidates::hierarchical_wheel::HierarchicalWheel;
use candidates::quad_heap::QuadHeap;
use candidates::radix_heap::RadixHeap;
use candidates::winner_tree::WinnerTree;
use model::{CASES, Case, World};
use plimsoll_units::Time;
use stress::{STRESSES, Stress};

/// A world on some queue.
trait Contestant {
    fn run(&mut self, pops: u64) -> u64;
}

struct InTurn<Q, const IN_PLACE: bool>(World<Q>);

impl<Q: EventQueue, const IN_PLACE: bool> Contestant for InTurn<Q, IN_PLACE> {
    fn run(&mut self, pops: u64) -> u64 {
        self.0.run::<IN_PLACE>(pops)
    }
}

fn enter<Q: EventQueue + 'static, const IN_PLACE: bool>(case: Case) -> Box<dyn Contestant> {
    Box::new(InTurn::<Q, IN_PLACE>(World::new(case)))
}

type Enter = fn(Case) -> Box<dyn Contestant>;

/// 'In place': the next head of the lane overwrites the popped one.
const CANDIDATES: [(&str, Enter); 14] = [
    ("std binary heap", enter::<StdHeap, false>),
    ("std binary heap, in place", enter::<StdHeap, true>),
    ("4-ary heap, u128", enter::<QuadHeap<u128>, false>),
    ("4-ary heap, u128, in place", enter::<QuadHeap<u128>, true>),
    ("4-ary heap, (u64, u32)", enter::<QuadHeap<(u64, u32)>, false>),
    ("winner tree", enter::<WinnerTree, false>),
    ("winner tree, in place", enter::<WinnerTree, true>),
    ("radix heap", enter::<RadixHeap, false>),
    ("FIFO a delay", enter::<DelayFifos, false>),
    ("hierarchical wheel", enter::<HierarchicalWheel, false>),
    ("fixed calendar", enter::<FixedCalendar, false>),
    ("linked wheel", enter::<candidates::linked_wheel::EventQueue, false>),
    ("adaptive wheel", enter::<chosen::Calendar, false>),
    ("adaptive wheel, in place", enter::<chosen::Calendar, true>),
];

/// Answers from a recording: what a hop costs when the queue costs next to nothing.
struct Recorded {
    pops: std::vec::IntoIter<(Time, u32)>,
}

impl EventQueue for Recorded {
    fn new(_owners: u32) -> Self {
        Recorded { pops: Vec::new().into_iter() }
    }
    fn push(&mut self, _at: Time, _owner: u32) {}
    fn pop(&mut self) -> Option<(Time, u32)> {
        self.pops.next()
    }
}

/// The queue under record.
struct Recorder {
    queue: chosen::Calendar,
    pops: std::rc::Rc<std::cell::RefCell<Vec<(Time, u32)>>>,
}

impl EventQueue for Recorder {
    fn new(_owners: u32) -> Self {
        Recorder { queue: chosen::Calendar::new(), pops: Default::default() }
    }
    fn push(&mut self, at: Time, owner: u32) {
        self.queue.push(at, owner);
    }
    fn pop(&mut self) -> Option<(Time, u32)> {
        let entry = self.queue.pop_until(Time::MAX)?;
        self.pops.borrow_mut().push(entry);
        Some(entry)
    }
}

fn recorded(case: Case, pops: u64) -> Box<dyn Contestant> {
    let recorder: Recorder = EventQueue::new(0);
    let recording = recorder.pops.clone();
    World::with_queue(case, recorder).run::<false>(pops);
    let pops = recording.take().into_iter();
    Box::new(InTurn::<_, false>(World::with_queue(case, Recorded { pops })))
}

/// Pops before the clock runs: until the packets have spread over the network.
fn warm_up_pops(case: &Case) -> u64 {
    20 * u64::from(case.packets).max(20_000)
}

/// Short, so that some rounds of each fall between two interruptions of a busy machine.
const POPS_A_ROUND: u64 = 50_000;
const ROUNDS: u64 = 60;

/// For each candidate the nanoseconds a hop of every round; the floor comes first.
fn nanoseconds(case: Case, wanted: &str) -> Vec<(&'static str, Vec<f64>)> {
    let warm_up = warm_up_pops(&case);
    let floor = ("(no queue: recorded)", recorded(case, warm_up + ROUNDS * POPS_A_ROUND));
    let mut worlds: Vec<_> = std::iter::once(floor)
        .chain(
            CANDIDATES
                .iter()
                .filter(|(name, _)| contains(name, wanted))
                .map(|&(name, enter)| (name, enter(case))),
        )
        .map(|(name, world)| (name, world, Vec::new()))
        .collect();
    for (_, world, _) in &mut worlds {
        world.run(warm_up);
    }
    for round in 0..ROUNDS {
        let mut digests = Vec::new();
        let count = worlds.len();
        for turn in 0..count {
            // Another goes first each round.
            let (_, world, times) = &mut worlds[(turn + round as usize) % count];
            let start = Instant::now();
            digests.push(world.run(POPS_A_ROUND));
            times.push(start.elapsed().as_secs_f64() * 1e9 / POPS_A_ROUND as f64);
        }
        assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "all pop the same sequence");
    }
    worlds.into_iter().map(|(name, _, times)| (name, times)).collect()
}

fn print_times(wanted: &str, wanted_case: &str) {
    let cases: Vec<Case> = CASES.into_iter().filter(|case| contains(case.name, wanted_case)).collect();
    let columns: Vec<_> = cases.iter().map(|&case| nanoseconds(case, wanted)).collect();
    let Some(first) = columns.first() else { return };
    print_head("ns a hop: median (least)", cases.iter().map(|case| case.name));
    for row in 0..first.len() {
        print!("| {} |", first[row].0);
        for column in &columns {
            let mut times = column[row].1.clone();
            times.sort_by(f64::total_cmp);
            print!(" {:.1} ({:.1}) |", times[times.len() / 2], times[0]);
        }
        println!();
    }
}

fn print_head<'a>(corner: &str, columns: impl Iterator<Item = &'a str> + Clone) {
    print!("| {corner} |");
    columns.clone().for_each(|name| print!(" {name} |"));
    print!("\n|---|");
    columns.for_each(|_| print!("---:|"));
    println!();
}

/// Whether `name` contains one of `wanted`, which are set apart by plus signs.
fn contains(name: &str, wanted: &str) -> bool {
    wanted.split('+').any(|part| name.contains(part))
}

/// Instructions of this program running `one` with `pops`, as callgrind counts them.
fn instructions_of(candidate: usize, case: usize, pops: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["one", &candidate.to_string(), &case.to_string(), &pops.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, count) = text.split_once("Collected :")?;
    count.split_whitespace().next()?.parse().ok()
}

fn print_instructions() -> Option<()> {
    // The difference of two lengths is free of the start and of the warm-up.
    const POPS: u64 = 100_000;
    let cases = || CASES.iter().enumerate().filter(|(_, case)| case.tier < 1_000);
    print_head("instructions a hop", cases().map(|(_, case)| case.name));
    for (row, (name, _)) in CANDIDATES.iter().enumerate() {
        print!("| {name} |");
        for (column, case) in cases() {
            let start = 4 * u64::from(case.packets).max(4_000);
            let short = instructions_of(row, column, start)?;
            let long = instructions_of(row, column, start + POPS)?;
            print!(" {} |", (long - short) / POPS);
        }
        println!();
    }
    Some(())
}

fn print_stress() {
    type Measure = fn(&Stress) -> (f64, u64);
    const QUEUES: [(&str, Measure); 5] = [
        ("std binary heap", stress::nanoseconds::<StdHeap>),
        ("4-ary heap, u128", stress::nanoseconds::<QuadHeap<u128>>),
        ("radix heap", stress::nanoseconds::<RadixHeap>),
        ("fixed calendar", stress::nanoseconds::<FixedCalendar>),
        ("adaptive wheel", stress::nanoseconds::<chosen::Calendar>),
    ];
    const ROUNDS: usize = 5;
    print_head("least ns a pop and push", QUEUES.iter().map(|queue| queue.0));
    for stress in &STRESSES {
        let mut least = [f64::INFINITY; QUEUES.len()];
        for _ in 0..ROUNDS {
            let results = QUEUES.map(|(_, measure)| measure(stress));
            assert!(results.iter().all(|result| result.1 == results[0].1), "all pop the same sequence");
            least.iter_mut().zip(results).for_each(|(least, (ns, _))| *least = least.min(ns));
        }
        print!("| {} |", stress.name);
        least.iter().for_each(|ns| print!(" {ns:.1} |"));
        println!();
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["time"] => print_times("", ""),
        ["time", wanted] => print_times(wanted, ""),
        ["time", wanted, case] => print_times(wanted, case),
        ["stress"] => print_stress(),
        ["instructions"] => {
            if print_instructions().is_none() {
                eprintln!("valgrind did not answer; is it installed?");
                return ExitCode::from(2);
            }
        }
        ["one", candidate, case, pops] => {
            let run = (|| {
                let (_, enter) = CANDIDATES.get(candidate.parse::<usize>().ok()?)?;
                Some(enter(*CASES.get(case.parse::<usize>().ok()?)?).run(pops.parse().ok()?))
            })();
            let Some(digest) = run else {
                eprintln!("`one` takes a candidate and a case by number, and a count of pops");
                return ExitCode::from(2);
            };
            println!("{digest:016x}");
        }
        _ => {
            eprintln!(
                "usage: event-queue-bench [time [NAME [CASE]] | stress | instructions | one CANDIDATE CASE POPS]"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
