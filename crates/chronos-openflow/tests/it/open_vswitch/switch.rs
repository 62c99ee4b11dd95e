//! Open vSwitch in a network namespace, its database in a temporary directory, and two hosts in namespaces at its
//! ports.

use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Its processes end, and its devices and namespaces go, when it is dropped.
pub struct Switch {
    name: String,
    protocol: String,
    directory: TempDir,
    processes: Vec<Child>,
}

impl Switch {
    /// Creates a switch that speaks one version and, without a controller, forwards nothing. `label` is a word of at
    /// most two letters, the test's own. None, with the reason on standard error, if this machine cannot.
    pub fn new(label: &str, protocol: &str) -> Option<Switch> {
        let name = format!("pl{label}{}", std::process::id());
        let directory = tempfile::tempdir().unwrap();
        let mut switch = Switch { name, protocol: protocol.to_owned(), directory, processes: Vec::new() };
        let missing = ["ovsdb-server", "ovs-vswitchd", "ping", "ip"].into_iter().find(|program| {
            let version = if *program == "ip" || *program == "ping" { "-V" } else { "--version" };
            !succeeds(Command::new(program).arg(version))
        });
        if let Some(program) = missing {
            plimsoll_testing::missing(format!(
                "no {program} (Debian packages openvswitch-switch, iputils-ping, iproute2)"
            ));
            return None;
        }
        if !(switch.make_space() && switch.make_host("1") && switch.make_host("2")) {
            plimsoll_testing::skipped!("this machine makes no network namespace with a veth pair");
            return None;
        }
        switch.start();
        Some(switch)
    }

    /// Returns once the switch is connected.
    pub fn use_controller(&self, address: SocketAddr) {
        let bridge = &self.name;
        self.configure(&["set-controller", bridge, &format!("tcp:{address}")]);
        // It retries each second, the shortest interval that it allows.
        let settings = ["connection-mode=out-of-band", "max_backoff=1000"];
        self.configure(&["set", "controller", bridge, settings[0], settings[1]]);
        self.wait_for_controller(true);
    }

    pub fn wait_for_controller(&self, connected: bool) {
        self.configure(&["wait-until", "controller", &self.name, &format!("is_connected={connected}")]);
    }

    /// Reports whether host 1 reaches host 2 within this many seconds.
    pub fn ping(&self, seconds: u32) -> bool {
        let deadline = seconds.to_string();
        succeeds(self.at_host("1").args(["ping", "-q", "-c", "1", "-w", &deadline, "198.18.7.2"]))
    }

    pub fn flows(&self) -> String {
        self.switch_answers(&["dump-flows", &self.name])
    }

    pub fn forget_flows(&self) {
        self.switch_answers(&["del-flows", &self.name]);
    }

    /// Returns the switch's number of a host's port.
    pub fn port_number(&self, host: &str) -> String {
        text(self.program("ovs-vsctl").args(["get", "interface", &self.device(host), "ofport"]))
    }

    /// Takes a host's port away and adds it again, with another number.
    pub fn move_port(&self, host: &str) {
        let device = self.device(host);
        self.configure(&["del-port", &self.name, &device]);
        self.configure(&[
            "add-port",
            &self.name,
            &device,
            "--",
            "set",
            "interface",
            &device,
            "ofport_request=9",
        ]);
    }

    /// Returns the state for messages of failed tests.
    pub fn state(&self) -> String {
        let log = std::fs::read_to_string(self.directory.path().join("switch.log")).unwrap_or_default();
        format!("{}{}{log}", self.flows(), self.switch_answers(&["show", &self.name]))
    }

    fn start(&mut self) {
        let database = self.path("conf.db");
        assert!(succeeds(self.program("ovsdb-tool").args(["create", &database, SCHEMA])));
        let remote = format!("--remote=punix:{}", self.path("db.sock"));
        self.spawn("ovsdb-server", &[&database, &remote, &format!("--unixctl={}", self.path("db.ctl"))]);
        self.configure(&["--no-wait", "init"]);
        let log = format!("--log-file={}", self.path("switch.log"));
        let control = format!("--unixctl={}", self.path("switch.ctl"));
        self.spawn("ovs-vswitchd", &[&format!("unix:{}", self.path("db.sock")), &control, &log]);
        let (bridge, protocol) = (&self.name, format!("protocols={}", self.protocol));
        let mut made = vec!["add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev"];
        made.extend([&protocol, "fail_mode=secure"]);
        let ports = [self.device("1"), self.device("2")];
        for port in &ports {
            made.extend(["--", "add-port", bridge, port]);
        }
        self.configure(&made);
    }

    /// Creates the namespace of the switch and, by the loopback, its controller.
    fn make_space(&self) -> bool {
        let space = self.space("switch");
        ip(&format!("netns add {space}")) && ip(&format!("-n {space} link set lo up"))
    }

    /// Creates a namespace with an address, and its device at the switch.
    fn make_host(&self, host: &str) -> bool {
        let (space, switch, device) = (self.space(host), self.space("switch"), self.device(host));
        ip(&format!("netns add {space}"))
            && ip(&format!("-n {switch} link add {device} type veth peer name eth0 netns {space}"))
            && ip(&format!("-n {switch} link set {device} up"))
            && ip(&format!("-n {space} addr add 198.18.7.{host}/24 dev eth0"))
            && ip(&format!("-n {space} link set eth0 up"))
    }

    fn at_host(&self, host: &str) -> Command {
        inside(&self.space(host))
    }

    fn configure(&self, arguments: &[&str]) {
        let mut command = self.program("ovs-vsctl");
        let output = command.args(["--retry", "--timeout=60"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn switch_answers(&self, arguments: &[&str]) -> String {
        text(self.program("ovs-ofctl").args(["-O", &self.protocol]).args(arguments))
    }

    /// Returns a command for a program in the switch's namespace, which finds its sockets.
    fn program(&self, name: &str) -> Command {
        let mut command = inside(&self.space("switch"));
        command.arg(name);
        let directory = self.directory.path();
        command.env("OVS_RUNDIR", directory).env("OVS_LOGDIR", directory).env("OVS_DBDIR", directory);
        if name == "ovs-vsctl" {
            command.arg(format!("--db=unix:{}", self.path("db.sock")));
        }
        command
    }

    fn spawn(&mut self, name: &str, arguments: &[&str]) {
        let mut command = self.program(name);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        self.processes.push(child);
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    fn device(&self, host: &str) -> String {
        format!("{}h{host}", self.name)
    }

    /// Returns the name of the namespace of a host, or of the switch.
    pub fn space(&self, host: &str) -> String {
        format!("plimsoll-{}-{host}", self.name)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        // All devices are removed with their namespaces.
        for space in ["1", "2", "switch"] {
            ip(&format!("netns del {}", self.space(space)));
        }
    }
}

/// Returns a command that runs in a namespace.
pub fn inside(space: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", space]);
    command
}

fn ip(arguments: &str) -> bool {
    succeeds(Command::new("ip").args(arguments.split(' ')))
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|Output { status, .. }| status.success())
}

fn text(command: &mut Command) -> String {
    let Output { stdout, stderr, .. } = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)).trim().to_owned()
}
