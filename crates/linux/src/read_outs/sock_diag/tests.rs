//! Replies of the kernel, made by hand after linux/inet_diag.h, and this kernel's own.

use std::io::Read as _;
use std::net::SocketAddr;

use proptest::prelude::*;
use socket2::{Domain, Protocol, Socket, Type};

use super::*;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&[0; 10]);
    bytes.extend_from_slice(body);
    bytes
}

/// A connection to 10.0.0.`to` of a namespace.
fn connection(to: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![0; MESSAGE];
    body[0] = AF_INET;
    body[PORTS..PORTS + 4].copy_from_slice(&[0x4e, 0x20, 0xc0, to]);
    body[SOURCE..SOURCE + 4].copy_from_slice(&[10, 16, 0, 1]);
    body[DESTINATION..DESTINATION + 4].copy_from_slice(&[10, 0, 0, to]);
    body.extend(attributes.concat());
    message(SOCK_DIAG_BY_FAMILY, &body)
}

/// Segments of 1,000 B; a window of 30 and a threshold of `ssthresh` of them.
fn tcp_info(unsent: u32, ssthresh: u32) -> Vec<u8> {
    let mut info = vec![0xee; 248];
    let words = [(SEGMENT, 1_000), (SSTHRESH, ssthresh), (CWND, 30), (RETRANSMITTED, 7), (NOTSENT, unsent)];
    for (at, value) in words {
        info[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
    }
    info[TCP_ACKED..TCP_ACKED + 8].copy_from_slice(&5_000_000_000_u64.to_ne_bytes());
    attribute(INET_DIAG_INFO, &info)
}

fn subflow_of(token: u32) -> Vec<u8> {
    let own = attribute(MPTCP_SUBFLOW_ATTR_TOKEN_LOC, &token.to_ne_bytes());
    // The other end's token precedes it, and the kernel marks nests.
    let mptcp = [attribute(1, &[9; 4]), own].concat();
    let upper = [attribute(1, b"mptcp\0"), attribute(INET_ULP_INFO_MPTCP | 0x8000, &mptcp)].concat();
    attribute(INET_DIAG_ULP_INFO, &upper)
}

fn read(bytes: &[u8]) -> (Vec<TcpSocket>, io::Result<bool>) {
    let mut sockets = Vec::new();
    let more = read_tcp(bytes, &mut |socket| sockets.push(socket));
    (sockets, more)
}

#[test]
fn a_dump_lists_connections_until_it_is_done() {
    let part = [
        connection(2, &[attribute(8, &[0]), tcp_info(70_000, 21)]),
        connection(3, &[tcp_info(5, NO_SSTHRESH), subflow_of(0xabcd)]),
        connection(4, &[]),
    ]
    .concat();
    let to = |host| Ipv4Addr::new(10, 0, 0, host);
    let window =
        |ssthresh| SendWindow { cwnd: 30_000, ssthresh, retransmissions: 7, acknowledged: 5_000_000_000 };
    let socket = |host, unsent, token, window| {
        let ports = [20_000, 0xc000 + u16::from(host)];
        TcpSocket { from: Ipv4Addr::new(10, 16, 0, 1), to: to(host), unsent, token, ports, window }
    };
    let expected = vec![
        socket(2, 70_000, None, window(Some(21_000))),
        socket(3, 5, Some(0xabcd), window(None)),
        socket(4, 0, None, SendWindow::default()),
    ];
    let (sockets, more) = read(&part);
    assert_eq!((sockets, more.unwrap()), (expected.clone(), true));
    let (sockets, more) = read(&[part, message(NLMSG_DONE, &[0; 4]), connection(5, &[])].concat());
    assert_eq!((sockets, more.unwrap()), (expected, false));
}

#[test]
fn a_refusal_is_an_error() {
    let (_, refused) = read(&message(NLMSG_ERROR, &[(-13_i32).to_ne_bytes().to_vec(), vec![0; 16]].concat()));
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn what_mptcp_has_handed_to_no_subflow_is_what_it_has_not_sent() {
    let body = |length: usize| {
        let mut info = [0; 96];
        for (at, value) in
            [(WRITE_SEQ, 9_000_u64), (SND_UNA, 1_000), (BYTES_SENT, 6_500), (BYTES_ACKED, 4_000)]
        {
            info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        [vec![0; MESSAGE], attribute(INET_DIAG_INFO, &info[..length])].concat()
    };
    // 8,000 B are not acknowledged, of which 2,500 are in flight.
    assert_eq!(mptcp_unsent(&body(96)), Some(5_500));
    assert_eq!(mptcp_unsent(&body(48)), Some(8_000), "a kernel that does not count what it sends");
    assert_eq!(mptcp_unsent(&body(20)), None);
}

/// Returns the bytes that wait in the sockets of a connection whose receiver does not read: the bytes written, and the
/// bytes that the kernel reports as not sent, of each socket with the port of the server.
fn stuffed(protocol: Protocol) -> Option<(u64, Vec<TcpSocket>, SockDiag, [Socket; 2])> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0)).into();
    let [listener, client] = [(); 2].map(|()| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)));
    let (Ok(listener), Ok(client)) = (listener, client) else {
        plimsoll_testing::skipped!("this system has no {protocol:?}");
        return None;
    };
    listener.bind(&any).unwrap();
    listener.listen(1).unwrap();
    let server = listener.local_addr().unwrap();
    client.connect(&server).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    client.set_nonblocking(true).unwrap();
    let written: usize = std::iter::from_fn(|| client.send(&[0; 65_536]).ok()).sum();
    let mut diag = match SockDiag::open() {
        Ok(diag) => diag,
        Err(error) => {
            plimsoll_testing::skipped!("this system has no sock_diag: {error}");
            return None;
        }
    };
    let port = server.as_socket().unwrap().port();
    let mut sockets = Vec::new();
    if let Err(error) = diag.tcp(|socket| sockets.extend((socket.ports[1] == port).then_some(socket))) {
        plimsoll_testing::skipped!("this system lists no connections: {error}");
        return None;
    }
    Some((written as u64, sockets, diag, [client, accepted]))
}

