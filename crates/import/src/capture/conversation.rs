//! [`Conversation`]: the turns of two ends. [`super`] defines a message.

use plimsoll_bursts::{CapturedSegment, Datagram, Frame, LastPackets};
use plimsoll_units::{Span, Time};

use super::classes::ClassOf;
use super::collected::{Collected, SeenExchange, SeenFlow};
use super::ends::End;
use super::stream::{ByteStream, Payload};

/// A TCP connection, or the datagrams between two ports.
pub(super) struct Conversation {
    class: ClassOf,
    number: u16,
    client: End,
    server: End,
    /// The bytes of the client and of the server.
    streams: [ByteStream; 2],
    last_datagrams: LastPackets<Datagram>,
    last_segments: LastPackets<CapturedSegment>,
    turn: ConversationTurn,
    /// When the last new byte of either side was seen.
    last: Time,
    /// When the SYN of the client was seen, until it is acknowledged.
    opened: Option<Time>,
    finished: [bool; 2],
    /// The sides that have sent a packet, and whether any had payload.
    heard: [bool; 2],
    has_payload: bool,
    /// The number of the connection, once it has had an exchange.
    connection: Option<u32>,
    /// When the response before arrived, if nothing came after it.
    before: Option<Time>,
}

/// The side of a conversation that sends, since the direction has last changed.
#[derive(Clone, Copy, Debug)]
enum ConversationTurn {
    /// Neither end has sent since the last message.
    Nobody,
    /// The client sends a request.
    Client(ByteRun),
    /// The server responds to a request.
    Server { request: ByteRun, arrived: Time, response: ByteRun },
    /// The server sends without a request.
    Push(ByteRun),
    /// Both sides send at the same time.
    Both([Option<ByteRun>; 2]),
    /// The connection has ended.
    Ended,
}

/// The bytes of one side without a pause.
#[derive(Clone, Copy, Debug)]
struct ByteRun {
    start: Time,
    end: Time,
    bytes: u64,
}

impl ByteRun {
    fn new(time: Time, bytes: u64) -> ByteRun {
        ByteRun { start: time, end: time, bytes }
    }

    fn extend(&mut self, time: Time, bytes: u64) {
        self.end = time;
        self.bytes += bytes;
    }
}

/// A response to which nothing came within this time before the end of a capture is whole: an acknowledgement may be
/// delayed for longer, and a round trip within a data center takes less.
const QUIET: Span = Span::from_ms(1);

