//! Replies of the kernel, made by hand after linux/inet_diag.h, and this kernel's own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use proptest::prelude::*;

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
    body[DESTINATION..DESTINATION + 4].copy_from_slice(&[10, 0, 0, to]);
    body.extend(attributes.concat());
    message(SOCK_DIAG_BY_FAMILY, &body)
}

fn tcp_info(unsent: u32) -> Vec<u8> {
    let mut info = vec![0xee; 248];
    info[NOTSENT..NOTSENT + 4].copy_from_slice(&unsent.to_ne_bytes());
    attribute(INET_DIAG_INFO, &info)
}

fn subflow_of(token: u32) -> Vec<u8> {
    let own = attribute(MPTCP_SUBFLOW_ATTR_TOKEN_LOC, &token.to_ne_bytes());
    // The other end's token comes first, and the kernel marks nests.
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
        connection(2, &[attribute(8, &[0]), tcp_info(70_000)]),
        connection(3, &[tcp_info(5), subflow_of(0xabcd)]),
        connection(4, &[]),
    ]
    .concat();
    let to = |host| Ipv4Addr::new(10, 0, 0, host);
    let expected = vec![
        TcpSocket { to: to(2), unsent: 70_000, token: None },
        TcpSocket { to: to(3), unsent: 5, token: Some(0xabcd) },
        TcpSocket { to: to(4), unsent: 0, token: None },
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

/// A receiver that does not read lets its sender's bytes wait: the kernel says how many have not been sent.
#[test]
fn this_kernel_says_what_has_not_been_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.set_nonblocking(true).unwrap();
    let mut written = 0_u64;
    while let Ok(bytes) = client.write(&[0; 65_536]) {
        written += bytes as u64;
    }
    let mut diag = match SockDiag::open() {
        Ok(diag) => diag,
        Err(error) => return plimsoll_testing::skipped!("this system has no sock_diag: {error}"),
    };
    let mut unsent = Vec::new();
    if let Err(error) = diag.tcp(|socket| unsent.push(socket.unsent)) {
        return plimsoll_testing::skipped!("this system lists no connections: {error}");
    }
    let most = unsent.iter().copied().max().unwrap_or(0);
    assert!((1..written).contains(&most), "{most} of {written} B");
    drop(client);
    let received = std::iter::from_fn(|| server.read(&mut [0; 65_536]).ok().filter(|read| *read > 0));
    assert_eq!(received.map(|read| read as u64).sum::<u64>(), written);
}

proptest! {
    #[test]
    fn no_reply_is_too_short_or_too_long(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0..200_usize) {
        let _ = read(&bytes);
        let part = connection(3, &[tcp_info(5), subflow_of(7)]);
        let _ = read(&[&part[..cut.min(part.len())], &bytes].concat());
        let _ = (mptcp_unsent(&bytes), tcp_socket(&bytes), token(&bytes));
    }
}
