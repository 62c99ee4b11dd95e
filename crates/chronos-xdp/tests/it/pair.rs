//! Two network namespaces that a veth pair joins, removed when this is dropped: a server in one, clients in the other.
//!
//! `PLIMSOLL_DEVICES=eth0:eth1` replaces the pair by two devices that are joined outside, one queue each
//! (`kernels/zero-copy`): drivers other than veth, which may read and write frames themselves.
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]
#![allow(dead_code, reason = "every test uses its part")]

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The server's end of the pair.
pub const DEVICE: &str = "near";
/// The name of the clients' end.
pub const FAR: &str = "far";
/// The Ethernet addresses of both ends.
pub const SERVER_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const CLIENT_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub const SERVER_V4: &str = "192.0.2.1";
pub const SERVER_V6: &str = "2001:db8::1";
pub const CLIENT_V4: &str = "192.0.2.2";
pub const CLIENT_V6: &str = "2001:db8::2";

const PATIENCE: Duration = Duration::from_secs(30);

/// The test that has the given devices.
static DEVICES: Mutex<()> = Mutex::new(());

pub struct Pair {
    server: String,
    client: String,
    has_v6: bool,
    /// Queues of the server's device.
    pub queues: u32,
    given: Option<Given>,
}

/// Devices that exist before the test, by their original names.
struct Given {
    names: [String; 2],
    _alone: MutexGuard<'static, ()>,
}

impl Given {
    fn from_environment() -> Option<Given> {
        let value = std::env::var("PLIMSOLL_DEVICES").ok()?;
        let (near, far) = value.split_once(':').expect("PLIMSOLL_DEVICES has two names with a colon between");
        let alone = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Given { names: [near.to_owned(), far.to_owned()], _alone: alone })
    }

    /// Puts a device into a namespace by another name and address.
    fn lend(&self, end: usize, namespace: &str, name: &str, hardware: &str) -> bool {
        let home = &self.names[end];
        ip(&format!("link set {home} down"))
            && ip(&format!("link set {home} netns {namespace}"))
            && ip(&format!("-n {namespace} link set {home} name {name} address {hardware}"))
    }

    fn take_back(&self, end: usize, namespace: &str, name: &str) {
        ip(&format!("-n {namespace} link set {name} down"));
        ip(&format!("-n {namespace} link set {name} mtu 1500 name {}", self.names[end]));
        ip(&format!("-n {namespace} link set {} netns 1", self.names[end]));
    }
}

impl Pair {
    /// Creates a pair whose ends have `queues` queues each. None, with the reason on standard error, if this machine
    /// cannot make one.
    pub fn new(queues: u32) -> Option<Pair> {
        Pair::with_queues(queues, queues)
    }

