//! The estimator by send calls: its demand is what programs have given to send calls and receivers have not
//! acknowledged, also in calls that have not returned, and nothing for calls that have failed.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::thread;

use plimsoll_bpf::SendCalls;
use plimsoll_testing::eventually;

use crate::loaded;

/// More bytes than both buffers of a connection hold.
const CALL: usize = 8 << 20;

/// Attaches the estimator to the network namespace of the tests.
fn attached() -> Option<SendCalls> {
    let network = std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
    loaded(SendCalls::attach(network))
}

/// Returns the demand for `receiver`.
fn demand(calls: &mut SendCalls, receiver: Ipv4Addr) -> u64 {
    let mut sum = 0;
    calls.demand(|to, bytes| sum += if to == receiver { bytes } else { 0 }).unwrap();
    sum
}

/// Returns an address of the loopback that no other connection has: `last` is that of one test.
fn address(last: u8) -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high.max(1), low, last)
}

/// Returns both ends of a connection to `receiver`. The sender's is one of IPv6 that uses IPv4 if `mapped`.
fn connection(receiver: Ipv4Addr, mapped: bool) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((receiver, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = SocketAddr::from((receiver, port));
    let to = if mapped { SocketAddr::from((receiver.to_ipv6_mapped(), port)) } else { to };
    let sender = TcpStream::connect(to).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// Returns the bytes that have arrived at a receiver that has not read them, once no more arrive.
fn arrived(receiver: &TcpStream) -> u64 {
    rustix::io::ioctl_fionread(receiver).unwrap()
}

#[test]
fn bytes_in_a_call_count_until_they_are_acknowledged() {
    let Some(mut calls) = attached() else { return };
    for (last, mapped) in [(1, false), (2, true)] {
        let (to, other) = (address(last), address(last + 10));
        let (mut sender, mut receiver) = connection(to, mapped);
        let (mut beside, _held) = connection(other, mapped);
        beside.write_all(&[1; 1000]).unwrap();
        let sending = thread::spawn(move || {
            sender.write_all(&vec![0; CALL]).unwrap();
            sender
        });
        let is_exact = |calls: &mut SendCalls, read: usize| {
            let unread = arrived(&receiver);
            unread > 0 && demand(calls, to) == (CALL - read) as u64 - unread
        };
        eventually("what the call has given, less what arrived", || is_exact(&mut calls, 0));
        assert!(demand(&mut calls, to) > 1 << 20, "the call waits");
        let mut some = vec![0; 1 << 20];
        (&receiver).read_exact(&mut some).unwrap();
        eventually("less what was read", || is_exact(&mut calls, some.len()));
        let mut rest = vec![0; CALL - some.len()];
        receiver.read_exact(&mut rest).unwrap();
        let sender = sending.join().unwrap();
        eventually("nothing", || demand(&mut calls, to) == 0);
        drop(sender);
        eventually("nothing, of a connection that ends", || demand(&mut calls, to) == 0);
        assert_eq!(demand(&mut calls, other), 0, "1,000 bytes are acknowledged, though nobody has read them");
    }
}

#[test]
fn what_a_call_did_not_write_is_no_demand_once_it_has_returned() {
    let Some(mut calls) = attached() else { return };
    let to = address(3);
    let (mut sender, receiver) = connection(to, false);
    sender.set_nonblocking(true).unwrap();
    let mut given = 0;
    // The second call finds both buffers full, or fills them.
    while let Ok(written) = sender.write(&vec![0; CALL]) {
        assert!(written < CALL);
        given += written as u64;
    }
    eventually("what the calls wrote", || demand(&mut calls, to) == given - arrived(&receiver));
}

#[test]
fn calls_of_several_threads_on_one_socket_add_up() {
    let Some(mut calls) = attached() else { return };
    let to = address(4);
    let (sender, mut receiver) = connection(to, false);
    let sending: Vec<_> = (1..=3)
        .map(|number| {
            let mut sender = sender.try_clone().unwrap();
            thread::spawn(move || sender.write_all(&vec![0; number * CALL]).unwrap())
        })
        .collect();
    let all = 6 * CALL;
    eventually("all three calls", || {
        let unread = arrived(&receiver);
        unread > 0 && demand(&mut calls, to) == all as u64 - unread
    });
    let mut some = vec![0; 1 << 20];
    for number in 1..=40 {
        receiver.read_exact(&mut some).unwrap();
        let read = number * some.len();
        eventually("less what was read", || {
            demand(&mut calls, to) == (all - read) as u64 - arrived(&receiver)
        });
    }
    receiver.read_exact(&mut vec![0; all - 40 * some.len()]).unwrap();
    for thread in sending {
        thread.join().unwrap();
    }
    eventually("nothing", || demand(&mut calls, to) == 0);
}
