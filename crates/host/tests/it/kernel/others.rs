//! Checks that a rollback leaves changes alone that others have made in the meantime.

use std::fs;
use std::process::Command;

use plimsoll_host::{ApplyPlan, ApplyProgress, Hold, Step};

use crate::kernel::snapshot::{assert_as_before, snapshot};
use crate::kernel::world::{World, apply, apply_until, everything, run, text};

#[test]
fn what_somebody_else_has_set_since_is_left() {
    let Some(world) = World::enter("others::what_somebody_else_has_set_since_is_left") else { return };
    world.apply(&everything());
    assert!(run("ip", "link set dev near gso_max_segs 3"));
    assert!(run("sysctl", "-qw net.ipv4.tcp_congestion_control=reno"));
    let inner = world.cgroups().join(&world.name).join("app/inner");
    // A process keeps running in the cgroup, and so the cgroup stays.
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(inner.parent().unwrap().join("cgroup.procs"), sleeper.id().to_string()).unwrap();
    fs::create_dir(&inner).unwrap();
    assert!(run("ip", "route replace 198.18.9.0/24 dev far"));
    let left = world.rollback().unwrap().left.join("\n");
    let mut parts =
        vec!["gso_max_segs 3", "contains other cgroups", "route to 198.18.9.0/24 is `198.18.9.0/24 dev far"];
    if everything().contains("default") {
        parts.push("tcp_congestion_control is reno");
    }
    for part in parts {
        assert!(left.contains(part), "{part}: {left}");
    }
    let procs = inner.parent().unwrap().join("cgroup.procs");
    assert_eq!(fs::read_to_string(procs).unwrap().trim(), sleeper.id().to_string(), "it is where it was");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap().trim(), "reno");
    for folder in [&inner, inner.parent().unwrap(), inner.parent().unwrap().parent().unwrap()] {
        fs::remove_dir(folder).unwrap();
    }
}

#[test]
fn what_a_device_has_taken_along_is_forgotten_on_request() {
    let Some(world) = World::enter("others::what_a_device_has_taken_along_is_forgotten_on_request") else {
        return;
    };
    world.apply(&everything());
    assert!(run("ip", "link del dev near"));
    let status = world.status();
    assert_eq!(status.limiting, Some(false));
    assert!(status.to_string().contains("(gone)"), "{status}");
    let error = world.try_rollback().unwrap_err().to_string();
    assert!(error.contains("device near, which this network namespace has no more"), "{error}");
    assert!(error.contains("add `--gone`"), "{error}");
    assert_eq!(world.try_rollback_rest().unwrap().unwrap().left, Vec::<String>::new());
    assert!(!fs::exists(format!("/sys/fs/bpf/plimsoll/{}", world.name)).unwrap());
}

#[test]
fn a_device_is_known_by_more_than_its_name() {
    let Some(world) = World::enter("others::a_device_is_known_by_more_than_its_name") else { return };
    let segments = |device: &str| text("ip", &format!("-d link show dev {device}"));
    let before = segments("near");
    apply(&by_filters(&world, &everything())).unwrap();
    assert_ne!(segments("near"), before);
    // Routes of a device are removed when it goes down, which a renaming needs on older kernels.
    assert!(run("ip", "link set dev near down") && run("ip", "link set dev near name moved"));
    assert!(
        run("ip", "link add near type veth peer name theirs") && run("ip", "link set near gso_max_segs 1")
    );
    let (moved, theirs) = (segments("moved"), segments("near"));
    for rollback in [World::try_rollback, World::try_rollback_rest] {
        let error = rollback(&world).unwrap_err().to_string();
        assert!(error.contains("device near, which is called moved now"), "{error}");
        assert!(
            error.contains("give the device that is called near now another name; `ip link set"),
            "{error}"
        );
        assert_eq!(segments("near"), theirs, "another device is not changed");
        assert_eq!(segments("moved"), moved);
    }
    assert!(run("ip", "link del near") && run("ip", "link set dev moved name near"));
    assert!(run("ip", "link set dev near up"));
    world.try_rollback().unwrap();
    assert_eq!(segments("near"), before);
}

