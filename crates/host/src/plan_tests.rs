use std::path::Path;

use super::*;
use crate::facts::{RootQueue, Unit};
use crate::names::{Prefix, UnitName};

/// A host with `eth0` and `eth1`, a cgroup `/there`, and a default route.
struct Rack {
    tcx: bool,
    struct_ops_links: bool,
    dctcp: bool,
    clsact: bool,
    taken: Vec<u32>,
    fq: bool,
    shapers: bool,
    root: &'static str,
    replaceable: bool,
}

impl HostFacts for Rack {
    fn device(&self, name: &DeviceName) -> Result<Option<Device>, Error> {
        let there = ["eth0", "eth1"].contains(&name.as_str());
        Ok(there.then_some(Device { mtu: 1_500, gso_max_segs: 65_535, clsact: self.clsact }))
    }
    fn filters(&self, _: &DeviceName, _: DeviceSide) -> Result<Vec<u32>, Error> {
        Ok(self.taken.clone())
    }
    fn cgroups(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/cgroups"))
    }
    fn is_folder(&self, path: &Path) -> bool {
        path == Path::new("/cgroups/there")
    }
    fn unit(&self, name: &UnitName) -> Result<Unit, Error> {
        Ok(match name.as_str() {
            "runs.service" | r"a\x2db.service" => Unit::Running("/there".parse().expect("a path")),
            "stopped.slice" => Unit::Stopped,
            _ => Unit::Unknown,
        })
    }
    fn program(&self) -> Result<PathBuf, Error> {
        match self.replaceable {
            true => Err(Error::Unavailable(vec!["/usr can be written by others".to_owned()])),
            false => Ok(PathBuf::from("/usr/bin/plimsoll")),
        }
    }
    fn devices(&self) -> Result<Vec<String>, Error> {
        Ok(["eth0", "eth1", "lo"].map(str::to_owned).to_vec())
    }
    fn route(&self, prefix: Prefix) -> Result<Option<HostRoute>, Error> {
        Ok(Some(match prefix.to_string().as_str() {
            "10.0.0.0/8" => HostRoute::Exact("10.0.0.0/8 dev eth0".to_owned()),
            other => HostRoute::Wider(format!("{other} via 192.0.2.1 dev eth0")),
        }))
    }
    fn sysctl(&self, _: &str) -> Result<String, Error> {
        Ok("cubic".to_owned())
    }
    fn root_queue(&self, _: &DeviceName) -> Result<RootQueue, Error> {
        Ok(match self.root {
            "fq" => RootQueue::Departures,
            "htb" => RootQueue::Set("htb".to_owned()),
            other => RootQueue::Default(other.to_owned()),
        })
    }
    fn has_fq(&self) -> bool {
        self.fq
    }
    fn has_shapers(&self) -> bool {
        self.shapers
    }
    fn has_tcx(&self) -> bool {
        self.tcx
    }
    fn has_struct_ops_links(&self) -> bool {
        self.struct_ops_links
    }
    fn has_dctcp(&self) -> bool {
        self.dctcp
    }
    fn has_pins(&self) -> bool {
        true
    }
}

const RACK: Rack = Rack {
    tcx: true,
    struct_ops_links: true,
    dctcp: false,
    clsact: false,
    taken: Vec::new(),
    fq: true,
    shapers: true,
    root: "pfifo_fast",
    replaceable: false,
};
const QJUMP: &str = "version = 1\n[qjump]\ndevice = 'eth0'\nhosts = 12\nrate = '10Gbps'\n";

fn planned(rest: &str, rack: &Rack) -> Result<ApplyPlan, Error> {
    planned_beside(&[], &format!("{QJUMP}{rest}"), rack)
}

/// Plans the policy `rack` on a host where the policies of `others`, given by their texts, are applied.
fn planned_beside(others: &[&str], text: &str, rack: &Rack) -> Result<ApplyPlan, Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let folders = StateFolders { state: folder.path().into(), pins: PathBuf::from("/pins") };
    for (number, other) in others.iter().enumerate() {
        let name = format!("other-{number}");
        let other = Policy::parse(other, &name).expect("it is right");
        // The other policy was applied before its queue existed.
        let applied = plan(&other, &Rack { clsact: false, tcx: rack.tcx, ..RACK }, &folders)?;
        let journal = crate::PolicyJournal::of(&folders, other.name());
        journal.begin(&applied, false).expect("a journal");
    }
    let policy = Policy::parse(text, "rack").expect("it is right");
    let plan = plan(&policy, rack, &folders)?;
    // Every plan is accepted when it is read again.
    assert_eq!(plan.check(policy.name(), &folders), Ok(()));
    Ok(plan)
}

