use plimsoll_units::Bytes;

use super::*;
use crate::step::{Hold, LevelCgroup};
use crate::{DeviceSide, Policy};

const QJUMP: &str = "version = 1\n[qjump]\ndevice = 'eth0'\nhosts = 12\nrate = '10Gbps'\n";

fn program(folder: &str, program: PortProgram) -> Step {
    let pins = format!("/pins/rack/{folder}").into();
    Step::Program {
        device: "eth0".parse().expect("a name"),
        side: DeviceSide::Egress,
        program,
        hold: Hold::Link,
        pins,
    }
}

fn limiter(rest: &str) -> Step {
    let policy = Policy::parse(&format!("{QJUMP}{rest}"), "rack").expect("it is right");
    program("limiter", PortProgram::Limiter(policy.qjump.expect("it has one")))
}

fn ports(ports: &[(u16, u8)]) -> Step {
    program("ports", PortProgram::Ports(ports.to_vec()))
}

fn level(cgroup: &str) -> Step {
    let members = vec![LevelCgroup { cgroup: cgroup.into(), unit: None }];
    let share = Some((Bytes::new(256), plimsoll_units::Span::from_us(10)));
    Step::Level { level: 7, members, share, pins: "/pins/rack/level-7".into() }
}

fn cgroup(folder: &str) -> Step {
    Step::Cgroup { folder: folder.into() }
}

#[test]
fn a_member_of_a_level_is_nothing_to_the_limiter() {
    let with = limiter("[[qjump.assign]]\nlevel = 7\ncgroup = '/app'\n");
    let difference = Difference::between(&[limiter(""), level("/c/old")], &[with.clone(), level("/c/app")]);
    assert_eq!(difference.kept, [with]);
    assert_eq!(difference.moves(), [PlanMove::Undo(&level("/c/old")), PlanMove::Make(&level("/c/app"))]);
    let faster = Difference::between(&[limiter("")], &[limiter("epsilon = '5us'\n")]);
    assert_eq!((faster.kept.len(), faster.moves().len()), (0, 2));
}

#[test]
fn no_program_stays_behind_a_new_one_at_its_device() {
    let difference = Difference::between(&[limiter("")], &[ports(&[(80, 1)]), limiter("")]);
    let moves =
        [PlanMove::Undo(&limiter("")), PlanMove::Make(&ports(&[(80, 1)])), PlanMove::Make(&limiter(""))];
    assert_eq!(difference.moves(), moves);
    let without = Difference::between(&[ports(&[(80, 1)]), limiter("")], &[limiter("")]);
    assert_eq!(without.moves(), [PlanMove::Undo(&ports(&[(80, 1)]))]);
}

#[test]
fn cgroups_are_released_at_the_end_from_the_innermost() {
    let applied = [cgroup("/c/a"), cgroup("/c/a/b"), level("/c/a/b")];
    let difference = Difference::between(&applied, &[]);
    assert_eq!(difference.released, [cgroup("/c/a/b"), cgroup("/c/a")]);
    assert_eq!(difference.moves(), [PlanMove::Undo(&level("/c/a/b"))]);
    assert!(Difference::between(&applied, &applied).is_empty());
}

#[test]
fn an_undone_step_is_printed_the_other_way_round() {
    let device: crate::DeviceName = "eth0".parse().expect("a name");
    let segments = Step::Segments { device: device.clone(), before: 65_535, after: 5 };
    assert_eq!(PlanMove::Undo(&segments).to_string(), "~ device  eth0 gso_max_segs 5 -> 65535");
    let queue = Step::Departures { device, before: "pfifo_fast".to_owned() };
    let shown = "- qdisc   fq at eth0 root\n  + qdisc   pfifo_fast at eth0 root";
    assert_eq!(PlanMove::Undo(&queue).to_string(), shown);
}