#[test]
fn a_device_that_was_made_anew_with_its_index_is_another() {
    let Some(world) = World::enter("others::a_device_that_was_made_anew_with_its_index_is_another") else {
        return;
    };
    let shown = || text("ip", "-d link show dev near");
    let address = || {
        let shown = shown();
        shown.split_whitespace().skip_while(|word| *word != "link/ether").nth(1).unwrap().to_owned()
    };
    let (before, first) = (shown(), address());
    let recognized = format!("`ip link set dev near address {first}` lets this command recognize it");
    world.apply(&everything());
    // The same device with another address is recognized once it has its own back.
    assert!(run("ip", "link set dev near address 02:00:00:00:00:09"));
    let error = world.try_rollback().unwrap_err().to_string();
    assert!(error.contains(&recognized) && error.contains("add `--gone`"), "{error}");
    assert!(run("ip", &format!("link set dev near address {first}")));
    world.try_rollback().unwrap();
    assert_eq!(shown(), before);

    world.apply(&everything());
    let index = shown().split(':').next().unwrap().to_owned();
    assert!(run("ip", "link del dev near"));
    assert!(run("ip", &format!("link add near index {index} type veth peer name far")));
    assert!(run("ip", "link set near gso_max_segs 1"));
    let anew = shown();
    let error = world.try_rollback().unwrap_err().to_string();
    assert!(error.contains(&recognized) && error.contains("add `--gone`"), "{error}");
    assert_eq!(world.try_rollback_rest().unwrap().unwrap().left, Vec::<String>::new());
    assert_eq!(shown(), anew, "another device is not changed");
    assert!(!fs::exists(format!("/sys/fs/bpf/plimsoll/{}", world.name)).unwrap());
}

/// Plans as on a kernel without links at devices: with a clsact queue and filters.
fn by_filters(world: &World, policy: &str) -> ApplyPlan {
    let mut plan = world.plan(policy);
    let mut steps = Vec::new();
    for step in plan.steps {
        match step {
            Step::Program { device, side, program, pins, .. } => {
                let clsact = Step::Clsact { device: device.clone() };
                if !steps.contains(&clsact)
                    && !text("tc", &format!("qdisc show dev {device}")).contains("clsact")
                {
                    steps.push(clsact);
                }
                let hold = Hold::Filter { priority: 1 + steps.len() as u32 };
                steps.push(Step::Program { device, side, program, hold, pins });
            }
            other => steps.push(other),
        }
    }
    plan.steps = steps;
    plan
}

#[test]
fn filters_of_a_clsact_queue_do_the_same() {
    let Some(world) = World::enter("others::filters_of_a_clsact_queue_do_the_same") else { return };
    let before = snapshot(&world);
    let plan = by_filters(&world, &everything());
    apply(&plan).unwrap();
    let filters = text("tc", "filter show dev near egress");
    assert!(filters.contains("qjump") && filters.contains("classify_ports"), "{filters}");
    assert_eq!(world.status().limiting, Some(true));
    assert!(run("ping", "-q -c 1 -W 0.1 198.18.9.2") || world.status().levels[0].passed_packets > 0);
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "after the rollback");
}

#[test]
fn a_clsact_queue_and_filters_of_somebody_else_stay() {
    let Some(world) = World::enter("others::a_clsact_queue_and_filters_of_somebody_else_stay") else {
        return;
    };
    let foreign = "filter add dev near egress pref 40 protocol all u32 match u32 0 0 classid 1:1";
    assert!(run("tc", "qdisc add dev near clsact") && run("tc", foreign));
    let before = snapshot(&world);
    let plan = by_filters(&world, &everything());
    apply(&plan).unwrap();
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "their queue was there first");
    // The queue was created by the policy, but another program now uses it.
    assert!(run("tc", "qdisc del dev near clsact"));
    let plan = by_filters(&world, &everything());
    apply(&plan).unwrap();
    assert!(run("tc", foreign));
    let left = world.rollback().unwrap().left.join("\n");
    assert!(left.contains("the clsact queue of near stays"), "{left}");
    assert!(text("tc", "filter show dev near egress").contains("u32"));
}

/// An object that another program creates between the plan and the step stays when the apply fails because of it.
#[test]
fn what_somebody_else_makes_at_the_last_moment_is_not_taken_back() {
    let path = "others::what_somebody_else_makes_at_the_last_moment_is_not_taken_back";
    let Some(world) = World::enter(path) else { return };
    let before = snapshot(&world);
    let plan = by_filters(&world, &everything());
    let folder = world.cgroups().join(&world.name);
    let cgroup = plan.steps.iter().position(|step| matches!(step, Step::Cgroup { .. })).unwrap();
    let clsact = plan.steps.iter().position(|step| matches!(step, Step::Clsact { .. })).unwrap();
    let mut make = |moment| {
        if moment == ApplyProgress::Begun(cgroup) {
            fs::create_dir(&folder).unwrap();
        }
    };
    let error = apply_until(&plan, &mut make).unwrap_err().to_string();
    assert!(error.contains("it was created after the plan was made"), "{error}");
    assert!(folder.is_dir(), "their cgroup stays");
    fs::remove_dir(&folder).unwrap();
    assert_as_before(&world, &before, "the other steps were undone");
    let mut make = |moment| {
        if moment == ApplyProgress::Begun(clsact) {
            assert!(run("tc", "qdisc add dev near clsact"));
        }
    };
    let error = apply_until(&plan, &mut make).unwrap_err().to_string();
    assert!(error.contains("another queue of near"), "{error}");
    assert!(text("tc", "qdisc show dev near").contains("clsact"), "their queue stays");
    assert!(run("tc", "qdisc del dev near clsact"));
    assert_as_before(&world, &before, "the other steps were undone");
}
