//! A server that cannot be started reports an error that names the allowed values.

use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use plimsoll_chronos::{
    Balancing, Config, DatagramDevice, DatagramDispatch, DatagramSteering, KeyHash, Limits, Listen,
    OpenDevice, Runtime,
};

use crate::runtime::client::{Client, any_port, config, start, tcp_address};
use crate::runtime::service::Logs;

fn refusal(config: &Config) -> String {
    Runtime::start(Logs::default(), config).unwrap_err().to_string()
}

#[test]
fn values_out_of_range_are_named() {
    let table = [
        (Config { threads: 0, ..config(1) }, "threads: 0 is not allowed; 1 to 1024 are"),
        (
            Config { partitions: Some(1), ..config(2) },
            "partitions: 1 is not allowed with 2 threads; 2 to 1048576 are",
        ),
        (
            Config { balancing: Some(Balancing { split: Some(1), ..Balancing::default() }), ..config(2) },
            "balancing.split: 1 is not allowed; 2 to 64 partitions a group are",
        ),
        (
            Config {
                partitions: Some(8),
                balancing: Some(Balancing { split: Some(8), ..Balancing::default() }),
                ..config(2)
            },
            "partitions: 8 are not enough for 2 threads with groups of 8 (balancing.split); 16 are",
        ),
        (Config { ring_messages: 0, ..config(2) }, "ring_messages: 0 is not allowed; 1 or more is"),
        (
            Config { limits: Limits { connections: 0, ..Limits::default() }, ..config(1) },
            "limits.connections: 0 is not allowed; 1 or more is",
        ),
        (Config { processors: vec![9999], ..config(1) }, "processors: cannot pin a thread to processor 9999"),
    ];
    for (config, expected) in table {
        let error = refusal(&config);
        assert!(error.starts_with(expected), "{error}");
    }
    let device = |port: u16| Listen::Device {
        device: Arc::new(Missing),
        places: vec![SocketAddr::from(([0; 4], port))],
    };
    for (listen, expected) in [
        (vec![device(0)], "port 0 (any free one) is not allowed; 1 to 65535 are"),
        (vec![device(7), device(8)], "it is named twice; once, with all places, is allowed"),
        (vec![device(7)], "there is no such device"),
    ] {
        let error = refusal(&Config { listen, ..config(1) });
        let expected = format!("listen: cannot take datagrams from device nothing-has-this: {expected}");
        assert_eq!(error, expected);
    }
    if !cfg!(feature = "kernel") {
        let datagram_steering = Some(DatagramSteering { hash: KeyHash::new(1), by_vbucket: false });
        let error = refusal(&Config { datagram_steering, ..config(1) });
        assert!(error.starts_with("datagram_steering: this build has no eBPF programs"), "{error}");
    }
}

/// A device that this host does not have.
#[derive(Debug)]
struct Missing;

impl DatagramDevice for Missing {
    fn name(&self) -> &str {
        "nothing-has-this"
    }

    fn open(&self, _places: &[SocketAddr], _: Option<&DatagramDispatch<'_>>) -> Result<OpenDevice, String> {
        Err("there is no such device".to_owned())
    }
}

/// Whether a socket of `[::]` takes IPv4 depends on the configuration, not on the system's setting.
#[test]
fn ipv4_and_ipv6_share_a_port_or_a_socket() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        plimsoll_testing::skipped!("there is no IPv6 here");
        return;
    }
    let over = |address: [&str; 2], port: u16| {
        address.map(|host| Client::to(format!("{host}:{port}").parse().unwrap()).ask("hello"))
    };
    let everywhere = |port: u16| SocketAddr::from(([0_u16; 8], port));
    let (server, _) = start(&Config { listen: vec![Listen::Tcp(everywhere(0))], ..config(1) });
    let port = tcp_address(&server).port();
    assert_eq!(over(["127.0.0.1", "[::1]"], port), ["hello", "hello"]);
    server.stop().unwrap();
    let listen = vec![Listen::Tcp(everywhere(0))];
    let (server, _) = start(&Config { listen, ipv6_only: true, ..config(1) });
    let port = tcp_address(&server).port();
    assert_eq!(Client::to(SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port))).ask("hello"), "hello");
    let other =
        [Listen::Tcp(SocketAddr::from(([0; 4], port))), Listen::Udp(SocketAddr::from(([0; 4], port)))];
    let listen = [&other[..], &[Listen::Udp(everywhere(port))]].concat();
    let (beside, _) = start(&Config { listen, ipv6_only: true, ..config(2) });
    assert_eq!(over(["127.0.0.1", "[::1]"], port), ["hello", "hello"]);
    beside.stop().unwrap();
    server.stop().unwrap();
}

#[test]
fn an_address_in_use_is_named() {
    let (server, _) = start(&config(1));
    let address = tcp_address(&server);
    let error = refusal(&Config { listen: vec![Listen::Tcp(address)], ..config(1) });
    assert!(error.starts_with(&format!("listen: cannot listen on TCP {address}: ")), "{error}");
    server.stop().unwrap();
}

#[test]
fn a_dead_unix_socket_is_replaced_and_a_living_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listen = vec![Listen::Unix { path: path.clone(), mode: 0o600 }, Listen::Tcp(any_port())];
    let living = UnixListener::bind(&path).unwrap();
    let config = Config { listen, ..config(1) };
    assert!(refusal(&config).contains("cannot listen on"));
    // The socket's file stays when it is closed, without a listener.
    drop(living);
    let (server, _) = start(&config);
    assert_eq!(Client::connect(&server).ask("hello"), "hello");
    server.stop().unwrap();
    assert!(!path.exists());
}