/// Reads all written bytes, so that none waits any more.
fn drain(written: u64, [client, mut accepted]: [Socket; 2]) {
    drop(client);
    let received = std::iter::from_fn(|| accepted.read(&mut [0; 65_536]).ok().filter(|read| *read > 0));
    assert_eq!(received.map(|read| read as u64).sum::<u64>(), written);
}

/// A receiver that does not read lets its sender's bytes wait: the kernel reports for the one connection with its port
/// the number of unsent bytes, and its window.
#[test]
fn this_kernel_says_what_has_not_been_sent() {
    let Some((written, sockets, _, ends)) = stuffed(Protocol::TCP) else { return };
    let [socket] = sockets[..] else { panic!("{sockets:?}") };
    assert_eq!((socket.to, socket.token), (Ipv4Addr::LOCALHOST, None));
    // All that was written is acknowledged, under way, or not sent.
    let SendWindow { cwnd, acknowledged, retransmissions, .. } = socket.window;
    assert!((1..=written - acknowledged).contains(&socket.unsent), "{socket:?} of {written} B");
    assert!(acknowledged > 0 && cwnd > 0 && retransmissions == 0, "{socket:?}");
    drain(written, ends);
}

/// The same of MPTCP: bytes not handed to a subflow belong to the connection, which its subflow's token finds.
#[test]
fn this_kernel_says_what_mptcp_has_not_sent() {
    let Some((written, sockets, mut diag, ends)) = stuffed(Protocol::MPTCP) else { return };
    let [socket] = sockets[..] else { panic!("{sockets:?}") };
    let Some(token) = socket.token else {
        return plimsoll_testing::skipped!(
            "MPTCP fell back to TCP, or the kernel gives no token: {socket:?}"
        );
    };
    let unsent = diag.mptcp_unsent(token).unwrap();
    let handed = written - unsent;
    assert!(unsent > 0 && handed >= socket.window.acknowledged.min(written), "{unsent} of {written} B");
    assert_eq!(diag.mptcp_unsent(token ^ 1).unwrap(), 0, "there is no such connection");
    drain(written, ends);
}

proptest! {
    #[test]
    fn no_reply_is_too_short_or_too_long(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0..200_usize) {
        let _ = read(&bytes);
        let part = connection(3, &[tcp_info(5, NO_SSTHRESH), subflow_of(7)]);
        let _ = read(&[&part[..cut.min(part.len())], &bytes].concat());
        let _ = (mptcp_unsent(&bytes), tcp_socket(&bytes), token(&bytes));
    }
}