/// The sides by their place in [`Conversation::streams`].
const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Conversation {
    pub(super) fn new(class: ClassOf, collected: &mut Collected) -> Conversation {
        let (client, server) =
            if class.is_from_client() { (class.from, class.to) } else { (class.to, class.from) };
        Conversation {
            class,
            number: collected.begin(&class),
            client,
            server,
            streams: [ByteStream::default(), ByteStream::default()],
            last_datagrams: LastPackets::default(),
            last_segments: LastPackets::default(),
            turn: ConversationTurn::Nobody,
            last: Time::ZERO,
            opened: None,
            finished: [false; 2],
            heard: [false; 2],
            has_payload: false,
            connection: None,
            before: None,
        }
    }

    fn side(&self, from: End) -> usize {
        if from == self.client { CLIENT } else { SERVER }
    }

    fn end_of(&self, side: usize) -> End {
        if side == CLIENT { self.client } else { self.server }
    }

    pub(super) fn on_segment(
        &mut self,
        from: End,
        segment: &CapturedSegment,
        frame: &Frame,
        collected: &mut Collected,
    ) {
        let side = self.side(from);
        if self.streams[side].is_of_another(segment) {
            self.end(collected);
            let class = ClassOf::new(frame, from, self.end_of(1 - side), self.class.made_up);
            *self = Conversation::new(class, collected);
            return self.on_segment(from, segment, frame, collected);
        }
        if matches!(self.turn, ConversationTurn::Ended) {
            return;
        }
        let time = frame.time;
        let acknowledged = segment.ack.map(|ack| self.streams[1 - side].on_ack(ack));
        let is_identified = segment.identification.is_some_and(|identification| identification != 0);
        let payload = if is_identified && self.last_segments.is_copy(*segment, true, time) {
            self.streams[side].on_copy(segment, time);
            Payload::Copy
        } else {
            self.streams[side].on_segment(segment, frame.interface, time)
        };
        collected.tally(self.number).count(segment, payload);
        if payload == Payload::Copy {
            return;
        }
        self.count_directions(side, matches!(payload, Payload::New(_)), collected);
        if segment.syn && segment.ack.is_none() {
            self.opened = Some(time);
        } else if side == CLIENT && segment.ack.is_some() {
            let opened = self.opened.take();
            opened
                .into_iter()
                .for_each(|at| collected.tally(self.number).handshake(time.saturating_since(at)));
        }
        if let Some(since) = acknowledged.and_then(|acknowledged| acknowledged.since) {
            let turnaround = time.saturating_since(since);
            let (host, peer) = (self.end_of(side).host, self.end_of(1 - side).host);
            collected.turnarounds.add(host, peer, turnaround, segment.payload == 0);
            if segment.payload == 0 {
                collected.tally(self.number).turnaround(side == SERVER, turnaround);
            }
        }
        if segment.is_tls {
            collected.tally(self.number).note_tls();
        }
        match payload {
            Payload::New(bytes) => {
                let is_turn = acknowledged.is_none_or(|acknowledged| acknowledged.all);
                self.on_bytes(side, time, bytes, is_turn, collected);
            }
            Payload::Again | Payload::Fills => self.extend(side, time),
            Payload::None | Payload::Copy => {}
        }
        if segment.ends {
            self.finished[side] = true;
            if segment.is_reset || self.finished == [true; 2] {
                self.end(collected);
            }
        }
    }

    /// Counts the connection among those with payload, and, as long as only one side is heard, among the one-way
    /// connections.
    fn count_directions(&mut self, side: usize, is_payload: bool, collected: &mut Collected) {
        let one_way = |of: &Conversation| of.has_payload && of.heard != [true; 2];
        let (had_payload, was_one_way) = (self.has_payload, one_way(self));
        self.heard[side] = true;
        self.has_payload |= is_payload;
        let tally = collected.tally(self.number);
        tally.with_data += u64::from(self.has_payload && !had_payload);
        tally.one_way += u64::from(one_way(self));
        tally.one_way -= u64::from(was_one_way);
    }

    pub(super) fn on_datagram(
        &mut self,
        from: End,
        datagram: Datagram,
        frame: &Frame,
        collected: &mut Collected,
    ) {
        let side = self.side(from);
        let is_copy = self.last_datagrams.is_copy(datagram, datagram.is_identified, frame.time);
        let payload = self.streams[side].on_datagram(datagram.payload, frame.interface, frame.time, is_copy);
        collected.tally(self.number).count_datagram(payload);
        if let Payload::New(bytes) = payload
            && bytes > 0
        {
            self.on_bytes(side, frame.time, bytes, true, collected);
        }
    }

    /// Takes new bytes of a side; `is_turn` says that the side has acknowledged all of the other's.
    fn on_bytes(&mut self, side: usize, time: Time, bytes: u64, is_turn: bool, collected: &mut Collected) {
        let is_pause = time.saturating_since(self.last) > collected.idle;
        self.last = time;
        let run = ByteRun::new(time, bytes);
        self.turn = match (self.turn, side) {
            (ConversationTurn::Ended, _) => ConversationTurn::Ended,
            (ConversationTurn::Nobody, _) => self.begin(side, run),
            (ConversationTurn::Client(mut request), CLIENT) if !is_pause => {
                request.extend(time, bytes);
                ConversationTurn::Client(request)
            }
            (ConversationTurn::Client(request), CLIENT) => {
                self.flow(CLIENT, request, collected);
                self.before = None;
                ConversationTurn::Client(run)
            }
            (ConversationTurn::Client(request), _) if is_turn => {
                let arrived = self.streams[CLIENT].arrival().unwrap_or(request.end);
                ConversationTurn::Server { request, arrived, response: run }
            }
            (ConversationTurn::Client(request), _) => {
                self.overlap(side, [Some(request), None], run, collected)
            }
            (ConversationTurn::Server { request, arrived, mut response }, SERVER) if !is_pause => {
                response.extend(time, bytes);
                ConversationTurn::Server { request, arrived, response }
            }
            (ConversationTurn::Server { request, arrived, response }, SERVER) => {
                self.exchange(request, arrived, response, collected);
                self.before = None;
                ConversationTurn::Push(run)
            }
            (ConversationTurn::Server { request, arrived, response }, _) if is_turn => {
                self.exchange(request, arrived, response, collected);
                ConversationTurn::Client(run)
            }
            (ConversationTurn::Server { request, response, .. }, _) => {
                self.overlap(side, [Some(request), Some(response)], run, collected)
            }
            (ConversationTurn::Push(mut push), SERVER) if !is_pause => {
                push.extend(time, bytes);
                ConversationTurn::Push(push)
            }
            (ConversationTurn::Push(push), _) if side == SERVER || is_turn => {
                self.flow(SERVER, push, collected);
                self.begin(side, run)
            }
            (ConversationTurn::Push(push), _) => self.overlap(side, [None, Some(push)], run, collected),
            (ConversationTurn::Both(runs), _) => {
                let own = &self.streams[side];
                let is_quiet = is_turn && own.acknowledged == Some(own.place - bytes);
                if is_quiet {
                    self.flows(runs, collected);
                    self.begin(side, run)
                } else {
                    self.both(side, runs, run, collected)
                }
            }
        };
    }

    fn begin(&self, side: usize, run: ByteRun) -> ConversationTurn {
        if side == CLIENT { ConversationTurn::Client(run) } else { ConversationTurn::Push(run) }
    }

    /// Begins to count both sides as flows, since one has not waited for the other.
    fn overlap(
        &mut self,
        side: usize,
        runs: [Option<ByteRun>; 2],
        run: ByteRun,
        collected: &mut Collected,
    ) -> ConversationTurn {
        collected.tally(self.number).overlaps += 1;
        self.before = None;
        self.both(side, runs, run, collected)
    }

    fn both(
        &self,
        side: usize,
        mut runs: [Option<ByteRun>; 2],
        run: ByteRun,
        collected: &mut Collected,
    ) -> ConversationTurn {
        match &mut runs[side] {
            Some(known) if run.start.saturating_since(known.end) <= collected.idle => {
                known.extend(run.end, run.bytes);
            }
            known => {
                let ended = known.replace(run);
                ended.into_iter().for_each(|ended| self.flow(side, ended, collected));
            }
        }
        ConversationTurn::Both(runs)
    }

    /// Moves the end of a side's message, of which bytes were sent again before they were acknowledged.
    fn extend(&mut self, side: usize, time: Time) {
        let stream = &self.streams[side];
        if stream.acknowledged >= Some(stream.place) {
            return;
        }
        match (&mut self.turn, side) {
            (ConversationTurn::Client(run), CLIENT) | (ConversationTurn::Push(run), SERVER) => run.end = time,
            (ConversationTurn::Server { response, .. }, SERVER) => response.end = time,
            _ => {}
        }
    }

    fn exchange(&mut self, request: ByteRun, arrived: Time, response: ByteRun, collected: &mut Collected) {
        let far = self.streams[SERVER].arrival().unwrap_or(response.end);
        let ended = far.max(response.end);
        let connection = *self.connection.get_or_insert_with(|| collected.next_connection());
        let think = self.before.map(|before| request.start.saturating_since(before));
        self.before = Some(ended);
        let turnaround = response.start.saturating_since(arrived);
        collected.turnarounds.add(self.server.host, self.client.host, turnaround, false);
        collected.exchange(SeenExchange {
            class: self.number,
            connection,
            client: self.client.host,
            server: self.server.host,
            start: request.start,
            think,
            request: request.bytes,
            response: response.bytes,
            turnaround,
            latency: ended.saturating_since(request.start),
            has_copies: self.streams[CLIENT].has_copies() || self.streams[SERVER].has_copies(),
        });
    }

    fn flows(&mut self, runs: [Option<ByteRun>; 2], collected: &mut Collected) {
        for (side, run) in runs.into_iter().enumerate() {
            run.into_iter().for_each(|run| self.flow(side, run, collected));
        }
    }

    fn flow(&self, side: usize, run: ByteRun, collected: &mut Collected) {
        let (source, destination) = (self.end_of(side).host, self.end_of(1 - side).host);
        let ByteRun { start, end, bytes } = run;
        collected.flow(SeenFlow { class: self.number, start, end, source, destination, bytes });
    }

    /// Ends the conversation: the connection is closed, or forgotten.
    pub(super) fn end(&mut self, collected: &mut Collected) {
        match std::mem::replace(&mut self.turn, ConversationTurn::Ended) {
            ConversationTurn::Nobody | ConversationTurn::Ended => {}
            ConversationTurn::Client(_) if self.connection.is_some() => {
                collected.tally(self.number).unanswered += 1
            }
            ConversationTurn::Client(request) => self.flow(CLIENT, request, collected),
            ConversationTurn::Server { request, arrived, response } => {
                self.exchange(request, arrived, response, collected);
            }
            ConversationTurn::Push(push) => self.flow(SERVER, push, collected),
            ConversationTurn::Both(runs) => self.flows(runs, collected),
        }
    }

    /// Ends the conversation with the capture. A response that is not acknowledged and has just had bytes may have had
    /// further ones.
    pub(super) fn end_of_capture(&mut self, end: Time, collected: &mut Collected) {
        let stream = &self.streams[SERVER];
        let is_quiet = end.saturating_since(self.last) >= QUIET;
        let is_whole = is_quiet || self.class.is_datagram || stream.acknowledged == Some(stream.place);
        if matches!(self.turn, ConversationTurn::Server { .. }) && !is_whole {
            collected.tally(self.number).unanswered += 1;
            self.turn = ConversationTurn::Ended;
        }
        self.end(collected);
    }
}
