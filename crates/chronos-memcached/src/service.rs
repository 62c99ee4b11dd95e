//! [`Memcached`]: the three protocols as one [`Service`].

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_chronos::{Ahead, KeyHash, Now, PagePool, PartitionId, RuntimeStats, Service, Step, Transport};
use zerocopy::IntoBytes;

use crate::clock::Clock;
use crate::partition::Partition;
use crate::request::{Bits, Request, Style, Verb};
use crate::session::{Protocol, Session};
use crate::settings::{PAGES_FLOOR, Settings};
use crate::stats::{self, Certificates, Counters, Prefixes, Report, Shared, SocketState};
use crate::store::{Budget, Classes, Layout, Store};
use crate::{binary, meta, text, udp};

/// The first byte of a binary request.
const BINARY_MAGIC: u8 = 0x80;

/// A memcached without threads and sockets.
#[derive(Debug)]
pub struct Memcached {
    pub(crate) settings: Settings,
    pub(crate) shared: Arc<Shared>,
    pub(crate) budget: Arc<Budget>,
    layout: Arc<Layout>,
    hash: KeyHash,
}

/// Settings that contradict each other.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Not even the floor of every partition fits.
    #[error(
        "-m {given} MiB is too little for {partitions} partitions, which need {needed} MiB; use fewer \
         threads (-t), or fewer partitions (-o chronos_partitions), of which each thread has one at least"
    )]
    MemoryTooSmall {
        /// What was given, in MiB.
        given: u64,
        /// The number of partitions.
        partitions: u32,
        /// What is needed, in MiB.
        needed: u64,
    },
    /// More than the partitions can hold.
    #[error(
        "-m {given} MiB is too much for {partitions} partitions, which hold {most} MiB; use more with -o \
         chronos_partitions"
    )]
    MemoryTooLarge {
        /// What was given, in MiB.
        given: u64,
        /// The number of partitions.
        partitions: u32,
        /// What they hold at most, in MiB.
        most: u64,
    },
    /// An item could fill the whole cache.
    #[error("-I {item} bytes must be at most half of -m, which is {memory} bytes")]
    ItemTooLarge {
        /// The largest item in bytes, `-I`.
        item: u64,
        /// The memory limit in bytes, `-m`.
        memory: u64,
    },
}

