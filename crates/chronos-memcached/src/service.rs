//! The three protocols as one [`Service`], which is [`Memcached`].

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use plimsoll_chronos::{
    Ahead, KeyHash, Now, PartitionId, RuntimeStats, Service, SessionTransport, Step, frames,
};
use zerocopy::IntoBytes;

use crate::clock::Clock;
use crate::partition::Partition;
use crate::request::{Bits, ReplyStyle, Request, Verb};
use crate::server::Memcached;
use crate::session::{Protocol, Session};
use crate::stats::{Counters, Prefixes, Report, SocketState};
use crate::store::ItemStore;
use crate::{binary, meta, text};

/// The first byte of a binary request.
const BINARY_MAGIC: u8 = 0x80;

impl Memcached {
    /// Returns the credentials that text connections need, if they do.
    fn text_needs_login(&self) -> bool {
        self.settings.credentials.is_some() && !self.settings.sasl
    }

    /// Takes a partition with the items of a memory file, if there is one.
    fn take_restored(&self, number: u32) -> Option<Partition> {
        let mut restored = self.restored.lock().unwrap_or_else(PoisonError::into_inner);
        restored.get_mut(number as usize)?.take()
    }

    /// Returns the protocol of a connection that begins with `first`, as `-B` restricts it.
    fn protocol(&self, first: u8) -> Protocol {
        match self.settings.protocol {
            Protocol::Unknown if first == BINARY_MAGIC => Protocol::Binary,
            Protocol::Unknown => Protocol::Text,
            fixed => fixed,
        }
    }
}

impl Service for Memcached {
    type Partition = Partition;
    type Session = Session;
    type Request<'a> = Request<'a>;

    const LOOKS_AHEAD: bool = true;

    fn partition(&self, id: PartitionId) -> Partition {
        if let Some(partition) = self.take_restored(id.0) {
            return partition;
        }
        let step = if self.settings.cas { u64::from(self.settings.partitions) } else { 0 };
        let (layout, budget) = (Arc::clone(&self.layout), Arc::clone(&self.budget));
        let store = ItemStore::new(layout, budget, u64::from(id.0) + 1, step);
        Partition {
            number: id.0,
            item_limit: self.settings.item_limit(),
            counters: Counters::default(),
            prefixes: Prefixes::default(),
            store,
        }
    }

    fn open(&self, transport: SessionTransport) -> Session {
        let authenticated = self.settings.credentials.is_none();
        Session::new(transport, Protocol::Unknown, authenticated, &self.shared)
    }

