//! [`play`]: connections to a service that take turns, and the answers to each.

use std::time::Duration;

use plimsoll_chronos::{Direct, Now, ServedInput, Service, SessionTransport};

use crate::crossed::Crossed;
use crate::turns::{SENDERS, Turn, turns};

/// The ways in which bytes reach the service. They must not matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// A turn's bytes at once.
    Whole,
    /// Cut at places that this number chooses.
    Pieces(u8),
    /// Cut, and not parsed before as many bytes are there as the service has asked for; requests as from another
    /// thread.
    Crossed(u8),
}

/// The replies that the service sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answers {
    /// Answers to each connection, and to later ones that took its place when it was closed.
    pub connections: [Vec<u8>; SENDERS],
    /// Answers to datagrams, each in its envelope.
    pub datagrams: Vec<Vec<u8>>,
}

/// Bits of a turn's head.
const DATAGRAM: u32 = 2;
const RECONNECTS: u32 = 3;
const IDLE: u32 = 4;
/// Bits 5 to 7 of a head: seconds that pass before the turn.
const SECONDS: [u64; 8] = [0, 0, 0, 0, 1, 3, 61, 3_000_000];

/// A service in one of the ways.
enum Bench<S: Service> {
    Direct(Direct<S>),
    Crossed(Crossed<S>),
}

/// A connection: its session, bytes that are not consumed, bytes to be thrown away, and the bytes that it needs to
/// continue.
struct Connection<S: Service> {
    session: S::Session,
    pending: Vec<u8>,
    skip: usize,
    wanted: usize,
}

/// Serves the turns of `input`. Also returns the service, so that more can be asked of its state.
pub fn play<S: Service>(service: S, partitions: u32, input: &[u8], way: Way) -> (S, Answers) {
    let mut bench = match way {
        Way::Whole | Way::Pieces(_) => Bench::Direct(Direct::new(service, partitions)),
        Way::Crossed(_) => Bench::Crossed(Crossed::new(service, partitions)),
    };
    let mut cuts = match way {
        Way::Whole => None,
        Way::Pieces(seed) | Way::Crossed(seed) => Some(u32::from(seed)),
    };
    let mut connections: [Option<Connection<S>>; SENDERS] = [const { None }; SENDERS];
    let mut answers = Answers::default();
    let mut now = Now { since_start: Duration::from_secs(5), unix_seconds: 1_800_000_000 };
    for turn in turns(input) {
        let seconds = SECONDS[usize::from(turn.head >> 5)];
        now.since_start += Duration::from_secs(seconds);
        now.unix_seconds += seconds;
        if turn.has(IDLE) {
            bench.housekeeping(now);
        }
        if turn.has(DATAGRAM) {
            bench.datagram(turn.bytes, now, &mut answers.datagrams);
            continue;
        }
        let place = &mut connections[turn.sender()];
        if turn.has(RECONNECTS) {
            *place = None;
        }
        let connection = place.get_or_insert_with(|| bench.connect(&turn));
        let reply = &mut answers.connections[turn.sender()];
        if bench.send(connection, turn.bytes, cuts.as_mut(), now, reply) {
            *place = None;
        }
    }
    drop(connections);
    (bench.into_service(), answers)
}

impl<S: Service> Bench<S> {
    fn service(&self) -> &S {
        match self {
            Bench::Direct(direct) => direct.service(),
            Bench::Crossed(crossed) => crossed.service(),
        }
    }

    fn into_service(self) -> S {
        match self {
            Bench::Direct(direct) => direct.into_service(),
            Bench::Crossed(crossed) => crossed.into_service(),
        }
    }

    fn housekeeping(&mut self, now: Now) {
        match self {
            Bench::Direct(direct) => direct.housekeeping(now),
            Bench::Crossed(crossed) => crossed.housekeeping(now),
        }
    }

    fn serve(
        &mut self,
        session: &mut S::Session,
        now: Now,
        input: &[u8],
        reply: &mut Vec<u8>,
    ) -> (ServedInput, usize) {
        match self {
            Bench::Direct(direct) => (direct.serve(session, now, input, reply), 0),
            Bench::Crossed(crossed) => crossed.serve(session, now, input, reply),
        }
    }

    fn connect(&self, turn: &Turn<'_>) -> Connection<S> {
        let transport =
            if turn.sender() == SENDERS - 1 { SessionTransport::Unix } else { SessionTransport::Tcp };
        Connection { session: self.service().open(transport), pending: Vec::new(), skip: 0, wanted: 0 }
    }

    /// A datagram's session ends with it.
    fn datagram(&mut self, bytes: &[u8], now: Now, sent: &mut Vec<Vec<u8>>) {
        let Some((envelope, request)) = self.service().unseal(bytes) else { return };
        let mut session = self.service().open(SessionTransport::Udp);
        let mut reply = Vec::new();
        self.serve(&mut session, now, request, &mut reply);
        self.service().seal(envelope, &reply, &mut |datagram| sent.push(datagram.to_vec()));
    }

    /// Sends bytes; true if the service closed the connection.
    fn send(
        &mut self,
        connection: &mut Connection<S>,
        mut bytes: &[u8],
        mut cuts: Option<&mut u32>,
        now: Now,
        reply: &mut Vec<u8>,
    ) -> bool {
        while !bytes.is_empty() {
            let length = cuts.as_deref_mut().map_or(bytes.len(), |cuts| piece(cuts)).min(bytes.len());
            let (head, rest) = bytes.split_at(length);
            bytes = rest;
            let skipped = connection.skip.min(head.len());
            connection.skip -= skipped;
            connection.pending.extend_from_slice(&head[skipped..]);
            if connection.pending.is_empty() || connection.pending.len() < connection.wanted {
                continue;
            }
            let pending = std::mem::take(&mut connection.pending);
            let (served, wanted) = self.serve(&mut connection.session, now, &pending, reply);
            if served.close {
                return true;
            }
            connection.wanted = wanted;
            connection.skip = served.consumed.saturating_sub(pending.len());
            connection.pending.extend_from_slice(pending.get(served.consumed..).unwrap_or_default());
        }
        false
    }
}

/// Returns the bytes of the next piece: mostly few, now and then many.
fn piece(state: &mut u32) -> usize {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let drawn = *state >> 16;
    if drawn.is_multiple_of(8) { 64 + (drawn >> 3) as usize % 512 } else { 1 + (drawn >> 3) as usize % 24 }
}