fn lines(rest: &str, rack: &Rack) -> Vec<String> {
    planned(rest, rack).expect("it can be").steps.iter().map(ToString::to_string).collect()
}

#[test]
fn classifiers_by_port_run_ahead_of_the_limiter() {
    let steps = lines("[[qjump.assign]]\nlevel = 0\nport = 319\n", &RACK);
    assert_eq!(
        steps,
        ["+ link    classify_ports at eth0 egress (tcx)", "+ link    qjump at eth0 egress (tcx)"]
    );
}

#[test]
fn only_missing_cgroups_are_made_and_from_the_top() {
    let rest = "[[qjump.assign]]\nlevel = 0\ncgroup = '/there/a/b'\n[[qjump.assign]]\nlevel = 0\ncgroup = \
        '/there/a/c'\n";
    let steps = lines(rest, &RACK);
    let made: Vec<&String> = steps.iter().filter(|step| step.starts_with("+ cgroup")).collect();
    assert_eq!(
        made,
        ["+ cgroup  /cgroups/there/a", "+ cgroup  /cgroups/there/a/b", "+ cgroup  /cgroups/there/a/c"]
    );
}

/// The members of a level share its rate, so they are one step; systemd restores a unit's level.
#[test]
fn cgroups_and_units_of_a_level_are_one_step() {
    let rest = "[[qjump.assign]]\nlevel = 3\nunit = 'runs.service'\n[[qjump.assign]]\nlevel = 0\ncgroup = '/there'\n\
                [[qjump.assign]]\nlevel = 3\ncgroup = '/there/a'\n[[qjump.assign]]\nlevel = 3\nunit = \
                'stopped.slice'\n";
    let steps = lines(rest, &RACK);
    let expected = [
        "+ link    classify_traffic, level 0, at cgroup /cgroups/there",
        "+ cgroup  /cgroups/there/a",
        "+ link    classify_traffic, connections, level 3, at cgroup /cgroups/there\n  \
         + link    classify_traffic, connections, level 3, at cgroup /cgroups/there/a",
        "+ file    /run/systemd/system/runs.service.d/50-plimsoll-rack.conf: level 3 for runs.service at every start",
        "+ file    /run/systemd/system/stopped.slice.d/50-plimsoll-rack.conf: level 3 for stopped.slice at every start",
    ];
    assert_eq!(steps[steps.len() - expected.len()..], expected);
    let texts: Vec<String> = planned(rest, &RACK)
        .expect("it can be")
        .steps
        .into_iter()
        .filter_map(|step| if let Step::DropIn { text, .. } = step { Some(text) } else { None })
        .collect();
    let head = "# Level 3 of QJump; plimsoll host rollback removes it.\n";
    let service = "[Service]\nExecStartPre=-+/usr/bin/plimsoll host attach-unit rack runs.service\n";
    let slice = "[Slice]\nIPEgressFilterPath=/pins/rack/level-3/traffic\n";
    assert_eq!(texts, [format!("{head}{service}"), format!("{head}{slice}")]);
}

#[test]
fn segments_fit_the_smallest_bucket_that_somebody_has() {
    // Level 1 has 64 packets of 256 B, which are ten frames of 1514 B; level 7 has no sockets.
    let rest = "[[qjump.assign]]\nlevel = 1\nport = 80\n";
    assert_eq!(lines(rest, &RACK)[0], "~ device  eth0 gso_max_segs 65535 -> 10");
    let keep = format!("segments = 'keep'\n{rest}");
    assert!(lines(&keep, &RACK).iter().all(|step| !step.contains("gso_max_segs")));
    let small = planned("[[qjump.assign]]\nlevel = 7\nport = 80\n", &RACK).expect("it can be");
    assert!(small.notes.iter().any(|note| note.contains("more than 256 B never leave")), "{:?}", small.notes);
}

