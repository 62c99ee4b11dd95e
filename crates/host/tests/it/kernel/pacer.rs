//! Checks HULL's pacer: rejected by name without fq; with a queue that obeys departure times, a cgroup's packets are
//! paced.

use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_host::{
    Device, DeviceName, DeviceSide, Error, Host, HostFacts, HostRoute, PolicyJournal, Prefix, RootQueue,
    StateFolders, Unit, UnitName,
};
use plimsoll_testing::eventually;

use crate::kernel::snapshot::{assert_as_before, snapshot};
use crate::kernel::world::{World, apply, run, text};

const PACER: &str = "[pacer]\ndevice = 'near'\nrate = '1Gbps'\ncgroups = ['/{world}/app']\n";

#[test]
fn without_fq_it_is_refused_by_that_name() {
    let Some(world) = World::enter("pacer::without_fq_it_is_refused_by_that_name") else { return };
    if Host.has_fq() {
        plimsoll_testing::skipped!("this kernel has fq");
        return;
    }
    let before = snapshot(&world);
    let edt = format!("{PACER}departure = 'edt'\n");
    let error =
        plimsoll_host::plan(&world.policy(&edt), &Host, &StateFolders::default()).unwrap_err().to_string();
    assert!(error.contains("lacks fq (CONFIG_NET_SCH_FQ)"), "{error}");
    assert_eq!(snapshot(&world), before);
}

/// Without fq packets leave at once, so this shows which packets are paced, and not when.
#[test]
fn only_what_the_cgroup_sends_passes_it_and_a_rollback_takes_it_away() {
    let Some(world) =
        World::enter("pacer::only_what_the_cgroup_sends_passes_it_and_a_rollback_takes_it_away")
    else {
        return;
    };
    let before = snapshot(&world);
    let plan = plimsoll_host::plan(&world.policy(PACER), &KeepsDepartures, &StateFolders::default()).unwrap();
    apply(&plan).unwrap();
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
    // UDP carries no ECE.
    assert_eq!((pacer.paced_packets, pacer.bypassed_packets, pacer.draws), (0, 7, 0), "{status}");
    assert!(
        plimsoll_host::open_metrics(&[status], &plimsoll_host::HostCounters::default())
            .contains("result=\"bypassed\"} 7")
    );
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "after the rollback");
}

