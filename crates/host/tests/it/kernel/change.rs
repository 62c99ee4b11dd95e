//! Applies a changed policy over its earlier version: equal parts keep their programs and counters, and a rollback
//! returns to the earlier version while the change is not final, wherever it ended.

use std::env;

use plimsoll_host::{Error, Kernel, PlanMove, Step};

use crate::kernel::snapshot::{assert_as_before, snapshot};
use crate::kernel::world::{World, change_until, everything, lock, text};

const END_AT: &str = "PLIMSOLL_TEST_END_AT";

/// Returns the policy with another member of another level, another phantom queue and without one of its routes.
fn changed() -> String {
    let policy = everything().replace("10Mbps", "20Mbps").replace(", \"10.0.0.0/8\"", "");
    let member = "[[qjump.assign]]\nlevel = 3\ncgroup = \"/{world}/more\"\n[[phantom-queue]]";
    policy.replace("/app\"", "/other\"").replace("[[phantom-queue]]", member)
}

/// Returns the identity in the kernel of the map `state` of a program of the policy.
fn identity(world: &World, program: &str) -> String {
    let path = format!("/sys/fs/bpf/plimsoll/{}/{program}/state", world.name);
    let said = text("bpftool", &format!("map show pinned {path}"));
    let id = said.split(':').next().unwrap_or_default().to_owned();
    assert!(id.parse::<u64>().is_ok(), "no map at {path}: {said}");
    id
}

#[test]
fn a_change_touches_only_what_differs() {
    let Some(world) = World::enter("change::a_change_touches_only_what_differs") else { return };
    let before = snapshot(&world);
    world.apply(&everything());
    let with_first = snapshot(&world);
    let phantom = "phantom-queue-far-ingress";
    let (limiter, queue) = (identity(&world, "limiter"), identity(&world, phantom));
    let change = world.change(&changed());
    fn is_limiter(part: &PlanMove<'_>) -> bool {
        matches!(part, PlanMove::Make(Step::Program { pins, .. }) if pins.ends_with("limiter"))
    }
    assert!(!change.difference.moves().iter().any(is_limiter), "{change}");
    assert_eq!(change_until(&change, false, &mut |_| {}).unwrap(), Vec::<String>::new());
    assert_eq!(identity(&world, "limiter"), limiter, "the limiter is another");
    assert_ne!(identity(&world, phantom), queue, "the phantom queue is the same");
    let status = world.status();
    assert!(status.complete && status.confirmed);
    let who: Vec<&str> = status.assignments.iter().map(|one| one.who.as_str()).collect();
    assert!(
        who.iter().any(|who| who.ends_with("/more")) && !who.iter().any(|who| who.ends_with("/app")),
        "{who:?}"
    );
    assert!(!text("ip", "route show 10.0.0.0/8").contains("congctl"));
    // Again, it has nothing to do.
    assert!(world.change(&changed()).difference.is_empty());
    // The way back to the first version, by the difference in the other direction.
    let lock = lock();
    let (policy, host) = (world.policy(&changed()), plimsoll_host::Host);
    let back = plimsoll_host::roll_back_last(&lock, &policy, &host, &mut Kernel(&lock)).unwrap().unwrap();
    assert!(back.to_earlier && back.left.is_empty(), "{back:?}");
    assert_as_before(&world, &with_first, "after the way back");
    assert_eq!(identity(&world, "limiter"), limiter);
    drop(lock);
    assert!(!world.rollback().unwrap().to_earlier);
    assert_as_before(&world, &before, "after the rollback");
}

#[test]
fn a_rollback_after_a_change_restores_the_host() {
    let Some(world) = World::enter("change::a_rollback_after_a_change_restores_the_host") else { return };
    let before = snapshot(&world);
    world.apply(&everything());
    change_until(&world.change(&changed()), false, &mut |_| {}).unwrap();
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "after the rollback");
}