#[test]
fn without_links_there_are_filters_of_free_preference_in_order() {
    let old = Rack { tcx: false, ..RACK };
    let rest =
        "[[qjump.assign]]\nlevel = 0\nport = 319\n[[phantom_queue]]\ndevice = 'eth0'\nrate = '10Gbps'\n";
    let expected = [
        "+ qdisc   clsact at eth0",
        "+ filter  classify_ports at eth0 egress pref 1",
        "+ filter  qjump at eth0 egress pref 2",
        "+ filter  phantom_queue at eth0 egress pref 3",
    ];
    assert_eq!(lines(rest, &old), expected);
    let used = Rack { tcx: false, clsact: true, taken: vec![1, 3], ..RACK };
    let steps = lines(rest, &used);
    let prefs: Vec<&str> = steps.iter().filter_map(|step| step.rsplit("pref ").next()).collect();
    assert_eq!(prefs, ["2", "4", "5"]);
}

#[test]
fn every_reason_is_told_at_once() {
    let rest = "[[qjump.assign]]\nlevel = 0\nunit = 'gone.service'\n[[phantom_queue]]\ndevice = 'eth9'\nrate = \
        '1Gbps'\n";
    let said = planned(rest, &RACK).expect_err("it cannot").to_string();
    assert!(
        said.contains("systemd has no unit gone.service")
            && said.contains("phantom_queue[0].device: no network device eth9; did you mean `eth"),
        "{said}"
    );
    let said = planned("", &RACK).map(|_| QJUMP.replace("eth0", "wlan7")).expect("it can be");
    let said = planned_beside(&[], &said, &RACK).expect_err("it cannot").to_string();
    assert!(said.contains("qjump.device: no network device wlan7; the host has eth0, eth1, lo"), "{said}");
}

#[test]
fn a_route_is_changed_where_there_is_one_and_added_where_not() {
    let steps = lines("[dctcp]\ndestinations = ['10.0.0.0/8', '172.16.0.0/12']\ndefault = true\n", &RACK);
    assert_eq!(
        steps[2..],
        [
            "- route   10.0.0.0/8 dev eth0\n  + route   10.0.0.0/8 dev eth0 features ecn congctl plimsoll_dctcp",
            "+ route   172.16.0.0/12 via 192.0.2.1 dev eth0 features ecn congctl plimsoll_dctcp",
            "~ sysctl  net.ipv4.tcp_congestion_control cubic -> plimsoll_dctcp",
        ]
    );
}

/// Before Linux 6.4 the kernel's own is used; where it is missing, that is the reason.
#[test]
fn an_older_kernel_has_its_own_dctcp_or_none() {
    let rest = "[dctcp]\ndestinations = ['10.0.0.0/8']\ndefault = true\n";
    let old = Rack { struct_ops_links: false, dctcp: true, ..RACK };
    let plan = planned(rest, &old).expect("it can be");
    let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps[1..],
        [
            "- route   10.0.0.0/8 dev eth0\n  + route   10.0.0.0/8 dev eth0 features ecn congctl dctcp",
            "~ sysctl  net.ipv4.tcp_congestion_control cubic -> dctcp",
        ]
    );
    assert!(plan.notes.iter().any(|note| note.contains("module tcp_dctcp")), "{:?}", plan.notes);
    let none = planned(rest, &Rack { dctcp: false, ..old }).expect_err("it cannot").to_string();
    assert!(none.contains("needs Linux 6.4") && none.contains("CONFIG_TCP_CONG_DCTCP"), "{none}");
}

/// A policy must not depend on a change that another policy's rollback undoes.
#[test]
fn two_policies_share_no_change() {
    let on = |device: &str, rest: &str| QJUMP.replace("eth0", device) + rest;
    let level = |cgroup: &str| format!("[[qjump.assign]]\nlevel = 1\ncgroup = '{cgroup}'\n");
    let alone = |text: &str| text.replacen("[qjump]", "[qjump]\nsegments = 'keep'", 1);
    let old = Rack { tcx: false, clsact: true, ..RACK };
    let (first, pacer) =
        (on("eth0", &level("/made/a")), format!("version = 1\n{PACER}").replace("eth1", "eth0"));
    for (text, rack, part) in [
        (pacer.clone(), &RACK, "pacer.segments: policy other-0 has set gso_max_segs of eth0"),
        (
            alone(&on("eth1", &level("/made/a/b"))),
            &RACK,
            "policy other-0 created the cgroup /cgroups/made/a/b or an ancestor",
        ),
        (
            pacer.replace("[pacer]", "[pacer]\nsegments = 'keep'"),
            &old,
            "policy other-0 created the clsact queue of eth0",
        ),
        (first.clone(), &RACK, "qjump: policy other-0 already limits eth0"),
    ] {
        let said = planned_beside(&[&first], &text, rack).expect_err("it is shared").to_string();
        assert!(said.contains(part), "{part}: {said}");
    }
    for text in [pacer.replace("[pacer]", "[pacer]\nsegments = 'keep'"), on("eth1", &level("/there"))] {
        planned_beside(&[&first], &text, &RACK).expect("nothing is shared");
    }
}

