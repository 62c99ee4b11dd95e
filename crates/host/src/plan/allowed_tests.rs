#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::*;

/// A policy with every kind of section.
const POLICY: &str = "version = 1\n[qjump]\ndevice = 'eth0'\nhosts = 12\nrate = '10Gbps'\n\
    [[qjump.assign]]\nlevel = 1\ncgroup = '/app/one'\n[[qjump.assign]]\nlevel = 2\nunit = 'db.service'\n\
    [[qjump.assign]]\nlevel = 3\nport = 319\n\
    [[phantom_queue]]\ndevice = 'eth1'\nrate = '1Gbps'\n\
    [pacer]\ndevice = 'eth2'\nrate = '1Gbps'\ncgroups = ['/paced']\n\
    [dctcp]\ndestinations = ['10.0.0.0/8', '192.0.2.7/32', '0.0.0.0/0']\ndefault = true\n";

/// Returns the plan of that policy, as a journal stores it, with these steps.
fn plan(steps: &[Value]) -> ApplyPlan {
    let mut policy = serde_json::to_value(Policy::parse(POLICY, "rack").unwrap()).unwrap();
    policy["name"] = json!("rack");
    let plan = json!({ "policy": policy, "steps": steps, "notes": [], "cgroups": "/cgroups" });
    serde_json::from_value(plan).unwrap()
}

fn folders() -> StateFolders {
    StateFolders { state: "/run/plimsoll/host".into(), pins: "/sys/fs/bpf/plimsoll".into() }
}

fn is_allowed(step: Value) -> bool {
    plan(&[step]).check(&"rack".parse().unwrap(), &folders()).is_ok()
}

fn qjump() -> Value {
    serde_json::to_value(Policy::parse(POLICY, "rack").unwrap().qjump.unwrap()).unwrap()
}

fn level(level: u8, cgroup: &str, unit: Option<&str>, pins: &str) -> Value {
    let member = match unit {
        Some(unit) => json!({ "cgroup": cgroup, "unit": unit }),
        None => json!({ "cgroup": cgroup }),
    };
    json!({ "change": "level", "level": level, "members": [member], "pins": pins })
}

fn program(device: &str, program: Value, pins: &str) -> Value {
    json!({ "change": "program", "device": device, "side": "egress", "program": program, "hold": "link", "pins": pins })
}

fn drop_in(unit: &str, level: u8, file: &str) -> Value {
    json!({ "change": "drop-in", "unit": unit, "level": level, "file": file, "text": "" })
}

fn route(prefix: &str, before: Option<&str>, after: &str) -> Value {
    json!({ "change": "route", "prefix": prefix, "before": before, "after": after })
}

fn sysctl(name: &str, before: &str, after: &str) -> Value {
    json!({ "change": "sysctl", "name": name, "before": before, "after": after })
}

#[test]
fn what_a_policy_leads_to_is_allowed() {
    let pins = |name: &str| format!("/sys/fs/bpf/plimsoll/rack/{name}");
    for step in [
        json!({ "change": "cgroup", "folder": "/cgroups/app" }),
        json!({ "change": "cgroup", "folder": "/cgroups/app/one" }),
        json!({ "change": "cgroup", "folder": "/cgroups/paced" }),
        json!({ "change": "segments", "device": "eth0", "before": 65535, "after": 1 }),
        json!({ "change": "segments", "device": "eth2", "before": 65535, "after": 1 }),
        json!({ "change": "clsact", "device": "eth1" }),
        json!({ "change": "departures", "device": "eth2", "before": "pfifo_fast" }),
        program("eth0", json!({ "limiter": qjump() }), &pins("limiter")),
        program("eth0", json!({ "ports": [[319, 3]] }), &pins("ports")),
        level(1, "/cgroups/app/one", None, &pins("level-1")),
        level(2, "/cgroups/system.slice/db.service", Some("db.service"), &pins("level-2")),
        drop_in("db.service", 2, "/run/systemd/system/db.service.d/50-plimsoll-rack.conf"),
        json!({ "change": "dctcp", "pins": pins("dctcp") }),
        route("10.0.0.0/8", None, "10.0.0.0/8 via 192.0.2.1 dev eth0 features ecn congctl plimsoll_dctcp"),
        route(
            "192.0.2.7/32",
            Some("192.0.2.7 dev eth0.100"),
            "192.0.2.7 dev eth0.100 features ecn congctl dctcp",
        ),
        route("0.0.0.0/0", Some("default via fe80::1"), "default via fe80::1 features ecn congctl dctcp"),
        route("10.0.0.0/8", Some("blackhole 10.0.0.0/8"), "blackhole 10.0.0.0/8 features ecn congctl dctcp"),
        sysctl("net.ipv4.tcp_congestion_control", "cubic", "plimsoll_dctcp"),
    ] {
        assert!(is_allowed(step.clone()), "{step}");
    }
}