    #[inline]
    fn parse<'a>(
        &self,
        session: &mut Session,
        now: Now,
        input: &'a [u8],
        reply: &mut Vec<u8>,
    ) -> Step<Request<'a>> {
        if session.close {
            return Step::Close;
        }
        if session.skip > 0 {
            return Step::Skip { bytes: std::mem::take(&mut session.skip) };
        }
        if session.dump.is_some() {
            return text::dump::next(self, session, reply);
        }
        let clock = Clock::new(now);
        let Some(&first) = input.first() else {
            session.pause(SocketState::Reading, clock.second);
            return Step::Incomplete { total: 1 };
        };
        if session.protocol == Protocol::Unknown {
            session.protocol = self.protocol(first);
        }
        let step = match session.protocol {
            Protocol::Binary => binary::parse(self, session, clock, input, reply),
            _ if !session.authenticated && self.text_needs_login() => {
                text::login(self, session, input, reply)
            }
            _ => text::parse(self, session, clock, input, reply),
        };
        match &step {
            Step::Run { consumed, request, .. } => {
                session.count_read(*consumed);
                session.is_piped = !(request.head.verb.is_fetch() && request.head.style == ReplyStyle::Text);
            }
            Step::Done { consumed } | Step::Everywhere { consumed, .. } => {
                session.count_read(*consumed);
                session.is_piped = true;
            }
            Step::Incomplete { total } => {
                // The remaining length of a line is unknown.
                let is_value = *total > input.len() + 1;
                session.pause(
                    if is_value { SocketState::ReadingValue } else { SocketState::Reading },
                    clock.second,
                );
            }
            Step::Skip { .. } | Step::Close => {}
        }
        step
    }

    #[inline]
    fn place(&self, request: &Request<'_>) -> u64 {
        request.head.hash
    }

    #[inline]
    fn glance(&self, input: &[u8]) -> Option<(PartitionId, u64)> {
        let is_binary = input.first() == Some(&BINARY_MAGIC);
        if is_binary && self.settings.by_vbucket {
            return None;
        }
        let key = if is_binary { binary::glance(input) } else { text::glance(input) };
        let hash = self.hash.hash(key?);
        Some((KeyHash::partition(hash, self.settings.partitions), hash))
    }

    #[inline]
    fn look_ahead(&self, partition: &Partition, hash: u64, ahead: Ahead) {
        match ahead {
            Ahead::Index => partition.store.prefetch_index(hash),
            Ahead::Data => partition.store.prefetch_item(hash),
        }
    }

    #[inline]
    fn execute(&self, partition: &mut Partition, request: &Request<'_>, now: Now, reply: &mut Vec<u8>) {
        let (clock, before) = (Clock::new(now), reply.len());
        match request.head.verb {
            Verb::Flush => {
                partition.counters.flush_commands += u64::from(partition.number == 0);
                if self.settings.flush {
                    partition.store.flush(request.head.expiry, clock.second);
                }
            }
            Verb::ResetStats => {
                partition.counters = Counters::default();
                partition.store.reset_counts();
                partition.prefixes.clear();
            }
            Verb::Stats => {
                partition.store.forget_taken(clock.second);
                partition_report(partition, Report::from_mode(request.head.mode), clock, reply);
            }
            Verb::Dump => text::dump::execute(partition, &request.head, clock, reply),
            Verb::Crawl => partition.store.sweep_soon(),
            Verb::Cachedump => {
                text::dump::cachedump(partition, &request.head, clock, self.settings.partitions, reply);
            }
            Verb::Evict => {
                if let Some(old) = partition.store.peek(request.head.hash, meta::key(request, &mut None)) {
                    partition.store.remove(old);
                }
            }
            _ => {
                if request.head.has(Bits::DETAIL) {
                    let mut decoded = None;
                    let key = meta::key(request, &mut decoded);
                    partition.count_prefix(request, key, self.settings.prefix_delimiter, clock.second);
                }
                match request.head.style {
                    ReplyStyle::Text => text::execute(partition, request, clock, reply),
                    ReplyStyle::Meta => meta::execute(partition, request, clock, reply),
                    ReplyStyle::Binary => binary::execute(partition, request, clock, reply),
                }
                partition.counters.bytes_written += (reply.len() - before) as u64;
            }
        }
        partition.store.settle();
    }

    fn encode(&self, request: &Request<'_>, message: &mut Vec<u8>) {
        request.encode(message);
    }

    fn decode<'a>(&self, message: &'a [u8]) -> Request<'a> {
        Request::decode(message)
    }

    fn merge(
        &self,
        session: &mut Session,
        request: &Request<'_>,
        replies: &[Vec<u8>],
        now: Now,
        reply: &mut Vec<u8>,
    ) {
        session.tell();
        let head = &request.head;
        let is_report = head.verb == Verb::Stats;
        match head.style {
            ReplyStyle::Binary if is_report => {
                binary::merge_report(self, request, replies, Clock::new(now), reply)
            }
            ReplyStyle::Binary => binary::merge(request, reply),
            _ if is_report => {
                text::merge_report(self, Report::from_mode(head.mode), replies, Clock::new(now), reply);
            }
            _ if head.verb == Verb::Cachedump => text::dump::merge_cachedump(replies, head.delta, reply),
            _ if head.verb == Verb::ResetStats => reply.extend_from_slice(b"RESET\r\n"),
            _ if head.has(Bits::QUIET) => {}
            _ if head.verb == Verb::Crawl => reply.extend_from_slice(b"OK\r\n"),
            _ if !self.settings.flush => reply.extend_from_slice(b"CLIENT_ERROR flush_all not allowed\r\n"),
            _ => reply.extend_from_slice(b"OK\r\n"),
        }
    }

    fn housekeeping(&self, partition: &mut Partition, now: Now) -> bool {
        let second = Clock::new(now).second;
        let has_more = partition.store.housekeeping(second, self.shared.crawler.load(Ordering::Relaxed));
        if let Some(published) = self.published.as_ref().filter(|_| !has_more) {
            published.publish(partition.number, &partition.counters, &partition.gauges(second));
        }
        has_more
    }

    fn listens(&self, socket: BorrowedFd<'_>) {
        self.shared.roster.add_listener(socket, Clock::AT_START.second);
    }

    fn connected(&self, session: &mut Session, socket: BorrowedFd<'_>, now: Now) {
        session.enter(socket, Clock::new(now).second);
    }

    fn started(&self, stats: Arc<RuntimeStats>) {
        // A service is started once; a second runtime would count for itself.
        let _ = self.shared.runtime.set(stats);
    }

    fn refusal(&self) -> &[u8] {
        b"ERROR Too many open connections\r\n"
    }

    fn ended(&self, partitions: Vec<Partition>, now: Now) {
        if let Some(file) = &self.memory_file {
            file.keep(partitions, self.settings.cas, Clock::new(now));
        }
    }

    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        // The envelope is the request's id and, above it, the length of the datagram.
        frames::unseal(datagram).map(|(id, request)| (id | (datagram.len() as u64) << 16, request))
    }

    fn cut(&self, session: &Session, reply: &mut Vec<u8>) {
        // Replies of the binary protocol contain their lengths: complete ones can be sent as they are.
        if session.protocol != Protocol::Binary {
            reply.clear();
            reply.extend_from_slice(frames::TOO_LARGE);
        }
    }

    fn seal(&self, envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        match u64::from(self.settings.udp_amplification) {
            0 => frames::seal(envelope, reply, send),
            factor => frames::seal_within(envelope, (envelope >> 16) * factor, reply, send),
        }
    }
}

/// Returns the part of one partition in a report.
fn partition_report(partition: &mut Partition, report: Report, clock: Clock, reply: &mut Vec<u8>) {
    match report {
        Report::General => {
            reply.extend_from_slice(partition.counters.as_bytes());
            reply.extend_from_slice(partition.gauges(clock.second).as_bytes());
        }
        Report::Items | Report::Slabs => {
            for class in partition.store.classes(clock.second) {
                reply.extend_from_slice(class.as_bytes());
            }
        }
        Report::Detail => partition.prefixes.encode(reply),
    }
}
