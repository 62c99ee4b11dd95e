//! Creates a namespace with a veth pair, both ends in it, a BPF file system, and a policy of this test; all are removed
//! when dropped.
//!
//! Tests run inside the namespace by starting this test binary again there: if a thread entered it, the programs that
//! it starts and /proc/self would disagree about the namespace. The mounts are private, too, since not every machine
//! has a BPF file system, and the host's pins must not be touched.
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use plimsoll_host::{
    ApplyPlan, ApplyProgress, Error, Host, HostFacts as _, HostLock, Kernel, PlanChange, Policy,
    PolicyJournal, RolledBack, StateFolders,
};

/// The environment variable of a test that runs inside.
const INSIDE: &str = "PLIMSOLL_TEST_INSIDE";

static ALONE: Mutex<()> = Mutex::new(());

/// The namespace in which this process runs.
pub struct World {
    pub name: String,
}

impl World {
    /// Runs the test `path` (its name in the test runner) in a namespace of its own: returns the world inside, and none
    /// outside, after the test has passed.
    pub fn enter(path: &str) -> Option<World> {
        if let Ok(name) = env::var(INSIDE) {
            return Some(World { name });
        }
        let short = path.rsplit("::").next().unwrap();
        let name = format!("plt{}-{}", std::process::id(), &short[..short.len().min(12)].replace('_', "-"));
        // The tests run one at a time, since the name of a congestion control is global.
        let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let namespace = Outside::make(&name)?;
        let output = inside(&namespace.0, path);
        eprintln!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "the test failed inside {}", namespace.0);
        let result = String::from_utf8_lossy(&output.stdout);
        assert!(result.contains("test result: ok. 1 passed"), "no test of this name: {path}");
        None
    }

    /// Runs a test of this binary in this namespace with additional environment variables.
    pub fn again(&self, path: &str, more: &[(&str, String)]) -> Output {
        this_binary(&mut Command::new(env::current_exe().unwrap()), &self.name, path)
            .envs(more.iter().map(|(key, value)| (key, value)))
            .output()
            .unwrap()
    }

    /// Parses a policy named after this world: `rest` follows its version, and `{world}` in it is replaced by that
    /// name.
    pub fn policy(&self, rest: &str) -> Policy {
        let text = format!("version = 1\n{}", rest.replace("{world}", &self.name));
        Policy::parse(&text, &self.name).unwrap()
    }

    pub fn plan(&self, rest: &str) -> ApplyPlan {
        plimsoll_host::plan(&self.policy(rest), &Host, &StateFolders::default()).unwrap()
    }

    pub fn apply(&self, rest: &str) -> ApplyPlan {
        let plan = self.plan(rest);
        apply(&plan).unwrap();
        plan
    }

    /// Plans a changed version of the applied policy.
    pub fn change(&self, rest: &str) -> PlanChange {
        let policy = self.policy(rest);
        let applied = PolicyJournal::applied(&StateFolders::default(), policy.name()).unwrap();
        plimsoll_host::plan_change(&policy, &applied, &Host, &StateFolders::default()).unwrap()
    }

    pub fn rollback(&self) -> Option<RolledBack> {
        self.try_rollback().unwrap()
    }

    pub fn try_rollback(&self) -> Result<Option<RolledBack>, Error> {
        let lock = lock();
        plimsoll_host::rollback(&lock, &self.name.parse().unwrap(), &mut Kernel(&lock))
    }

    pub fn try_rollback_rest(&self) -> Result<Option<RolledBack>, Error> {
        let lock = lock();
        plimsoll_host::rollback_rest(&lock, &self.name.parse().unwrap(), &mut Kernel(&lock))
    }

    pub fn status(&self) -> plimsoll_host::PolicyStatus {
        let journal = PolicyJournal::of(&StateFolders::default(), &self.name.parse().unwrap());
        plimsoll_host::observe(&journal.read().unwrap().unwrap()).unwrap()
    }

    /// Returns the mount point of cgroups.
    pub fn cgroups(&self) -> PathBuf {
        plimsoll_host::HostFacts::cgroups(&Host).unwrap()
    }
}

/// Takes the lock, and waits for other tests that change this host.
pub fn lock() -> HostLock {
    HostLock::acquire(&StateFolders::default(), &mut || true).unwrap()
}

/// Applies a plan that needs no confirmation.
pub fn apply(plan: &ApplyPlan) -> Result<(), Error> {
    apply_until(plan, &mut |_| {})
}

/// Applies a plan likewise, and calls `at` at every point of progress.
pub fn apply_until(plan: &ApplyPlan, at: &mut dyn FnMut(ApplyProgress)) -> Result<(), Error> {
    let lock = lock();
    plimsoll_host::apply(&lock, plan, &mut Kernel(&lock), false, at)
}

