//! Datagrams past the kernel's stack (`-o chronos_xdp`), over a veth pair: every command, in every mode, and the state
//! of the device afterwards. Needs the feature `kernel`, clang at build time and root; skips with the reason elsewhere.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../chronos-xdp/tests/it/pair.rs"]
mod pair;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::server::Server;
use pair::{DEVICE, Pair, SERVER_V4};

const PORT: u16 = 11_211;

/// A server of two threads in the pair's near namespace; None, with the reason on standard error, if this machine
/// cannot.
fn start(pair: &Pair, option: &str) -> Option<Server> {
    let (port, option) = (PORT.to_string(), format!("chronos_xdp={DEVICE},{option}"));
    let mut options = vec!["-t", "2", "-U", &port, "-vv", "-o", &option];
    let addresses: Vec<String> = pair.addresses().iter().map(IpAddr::to_string).collect();
    options.extend(addresses.iter().flat_map(|address| ["-l", address]));
    match pair.at_server(|| Server::try_start(&options, &[])) {
        Ok(server) => Some(server),
        Err(errors) => {
            let is_known =
                ["(feature `kernel`)", "eBPF is not available"].iter().any(|why| errors.contains(why));
            assert!(is_known, "{option}: {errors}");
            plimsoll_testing::skipped!("{errors}");
            None
        }
    }
}

/// One request, and its whole reply, whose datagrams may come in any order.
fn ask(socket: &UdpSocket, request: &[u8]) -> Vec<u8> {
    const ID: [u8; 2] = [0x12, 0x34];
    socket.send(&[&ID[..], &[0, 0, 0, 1, 0, 0], request].concat()).unwrap();
    let mut parts: Vec<Option<Vec<u8>>> = vec![None];
    while parts.iter().any(Option::is_none) {
        let mut datagram = [0; 2000];
        let length = match socket.recv(&mut datagram) {
            // A receive with a timeout fails after the process was stopped and continued.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            result => result.unwrap(),
        };
        let number = |at: usize| usize::from(u16::from_be_bytes([datagram[at], datagram[at + 1]]));
        assert_eq!((&datagram[..2], number(6)), (&ID[..], 0));
        parts.resize(number(4), None);
        assert_eq!(parts[number(2)].replace(datagram[8..length].to_vec()), None, "each part comes once");
    }
    parts.into_iter().flatten().flatten().collect()
}

#[track_caller]
fn converse(socket: &UdpSocket, request: &str, expected: &str) {
    assert_eq!(
        ask(socket, request.as_bytes()).escape_ascii().to_string(),
        expected.escape_default().to_string()
    );
}

fn connect(pair: &Pair, address: IpAddr) -> UdpSocket {
    pair.connect(SocketAddr::new(address, PORT))
}

/// A socket beside the server, which reaches it by the kernel's UDP.
fn local(pair: &Pair) -> UdpSocket {
    pair.at_server(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", PORT)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket
    })
}