#[test]
fn what_it_does_not_lead_to_is_not() {
    let pins = |name: &str| format!("/sys/fs/bpf/plimsoll/rack/{name}");
    let mut other = qjump();
    other["hosts"] = json!(13);
    for step in [
        json!({ "change": "cgroup", "folder": "/etc/passwd" }),
        json!({ "change": "cgroup", "folder": "/cgroups" }),
        json!({ "change": "cgroup", "folder": "/cgroups/other" }),
        json!({ "change": "cgroup", "folder": "/cgroups/app/one/more" }),
        json!({ "change": "cgroup", "folder": "/cgroups/app/../../etc" }),
        json!({ "change": "cgroup", "folder": "/cgroups/app/." }),
        json!({ "change": "segments", "device": "eth1", "before": 1, "after": 2 }),
        json!({ "change": "clsact", "device": "eth9" }),
        json!({ "change": "departures", "device": "eth0", "before": "mq" }),
        json!({ "change": "departures", "device": "eth2", "before": "\u{1b}[2J" }),
        program("eth0", json!({ "limiter": other }), &pins("limiter")),
        program("eth1", json!({ "limiter": qjump() }), &pins("limiter")),
        program("eth0", json!({ "limiter": qjump() }), "/etc"),
        program("eth0", json!({ "limiter": qjump() }), &pins("../rack/limiter")),
        program("eth0", json!({ "limiter": qjump() }), &pins("ports")),
        program("eth0", json!({ "ports": [[22, 3]] }), &pins("ports")),
        level(1, "/cgroups/app/one", None, "/etc"),
        level(1, "/cgroups/app/one", None, &pins("level-2")),
        level(1, "/cgroups/app", None, &pins("level-1")),
        level(1, "/etc", Some("db.service"), &pins("level-1")),
        level(2, "/cgroups/../etc/db.service", Some("db.service"), &pins("level-2")),
        level(99, "/cgroups/app/one", None, &pins("level-99")),
        drop_in("db.service", 2, "/etc/passwd"),
        drop_in("db.service", 3, "/run/systemd/system/db.service.d/50-plimsoll-rack.conf"),
        drop_in("sshd.service", 2, "/run/systemd/system/sshd.service.d/50-plimsoll-rack.conf"),
        drop_in("db.service", 2, "/run/systemd/system/db.service.d/50-plimsoll-other.conf"),
        json!({ "change": "dctcp", "pins": "/sys/fs/bpf/plimsoll/rack" }),
        route("10.1.0.0/16", None, "10.1.0.0/16 dev eth0 congctl dctcp"),
        route("10.0.0.0/8", None, "11.0.0.0/8 dev eth0 congctl dctcp"),
        route("10.0.0.0/8", Some("default dev eth0"), "10.0.0.0/8 dev eth0 congctl dctcp"),
        route("10.0.0.0/8", Some("10.0.0.0/8 -batch /etc/passwd"), "10.0.0.0/8 dev eth0 congctl dctcp"),
        route("10.0.0.0/8", None, "10.0.0.0/8 dev eth0 congctl reno"),
        route("10.0.0.0/8", None, "10.0.0.0/8 dev eth0;reboot congctl dctcp"),
        sysctl("kernel.core_pattern", "|/tmp/mine", "core"),
        sysctl("net.ipv4.tcp_congestion_control", "cubic\n1", "dctcp"),
        sysctl("net.ipv4.tcp_congestion_control", "cubic", "reno"),
    ] {
        assert!(!is_allowed(step.clone()), "{step}");
    }
}

#[test]
fn a_plan_is_of_the_policy_of_its_name() {
    let check = |plan: &ApplyPlan, name: &str| plan.check(&name.parse().unwrap(), &folders());
    assert_eq!(check(&plan(&[]), "rack"), Ok(()));
    assert_eq!(check(&plan(&[]), "other"), Err("it is not a plan of the policy other".to_owned()));
    let mut nameless = plan(&[]);
    nameless.policy.name = None;
    assert!(check(&nameless, "rack").is_err());
    let mut wrong = plan(&[]);
    wrong.policy.version = 9;
    assert!(check(&wrong, "rack").unwrap_err().contains("version"));
    let mut elsewhere = plan(&[]);
    elsewhere.cgroups = Some("/cgroups/../etc".into());
    assert!(check(&elsewhere, "rack").is_err());
}
