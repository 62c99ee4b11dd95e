//! [`pace`] implements HULL's pacer on a host without fq, by a token bucket filter whose rate follows the pacer's.
//!
//! ```text
//! egress: pacer (eBPF) ── not paced ───────────────────────> htb 4855:, unclassified: passed on at once
//!             │   └─ paced: priority = class 4855:2 ───────> tbf 4856: at rate R
//!             └─ R, by the rate law ──map──> pace ──netlink, by `tc -batch`──┘
//! ```
//!
//! Deliberate departures: R is read every millisecond and set when it has changed by a sixteenth, where the mechanism
//! sets it every T_r. The program computes the backlog Q from the departure times that it would have given, not from
//! the filter's queue.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use plimsoll_bpf::pinned::Pinned;
use plimsoll_bpf::shared::PacerState;
use plimsoll_units::Rate;

use crate::Error;
use crate::commands::{PATH, change, run};
use crate::journal::Applied;
use crate::kernel::{ROOT_HANDLE, add_queue};
use crate::lock::HostLock;
use crate::names::DeviceName;
use crate::step::{PortProgram, Shape, Step};

/// The class of paced packets, by its major and minor number.
pub(crate) const CLASS: (u16, u16) = (0x4855, 2);
const CLASS_ID: &str = "4855:2";
const TBF_HANDLE: &str = "4856:";
/// The queue limit of the filter in bytes: windows of many connections. Packets beyond it are dropped.
const LIMIT: &str = "4000000";
/// The interval at which the rate is read.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// The fraction of the rate by which it must have changed to be set.
const MOVED: u64 = 16;
/// The number of rate readings between two checks that the policy is still applied.
const LOOKS: u32 = 100;

/// Creates the queues of a [`Step::Shaper`].
///
/// # Errors
/// Returns an error of the system.
pub(crate) fn make(lock: &HostLock, device: &DeviceName, shape: &Shape) -> Result<(), Error> {
    add_queue(lock, device, &["root", "handle", ROOT_HANDLE, "htb", "default", "0"])?;
    let device = device.as_str();
    let rate = format!("{}bit", shape.rate.as_bps());
    // The single class ignores its quantum, which only keeps the kernel from warning about a large one.
    let class =
        ["class", "add", "dev", device, "parent", ROOT_HANDLE, "classid", CLASS_ID, "htb", "rate", &rate];
    change(lock, "tc", &[&class[..], &["quantum", "60000"]].concat())?;
    let filter = filter("add", device, shape, shape.rate);
    change(lock, "tc", &filter.split_whitespace().collect::<Vec<_>>())
}

/// Returns the command that adds the filter or changes its rate.
fn filter(verb: &str, device: &str, shape: &Shape, rate: Rate) -> String {
    let (rate, burst) = (rate.as_bps(), shape.burst.get());
    format!(
        "qdisc {verb} dev {device} parent {CLASS_ID} handle {TBF_HANDLE} tbf rate {rate}bit burst {burst}b limit \
         {LIMIT}b"
    )
}

/// Sets the rate of the filter to the rate of the pacer of `applied` repeatedly, until `stops` returns true or the
/// policy has ended; the filter then gets the link's rate, as it does after an error. Returns how often the rate was
/// set.
///
/// # Errors
/// Returns an error if the policy has no pacer by a filter, its map cannot be read, or `tc` cannot be run.
pub fn pace(applied: &Applied, stops: &mut dyn FnMut() -> bool) -> Result<u64, Error> {
    let _there = applied.here.enter(applied.plan.policy.name())?;
    let (device, shape, pins) = shaper_of(applied)?;
    let state = Pinned::open(&pins.join("state"))?;
    let mut filter = Filter::open(device, shape)?;
    let mut looks = 0u32;
    while !stops() && (!looks.is_multiple_of(LOOKS) || pins_are_there(pins)) {
        let PacerState { rate, .. } = state.read(0)?;
        filter.follow(Rate::from_bps(rate).min(shape.rate))?;
        thread::sleep(LOOK_AGAIN);
        looks = looks.wrapping_add(1);
    }
    let changes = filter.changes;
    drop(filter);
    // The filter was removed with the policy.
    if pins_are_there(pins) { pace_nothing(applied).map(|()| changes) } else { Ok(changes) }
}

/// Sets the filter of the pacer of `applied` to the link's rate, so that nothing is paced, after the process of
/// [`pace`] was killed.
///
/// # Errors
/// Returns an error if the policy has no pacer by a filter, or `tc` fails.
pub fn pace_nothing(applied: &Applied) -> Result<(), Error> {
    let _there = applied.here.enter(applied.plan.policy.name())?;
    let (device, shape, _) = shaper_of(applied)?;
    set_link_rate(device, &shape)
}

/// Returns the device, the shape and the pins of a pacer by a filter.
fn shaper_of(applied: &Applied) -> Result<(&DeviceName, Shape, &Path), Error> {
    let steps = applied.steps();
    let shaper = steps.iter().find_map(|step| match step {
        Step::Shaper { device, shape, .. } => Some((device, *shape)),
        _ => None,
    });
    let pins = steps.iter().find_map(|step| match step {
        Step::Program { program: PortProgram::Pacer { shaped: true, .. }, pins, .. } => Some(pins),
        _ => None,
    });
    let Some(((device, shape), pins)) = shaper.zip(pins) else {
        let name = applied.policy().name();
        let reason =
            format!("policy {name} has no pacer by a TBF: packets leave at the times that its program gives");
        return Err(Error::Unavailable(vec![reason]));
    };
    Ok((device, shape, pins))
}

fn set_link_rate(device: &DeviceName, shape: &Shape) -> Result<(), Error> {
    let words = filter("change", device.as_str(), shape, shape.rate);
    run("tc", &words.split_whitespace().collect::<Vec<_>>()).map(drop)
}

fn pins_are_there(pins: &Path) -> bool {
    pins.join("state").exists()
}

/// The filter, and one long-lived `tc` process that changes it, so that each change is a message and not a new process.
struct Filter<'a> {
    device: &'a DeviceName,
    shape: Shape,
    now: Rate,
    changes: u64,
    tc: Child,
    words: Option<ChildStdin>,
}

impl Filter<'_> {
    fn open(device: &DeviceName, shape: Shape) -> Result<Filter<'_>, Error> {
        let mut tc = Command::new("tc")
            .args(["-force", "-batch", "-"])
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // A rollback may have removed the filter in the meantime.
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::doing("running tc".to_owned()))?;
        let words = tc.stdin.take();
        Ok(Filter { device, shape, now: shape.rate, changes: 0, tc, words })
    }

    /// Sets the rate, if it has changed enough.
    fn follow(&mut self, rate: Rate) -> Result<(), Error> {
        let (now, then) = (rate.as_bps(), self.now.as_bps());
        if now.abs_diff(then) <= then / MOVED { Ok(()) } else { self.set(rate) }
    }

    fn set(&mut self, rate: Rate) -> Result<(), Error> {
        let line = filter("change", self.device.as_str(), &self.shape, rate);
        if let Some(words) = &mut self.words {
            writeln!(words, "{line}").map_err(Error::doing("telling tc".to_owned()))?;
        }
        (self.now, self.changes) = (rate, self.changes + 1);
        Ok(())
    }
}

/// Sets the link's rate, so that nothing is paced any more, however the function ended.
impl Drop for Filter<'_> {
    fn drop(&mut self) {
        drop(self.words.take());
        let _ = self.tc.wait();
        // A filter that was removed with its policy cannot be set.
        let _ = set_link_rate(self.device, &self.shape);
    }
}
