//! Checks that an apply and a rollback leave the host as before.

use plimsoll_host::{Error, Host, HostFacts as _, StateFolders, Step};

use crate::kernel::snapshot::{assert_as_before, snapshot};
use crate::kernel::world::{World, apply, dctcp, everything, text};

#[test]
fn a_rollback_restores_everything_and_once_is_enough() {
    let Some(world) = World::enter("exact::a_rollback_restores_everything_and_once_is_enough") else {
        return;
    };
    let before = snapshot(&world);
    let plan = world.apply(&everything());
    let kinds = |wanted: fn(&Step) -> bool| plan.steps.iter().filter(|step| wanted(step)).count();
    assert_eq!(kinds(|step| matches!(step, Step::Cgroup { .. })), 2);
    assert_eq!(kinds(|step| matches!(step, Step::Program { .. })), 3);
    assert_eq!(kinds(|step| matches!(step, Step::Route { .. })), 2);
    let applied = snapshot(&world);
    assert_ne!(applied, before, "an apply that changes nothing shows nothing");
    let (route, everybody) =
        (format!("congctl {}", dctcp()), format!("tcp_congestion_control = {}", dctcp()));
    let mut parts = vec![route.as_str(), "gso_max_segs 1", "/app"];
    if everything().contains("default") {
        parts.push(&everybody);
    }
    for part in parts {
        assert!(applied.iter().any(|line| line.contains(part)), "{part}: {applied:#?}");
    }
    let again = apply(&plan);
    assert!(matches!(again, Err(Error::Applied(_))), "{again:?}");
    assert_eq!(snapshot(&world), applied);
    let back = world.rollback().unwrap();
    assert_eq!((back.steps, back.left), (plan.steps.len(), Vec::new()));
    assert_as_before(&world, &before, "after the rollback");
    assert_eq!(world.rollback(), None);
    assert_as_before(&world, &before, "after the second rollback");
}

#[test]
fn planning_changes_nothing() {
    let Some(world) = World::enter("exact::planning_changes_nothing") else { return };
    let before = snapshot(&world);
    let shown = world.plan(&everything()).to_string();
    assert_eq!(snapshot(&world), before);
    for part in [
        "2 n P / R + eps with n = 12, P = 256B, R = 10Gbps",
        if Host.has_tcx() {
            "+ link    qjump at near egress (tcx)"
        } else {
            "+ filter  qjump at near egress pref 2"
        },
        "~ device  near gso_max_segs 65535 -> 1",
        "- route   198.18.9.0/24",
        "map DSCP 0 -> queue 0",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_step_that_fails_takes_back_those_before_it() {
    let Some(world) = World::enter("exact::a_step_that_fails_takes_back_those_before_it") else { return };
    let before = snapshot(&world);
    let mut plan = world.plan(&everything());
    // The route uses a device that is removed between the plan and the step.
    let route = plan.steps.iter_mut().rev().find_map(|step| match step {
        Step::Route { after, .. } => Some(after),
        _ => None,
    });
    *route.unwrap() = format!("10.0.0.0/8 dev gone congctl {}", dctcp());
    let error = apply(&plan).unwrap_err();
    assert!(error.to_string().contains("the steps before it were undone"), "{error}");
    assert_as_before(&world, &before, "after the failure");
    assert_eq!(world.rollback(), None);
}

#[test]
fn a_host_that_cannot_is_told_before_any_change() {
    let Some(world) = World::enter("exact::a_host_that_cannot_is_told_before_any_change") else { return };
    let before = snapshot(&world);
    let policy = world.policy(
        "[qjump]\ndevice = 'absent'\nhosts = 2\nrate = '1Gbps'\n[[phantom-queue]]\ndevice = 'neither'\nrate = \
         '1Gbps'\n",
    );
    let error = plimsoll_host::plan(&policy, &Host, &StateFolders::default()).unwrap_err().to_string();
    assert!(error.contains("absent") && error.contains("neither"), "every reason is told: {error}");
    assert_eq!(snapshot(&world), before);
    assert!(text("tc", "qdisc show dev near").contains("noqueue"));
}
