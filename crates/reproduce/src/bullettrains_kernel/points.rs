//! The arms of every figure: traffic and offloads by series and x.

use std::sync::Arc;

use plimsoll_units::Rate;

use super::arms::{Arm, Pattern, Rounds};
use super::{simulated, tasks};
use crate::study::{Base, MakeTask, Named, Point, Task};

pub(crate) const TASKS: Named<MakeTask> = &[
    ("bullettrains-kernel.patterns", patterns),
    ("bullettrains-kernel.offloads", offloads),
    ("bullettrains-kernel.one-to-all", one_to_all),
    ("bullettrains-kernel.iperf", iperf),
    ("bullettrains-kernel.output-limit", output_limit),
    ("bullettrains-kernel.window", window),
    ("bullettrains-kernel.flows", flows),
];

/// What points begin with whose links have a rate.
const LINKS: &str = "links of 500 Mb/s";
/// The rate of links where they have one: a twentieth of the thesis's.
const RATE: Rate = Rate::from_mbps(500);

/// Makes the task of a point: the arm on the kernel, or the figure, x and series of the simulated study, whose links
/// have a rate.
fn task(
    point: &Point<'_>,
    arm: Arm,
    [figure, x, series]: [&'static str; 3],
    set: &[String],
) -> Option<Arc<dyn Task>> {
    match point.base {
        Base::Simulated => arm.rate.map(|_| simulated::task(point, figure, x, series, set)),
        _ => Some(tasks::on_kernel(arm, Rounds::of(point), point)),
    }
}

/// Returns the rate that links have where `text` says so.
fn rate(text: &str) -> Option<Rate> {
    text.starts_with(LINKS).then_some(RATE)
}

fn patterns(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let pattern = match point.series {
        "stride" => Pattern::Stride,
        "pstride" => Pattern::Pstride,
        "hstride" => Pattern::Hstride,
        "all-to-all" => Pattern::AllToAll,
        _ => return None,
    };
    let arm = Arm { rate: rate(point.x), ..Arm::new(pattern) };
    task(point, arm, ["fig3.2", "on", point.series], &[])
}

fn offloads(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let (segmentation_offload, receive_offload, one_by_one, simulated) = match point.series {
        "tso-gro" => (true, true, false, "tso-lro"),
        "tso" => (true, false, false, "tso"),
        "gro" => (false, true, false, "lro"),
        "none" => (false, false, false, "none"),
        "one-by-one" => (false, true, true, "lro"),
        _ => return None,
    };
    let rate = rate(point.x);
    let arm = Arm { segmentation_offload, receive_offload, one_by_one, rate, ..Arm::new(Pattern::AllToAll) };
    task(point, arm, ["table3.1", "all-to-all", simulated], &[])
}

fn one_to_all(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let segment_bytes = point.x.parse().ok()?;
    let xs = ["16384", "32768", "65536", "102400", "151552"];
    let x = xs.into_iter().find(|x| *x == point.x)?;
    let arm = Arm { segment_bytes, rate: rate(point.series), ..Arm::new(Pattern::OneToAll) };
    task(point, arm, ["fig3.7", x, "one-queue"], &[])
}

fn iperf(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let (receive_offload, simulated) = match point.series {
        "gro" => (true, "lro"),
        "no-gro" => (false, "no-lro"),
        _ => return None,
    };
    let low_water = match point.x.rsplit_once("; reads of ") {
        Some((_, "128 KB")) => Some(128 << 10),
        Some((_, "1 MB")) => Some(1 << 20),
        _ => None,
    };
    let arm = Arm { hosts: 2, receive_offload, low_water, rate: rate(point.x), ..Arm::new(Pattern::One) };
    task(point, arm, ["table3.2", "together", simulated], &[])
}

fn output_limit(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let kilobytes: u64 = point.x.parse().ok()?;
    let arm = Arm { output_limit: kilobytes << 10, rate: Some(RATE), ..Arm::new(Pattern::AllToAll) };
    let limit = format!("host.bursts.output_limit=\"{}B\"", kilobytes << 10);
    task(point, arm, ["fig3.2", "on", "all-to-all"], &[limit])
}

/// Makes `one_to_all` with links of a rate and receivers that have a window for so many segments.
fn window(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let segment_bytes = point.x.parse().ok()?;
    let segments = match point.series {
        "one segment at a time" => 1,
        "two segments" => 2,
        _ => return None,
    };
    let arm = Arm { segment_bytes, window: Some(segments), rate: Some(RATE), ..Arm::new(Pattern::OneToAll) };
    // A receiver that waits for the whole segment opens its window for the next one at once.
    let low_water = (segments == 1).then(|| arm.window_bytes(segments));
    let arm = Arm { low_water, ..arm };
    Some(tasks::on_kernel(arm, Rounds::of(point), point))
}

fn flows(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let flows = point.x.parse().ok()?;
    let arm = Arm { flows, rate: rate(point.series), ..Arm::new(Pattern::Hstride) };
    Some(tasks::on_kernel(arm, Rounds::of(point), point))
}
