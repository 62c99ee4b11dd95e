//! What the points of the figures run: which servers take turns, and under which load.

use std::sync::Arc;

use super::turns::{Pace, Plan, Reads, Turns};
use crate::chronos::number;
use crate::chronos_kernel::plan::{Processors, Program, Side, Stack};
use crate::study::{MakeTask, Named, Point, Task};

/// The tasks of the study's figures, by the names in its file.
pub(crate) const TASKS: Named<MakeTask> =
    &[("breakdown-kernel.parts", parts), ("breakdown-kernel.locks", locks)];

/// Measures the parts of a request, at a rate or at a share of each server's highest rate.
fn parts(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let pace = match point.x.strip_suffix("/s") {
        Some(rate) => Pace::Rate(number(rate)),
        None => Pace::Share(number(point.x) / 100.0),
    };
    let sides = vec![side("MC", Program::Memcached, 1), side("CH", Program::Chronos, 1)];
    let plan = Plan { sides, processors: Processors::Apart, clients: 32, pace, reads: Reads::Parts };
    task(plan, point)
}

/// Measures what locks cost servers of four threads, by the number of clients.
fn locks(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let global = side("global lock 4T", Program::ChronosLocked, 4);
    let sides = vec![
        side("MC 4T", Program::Memcached, 4),
        Side { options: &["--lock=global"], ..global },
        side("CH 4T", Program::Chronos, 4),
    ];
    let clients = number(point.x) as u32;
    let plan =
        Plan { sides, processors: Processors::Shared, clients, pace: Pace::Closed, reads: Reads::Locks };
    task(plan, point)
}

/// Returns a server that is asked over TCP and a veth pair.
fn side(series: &'static str, program: Program, threads: u32) -> Side {
    Side { stack: Stack::Streams, ..Side::new(series, program, threads) }
}

/// Makes the task of all servers that take turns; the first of them has it.
fn task(plan: Plan, point: &Point<'_>) -> Option<Arc<dyn Task>> {
    (plan.sides[0].series == point.series).then(|| Arc::new(Turns::new(plan, point)) as Arc<dyn Task>)
}