impl Memcached {
    /// A server with `settings`; all its memory is still to be taken.
    pub fn new(settings: Settings) -> Result<Memcached, SettingsError> {
        let (memory, item) = (settings.memory_limit, settings.item_size_max);
        if memory < settings.memory_min() {
            return Err(SettingsError::MemoryTooSmall {
                given: memory >> 20,
                partitions: settings.partitions,
                needed: settings.memory_min().div_ceil(1 << 20),
            });
        }
        if memory > settings.memory_max() {
            return Err(SettingsError::MemoryTooLarge {
                given: memory >> 20,
                partitions: settings.partitions,
                most: settings.memory_max() >> 20,
            });
        }
        if item > memory / 2 {
            return Err(SettingsError::ItemTooLarge { item, memory });
        }
        let page_bytes = settings.page_bytes();
        let shared = Shared::default();
        shared.detail.store(settings.detail, Ordering::Relaxed);
        shared.verbosity.store(settings.verbosity, Ordering::Relaxed);
        shared.crawler.store(settings.crawler, Ordering::Relaxed);
        // memcached's defaults, which are shown.
        shared.crawler_sleep.store(100, Ordering::Relaxed);
        shared.automove.store(1, Ordering::Relaxed);
        Ok(Memcached {
            layout: Arc::new(Layout {
                classes: Classes::new(page_bytes, settings.growth_factor, settings.chunk_size),
                page_bytes,
                pool: PagePool::new(page_bytes),
                pages_floor: PAGES_FLOOR,
                evict: settings.evict,
            }),
            budget: Arc::new(Budget::new(memory, item)),
            hash: KeyHash::new(settings.hash_secret),
            shared: Arc::new(shared),
            settings,
        })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What all threads count together.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What the shutdown command calls, if `-A` allows it.
    pub fn on_shutdown(&self, hook: fn()) {
        // The first stays.
        let _ = self.shared.shutdown.set(hook);
    }

    /// What the command `refresh_certs` calls: it reads the certificates again, or says in a line what is wrong with
    /// them.
    pub fn on_refresh(&self, read: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        let certificates = Certificates { read: Box::new(read), read_at: AtomicU32::new(0) };
        // The first stays.
        let _ = self.shared.certificates.set(certificates);
    }

    /// Bytes of item memory in use, and bytes that may be.
    pub fn memory(&self) -> (u64, u64) {
        (self.budget.taken(), self.budget.limit())
    }

    /// `request`, which consumes `consumed` bytes, on its way to the partition of `key`.
    #[inline]
    pub(crate) fn run<'a>(&self, consumed: usize, mut request: Request<'a>, key: &[u8]) -> Step<Request<'a>> {
        let hash = self.hash.hash(key);
        request.head.hash = hash;
        // Noted here, so that it counts from the command on that turns it on, however requests are run.
        if self.shared.detail.load(Ordering::Relaxed) {
            request.head.bits |= Bits::DETAIL;
        }
        Step::Run { consumed, partition: KeyHash::partition(hash, self.settings.partitions), request }
    }

    /// True if an item counts as too large for `-I`.
    #[inline]
    pub(crate) fn is_too_large(&self, key_bytes: usize, client_flags: u32, value_bytes: usize) -> bool {
        self.settings.item_limit().is_exceeded(key_bytes, client_flags, value_bytes)
    }

    /// The credentials that text connections need, if they do.
    fn text_needs_login(&self) -> bool {
        self.settings.credentials.is_some() && !self.settings.sasl
    }

    /// The protocol of a connection that begins with `first`, and what `-B` makes of it.
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
        let step = if self.settings.cas { u64::from(self.settings.partitions) } else { 0 };
        let (layout, budget) = (Arc::clone(&self.layout), Arc::clone(&self.budget));
        let store = Store::new(layout, budget, u64::from(id.0) + 1, step);
        Partition {
            first: id.0 == 0,
            item_limit: self.settings.item_limit(),
            counters: Counters::default(),
            prefixes: Prefixes::default(),
            store,
        }
    }

    fn open(&self, transport: Transport) -> Session {
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
                let is_get = matches!(request.head.verb, Verb::Get | Verb::GetTouch);
                session.is_piped = !(is_get && request.head.style == Style::Text);
            }
            Step::Done { consumed } | Step::Everywhere { consumed, .. } => {
                session.count_read(*consumed);
                session.is_piped = true;
            }
            Step::Incomplete { total } => {
                // Of a line nobody knows how much is to come.
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
        let key =
            if input.first() == Some(&BINARY_MAGIC) { binary::glance(input) } else { text::glance(input) };
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
                partition.counters.flush_commands += u64::from(partition.first);
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
                    Style::Text => text::execute(partition, request, clock, reply),
                    Style::Meta => meta::execute(partition, request, clock, reply),
                    Style::Binary => binary::execute(partition, request, clock, reply),
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
            Style::Binary if is_report => {
                binary::merge_report(self, request, replies, Clock::new(now), reply)
            }
            Style::Binary => binary::merge(request, reply),
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
        partition.store.housekeeping(Clock::new(now).second, self.shared.crawler.load(Ordering::Relaxed))
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

    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        udp::unseal(datagram)
    }

    fn cut(&self, session: &Session, reply: &mut Vec<u8>) {
        // Answers of the binary protocol have lengths: those that are whole stand for themselves.
        if session.protocol != Protocol::Binary {
            reply.clear();
            reply.extend_from_slice(udp::TOO_LARGE);
        }
    }

    fn seal(&self, envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        udp::seal(envelope, reply, send);
    }
}

/// What one partition says for a report.
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

/// All lines of `report` but those of `detail dump`, which has a form of its own.
pub(crate) fn report_lines(
    server: &Memcached,
    report: Report,
    replies: &[Vec<u8>],
    clock: Clock,
    sink: &mut dyn stats::Sink,
) {
    let (taken, limit) = server.memory();
    match report {
        Report::General => stats::general(replies, &server.settings, &server.shared, limit, clock, sink),
        Report::Items => stats::items(replies, sink),
        Report::Slabs => stats::slabs(replies, taken, sink),
        Report::Detail => {}
    }
}