/// systemd interprets C escapes in a command.
#[test]
fn a_unit_with_an_escape_is_called_by_its_name() {
    let plan = planned("[[qjump.assign]]\nlevel = 3\nunit = 'a\\x2db.service'\n", &RACK).expect("it can be");
    let texts: String = plan
        .steps
        .iter()
        .filter_map(|step| if let Step::DropIn { file, text, .. } = step { Some((file, text)) } else { None })
        .map(|(file, text)| format!("{}: {text}", file.display()))
        .collect();
    assert!(texts.contains(r"attach-unit rack a\\x2db.service"), "{texts}");
    assert!(texts.starts_with(r"/run/systemd/system/a\x2db.service.d/"), "{texts}");
}

#[test]
fn a_program_that_others_can_replace_is_not_run_by_systemd() {
    let rack = Rack { replaceable: true, ..RACK };
    let said =
        planned("[[qjump.assign]]\nlevel = 3\nunit = 'runs.service'\n", &rack).expect_err("it is not safe");
    assert!(said.to_string().contains("qjump.assign: runs.service: /usr can be written"), "{said}");
    planned("[[qjump.assign]]\nlevel = 3\nport = 7\n", &rack).expect("systemd has no part in it");
}

/// Notes describe side effects on programs that the policy does not name.
#[test]
fn a_plan_tells_what_others_notice() {
    let told = |rest: &str, rack: &Rack| planned(rest, rack).expect("it can be").notes.join("\n");
    let some = "[[qjump.assign]]\nlevel = 1\nport = 80\n";
    for (rest, rack, part, is_told) in [
        (some, &RACK, "gso_max_segs is eth0's", true),
        ("", &RACK, "gso_max_segs", false),
        ("", &RACK, "a DSCP of their own is lost", true),
        ("tag = 'none'\n", &RACK, "a DSCP of their own is lost", false),
        (PACER, &RACK, "(mq)", false),
        (PACER, &Rack { root: "mq", ..RACK }, "eth1 has a queue for each hardware queue (mq)", true),
    ] {
        let notes = told(rest, rack);
        assert_eq!(notes.contains(part), is_told, "{part}: {notes}");
    }
}

#[test]
fn a_plan_survives_its_journal() {
    let rest = "tag = 'pcp'\nvlan = 7\n[[qjump.assign]]\nlevel = 3\nunit = 'runs.service'\n\
                [[phantom_queue]]\ndevice = 'eth1'\nrate = '9.87654321Gbps'\ndrain = 0.9\n";
    let plan = planned(rest, &RACK).expect("it can be");
    let text = serde_json::to_string(&plan).expect("plain data");
    assert_eq!(serde_json::from_str::<ApplyPlan>(&text).expect("what was written"), plan);
}

/// A policy with every kind of step, except the steps of older kernels.
const EVERYTHING: &str = "tag = 'pcp'\n[[qjump.assign]]\nlevel = 3\nunit = 'runs.service'\n\
    [[qjump.assign]]\nlevel = 4\ncgroup = '/there/b'\n[[qjump.assign]]\nlevel = 5\nport = 7\n\
    [[phantom_queue]]\ndevice = 'eth0'\nrate = '1Gbps'\n\
    [pacer]\ndevice = 'eth1'\nrate = '1Gbps'\ncgroups = ['/there/a']\ndeparture = 'tbf'\n\
    [dctcp]\ndestinations = ['10.0.0.0/8', 'fd00::/8']\ndefault = true\n";

