//! Ends the process at every point of an apply or a rollback: a later rollback restores the host.

use std::env;

use plimsoll_host::{Error, Host, HostFacts as _, Kernel, PolicyJournal, StateFolders, Step, System, Undone};

use crate::kernel::snapshot::{assert_as_before, snapshot};
use crate::kernel::world::{World, apply_until, lock, text};

const END_AT: &str = "PLIMSOLL_TEST_END_AT";

/// Returns a policy with every mechanism, an IPv6 network, and a pacer by a filter where this kernel supports it.
fn everything() -> String {
    let has_ipv6 = !text("ip", "-6 route show fd00::/8").is_empty();
    let more = if has_ipv6 { "\"10.0.0.0/8\", \"fd00::/8\", \"fd07::/64\"" } else { "\"10.0.0.0/8\"" };
    let both = crate::kernel::world::everything().replace("\"10.0.0.0/8\"", more);
    let shapers = if Host.has_shapers() { "departure = 'tbf'\n" } else { "" };
    let pacer =
        format!("[pacer]\ndevice = 'near'\nrate = '1Gbps'\ncgroups = ['/{{world}}/paced']\n{shapers}");
    if Host.has_fq() || Host.has_shapers() { format!("{both}{pacer}") } else { both }
}

#[test]
fn a_rollback_restores_the_host_wherever_the_apply_ended() {
    let path = "crash::a_rollback_restores_the_host_wherever_the_apply_ended";
    let Some(world) = World::enter(path) else { return };
    let steps = world.plan(&everything()).steps.len();
    assert!(steps >= 9, "{steps} steps show little");
    let before = snapshot(&world);
    // The points are: the plan on disk, then the begin and the end of each step.
    for moment in 0..=2 * steps {
        let ended = world.again("crash::an_apply_that_ends", &[(END_AT, moment.to_string())]);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code().is_none(), "it was to be aborted at moment {moment}: {said}");
        let applied = world.status();
        assert_eq!(applied.complete, moment + 1 >= 2 * steps, "moment {moment}");
        let back = world.rollback().expect("it was applied in part");
        assert_eq!(back.left, Vec::<String>::new(), "moment {moment}");
        assert_as_before(&world, &before, &format!("the apply ended at moment {moment} of {}", 2 * steps));
        assert_eq!(world.rollback(), None);
    }
}

#[test]
fn a_rollback_restores_the_host_wherever_another_ended() {
    let path = "crash::a_rollback_restores_the_host_wherever_another_ended";
    let Some(world) = World::enter(path) else { return };
    let before = snapshot(&world);
    let steps = world.plan(&everything()).steps.len();
    // The points are: before the first step is undone, and after each.
    for moment in 0..=steps {
        world.apply(&everything());
        let ended = world.again("crash::a_rollback_that_ends", &[(END_AT, moment.to_string())]);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code().is_none(), "it was to be aborted at moment {moment}: {said}");
        let back = world.rollback().expect("it is applied still");
        assert_eq!(back.left, Vec::<String>::new(), "moment {moment}");
        assert_as_before(&world, &before, &format!("the rollback ended at moment {moment} of {steps}"));
    }
}

/// Helper process: applies the policy, and ends at a given point.
#[test]
#[ignore = "no test by itself: it ends its process, and another test starts it in one of its own"]
fn an_apply_that_ends() {
    let Ok(moment) = env::var(END_AT) else { return };
    let (world, moment): (World, usize) = (World::enter("").unwrap(), moment.parse().unwrap());
    let mut seen = 0;
    let plan = world.plan(&everything());
    let mut end = |_| {
        if seen == moment {
            std::process::abort();
        }
        seen += 1;
    };
    apply_until(&plan, &mut end).unwrap();
}

/// Helper process: rolls the policy back, and ends after a given number of steps.
#[test]
#[ignore = "no test by itself: it ends its process, and another test starts it in one of its own"]
fn a_rollback_that_ends() {
    let Ok(moment) = env::var(END_AT) else { return };
    let (world, moment): (World, usize) = (World::enter("").unwrap(), moment.parse().unwrap());
    let name = world.name.parse().unwrap();
    let steps = PolicyJournal::of(&StateFolders::default(), &name).read().unwrap().unwrap().begun;
    let lock = lock();
    let mut system = Ends { kernel: Kernel(&lock), undone: 0, at: moment, steps };
    plimsoll_host::rollback(&lock, &name, &mut system).unwrap();
}

/// A system that ends the process after a given number of steps are undone.
struct Ends<'a> {
    kernel: Kernel<'a>,
    undone: usize,
    at: usize,
    steps: usize,
}

impl System for Ends<'_> {
    fn check(&self, step: &Step, replaces: bool) -> Result<(), Error> {
        self.kernel.check(step, replaces)
    }
    fn act(&mut self, step: &Step) -> Result<(), Error> {
        self.kernel.act(step)
    }
    fn undo(&mut self, step: &Step) -> Result<Undone, Error> {
        if self.undone == self.at {
            std::process::abort();
        }
        let undone = self.kernel.undo(step);
        self.undone += 1;
        if self.undone == self.at && self.at == self.steps {
            std::process::abort();
        }
        undone
    }
}