#[test]
fn a_change_that_is_not_confirmed_is_reverted_and_one_that_is_stays() {
    let path = "change::a_change_that_is_not_confirmed_is_reverted_and_one_that_is_stays";
    let Some(world) = World::enter(path) else { return };
    world.apply(&everything());
    let with_first = snapshot(&world);
    let name = world.name.parse().unwrap();
    change_until(&world.change(&changed()), true, &mut |_| {}).unwrap();
    assert!(world.status().complete && !world.status().confirmed);
    let back = world.rollback().unwrap();
    assert!(back.to_earlier && back.left.is_empty(), "{back:?}");
    assert_as_before(&world, &with_first, "after the revert");
    change_until(&world.change(&changed()), true, &mut |_| {}).unwrap();
    let lock = lock();
    assert!(plimsoll_host::confirm(&lock, &name, &mut Kernel(&lock)).unwrap());
    assert!(world.status().confirmed);
    assert!(!world.cgroups().join(&world.name).join("app").exists(), "the cgroup is of no version now");
    drop(lock);
    assert!(!world.rollback().unwrap().to_earlier);
}

/// A process that ended between two writes of the journal left a change without a part pending, and the next rollback
/// reverted that instead of the policy.
#[test]
fn an_apply_that_changes_nothing_is_never_pending() {
    let Some(world) = World::enter("change::an_apply_that_changes_nothing_is_never_pending") else { return };
    let before = snapshot(&world);
    world.apply(&everything());
    let mut looks = 0;
    let mut look = |_| {
        looks += 1;
        assert!(world.status().complete && world.status().confirmed);
    };
    change_until(&world.change(&everything()), false, &mut look).unwrap();
    assert_eq!(looks, 1);
    assert!(!world.rollback().unwrap().to_earlier);
    assert_as_before(&world, &before, "after the rollback");
}

#[test]
fn a_part_that_fails_brings_the_earlier_version_back() {
    let Some(world) = World::enter("change::a_part_that_fails_brings_the_earlier_version_back") else {
        return;
    };
    world.apply(&everything());
    let with_first = snapshot(&world);
    let mut change = world.change(&changed());
    let folder = world.cgroups().join(&world.name).join("absent").join("below");
    change.difference.added.push(Step::Cgroup { folder });
    let error = change_until(&change, false, &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::Step { .. }), "{error}");
    assert!(error.to_string().contains("in force again"), "{error}");
    assert_as_before(&world, &with_first, "after the failure");
}

#[test]
fn a_rollback_returns_to_the_earlier_version_wherever_the_change_ended() {
    let path = "change::a_rollback_returns_to_the_earlier_version_wherever_the_change_ended";
    let Some(world) = World::enter(path) else { return };
    let before = snapshot(&world);
    world.apply(&everything());
    let with_first = snapshot(&world);
    let limiter = identity(&world, "limiter");
    let parts = world.change(&changed()).difference.moves().len();
    assert!(parts >= 5, "{parts} parts show little");
    // The points are: the new plan on disk, then the begin and the end of each part.
    for moment in 0..=2 * parts {
        let ended = world.again("change::a_change_that_ends", &[(END_AT, moment.to_string())]);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code().is_none(), "it was to be aborted at moment {moment}: {said}");
        let status = world.status();
        assert_eq!((status.complete, status.confirmed), (moment + 1 >= 2 * parts, false), "moment {moment}");
        let back = world.rollback().expect("it is applied");
        assert!(back.to_earlier && back.left.is_empty(), "moment {moment}: {back:?}");
        assert_as_before(
            &world,
            &with_first,
            &format!("the change ended at moment {moment} of {}", 2 * parts),
        );
        assert_eq!(identity(&world, "limiter"), limiter, "moment {moment}");
    }
    world.rollback().unwrap();
    assert_as_before(&world, &before, "after the rollback");
}

/// Helper process: applies the change, and ends at a given point.
#[test]
#[ignore = "no test by itself: it ends its process, and another test starts it in one of its own"]
fn a_change_that_ends() {
    let Ok(moment) = env::var(END_AT) else { return };
    let (world, moment): (World, usize) = (World::enter("").unwrap(), moment.parse().unwrap());
    let change = world.change(&changed());
    let mut seen = 0;
    let mut end = |_| {
        if seen == moment {
            std::process::abort();
        }
        seen += 1;
    };
    change_until(&change, false, &mut end).unwrap();
}