/// Applies a change, and calls `at` at every point of progress.
pub fn change_until(
    change: &PlanChange,
    to_confirm: bool,
    at: &mut dyn FnMut(ApplyProgress),
) -> Result<Vec<String>, Error> {
    let lock = lock();
    plimsoll_host::apply_change(&lock, change, &mut Kernel(&lock), to_confirm, at)
}

/// The namespace, as its parent process names it.
struct Outside(String);

impl Outside {
    fn make(name: &str) -> Option<Outside> {
        let outside = Outside(name.to_owned());
        let made = run("ip", &format!("netns add {name}"))
            && run("ip", &format!("-n {name} link add near type veth peer name far"))
            && silence(name, "near")
            && silence(name, "far")
            && run("ip", &format!("-n {name} addr add 198.18.9.1/24 dev near"))
            && run("ip", &format!("-n {name} link set lo up"))
            && run("ip", &format!("-n {name} link set near up"))
            && run("ip", &format!("-n {name} link set far up"))
            && run("ip", &format!("-n {name} route add default via 198.18.9.2"))
            && run("ip", &format!("-n {name} neigh add 198.18.9.2 lladdr 02:00:00:00:00:02 dev near"));
        // On a kernel without IPv6, the world has no IPv6.
        run("ip", &format!("-n {name} route add fd00::/8 dev near metric 7 mtu 1400"));
        let lacks = if !made {
            Some("no network namespaces with veth pairs".to_owned())
        } else if plimsoll_host::HostFacts::cgroups(&Host).is_none() {
            Some("cgroups of version 2 are not mounted".to_owned())
        } else if !run("unshare", "--mount mount -t bpf bpf /sys/fs/bpf") {
            Some("this process may not mount a BPF file system".to_owned())
        } else if dctcp_is_registered() {
            Some("somebody else has registered plimsoll_dctcp at this time".to_owned())
        } else {
            plimsoll_bpf::Program::empty().err().map(|error| error.to_string())
        };
        match lacks {
            Some(reason) => {
                plimsoll_testing::skipped!("{reason}");
                None
            }
            None => Some(outside),
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        run("ip", &format!("netns del {}", self.0));
    }
}

/// Prevents the kernel from sending packets of its own from the device, which has no address yet: without a link-local
/// address it solicits no routers, and a test may count packets. A kernel without IPv6 sends none.
fn silence(name: &str, device: &str) -> bool {
    run("ip", &format!("-n {name} link set {device} addrgenmode none"))
        || !Path::new("/proc/net/if_inet6").exists()
}

fn dctcp_is_registered() -> bool {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(path).is_ok_and(|names| names.contains(plimsoll_bpf::DCTCP_NAME))
}

/// Runs this test binary in the network namespace `name`. `ip netns exec` would hide the BPF file system.
fn inside(name: &str, path: &str) -> Output {
    let script = format!(
        "mount -t bpf bpf /sys/fs/bpf && mkdir -p /run/plimsoll && mount -t tmpfs tmpfs /run/plimsoll && \
                 exec nsenter --net=/run/netns/{name} \"$0\" \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(env::current_exe().unwrap());
    this_binary(&mut command, name, path).output().unwrap()
}

/// Adds to `command` the arguments that select one test of this binary, by its path from this folder's module.
fn this_binary<'a>(command: &'a mut Command, name: &str, path: &str) -> &'a mut Command {
    command
        .args([&format!("kernel::{path}"), "--exact", "--nocapture", "--include-ignored", "--test-threads=1"])
        .env(INSIDE, name)
}

/// Runs a command; returns whether it succeeded.
pub fn run(program: &str, arguments: &str) -> bool {
    Command::new(program)
        .args(arguments.split_whitespace())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command; returns its output.
pub fn text(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Returns a policy with every mechanism: QJump by cgroup and port, a phantom queue, and DCTCP for an existing route, a
/// new one, and by default. Where DCTCP is the kernel's own, a namespace may not have it as the default.
pub fn everything() -> String {
    if Host.has_struct_ops_links() {
        EVERYTHING.to_owned()
    } else {
        EVERYTHING.replace("default = true\n", "")
    }
}

/// Returns the congestion control of its routes.
pub fn dctcp() -> &'static str {
    if Host.has_struct_ops_links() { plimsoll_bpf::DCTCP_NAME } else { "dctcp" }
}

const EVERYTHING: &str = r#"
[qjump]
device = "near"
hosts = 12
rate = "10Gbps"
levels = ["line", "64x", "32x", "16x", "8x", "9KB", "2x", "1x"]
[[qjump.assign]]
level = 5
cgroup = "/{world}/app"
[[qjump.assign]]
level = 7
port = 319
[[phantom-queue]]
device = "far"
direction = "ingress"
rate = "10Mbps"
[dctcp]
destinations = ["198.18.9.0/24", "10.0.0.0/8"]
default = true
"#;