/// A truncated journal is rejected at every length; a journal with a flipped bit is rejected or still follows from its
/// policy. So damaged journals are never undone as if they were whole, and nothing panics.
#[test]
fn a_damaged_journal_is_not_believed() {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    let folder = tempfile::tempdir().expect("a folder");
    let folders = StateFolders { state: folder.path().join("state"), pins: PathBuf::from("/pins") };
    let text = format!("{QJUMP}{EVERYTHING}");
    let policy = Policy::parse(&text, "rack").expect("it is right");
    let plan = plan(&policy, &RACK, &folders).expect("it can be");
    assert!(plan.steps.len() >= 14, "{plan}");
    let journal = crate::PolicyJournal::of(&folders, policy.name());
    journal.begin(&plan, false).expect("a journal");
    assert_eq!(journal.read().expect("it is whole").expect("it is there").plan, plan);
    let file = folders.state.join("rack/plan.json");
    let whole = std::fs::read(&file).expect("it is ours");
    for length in (0..whole.len()).step_by(11) {
        std::fs::write(&file, &whole[..length]).expect("it is ours");
        assert!(journal.read().is_err(), "cut at {length} of {}", whole.len());
    }
    for at in (0..whole.len()).step_by(11) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&file, &damaged).expect("it is ours");
        if let Ok(applied) = journal.read() {
            let plan = applied.expect("it is there").plan;
            assert_eq!(plan.check(policy.name(), &folders), Ok(()), "changed at {at}");
        }
    }
    std::fs::remove_file(&file).expect("it is ours");
    std::fs::DirBuilder::new().mode(0o700).create(&file).expect("it is ours");
    assert!(journal.read().is_err(), "a folder is no journal");
    std::fs::remove_dir(&file).expect("it is ours");
    assert_eq!(journal.read().expect("a folder without a plan"), None);
    std::fs::set_permissions(&folders.state, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    assert!(journal.read().is_err(), "anybody may have removed the plan");
}

const PACER: &str = "[pacer]\ndevice = 'eth1'\nrate = '1Gbps'\ncgroups = ['/there/a']\n";

#[test]
fn a_pacer_gets_a_queue_that_keeps_departures_and_short_segments() {
    let expected = [
        "+ link    qjump at eth0 egress (tcx)",
        "- qdisc   pfifo_fast at eth1 root\n  + qdisc   fq at eth1 root",
        "~ device  eth1 gso_max_segs 65535 -> 1",
        "+ cgroup  /cgroups/there/a",
        "+ link    pacer at eth1 egress (tcx)",
        "+ link    pacer_feedback at eth1 ingress (tcx)",
    ];
    assert_eq!(lines(PACER, &RACK), expected);
    let there = lines(PACER, &Rack { root: "fq", fq: false, ..RACK });
    assert!(there.iter().all(|step| !step.contains("qdisc")), "{there:?}");
}

#[test]
fn a_pacer_without_such_a_queue_is_refused_by_the_name_of_what_is_missing() {
    let said = |rack: &Rack| planned(PACER, rack).expect_err("it cannot").to_string();
    let lacks = said(&Rack { fq: false, shapers: false, ..RACK });
    assert!(lacks.contains("lacks fq (CONFIG_NET_SCH_FQ)") && lacks.contains("_TBF"), "{lacks}");
    let set = said(&Rack { root: "htb", ..RACK });
    assert!(set.contains("root queue of eth1 is htb") && set.contains("must be fq"), "{set}");
}

/// Without fq it is a TBF, and the plan says so; the policy may choose.
#[test]
fn a_pacer_without_fq_gets_a_filter_unless_told_otherwise() {
    let no_fq = Rack { fq: false, ..RACK };
    let steps = lines(PACER, &no_fq);
    let queue =
        "- qdisc   pfifo_fast at eth1 root\n  + qdisc   htb at eth1 root, and a tbf for paced packets";
    assert_eq!(steps[1], queue);
    let notes = |rest: &str, rack: &Rack| planned(rest, rack).expect("it can be").notes.join("\n");
    assert!(notes(PACER, &no_fq).contains("by a TBF, as this kernel lacks fq"), "{}", notes(PACER, &no_fq));
    let tbf = format!("{PACER}departure = 'tbf'\n");
    assert_eq!(lines(&tbf, &RACK)[1], queue);
    assert!(notes(&tbf, &RACK).contains("by a TBF, as the policy says"), "{}", notes(&tbf, &RACK));
    let said = |rest: &str, rack: &Rack| planned(rest, rack).expect_err("it cannot").to_string();
    let edt = said(&format!("{PACER}departure = 'edt'\n"), &no_fq);
    assert!(edt.contains("lacks fq") && edt.contains("departure = \"tbf\" works without it"), "{edt}");
    let there = said(&tbf, &Rack { root: "fq", ..RACK });
    assert!(there.contains("root queue of eth1 is fq"), "{there}");
}
