//! [`SearchService`]: the index as a [`Service`].
//!
//! ```text
//! get WORD, one word of a query ──> its partition ───────────────────────────────> answer
//! several words ──> every partition: the postings of its own words ──> merge: rank ──> answer
//! put, delete ──> catalogue ──> every partition: its own words of both versions ──> merge ──> answer
//! ```
//!
//! A document's change reaches the partitions one after the other. Until it is answered, a query may find the document
//! by some of its words and not yet by others; a version that the catalogue no longer has is never a result.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_chronos::{KeyHash, Now, PartitionId, RuntimeStats, Service, SessionTransport, Step, frames};
use plimsoll_http::metrics::Exposition;

use crate::budget::{Full, MemoryBudget};
use crate::catalogue::{Catalogue, DocumentChange};
use crate::document::{About, Document, Terms};
use crate::index::{Counts, Partition, Posting, Postings};
use crate::rank::{Collection, Ranking, rank};
use crate::request::{Query, Request, SuccessForm};
use crate::snapshots::Snapshots;
use crate::{answer, ascii, http, parts};

/// The settings of chronos-search, which its options set: limits, memory and the protocol's meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchSettings {
    /// The meaning of the key of memcached's `set` and `delete`.
    pub sets: Sets,
    /// Bytes of the longest document, or of the longest value that is set.
    pub document_bytes_max: usize,
    /// Bytes of memory that documents, words and values may take; unlimited for None.
    pub memory_max: Option<u64>,
    /// True for read-copy-update on the thread that receives a request, instead of partitions. A baseline.
    pub snapshots: bool,
    /// Seconds from the first byte of a request to the end of its head or line; 0 for any number. At the deadline the
    /// connection is closed.
    pub head_seconds: u16,
}

impl Default for SearchSettings {
    fn default() -> SearchSettings {
        SearchSettings {
            sets: Sets::Documents,
            document_bytes_max: 1 << 20,
            memory_max: None,
            snapshots: false,
            head_seconds: 30,
        }
    }
}

/// The meaning of the key of memcached's `set KEY`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sets {
    /// KEY names a document, whose text is the value.
    Documents,
    /// KEY is a word, whose posting list is the value: the paper's experiment.
    Postings,
}

/// A connection, or a datagram of memcached's protocol. A connection's first byte decides the protocol: memcached's
/// commands are in lower case, HTTP's methods are not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Session {
    protocol: Option<Protocol>,
    /// True if the head or line of a request has begun and not ended.
    pub(crate) in_head: bool,
    /// The time at which it began, since the server's start.
    head_at: Option<Duration>,
    /// True within the words of a `get`.
    pub(crate) in_get: bool,
    /// True if the client was asked to send its body.
    pub(crate) continued: bool,
    /// True if the last answer ends the connection.
    pub(crate) closing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Memcached,
    Http,
}

/// The index, which is the service.
pub struct SearchService {
    settings: SearchSettings,
    hash: KeyHash,
    partitions: u32,
    budget: Arc<MemoryBudget>,
    catalogue: Arc<Catalogue>,
    snapshots: Option<Snapshots>,
    /// The counters of the runtime, if there is one.
    runtime: OnceLock<Arc<RuntimeStats>>,
}

impl SearchService {
    /// Creates an index without documents, of `partitions` partitions, 1 or more; `secret` is random, so that an
    /// attacker cannot choose words that collide.
    pub fn new(settings: SearchSettings, partitions: u32, secret: u64) -> SearchService {
        let hash = KeyHash::new(secret);
        let budget = Arc::new(MemoryBudget::new(settings.memory_max));
        let snapshots = settings.snapshots.then(|| Snapshots::new(hash, budget.clone()));
        let catalogue = Arc::new(Catalogue::new(budget.clone()));
        SearchService { settings, hash, partitions, budget, catalogue, snapshots, runtime: OnceLock::new() }
    }

    /// Adds a document before the server starts: partitions take the present documents when they are made.
    ///
    /// # Errors
    /// If the budget has no memory for it.
    pub fn load(&self, about: About, text: &str) -> Result<(), Full> {
        let terms = self.terms(text);
        self.change(|| self.catalogue.put(about, terms)).map(|_| ())
    }

