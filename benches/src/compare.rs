//! Both simulators on the same scenarios, in turns.

use anyhow::Result;
use plimsoll_process::outln;

use crate::cases::Case;
use crate::markdown::{Table, mebibytes, median, millions, number, ratio};
use crate::ns3::{Ns3, Skipped};
use crate::one::{OneArguments, Report, in_words};

/// The options of the command line.
pub struct Plan {
    /// Timed runs of each simulator and scenario.
    pub rounds: u32,
    /// The only scenario to measure; all of them if none.
    pub only: Option<Case>,
    /// Whether the runs are short.
    pub quick: bool,
}

impl Plan {
    /// Returns the scenarios to measure.
    pub fn cases(&self) -> impl Iterator<Item = Case> + '_ {
        Case::ALL.into_iter().filter(|case| self.only.is_none_or(|only| only == *case))
    }
}

/// Compares both simulators on every scenario of the plan.
pub fn run(plan: &Plan) -> Result<()> {
    let ns3 = match Ns3::build()? {
        Ok(ns3) => Some(ns3),
        Err(Skipped(why)) => {
            outln!("The comparison with ns-3 is skipped. {why}\n");
            None
        }
    };
    for case in plan.cases() {
        compare(case, plan, ns3.as_ref())?;
    }
    Ok(())
}

/// The runs of one simulator on one scenario.
struct Runs {
    /// Timed; round `i` has seed `i`.
    timed: Vec<Report>,
    /// With queues watched; seed 1.
    watched: Report,
}

impl Runs {
    fn median(&self, of: impl Fn(&Report) -> f64) -> f64 {
        median(self.timed.iter().map(of))
    }

    fn hops_per_cpu_second(&self) -> f64 {
        self.median(|report| report.packet_hops as f64 / report.cpu_s)
    }

    fn mean(&self, of: impl Fn(&Report) -> f64) -> f64 {
        self.timed.iter().map(of).sum::<f64>() / self.timed.len() as f64
    }

    /// Returns the names and values of the results, as far as the scenario has them.
    fn results(&self, case: Case) -> Vec<(&'static str, f64)> {
        let mut results = vec![
            ("goodput, Mb/s", self.mean(|report| report.goodput_bps) / 1e6),
            ("Jain's index", self.mean(|report| report.jain)),
        ];
        if case != Case::S2 {
            results.push(("drops", self.mean(|report| report.drops as f64)));
        }
        results.extend(self.watched.queue_mean.map(|mean| ("queue mean, packets", mean)));
        results.extend(self.watched.queue_p99.map(|p99| ("queue p99, packets", p99)));
        results
    }
}

fn compare(case: Case, plan: &Plan, ns3: Option<&Ns3>) -> Result<()> {
    let seconds = case.beside_ns3_s(plan.quick);
    let ours = |observe, seed: u32| {
        let set = vec![format!("run.seed={seed}")];
        OneArguments { set, observe, ..OneArguments::new(&case.scenario(), seconds) }.in_child()
    };
    let (mut our_runs, mut their_runs) = (Vec::new(), Vec::new());
    for seed in 1..=plan.rounds {
        our_runs.push(ours(false, seed)?);
        if let Some(ns3) = ns3 {
            their_runs.push(ns3.run(case, seconds, seed, false)?);
        }
    }
    let ours = Runs { timed: our_runs, watched: ours(true, 1)? };
    outln!(
        "### {}: {}, {} simulated, {} round{}\n",
        case.name(),
        case.title(),
        in_words(seconds),
        plan.rounds,
        if plan.rounds == 1 { "" } else { "s" }
    );
    match ns3 {
        None => alone(case, &ours),
        Some(ns3) => {
            let theirs = Runs { timed: their_runs, watched: ns3.run(case, seconds, 1, true)? };
            beside(case, &ours, &theirs, &ns3.version);
        }
    }
    Ok(())
}

fn beside(case: Case, ours: &Runs, theirs: &Runs, version: &str) {
    let mut table = Table::new(&["", "Plimsoll", &format!("ns-3 {version}"), "ratio"]);
    let mut cost = |name: &str, of: &dyn Fn(&Runs) -> f64, show: &dyn Fn(f64) -> String, more: bool| {
        let (a, b) = (of(ours), of(theirs));
        table.row([name.to_owned(), show(a), show(b), ratio(if more { a / b } else { b / a })]);
    };
    let seconds = |value: f64| format!("{} s", number(value));
    cost("wall", &|runs| runs.median(|report| report.wall_s), &seconds, false);
    cost("CPU", &|runs| runs.median(|report| report.cpu_s), &seconds, false);
    cost("packet-hops", &|runs| runs.median(|report| report.packet_hops as f64), &millions, true);
    cost("packet-hops per CPU second", &Runs::hops_per_cpu_second, &millions, true);
    cost("peak memory", &|runs| runs.median(|report| report.peak_bytes as f64), &mebibytes, false);
    let mut apart = Vec::new();
    for ((name, a), (_, b)) in ours.results(case).into_iter().zip(theirs.results(case)) {
        table.row([name.to_owned(), number(a), number(b), number(a / b)]);
        if (a / b - 1.0).abs() > TOLERANCE {
            apart.push(name);
        }
    }
    table.print();
    let why = |name: &str| case.explanation(name).unwrap_or("not explained yet");
    for same in apart.chunk_by(|a, b| why(a) == why(b)) {
        outln!("* **{}**: {}\n", same.join("; "), why(same[0]));
    }
}

fn alone(case: Case, ours: &Runs) {
    let mut table = Table::new(&["", "Plimsoll"]);
    table.row(["packet-hops per CPU second".to_owned(), millions(ours.hops_per_cpu_second())]);
    let peak = ours.median(|report| report.peak_bytes as f64);
    table.row(["peak memory".to_owned(), mebibytes(peak)]);
    for (name, value) in ours.results(case) {
        table.row([name.to_owned(), number(value)]);
    }
    table.print();
}

/// Results further apart than this are explained.
const TOLERANCE: f64 = 0.1;
