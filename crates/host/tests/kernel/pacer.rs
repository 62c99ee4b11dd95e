//! HULL's pacer: refused by name without fq; with a queue that keeps departure times, what a cgroup sends passes it.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_host::{
    CgroupPath, Device, DeviceName, Error, Facts, Host, Kernel, Places, Prefix, RootQueue, Route, Side,
    UnitName,
};

use crate::snapshot::{assert_as_before, snapshot};
use crate::world::World;

const PACER: &str = "[pacer]\ndevice = 'near'\nrate = '1Gbps'\ncgroups = ['/{world}/app']\n";

#[test]
fn without_fq_it_is_refused_by_that_name() {
    let Some(world) = World::enter("pacer::without_fq_it_is_refused_by_that_name") else { return };
    if Host.has_fq() {
        eprintln!("skipped: this kernel has fq");
        return;
    }
    let before = snapshot(&world);
    let error = plimsoll_host::plan(&world.policy(PACER), &Host, &Places::default()).unwrap_err().to_string();
    assert!(error.contains("lacks fq (CONFIG_NET_SCH_FQ)"), "{error}");
    assert_eq!(snapshot(&world), before);
}

/// Without fq packets leave at once, so this shows who is paced, and not when.
#[test]
fn only_what_the_cgroup_sends_passes_it_and_a_rollback_takes_it_away() {
    let Some(world) =
        World::enter("pacer::only_what_the_cgroup_sends_passes_it_and_a_rollback_takes_it_away")
    else {
        return;
    };
    let before = snapshot(&world);
    let plan = plimsoll_host::plan(&world.policy(PACER), &KeepsDepartures, &Places::default()).unwrap();
    plimsoll_host::apply(&plan, &Places::default(), &mut Kernel, false, &mut |_| {}).unwrap();
    let outside = UdpSocket::bind("198.18.9.1:0").unwrap();
    for _ in 0..20 {
        outside.send_to(&[0; 100], "198.18.9.2:4791").unwrap();
    }
    let procs = world.cgroups().join(&world.name).join("app/cgroup.procs");
    let send = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                [s.sendto(bytes(100), ('198.18.9.2', 9)) for _ in range(7)]";
    let script = format!("echo $$ > {} && exec python3 -c \"{send}\"", procs.display());
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    let status = world.status();
    let pacer = status.pacer.as_ref().unwrap();
    assert!(pacer.attached && pacer.rate_bps >= 10_000_000, "{status}");
    // UDP has no ECE.
    assert_eq!((pacer.paced_packets, pacer.bypassed_packets, pacer.draws), (0, 7, 0), "{status}");
    assert!(plimsoll_host::open_metrics(&[status]).contains("result=\"bypassed\"} 7"));
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "after the rollback");
}

/// This host, as if the roots of its devices kept departure times.
struct KeepsDepartures;

impl Facts for KeepsDepartures {
    fn device(&self, name: &DeviceName) -> Result<Option<Device>, Error> {
        Host.device(name)
    }
    fn filters(&self, name: &DeviceName, side: Side) -> Result<Vec<u32>, Error> {
        Host.filters(name, side)
    }
    fn root_queue(&self, _: &DeviceName) -> Result<RootQueue, Error> {
        Ok(RootQueue::Departures)
    }
    fn has_fq(&self) -> bool {
        true
    }
    fn cgroups(&self) -> Option<PathBuf> {
        Host.cgroups()
    }
    fn is_folder(&self, path: &Path) -> bool {
        Host.is_folder(path)
    }
    fn unit(&self, name: &UnitName) -> Result<Option<CgroupPath>, Error> {
        Host.unit(name)
    }
    fn route(&self, prefix: Prefix) -> Result<Option<Route>, Error> {
        Host.route(prefix)
    }
    fn sysctl(&self, name: &str) -> Result<String, Error> {
        Host.sysctl(name)
    }
    fn has_tcx(&self) -> bool {
        Host.has_tcx()
    }
    fn has_pins(&self) -> bool {
        Host.has_pins()
    }
}