    /// Creates a pair whose ends have these numbers of queues: the server's and the clients'.
    pub fn with_queues(near_queues: u32, far_queues: u32) -> Option<Pair> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (server, client) = (format!("plimsoll-server-{id}"), format!("plimsoll-client-{id}"));
        let given = Given::from_environment();
        let queues = if given.is_some() { 1 } else { near_queues };
        if given.is_some() && near_queues != far_queues {
            plimsoll_testing::skipped!("the devices that are given have one queue each");
            return None;
        }
        let mut pair = Pair { server: server.clone(), client: client.clone(), has_v6: true, queues, given };
        let [near_queues, far_queues] =
            [near_queues, far_queues].map(|queues| format!("numrxqueues {queues} numtxqueues {queues}"));
        let (near, far) = (text(SERVER_HARDWARE), text(CLIENT_HARDWARE));
        let made = ip(&format!("netns add {server}")) && ip(&format!("netns add {client}"));
        let made = made
            && match &pair.given {
                Some(given) => {
                    let lent = given.lend(0, &server, DEVICE, &near) && given.lend(1, &client, FAR, &far);
                    assert!(lent, "PLIMSOLL_DEVICES names devices that can be moved");
                    lent
                }
                None => ip(&format!(
                    "-n {server} link add {DEVICE} address {near} {near_queues} type veth peer name {FAR} \
                     address {far} \
                     {far_queues} netns {client}"
                )),
            };
        if !made {
            plimsoll_testing::skipped!("this machine makes no network namespaces with a veth pair");
            return None;
        }
        for (name, device, v4, v6) in
            [(&server, DEVICE, SERVER_V4, SERVER_V6), (&client, FAR, CLIENT_V4, CLIENT_V6)]
        {
            assert!(ip(&format!("-n {name} link set lo up")));
            assert!(ip(&format!("-n {name} addr add {v4}/24 dev {device}")));
            pair.has_v6 &= ip(&format!("-n {name} addr add {v6}/64 dev {device} nodad"));
            assert!(ip(&format!("-n {name} link set {device} up")));
        }
        if !pair.has_v6 {
            eprintln!("IPv6 is left out: this kernel has none");
        }
        Some(pair)
    }

    /// Reports whether the devices are joined outside, where the link may hold frames back.
    pub fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Returns the server's addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let all = [SERVER_V4, SERVER_V6].map(|address| address.parse().unwrap());
        all[..1 + usize::from(self.has_v6)].to_vec()
    }

    /// Runs a function in the server's namespace, together with the threads and processes that it starts.
    pub fn at_server<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        inside(&self.server, run)
    }

    /// Runs a function in the clients' namespace.
    pub fn at_client<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        inside(&self.client, run)
    }

    /// Returns a socket in the clients' namespace that is connected to `server`.
    pub fn connect(&self, server: SocketAddr) -> UdpSocket {
        self.at_client(|| {
            let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
            let socket = UdpSocket::bind((any, 0)).unwrap();
            socket.connect(server).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        })
    }

    /// Sends frames unchanged from the clients' end; returns when the device has them.
    pub fn send_frames(&self, frames: &[Vec<u8>]) {
        const SOURCE: &str = "\
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for line in sys.stdin: s.send(bytes.fromhex(line))
";
        let mut python = Command::new("ip");
        python.args(["netns", "exec", &self.client, "python3", "-c", SOURCE, FAR]).stdin(Stdio::piped());
        let mut child = python.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        for frame in frames {
            let line: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(input, "{line}").unwrap();
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }

    /// Reports whether the server's kernel answers a ping.
    pub fn ping(&self, address: &str) -> bool {
        ip(&format!("netns exec {} ping -q -c 1 -W 10 {address}", self.client))
    }

    /// Runs `ip` in the server's namespace.
    pub fn ip(&self, arguments: &str) -> bool {
        ip(&format!("-n {} {arguments}", self.server))
    }

    /// Returns the kernel's description of the server's device.
    pub fn device(&self) -> String {
        let arguments = ["-n", &self.server, "-details", "link", "show", "dev", DEVICE];
        String::from_utf8(Command::new("ip").args(arguments).output().unwrap().stdout).unwrap()
    }

    /// Reports whether the server's device has an XDP program.
    pub fn has_program(&self) -> bool {
        self.device().contains("xdp")
    }

    /// Waits until the server's device has no XDP program: the kernel detaches one when the last descriptor of its link
    /// is released, which it does after the process has closed it.
    #[track_caller]
    pub fn loses_its_program(&self) {
        plimsoll_testing::eventually("the device has no XDP program", || !self.has_program());
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if let Some(given) = &self.given {
            given.take_back(0, &self.server, DEVICE);
            given.take_back(1, &self.client, FAR);
        }
        // A pair of veth is removed with the namespaces.
        ip(&format!("netns del {}", self.server));
        ip(&format!("netns del {}", self.client));
    }
}

fn inside<T: Send>(namespace: &str, run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| {
            let file = File::open(format!("/run/netns/{namespace}")).unwrap();
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            run()
        });
        moved.join().unwrap()
    })
}

fn text(hardware: [u8; 6]) -> String {
    hardware.map(|byte| format!("{byte:02x}")).join(":")
}

fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split_whitespace()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
