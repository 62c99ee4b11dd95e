//! memcached's protocol in datagrams: over the kernel's UDP, and past the kernel's stack (`--xdp`) over a veth pair,
//! which needs the feature `kernel`, clang at build time and root, and skips with the reason elsewhere.

#[path = "../../../chronos-xdp/tests/it/pair.rs"]
mod pair;

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::support::server::Server;
use pair::{DEVICE, Pair, SERVER_V4};

/// One request, and its whole reply, whose datagrams may come in any order.
fn ask(socket: &UdpSocket, request: &str) -> String {
    const ID: [u8; 2] = [0x12, 0x34];
    socket.send(&[&ID[..], &[0, 0, 0, 1, 0, 0], request.as_bytes()].concat()).unwrap();
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
    String::from_utf8(parts.into_iter().flatten().flatten().collect()).unwrap()
}

/// Speaks the commands of the paper's experiment, whose values of 1400 bytes need two datagrams each.
fn converse(socket: &UdpSocket, mode: &[&str]) {
    let value = "posting".repeat(200);
    let is =
        |request: &str, expected: &str| assert_eq!(ask(socket, request), expected, "{mode:?} {request:?}");
    is(&format!("set word 7 0 1400\r\n{value}\r\n"), "STORED\r\n");
    is("get word\r\n", &format!("VALUE word 7 1400\r\n{value}\r\nEND\r\n"));
    is("get none\r\n", "END\r\n");
    is("delete word\r\n", "DELETED\r\n");
    is("get word\r\n", "END\r\n");
    is("nonsense\r\n", "ERROR\r\n");
    assert!(ask(socket, "stats\r\n").ends_with("END\r\n"));
    // Neither a request of HTTP nor one without its end has an answer; the next request has.
    for request in ["GET /stats HTTP/1.1\r\nHost: x\r\n\r\n", "set word 0 0 10\r\nabc", "get word"] {
        socket.send(&[&[9, 9, 0, 0, 0, 1, 0, 0], request.as_bytes()].concat()).unwrap();
    }
    is("get none\r\n", "END\r\n");
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn datagrams_of_memcacheds_protocol_are_answered() {
    for mode in [&["--threads", "2"][..], &["--threads", "2", "--io=epoll"], &["--snapshots"]] {
        let at = format!("127.0.0.1:{}", free_port());
        let _server = Server::start(&[mode, &["--preset", "paper", "--udp", &at]].concat());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(&at).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        converse(&socket, mode);
    }
}

#[test]
fn a_device_needs_the_address_that_it_is_for() {
    let said = Server::try_start(&["--xdp", "eth0"]).err().unwrap();
    assert!(said.contains("--udp <ADDRESS>"), "{said}");
}

#[test]
fn datagrams_past_the_kernels_stack_are_answered() {
    let Some(pair) = Pair::new(2) else { return };
    let place = format!("{SERVER_V4}:11311");
    let at: SocketAddr = place.parse().unwrap();
    for mode in [&["--threads", "2"][..], &["--snapshots"]] {
        let options = [mode, &["--preset", "paper", "--udp", &place, "--xdp", DEVICE]].concat();
        let _server = match pair.at_server(|| Server::try_start(&options)) {
            Ok(server) => server,
            Err(said) => {
                let is_known =
                    ["(feature `kernel`)", "eBPF is not available"].iter().any(|why| said.contains(why));
                assert!(is_known, "{mode:?}: {said}");
                plimsoll_testing::skipped!("{said}");
                return;
            }
        };
        converse(&pair.connect(at), mode);
    }
}
