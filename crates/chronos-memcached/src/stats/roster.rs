//! The sockets of a server, for `stats conns`: the kind of each, and when its client last sent something.
//!
//! A connection enters the roster when it begins and leaves it when its session ends, under one lock; its state in
//! between is recorded without one, when the session has nothing more to run.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, getpeername, getsockname};

use super::ReportSink;

/// The state of a socket, in memcached's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SocketState {
    /// The socket accepts connections.
    Listening,
    /// The client has not sent anything.
    New,
    /// The connection waits for a request.
    Reading,
    /// The connection waits for the rest of a value.
    ReadingValue,
    /// The connection has a request that runs.
    Running,
}

/// A socket of the server.
#[derive(Debug)]
pub struct RosterSocket {
    number: i32,
    is_udp: bool,
    address: String,
    /// The address of its listener, if it is a connection.
    listens_at: Option<String>,
    state: AtomicU8,
    second: AtomicU32,
}

/// All sockets of the server, by their descriptors.
#[derive(Debug, Default)]
pub struct Roster(Mutex<BTreeMap<i32, Arc<RosterSocket>>>);

impl Roster {
    /// Adds a socket that the server listens on; `second` is now.
    pub fn add_listener(&self, socket: BorrowedFd<'_>, second: u32) {
        let is_udp = socket_type(socket) == Ok(SocketType::DGRAM);
        let is_listening = socket_acceptconn(socket) == Ok(true);
        let state = if is_listening { SocketState::Listening } else { SocketState::Reading };
        let address = shown(getsockname(socket).ok(), is_udp);
        self.add(socket, is_udp, [Some(address), None], state, second);
    }

    /// Adds a connection; `second` is now.
    pub fn add_connection(&self, socket: BorrowedFd<'_>, second: u32) -> Arc<RosterSocket> {
        let local = getsockname(socket).ok();
        let peer = getpeername(socket).ok().flatten();
        // A client of a UNIX socket has no address of its own; these are memcached's words for it.
        let address = match peer {
            Some(peer) if peer.address_family() != AddressFamily::UNIX => shown(Some(peer), false),
            _ => "?:<AF 0>".to_owned(),
        };
        self.add(socket, false, [Some(address), Some(shown(local, false))], SocketState::New, second)
    }

    fn add(
        &self,
        socket: BorrowedFd<'_>,
        is_udp: bool,
        [address, listens_at]: [Option<String>; 2],
        state: SocketState,
        second: u32,
    ) -> Arc<RosterSocket> {
        let member = Arc::new(RosterSocket {
            number: socket.as_raw_fd(),
            is_udp,
            address: address.unwrap_or_default(),
            listens_at,
            state: AtomicU8::new(state as u8),
            second: AtomicU32::new(second),
        });
        self.members().insert(member.number, Arc::clone(&member));
        member
    }

    /// Forgets a connection.
    pub fn remove(&self, member: &Arc<RosterSocket>) {
        let mut members = self.members();
        // Its descriptor may belong to another connection by now.
        if members.get(&member.number).is_some_and(|found| Arc::ptr_eq(found, member)) {
            members.remove(&member.number);
        }
    }

    /// Writes `stats conns` at `second`.
    pub fn report(&self, second: u32, sink: &mut dyn ReportSink) {
        for (number, member) in &*self.members() {
            if member.is_udp {
                sink.line(&format!("{number}:UDP"), &"UDP");
            }
            sink.line(&format!("{number}:addr"), &member.address);
            if let Some(address) = &member.listens_at {
                sink.line(&format!("{number}:listen_addr"), address);
            }
            sink.line(&format!("{number}:state"), &member.state_text());
            let heard = member.second.load(Ordering::Relaxed);
            sink.line(&format!("{number}:secs_since_last_cmd"), &second.saturating_sub(heard));
        }
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<RosterSocket>>> {
        // A member is added or removed as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RosterSocket {
    /// Records that the client sent something at `second`, and the state that follows.
    #[inline]
    pub fn note(&self, state: SocketState, second: u32) {
        self.state.store(state as u8, Ordering::Relaxed);
        self.second.store(second, Ordering::Relaxed);
    }

    fn state_text(&self) -> &'static str {
        match self.state.load(Ordering::Relaxed) {
            state if state == SocketState::Listening as u8 => "conn_listening",
            state if state == SocketState::New as u8 => "conn_new_cmd",
            state if state == SocketState::ReadingValue as u8 => "conn_nread",
            state if state == SocketState::Running as u8 => "conn_parse_cmd",
            _ => "conn_read",
        }
    }
}

/// Returns an address in memcached's form: `tcp:192.0.2.1:11211`, `udp6:[::1]:11211`, `unix:/path`.
fn shown(address: Option<SocketAddrAny>, is_udp: bool) -> String {
    let Some(address) = address else { return "<unknown>".to_owned() };
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        let kind = if is_udp { "udp" } else { "tcp" };
        // A socket of IPv6 that takes IPv4 too has mapped addresses.
        return match address.ip().to_canonical() {
            IpAddr::V4(ip) => format!("{kind}:{ip}:{}", address.port()),
            IpAddr::V6(ip) => format!("{kind}6:[{ip}]:{}", address.port()),
        };
    }
    let path = SocketAddrUnix::try_from(address).ok();
    let path = path.as_ref().and_then(|address| address.path_bytes()).unwrap_or_default();
    format!("unix:{}", String::from_utf8_lossy(path))
}