/// Without fq only paced packets pass the filter; its rate follows the pacer's while `pace` runs.
#[test]
fn without_fq_a_filter_has_the_pacers_rate() {
    let Some(world) = World::enter("pacer::without_fq_a_filter_has_the_pacers_rate") else { return };
    if !Host.has_shapers() {
        plimsoll_testing::skipped!("this kernel lacks HTB or TBF");
        return;
    }
    let before = snapshot(&world);
    world.apply(
        "[pacer]\ndevice = 'near'\nrate = '1Gbps'\nassociation-probability = 1.0\nassociation-timeout = '60s'\n\
         departure = 'tbf'\n",
    );
    assert_eq!(filter().rate_bps, 1_000_000_000, "nobody follows the pacer yet");
    let script = format!("{FRAMES}send('near', tcp(1, 2, 40000, 443, 0x10, 1400), 5)\n");
    assert!(run_python(&script));
    assert_eq!(filter().packets, 0, "the connection is not associated");
    let script = format!(
        "{FRAMES}send('far', tcp(2, 1, 443, 40000, 0x50, 0), 1)\nsend('near', tcp(1, 2, 40000, 443, 0x10, 1400), 50)\n\
         send('near', tcp(1, 2, 40001, 443, 0x10, 1400), 5)\n"
    );
    assert!(run_python(&script));
    let pacer = world.status().pacer.unwrap();
    assert_eq!((pacer.associations, pacer.paced_packets), (1, 50));
    let packets = || filter().packets;
    eventually("all that is paced has passed the filter", || packets() == 50);

    let journal = PolicyJournal::of(&StateFolders::default(), &world.name.parse().unwrap());
    let applied = journal.read().unwrap().unwrap();
    let over = AtomicBool::new(false);
    let changes = std::thread::scope(|scope| {
        let pacing =
            scope.spawn(|| plimsoll_host::pace(&applied, &mut || over.load(Ordering::Relaxed)).unwrap());
        let rate = world.status().pacer.unwrap().rate_bps;
        assert!(rate < 900_000_000, "{rate}");
        // `tc` reports rates in bytes a second.
        eventually("the filter has the pacer's rate", || filter().rate_bps.abs_diff(rate) <= 8);
        over.store(true, Ordering::Relaxed);
        pacing.join().unwrap()
    });
    assert!(changes >= 1, "{changes}");
    assert_eq!(filter().rate_bps, 1_000_000_000, "nobody follows the pacer any more");
    // The rate is also reset when `pace` ends with an error, or is killed.
    let state = Path::new("/sys/fs/bpf/plimsoll").join(&world.name).join("pacer/state");
    let slower = "qdisc change dev near parent 4855:2 handle 4856: tbf rate 1mbit burst 3kb limit 4000000b";
    assert!(run("tc", slower));
    assert_eq!(filter().rate_bps, 1_000_000);
    plimsoll_host::pace_nothing(&applied).unwrap();
    assert_eq!(filter().rate_bps, 1_000_000_000);
    let mut looks = 0;
    let mut stops = || {
        looks += 1;
        if looks > 1 {
            eventually("the filter has the pacer's rate", || filter().rate_bps < 900_000_000);
            panic!("something in the loop goes wrong");
        }
        false
    };
    let ended = catch_unwind(AssertUnwindSafe(|| plimsoll_host::pace(&applied, &mut stops)));
    assert!(ended.is_err() && state.exists());
    assert_eq!(filter().rate_bps, 1_000_000_000);
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "after the rollback");
}

/// With fq a connection's packets leave no earlier than the pacer's departure times. They may arrive later, on a slow
/// machine.
#[test]
fn with_fq_packets_leave_at_the_pacers_rate() {
    let Some(world) = World::enter("pacer::with_fq_packets_leave_at_the_pacers_rate") else { return };
    if !Host.has_fq() {
        plimsoll_testing::skipped!("this kernel lacks fq");
        return;
    }
    let before = snapshot(&world);
    // The rate is constant: the push is zero, and measurements change it by less than a thousandth.
    let policy = "[pacer]\ndevice = 'near'\nrate = '8Mbps'\nmin-rate = '8Mbps'\neta = 0.001\nbeta = 0.0\ninterval = \
        '1s'\n\
                  bucket = '3KB'\nassociation-probability = 1.0\nassociation-timeout = '600s'\ndeparture = 'edt'\n";
    let plan = world.apply(policy);
    assert!(plan.to_string().contains("+ qdisc   fq at near root"), "{plan}");
    assert!(text("tc", "qdisc show dev near root").starts_with("qdisc fq 4855:"));
    let output = Command::new("python3").args(["-c", &format!("{FRAMES}{ARRIVALS}")]).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let times: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
    let (begun, arrivals) = times.split_first().unwrap();
    assert_eq!(arrivals.len(), 50);
    for (sent, arrival) in (1..).zip(arrivals) {
        // The limit is the initial bucket plus a rate that is 1 % higher.
        let bits = f64::from(8 * 1_454 * sent - 8 * 3_000);
        let earliest = bits / 8.08e6;
        let after = (arrival - begun) as f64 / 1e9;
        assert!(
            after >= earliest,
            "packet {sent} arrived after {after} s, its departure is after {earliest} s"
        );
    }
    let pacer = world.status().pacer.unwrap();
    assert_eq!((pacer.attached, pacer.paced_packets, pacer.associations), (true, 50, 1));
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "after the rollback");
    // A configured fq is accepted as well, and stays.
    assert!(run("tc", "qdisc add dev near root handle 7: fq"));
    let before = snapshot(&world);
    let plan = world.apply(policy);
    assert!(!plan.to_string().contains("qdisc   fq"), "{plan}");
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert_as_before(&world, &before, "with an fq of somebody else");
}

