//! A controller closes connections that are not a switch's, and connections of an address that has enough of them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::{features, hello};
use plimsoll_chronos::{Config, IoBackend, Limits, Listen, Runtime};
use plimsoll_chronos_openflow::{OpenFlow, OpenFlowSettings};
use plimsoll_testing::eventually;

#[test]
fn silent_connections_give_their_places_to_switches() {
    for io in [IoBackend::Epoll, IoBackend::Fastest] {
        let listen = vec![Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))];
        let limits = Limits { connections_per_address: 3, ..Limits::default() };
        let config = Config { io, threads: 2, listen, limits, ..Config::default() };
        let settings = OpenFlowSettings { hello_seconds: 1, echo_seconds: 1, ..OpenFlowSettings::default() };
        let server = Runtime::start(OpenFlow::new(settings, config.partitions(), 7), &config).unwrap();
        let [Listen::Tcp(address)] = server.bound() else { panic!("{:?}", server.bound()) };
        let mut silent: Vec<TcpStream> = (0..3)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&hello(4)[..3]).unwrap();
                stream
            })
            .collect();
        eventually("the silent connections are open", || server.stats().total().connections == 3);
        assert_eq!(TcpStream::connect(address).unwrap().read(&mut [0]).unwrap(), 0, "one too many");
        for stream in &mut silent {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
        eventually("they are closed", || server.stats().total().connections == 0);
        let mut switch = TcpStream::connect(address).unwrap();
        switch.write_all(&[hello(4), features(4, 1)].concat()).unwrap();
        // The bytes that it is sent end with an echo request, and as that is not answered, the connection ends, too.
        let mut sent = Vec::new();
        switch.read_to_end(&mut sent).unwrap();
        assert_eq!(sent[sent.len() - 8..][..4], [4, 2, 0, 8], "{sent:?}");
        let total = server.stats().total();
        assert_eq!((total.refused, total.timed_out), (1, 4), "{io:?}");
        server.stop().unwrap();
    }
}