    /// Returns the table of documents.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns a function that writes the sizes of the index as metrics, without a lock.
    pub fn metrics(&self) -> impl Fn(&mut Exposition) + Send + Sync + 'static {
        let (catalogue, budget) = (self.catalogue.clone(), self.budget.clone());
        move |out| {
            let Collection { documents, words } = catalogue.collection();
            out.gauge("chronos_search_documents", "Documents in the index.", documents);
            out.gauge(
                "chronos_search_document_words",
                "Words of all documents, repetitions included.",
                words,
            );
            out.gauge(
                "chronos_search_memory_bytes",
                "Memory of documents, words and values.",
                budget.taken(),
            );
            if let Some(limit) = budget.limit() {
                out.gauge("chronos_search_memory_limit_bytes", "The memory that they may take.", limit);
            }
        }
    }

    pub(crate) fn settings(&self) -> &SearchSettings {
        &self.settings
    }

    /// Returns the memory that is taken, and its limit.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    pub(crate) fn hash(&self) -> &KeyHash {
        &self.hash
    }

    /// Puts a document; `answer` gets whether it is new. An error if the budget has no memory for it.
    pub(crate) fn put<'a>(
        &self,
        consumed: usize,
        about: About,
        text: &str,
        answer: impl FnOnce(bool) -> SuccessForm,
        reply: &mut Vec<u8>,
    ) -> Result<Step<Request<'a>>, Full> {
        let terms = self.terms(text);
        let change = self.change(|| self.catalogue.put(about, terms))?;
        let answer = answer(change.before.is_none());
        Ok(self.step(consumed, Request::Apply { number: change.number, answer }, reply))
    }

    /// Deletes a document; none if no document has that name.
    pub(crate) fn delete<'a>(
        &self,
        consumed: usize,
        id: &str,
        answer: SuccessForm,
        reply: &mut Vec<u8>,
    ) -> Option<Step<Request<'a>>> {
        let change = self.change(|| self.catalogue.delete(id).ok_or(Absent)).ok()?;
        Some(self.step(consumed, Request::Apply { number: change.number, answer }, reply))
    }

    /// Returns the destination of a request: its partition, all, or none, since snapshots are read here.
    pub(crate) fn step<'a>(
        &self,
        consumed: usize,
        request: Request<'a>,
        reply: &mut Vec<u8>,
    ) -> Step<Request<'a>> {
        if let Some(snapshots) = &self.snapshots {
            self.run_on_snapshots(snapshots, &request, reply);
            return Step::Done { consumed };
        }
        let partition = match &request {
            Request::Get(term) | Request::Set { term, .. } | Request::Forget { term, .. } => {
                Some(term.partition(self.partitions))
            }
            Request::Search(query) => self.only_partition(query),
            Request::Apply { .. } | Request::Count(_) => None,
        };
        match partition {
            Some(partition) => Step::Run { consumed, partition, request },
            None => Step::Everywhere { consumed, request },
        }
    }

    /// Returns the partition that has all words of a query; any one if the query has no words.
    fn only_partition(&self, query: &Query<'_>) -> Option<PartitionId> {
        let mut partitions = query.terms(&self.hash).map(|term| term.partition(self.partitions));
        let first = partitions.next().unwrap_or(PartitionId(0));
        partitions.all(|partition| partition == first).then_some(first)
    }

    fn change<E>(&self, change: impl FnOnce() -> Result<DocumentChange, E>) -> Result<DocumentChange, E> {
        match &self.snapshots {
            Some(snapshots) => snapshots.change(change),
            None => change(),
        }
    }

    fn terms(&self, text: &str) -> Terms {
        Terms::of(text, &self.hash, self.partitions)
    }

    fn run_on_snapshots(&self, snapshots: &Snapshots, request: &Request<'_>, reply: &mut Vec<u8>) {
        match request {
            Request::Get(term) => {
                if let Some(found) = snapshots.get(*term) {
                    let name = |posting: &Posting, line: &mut Vec<u8>| {
                        append_name(self.catalogue.get(posting.number).as_deref(), posting, line)
                    };
                    answer::value(term.word, &found, name, reply);
                }
            }
            Request::Set { term, flags, value, quiet } => {
                ascii::set_done(snapshots.set(*term, *flags, value), *quiet, reply);
            }
            Request::Forget { term, quiet } => ascii::forgotten(snapshots.forget(*term), *quiet, reply),
            Request::Search(query) => {
                let found: Vec<_> = query.terms(&self.hash).map(|term| snapshots.get(term)).collect();
                let lists: Vec<_> = found.iter().map(|found| documents(found.as_deref())).collect();
                self.answer_query(query, &lists, reply);
            }
            Request::Apply { answer, .. } => answer::done(*answer, reply),
            Request::Count(answer) => self.answer_counts(*answer, snapshots.counts(), reply),
        }
    }

    fn answer_query(&self, query: &Query<'_>, lists: &[&[Posting]], reply: &mut Vec<u8>) {
        let ranking: Ranking = rank(lists, query.mode, query.limit as usize, &self.catalogue);
        answer::results(&ranking, query.form, reply);
    }

    fn answer_counts(&self, answer: SuccessForm, counts: Counts, reply: &mut Vec<u8>) {
        let shed = self.runtime.get().map_or(0, |runtime| runtime.total().shed);
        answer::statistics(answer, self.catalogue.collection(), counts, &self.budget, shed, reply);
    }

    /// Runs a request that changes nothing. Returns false, with nothing appended, for any other request.
    pub fn look(&self, partition: &Partition, request: &Request<'_>, reply: &mut Vec<u8>) -> bool {
        match request {
            Request::Get(term) => {
                if let Some(postings) = partition.get(*term) {
                    let name = |posting: &Posting, line: &mut Vec<u8>| {
                        append_name(partition.document(posting.number), posting, line)
                    };
                    answer::value(term.word, postings, name, reply);
                }
            }
            Request::Search(query) if self.only_partition(query).is_some() => {
                let terms = query.terms(&self.hash);
                let lists: Vec<_> = terms.map(|term| documents(partition.get(term))).collect();
                self.answer_query(query, &lists, reply);
            }
            Request::Search(query) => {
                for (index, term) in query.terms(&self.hash).enumerate() {
                    parts::put_list(index, documents(partition.get(term)), reply);
                }
            }
            Request::Count(_) => parts::put_counts(partition.counts(), reply),
            Request::Set { .. } | Request::Forget { .. } | Request::Apply { .. } => return false,
        }
        true
    }
}