/// Associates a connection, sends 50 of its packets at once, and prints the start and each arrival.
const ARRIVALS: &str = "
import time
far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
far.bind(('far', 0x0800))
far.settimeout(60)
send('far', tcp(2, 1, 443, 40000, 0x50, 0), 1)
print(time.monotonic_ns())
send('near', tcp(1, 2, 40000, 443, 0x10, 1400), 50)
arrived = 0
while arrived < 50:
    frame, address = far.recvfrom(2000)
    if address[2] != socket.PACKET_OUTGOING and len(frame) == 1454:
        print(time.monotonic_ns())
        arrived += 1
";

struct Filter {
    rate_bps: u64,
    packets: u64,
}

/// Reads the state of the filter by `tc`.
fn filter() -> Filter {
    let queues: serde_json::Value = serde_json::from_str(&text("tc", "-s -j qdisc show dev near")).unwrap();
    let filter = queues.as_array().unwrap().iter().find(|queue| queue["kind"] == "tbf").unwrap();
    assert_eq!(filter["parent"], "4855:2");
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    Filter { rate_bps: 8 * number(&filter["options"]["rate"]), packets: number(&filter["packets"]) }
}

fn run_python(script: &str) -> bool {
    Command::new("python3").args(["-c", script]).status().unwrap().success()
}

/// Sends raw TCP frames from 198.18.9.x to 198.18.9.y at a device.
const FRAMES: &str = "
import socket, struct
def tcp(source, target, sport, dport, flags, payload):
    head = struct.pack('!HHIIBBHHH', sport, dport, 1, 1, 0x50, flags, 1000, 0, 0)
    ip = struct.pack('!BBHHHBBH4B4B', 0x45, 2, 40 + payload, 0, 0, 64, 6, 0, 198, 18, 9, source, 198, 18, 9, target)
    return bytes(12) + b'\\x08\\x00' + ip + head + bytes(payload)
def send(device, frame, count):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    s.bind((device, 0x0800))
    for _ in range(count):
        s.send(frame)
";

/// This host, except that the root queues of its devices obey departure times.
struct KeepsDepartures;

impl HostFacts for KeepsDepartures {
    fn device(&self, name: &DeviceName) -> Result<Option<Device>, Error> {
        Host.device(name)
    }
    fn filters(&self, name: &DeviceName, side: DeviceSide) -> Result<Vec<u32>, Error> {
        Host.filters(name, side)
    }
    fn root_queue(&self, _: &DeviceName) -> Result<RootQueue, Error> {
        Ok(RootQueue::Departures)
    }
    fn has_fq(&self) -> bool {
        true
    }
    fn has_shapers(&self) -> bool {
        Host.has_shapers()
    }
    fn cgroups(&self) -> Option<PathBuf> {
        Host.cgroups()
    }
    fn is_folder(&self, path: &Path) -> bool {
        Host.is_folder(path)
    }
    fn unit(&self, name: &UnitName) -> Result<Unit, Error> {
        Host.unit(name)
    }
    fn program(&self) -> Result<PathBuf, Error> {
        Host.program()
    }
    fn devices(&self) -> Result<Vec<String>, Error> {
        Host.devices()
    }
    fn route(&self, prefix: Prefix) -> Result<Option<HostRoute>, Error> {
        Host.route(prefix)
    }
    fn sysctl(&self, name: &str) -> Result<String, Error> {
        Host.sysctl(name)
    }
    fn has_tcx(&self) -> bool {
        Host.has_tcx()
    }
    fn has_struct_ops_links(&self) -> bool {
        Host.has_struct_ops_links()
    }
    fn has_dctcp(&self) -> bool {
        Host.has_dctcp()
    }
    fn has_pins(&self) -> bool {
        Host.has_pins()
    }
}