/// Text and meta commands, each with its answer; `k` begins every key.
fn text(socket: &UdpSocket, k: &str) {
    let say = |request: &str, expected: &str| {
        converse(socket, &request.replace('@', k), &expected.replace('@', k));
    };
    say("set @a 5 0 5\r\nhello\r\n", "STORED\r\n");
    say("add @a 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    say("add @b 0 0 1\r\n1\r\n", "STORED\r\n");
    say("replace @b 0 0 2\r\n10\r\n", "STORED\r\n");
    say("replace @none 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    say("append @a 0 0 1\r\n!\r\n", "STORED\r\n");
    say("prepend @a 0 0 1\r\n>\r\n", "STORED\r\n");
    say("get @a @none @b\r\n", "VALUE @a 5 7\r\n>hello!\r\nVALUE @b 0 2\r\n10\r\nEND\r\n");
    let reply = String::from_utf8(ask(socket, format!("gets {k}a\r\n").as_bytes())).unwrap();
    let unique = reply.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    say(&format!("cas @a 0 0 3 {unique}\r\nnew\r\n"), "STORED\r\n");
    say(&format!("cas @a 0 0 3 {unique}\r\nold\r\n"), "EXISTS\r\n");
    say("cas @none 0 0 3 1\r\nold\r\n", "NOT_FOUND\r\n");
    say("incr @b 5\r\n", "15\r\n");
    say("decr @b 20\r\n", "0\r\n");
    say("incr @a 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    say("touch @a 100\r\n", "TOUCHED\r\n");
    say("gat 100 @a\r\n", "VALUE @a 0 3\r\nnew\r\nEND\r\n");
    say("delete @a\r\n", "DELETED\r\n");
    say("delete @a\r\n", "NOT_FOUND\r\n");
    say("set @a 0 0 1 noreply\r\nx\r\nget @a\r\n", "VALUE @a 0 1\r\nx\r\nEND\r\n");
    say("version\r\n", "VERSION 1.6.18\r\n");
    say("verbosity 1\r\n", "OK\r\n");
    say("nonsense\r\n", "ERROR\r\n");
    say("ms @m 2 T0\r\nhi\r\n", "HD\r\n");
    say("mg @m v t\r\n", "VA 2 t-1\r\nhi\r\n");
    say("mg @none v\r\n", "EN\r\n");
    say("ma @m\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    say("md @m\r\nmn\r\n", "HD\r\nMN\r\n");
    // A value of many packets, as long as a request can make it piece by piece.
    say("set @long 0 0 0\r\n\r\n", "STORED\r\n");
    let piece = "0123456789".repeat(120);
    for _ in 0..25 {
        say(&format!("append @long 0 0 1200\r\n{piece}\r\n"), "STORED\r\n");
    }
    say("get @long\r\n", &format!("VALUE @long 0 30000\r\n{}\r\nEND\r\n", piece.repeat(25)));
    let stats = String::from_utf8(ask(socket, b"stats\r\n")).unwrap();
    assert!(stats.contains("STAT curr_items ") && stats.ends_with("END\r\n"), "{stats}");
    let stats = String::from_utf8(ask(socket, b"stats settings\r\n")).unwrap();
    assert!(stats.contains("STAT chronos_xdp:near "), "{stats}");
}

/// A request of the binary protocol.
fn packet(code: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = (extras.len() + key.len() + value.len()) as u32;
    let mut request = vec![0x80, code, 0, key.len() as u8, extras.len() as u8, 0, 0, 0];
    request.extend(body.to_be_bytes());
    request.extend([0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 0, 0]);
    [&request[..], extras, key, value].concat()
}

/// Requests of the binary protocol: status and body of the replies.
fn binary(socket: &UdpSocket, k: &str) {
    let key = format!("{k}binary").into_bytes();
    let ask = |code: u8, extras: &[u8], value: &[u8]| -> (u16, Vec<u8>) {
        let with_key: &[u8] = if [0x0a, 0x0b].contains(&code) { &[] } else { &key };
        let reply = ask(socket, &packet(code, extras, with_key, value));
        assert_eq!((reply[0], reply[1], &reply[12..16]), (0x81, code, &[0xde, 0xad, 0xbe, 0xef][..]));
        (u16::from_be_bytes([reply[6], reply[7]]), reply[24..].to_vec())
    };
    let (set, get, noop, version) = (0x01, 0x00, 0x0a, 0x0b);
    assert_eq!(ask(get, &[], b""), (1, b"Not found".to_vec()));
    assert_eq!(ask(set, &[0, 0, 0, 7, 0, 0, 0, 0], b"a value"), (0, Vec::new()));
    assert_eq!(ask(get, &[], b""), (0, b"\0\0\0\x07a value".to_vec()));
    for _ in 0..10 {
        assert_eq!(ask(0x0e, &[], &[b'v'; 1300]), (0, Vec::new()), "append");
    }
    assert_eq!(ask(get, &[], b"").1.len(), 4 + 7 + 13_000);
    assert_eq!(ask(noop, &[], b""), (0, Vec::new()));
    assert_eq!(ask(version, &[], b""), (0, b"1.6.18".to_vec()));
    assert_eq!(ask(0x04, &[], b""), (0, Vec::new()), "delete");
    assert_eq!(ask(get, &[], b"").0, 1);
}

#[test]
fn every_command_in_every_mode() {
    let Some(pair) = Pair::new(2) else { return };
    for io in ["epoll", "uring"] {
        for (poll, steering) in [("block", "off"), ("spin", "off"), ("block", "on"), ("spin", "on")] {
            let option = format!("chronos_io={io},chronos_poll={poll},chronos_steering={steering}");
            let Some(server) = start(&pair, &option) else { return };
            for (number, address) in
                (0..8).flat_map(|number| pair.addresses().into_iter().map(move |a| (number, a)))
            {
                let socket = connect(&pair, address);
                let version = if address.is_ipv4() { 4 } else { 6 };
                text(&socket, &format!("{version}-{number}-"));
                binary(&socket, &format!("{version}-{number}-"));
            }
            // The kernel's sockets are there for others.
            converse(&local(&pair), "mn\r\n", "MN\r\n");
            assert!(pair.ping(SERVER_V4), "the device is the kernel's still");
            let socket = connect(&pair, pair.addresses()[0]);
            let stats = String::from_utf8(ask(&socket, b"stats\r\n")).unwrap();
            assert!(stats.contains("STAT chronos_datagrams_dropped 0\r\n"), "{stats}");
            assert!(stats.contains("STAT chronos_xdp_bad_checksums 0\r\n"), "{stats}");
            assert!(server.errors().contains("near: "), "{}", server.errors());
        }
    }
}

/// With dispatch every datagram is delivered to the thread that owns its key; without, every second one is not.
#[test]
fn datagrams_are_dispatched_by_their_keys() {
    let Some(pair) = Pair::new(1) else { return };
    for steering in ["off", "on"] {
        let Some(server) = start(&pair, &format!("chronos_steering={steering},chronos_balance=off")) else {
            return;
        };
        let (socket, local) = (connect(&pair, pair.addresses()[0]), local(&pair));
        // The statistics themselves ask all partitions, the other thread's included.
        let foreign = || stat(&local, "chronos_requests_foreign");
        let (first, before) = (foreign(), foreign());
        for number in 0..50 {
            converse(&socket, &format!("set text-{number} 0 0 1\r\nx\r\n"), "STORED\r\n");
            converse(&socket, &format!("mg text-{number} v\r\n"), "VA 1\r\nx\r\n");
            let key = format!("binary-{number}").into_bytes();
            for (code, extras, value) in [(0x01, &[0; 8][..], &b"x"[..]), (0x00, &[], &[])] {
                assert_eq!(ask(&socket, &packet(code, extras, &key, value))[6..8], [0, 0]);
            }
        }
        let foreign = foreign() - before - (before - first);
        assert!(if steering == "on" { foreign == 0 } else { foreign > 20 }, "{steering}: {foreign} of 200");
        // One get of many keys is a request for each of their owners.
        let keys: Vec<String> = (0..50).map(|number| format!("text-{number}")).collect();
        let values: String = keys.iter().map(|key| format!("VALUE {key} 0 1\r\nx\r\n")).collect();
        converse(&socket, &format!("get {}\r\n", keys.join(" ")), &format!("{values}END\r\n"));
        assert_eq!(server.errors().contains("dispatched by key to 2 threads"), steering == "on");
    }
}

/// A binary request belongs to the partition that its vBucket field selects, for the server as for the program: the
/// same key in two vBuckets is two items, and no request crosses threads.
#[test]
fn binary_requests_are_dispatched_by_their_vbuckets() {
    let Some(pair) = Pair::new(1) else { return };
    let option = "chronos_steering=on,chronos_vbuckets=on,chronos_balance=off,chronos_partitions=8";
    let Some(_server) = start(&pair, option) else { return };
    let (socket, local) = (connect(&pair, pair.addresses()[0]), local(&pair));
    let foreign = || stat(&local, "chronos_requests_foreign");
    let (first, before) = (foreign(), foreign());
    let say = |code: u8, extras: &[u8], value: &[u8], vbucket: u8| {
        let mut request = packet(code, extras, b"key", value);
        request[7] = vbucket;
        ask(&socket, &request)[6..].to_vec()
    };
    for vbucket in 0..16_u8 {
        let expected = if vbucket < 8 { 1 } else { 0 };
        assert_eq!(say(0x00, &[], b"", vbucket)[..2], [0, expected], "vBucket {vbucket}");
        assert_eq!(say(0x01, &[0; 8], &[vbucket], vbucket)[..2], [0, 0]);
        assert_eq!(say(0x00, &[], b"", vbucket).last(), Some(&vbucket));
    }
    assert_eq!(foreign() - before - (before - first), 0);
}

#[test]
fn a_server_that_was_killed_leaves_nothing_at_the_device() {
    let Some(pair) = Pair::new(2) else { return };
    for io in ["epoll", "uring"] {
        for _ in 0..3 {
            let Some(mut server) = start(&pair, &format!("chronos_io={io}")) else { return };
            let socket = connect(&pair, pair.addresses()[0]);
            converse(&socket, "mn\r\n", "MN\r\n");
            assert!(pair.has_program());
            server.signal("KILL");
            server.wait();
            assert!(!pair.has_program(), "{}", pair.device());
        }
    }
}

/// The value of a line of `stats`.
fn stat(socket: &UdpSocket, name: &str) -> u64 {
    let stats = String::from_utf8(ask(socket, b"stats\r\n")).unwrap();
    let line =
        stats.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

/// Reports whether all threads of a process are stopped.
fn has_stopped(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap()).all(|text| {
        let state = text.rsplit(") ").next().unwrap();
        state.starts_with('T')
    })
}

#[test]
fn what_a_queue_has_no_room_for_is_counted() {
    const DATAGRAMS: u64 = 4000;
    /// `Device::FRAMES_PER_QUEUE` less the frames for sending.
    const ROOM: u64 = 2048;
    let Some(pair) = Pair::new(1) else { return };
    if pair.is_given() {
        plimsoll_testing::skipped!(
            "a device that reads frames itself drops, or waits, before the kernel could count"
        );
        return;
    }
    let Some(server) = start(&pair, "chronos_io=epoll") else { return };
    let (socket, local) = (connect(&pair, pair.addresses()[0]), local(&pair));
    let before = stat(&local, "chronos_datagrams");
    server.signal("STOP");
    let begin = Instant::now();
    while !has_stopped(server.id()) {
        assert!(begin.elapsed().as_secs() < 30, "it stops");
    }
    for _ in 0..DATAGRAMS {
        // A fragment, as memcached sees it: it is dropped without an answer.
        socket.send(b"\0\x01\0\0\0\x02\0\0mn\r\n").unwrap();
    }
    server.signal("CONT");
    let begin = Instant::now();
    while stat(&local, "chronos_xdp_overruns") < DATAGRAMS - ROOM {
        assert!(begin.elapsed().as_secs() < 30, "{}", stat(&local, "chronos_xdp_overruns"));
    }
    assert_eq!(stat(&local, "chronos_xdp_overruns"), DATAGRAMS - ROOM);
    assert!(stat(&local, "chronos_datagrams") - before > ROOM);
}

#[test]
fn rights_that_are_missing_are_named_and_nothing_is_changed() {
    const PROGRAM: &str = env!("CARGO_BIN_EXE_chronos-memcached");
    let Some(pair) = Pair::new(1) else { return };
    let Some(server) = start(&pair, "chronos_io=epoll") else { return };
    drop(server);
    let run = |rights: &str, arguments: &[&str]| {
        let rights = [format!("--inh-caps={rights}"), format!("--ambient-caps={rights}")];
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(rights);
        pair.at_server(|| command.arg(PROGRAM).args(arguments).output())
    };
    if !run("+net_raw", &["-i"]).is_ok_and(|output| output.status.success()) {
        plimsoll_testing::skipped!("nobody may not run the program here, or there is no setpriv");
        return;
    }
    for (rights, expected) in [
        ("+net_admin,+net_raw", "eBPF is not available"),
        ("+bpf,+net_raw", "eBPF is not available"),
        ("+bpf,+net_admin", "CAP_NET_RAW is needed"),
    ] {
        let option = format!("chronos_xdp={DEVICE}");
        let output = run(rights, &["-l", SERVER_V4, "-U", "11211", "-o", &option]).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(errors.contains("cannot take datagrams from device near: "), "{rights}: {errors}");
        assert!(errors.contains(expected), "{rights}: {errors}");
        assert!(!pair.has_program());
    }
}

#[test]
fn a_device_has_one_server() {
    let Some(pair) = Pair::new(1) else { return };
    let Some(_first) = start(&pair, "chronos_io=epoll") else { return };
    let options = ["-p", "0", "-U", "11212", "-l", SERVER_V4, "-o", "chronos_xdp=near"];
    let errors = pair.at_server(|| Server::try_start(&options, &[]).map(drop)).unwrap_err();
    assert!(errors.contains("cannot take datagrams from device near"), "{errors}");
    assert!(errors.contains("has an XDP program already, which is not replaced"), "{errors}");
    converse(&connect(&pair, pair.addresses()[0]), "mn\r\n", "MN\r\n");
}