impl Service for SearchService {
    type Partition = Partition;
    type Session = Session;
    type Request<'a> = Request<'a>;

    const TICKS: bool = true;

    fn started(&self, stats: Arc<RuntimeStats>) {
        // It starts once.
        let _ = self.runtime.set(stats);
    }

    fn partition(&self, id: PartitionId) -> Partition {
        let mut partition = Partition::new(id, self.hash, self.budget.clone());
        if self.snapshots.is_none() {
            for document in self.catalogue.all() {
                partition.apply(document.number, Some(document));
            }
        }
        partition
    }

    fn open(&self, transport: SessionTransport) -> Session {
        // Requests of HTTP come by connections.
        let protocol = (transport == SessionTransport::Udp).then_some(Protocol::Memcached);
        Session { protocol, ..Session::default() }
    }

    fn parse<'a>(
        &self,
        session: &mut Session,
        now: Now,
        input: &'a [u8],
        reply: &mut Vec<u8>,
    ) -> Step<Request<'a>> {
        let head_at = session.head_at.take();
        session.in_head = false;
        if session.closing {
            return Step::Close;
        }
        let Some(first) = input.first() else {
            return Step::Incomplete { total: 1 };
        };
        let protocol = session.protocol.get_or_insert(if first.is_ascii_uppercase() {
            Protocol::Http
        } else {
            Protocol::Memcached
        });
        let step = match protocol {
            Protocol::Memcached => ascii::parse(self, session, input, reply),
            Protocol::Http => http::parse(self, session, input, reply),
        };
        session.head_at = session.in_head.then(|| head_at.unwrap_or(now.since_start));
        step
    }

    fn tick(&self, session: &mut Session, now: Now, _reply: &mut Vec<u8>) -> bool {
        let limit = Duration::from_secs(self.settings.head_seconds.into());
        let is_in_time = |since| now.since_start.saturating_sub(since) < limit;
        limit.is_zero() || session.head_at.is_none_or(is_in_time)
    }

    fn execute(&self, partition: &mut Partition, request: &Request<'_>, _now: Now, reply: &mut Vec<u8>) {
        match request {
            Request::Set { term, flags, value, quiet } => {
                ascii::set_done(partition.set(*term, *flags, value), *quiet, reply);
            }
            Request::Forget { term, quiet } => ascii::forgotten(partition.forget(*term), *quiet, reply),
            Request::Apply { number, .. } => partition.apply(*number, self.catalogue.get(*number)),
            Request::Get(_) | Request::Search(_) | Request::Count(_) => {
                self.look(partition, request, reply);
            }
        }
    }

    fn encode(&self, request: &Request<'_>, message: &mut Vec<u8>) {
        request.encode(message);
    }

    fn decode<'a>(&self, message: &'a [u8]) -> Request<'a> {
        Request::decode(message, &self.hash).expect("a message that encode wrote")
    }

    fn merge(
        &self,
        _session: &mut Session,
        request: &Request<'_>,
        replies: &[Vec<u8>],
        _now: Now,
        reply: &mut Vec<u8>,
    ) {
        match request {
            Request::Search(query) => {
                let lists = parts::lists(query.terms(&self.hash).count(), replies);
                let lists: Vec<&[Posting]> = lists.iter().map(Vec::as_slice).collect();
                self.answer_query(query, &lists, reply);
            }
            Request::Apply { answer, .. } => answer::done(*answer, reply),
            Request::Count(answer) => self.answer_counts(*answer, parts::counts(replies), reply),
            Request::Get(_) | Request::Set { .. } | Request::Forget { .. } => {
                unreachable!("these go to one partition")
            }
        }
    }

    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        frames::unseal(datagram)
    }

    fn cut(&self, _session: &Session, reply: &mut Vec<u8>) {
        reply.clear();
        reply.extend_from_slice(frames::TOO_LARGE);
    }

    fn seal(&self, envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        frames::seal(envelope, reply, send);
    }
}

/// The error of a document that does not exist.
struct Absent;

fn documents(postings: Option<&Postings>) -> &[Posting] {
    postings.map_or(&[], Postings::documents)
}

/// Appends the name of a posting's document; false if it is not the posting's version any more.
fn append_name(document: Option<&Document>, posting: &Posting, line: &mut Vec<u8>) -> bool {
    let found = document.filter(|document| document.generation == posting.generation);
    line.extend(found.map_or(&b""[..], |document| document.about.id.as_bytes()));
    found.is_some()
}
