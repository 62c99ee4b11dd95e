//! `pages`: front-ends that make pages of many retrievals, with deadlines, retries and replicated reads.
//!
//! ```text
//! page ──> level 0: retrievals, each asked of `replicas` back-ends ──> first answer, or the deadline
//!               └── asked again after `timeout`           all of the level settled ──> next level
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Directed, WorkloadCheck, WorkloadDemand};
use crate::distribution::{Distribution, Sampler, SizeDistribution, TimeDistribution, exponential};
use crate::draw::{stretched, uniform_choice};
use crate::exchange::{Exchanges, PendingRequest, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::hosts::HostSet;
use crate::kind::{Context, ExpectedRecords, Input, Kind, LoadKey, cdf_inputs, host_count, number};
use crate::record::{ExtraLoad, MessageRecord, QueryRecord, Supply};
use crate::source::{Actions, Arrival, Hint, Opened, Source, pairs};

/// Pages that front-ends make of many retrievals from back-ends, with deadlines, retries and replicated reads:
/// DeTail's page creation. A page is a query, a retrieval a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// The hosts that make pages; default `client`.
    #[serde(default = "HostSet::client")]
    pub front_ends: HostSet,
    /// The hosts that hold the parts; default: all that make no pages.
    #[serde(default)]
    pub back_ends: HostSet,
    /// Pages that each front-end begins per second (Poisson).
    pub pages_per_second: f64,
    /// The order of a page's retrievals: one after the other, all at once, or by levels.
    #[serde(default)]
    pub order: PageOrder,
    /// Retrievals of a page; for the orders `sequential` and `parallel`.
    #[serde(default)]
    pub retrievals: Option<u32>,
    /// Retrievals of each level of a page, as `[1, 5, 20, 10]`; for the order `graph`.
    #[serde(default)]
    pub levels: Vec<u32>,
    /// The payload of a request for one retrieval.
    #[serde(default = "Pages::default_request")]
    pub request: SizeDistribution,
    /// Size of a retrieval; this or `sizes`.
    #[serde(default)]
    pub size: Option<SizeDistribution>,
    /// Sizes of which each retrieval draws one, all equally likely; this or `size`. Default: 2, 4, 8, 16 and
    /// 32 KB, DeTail's.
    #[serde(default)]
    pub sizes: Vec<Bytes>,
    /// Time a back-end's thread takes for a request.
    #[serde(default)]
    pub service: TimeDistribution,
    /// Threads of each back-end; requests are served first come first served.
    #[serde(default = "Pages::one")]
    pub threads: u32,
    /// How long a page waits for a retrieval. It is then rendered without it: the page is partial, and the share of its
    /// retrievals that met the deadline measures its completeness.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// Ask again, of the next back-ends, when a retrieval has taken this long since it was last asked for.
    #[serde(default)]
    pub timeout: Option<Span>,
    /// The greatest number of repetitions of one request after `timeout`.
    #[serde(default = "Pages::default_retries")]
    pub retries: u32,
    /// Back-ends asked at once for each retrieval; the first answer counts.
    #[serde(default = "Pages::one")]
    pub replicas: u32,
    /// Stop after this many pages of each front-end.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time from which on pages may begin.
    #[serde(default)]
    pub start: Span,
}

/// The order of the retrievals of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageOrder {
    /// Each begins when the one before it is done.
    Sequential,
    /// All retrievals begin at once.
    #[default]
    Parallel,
    /// The retrievals of a level begin when all of the level before are done.
    Graph,
}

impl Pages {
    /// The sizes of DeTail's page creation, where a file names none.
    pub const SIZES: [Bytes; 5] =
        [Bytes::new(2_000), Bytes::new(4_000), Bytes::new(8_000), Bytes::new(16_000), Bytes::new(32_000)];

    fn default_retries() -> u32 {
        3
    }

    fn default_request() -> SizeDistribution {
        Distribution::Constant(Bytes::new(100))
    }

    fn one() -> u32 {
        1
    }

    /// Returns the number of retrievals of each level; a level begins when the one before it is done.
    pub fn level_sizes(&self) -> Vec<u32> {
        let retrievals = self.retrievals.unwrap_or(1);
        match self.order {
            PageOrder::Sequential => vec![1; retrievals as usize],
            PageOrder::Parallel => vec![retrievals],
            PageOrder::Graph => self.levels.clone(),
        }
    }

    /// Checks the keys that the order needs and returns the number of retrievals of a page.
    fn check_retrievals(&self, check: &mut WorkloadCheck<'_>) -> u64 {
        if self.order == PageOrder::Graph {
            if self.retrievals.is_some() {
                let problem = "the order `graph` goes by `levels`";
                check.error("retrievals", problem, "`levels` alone, or another order");
            }
            return check.levels("levels", &self.levels);
        }
        if !self.levels.is_empty() {
            check.error("levels", "only the order `graph` has levels", "`order = \"graph\"`");
        }
        match self.retrievals {
            Some(retrievals) => check.one_to_many("retrievals", retrievals.into(), "retrievals"),
            None => check.error("", "the key `retrievals` is missing", "`retrievals`"),
        }
        u64::from(self.retrievals.unwrap_or(1))
    }

    /// Returns the mean bytes of a retrieval, unless it is unknown.
    fn mean_size(&self) -> Option<f64> {
        let sizes = if self.sizes.is_empty() { &Pages::SIZES[..] } else { &self.sizes };
        match &self.size {
            Some(size) => size.known_mean(),
            None => Some(sizes.iter().map(|size| size.get() as f64).sum::<f64>() / sizes.len() as f64),
        }
    }

    fn check_sizes(&mut self, check: &mut WorkloadCheck<'_>) {
        if let Some(size) = &mut self.size {
            if !self.sizes.is_empty() {
                check.error("sizes", "the size is given twice", "one of size and sizes");
            }
            check.distribution("size", size);
        }
        for (index, &size) in self.sizes.iter().enumerate() {
            check.some_bytes(&format!("sizes.{index}"), size);
        }
    }
}

impl Kind for Pages {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let front = check.members("front_ends", &self.front_ends, &[]);
        let back = check.members("back_ends", &self.back_ends, &front);
        let rate = self.pages_per_second;
        check.per_second("pages_per_second", rate, "pages");
        let retrievals = self.check_retrievals(check);
        self.check_sizes(check);
        check.distribution("request", &mut self.request);
        check.distribution("service", &mut self.service);
        check.one_to_many("threads", self.threads.into(), "threads");
        check.deadline("deadline", self.deadline);
        if let Some(timeout) = self.timeout {
            check.timeout("timeout", timeout);
        }
        if self.replicas == 0 || self.replicas as usize > back.len().max(1) {
            let problem = format!("{} replicas on {} back-ends", self.replicas, back.len());
            check.error("replicas", problem, "1 to the number of back-ends");
        }
        let asked = rate * front.len() as f64 * retrievals as f64 * f64::from(self.replicas);
        if let (Some(service), false) = (self.service.known_mean(), back.is_empty()) {
            let threads = back.len() as f64 * f64::from(self.threads.max(1));
            check.service("service", asked / threads, service);
        }
        let directed = Directed::new(back, front, self.mean_size().map(|bytes| asked * bytes * 8.0));
        WorkloadDemand {
            ends: self.count.is_some(),
            start: self.start,
            directed,
            ..WorkloadDemand::default()
        }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let front_ends = context.hosts(&self.front_ends, &[], "front_ends")?;
        let config = PagesConfig {
            workload: context.index,
            back_ends: context.hosts(&self.back_ends, &front_ends, "back_ends")?,
            front_ends,
            mean_gap: 1.0 / self.pages_per_second,
            levels: self.level_sizes(),
            request: self.request.sampler(),
            sizes: match &self.size {
                Some(size) => RetrievalSizes::Of(size.sampler()),
                None if self.sizes.is_empty() => RetrievalSizes::OneOf(Pages::SIZES.to_vec()),
                None => RetrievalSizes::OneOf(self.sizes.clone()),
            },
            service: self.service.sampler(),
            threads: self.threads,
            deadline: self.deadline,
            timeout: self.timeout,
            retries: self.retries,
            replicas: self.replicas,
            count: self.count,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_message: !context.keeps_connections,
        };
        Ok(Box::new(PagesSource::new(config, context.streams, context.name)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::PerSecond { key: "pages_per_second", per_second: self.pages_per_second })
    }

    fn deadline(&self) -> Option<Span> {
        self.deadline
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        let size = self.size.as_ref().and_then(Distribution::table);
        cdf_inputs([self.request.table(), size, self.service.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let clients = host_count(facts, &self.front_ends, &[]);
        let retrievals = self.level_sizes().iter().map(|&level| f64::from(level)).sum();
        let limit = number(self.count).map(|count| count * clients);
        let records = ExpectedRecords::new("pages_per_second", self.start).limit(limit);
        Some(records.per_second(self.pages_per_second * clients).queries(retrievals))
    }
}

/// The sizes of retrievals.
#[derive(Debug)]
enum RetrievalSizes {
    /// A distribution draws them.
    Of(Sampler<Bytes>),
    /// Each is one of these, all equally likely.
    OneOf(Vec<Bytes>),
}

impl RetrievalSizes {
    fn sample(&self, stream: &mut Stream) -> u64 {
        let size = match self {
            RetrievalSizes::Of(sampler) => sampler.sample(stream),
            RetrievalSizes::OneOf(sizes) => sizes[uniform_choice(stream, sizes.len() as u64) as usize],
        };
        size.get().max(1)
    }
}

/// The front-ends, the back-ends, and the retrievals of a page.
#[derive(Debug)]
struct PagesConfig {
    workload: u16,
    front_ends: Vec<HostId>,
    back_ends: Vec<HostId>,
    /// The mean seconds between two pages of a front-end.
    mean_gap: f64,
    /// The number of retrievals of each level.
    levels: Vec<u32>,
    request: Sampler<Bytes>,
    sizes: RetrievalSizes,
    service: Sampler<Span>,
    threads: u32,
    deadline: Option<Span>,
    timeout: Option<Span>,
    retries: u32,
    replicas: u32,
    /// The number of pages of each front-end.
    count: Option<u64>,
    start: Time,
    until: Time,
    warmup: Time,
    connection_per_message: bool,
}

/// A page that waits for retrievals.
#[derive(Clone, Copy, Debug)]
struct Page {
    front_end: u32,
    created: Time,
    level: usize,
    /// The number of retrievals of this level that are not settled.
    left: u32,
    /// The number of the next level's first retrieval.
    next: u32,
    answered: u32,
    sum: Span,
    fastest: Span,
}

/// A retrieval that may still get an answer.
#[derive(Clone, Copy, Debug)]
struct Retrieval {
    page: u64,
    created: Time,
    /// The number of retries.
    retried: u32,
    /// The number of requests without an answer.
    out: u32,
    /// True if the page does not wait for it any more.
    is_settled: bool,
    is_answered: bool,
}

/// The timer of a retrieval.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    Deadline,
    /// The timeout of the request after this many retries.
    Again(u32),
}

/// The page arrivals of a front-end.
#[derive(Debug)]
struct FrontEnd {
    gaps: Stream,
    created: u64,
}

/// The source: front-ends and their pages.
#[derive(Debug)]
struct PagesSource {
    config: PagesConfig,
    /// The family of the keyed streams for sizes; the next one is for back-ends, the following ones for service times.
    draws: u64,
    /// The number of retrievals of a page.
    retrievals: u64,
    pool: WorkloadConnections,
    exchanges: Exchanges,
    front_ends: Vec<FrontEnd>,
    /// The time at which each front-end begins its next page.
    arrivals: BinaryHeap<Reverse<(Time, u32)>>,
    /// The open pages by index.
    pages: BTreeMap<u64, Page>,
    /// The open retrievals by index.
    open: BTreeMap<u64, Retrieval>,
    /// Deadlines and timeouts of retrievals; some are obsolete.
    timers: BinaryHeap<Reverse<(Time, u64, Due)>>,
    extra: ExtraLoad,
}

impl PagesSource {
    fn new(config: PagesConfig, streams: &Streams, name: &str) -> PagesSource {
        let front_ends = config.front_ends.iter().map(|host| FrontEnd {
            gaps: streams.stream(&format!("workload/{name}/front-end/{}/gaps", host.0)),
            created: 0,
        });
        let mut pages = PagesSource {
            draws: streams.word(&format!("workload/{name}/draws")),
            retrievals: config.levels.iter().map(|&level| u64::from(level)).sum(),
            pool: WorkloadConnections::new(config.connection_per_message),
            exchanges: Exchanges::new(config.workload, config.back_ends.len(), config.threads),
            front_ends: front_ends.collect(),
            arrivals: BinaryHeap::new(),
            pages: BTreeMap::new(),
            open: BTreeMap::new(),
            timers: BinaryHeap::new(),
            extra: ExtraLoad { workload: config.workload, ..ExtraLoad::default() },
            config,
        };
        for front_end in 0..pages.front_ends.len() as u32 {
            pages.schedule(pages.config.start, front_end);
        }
        pages
    }

    fn schedule(&mut self, after: Time, number: u32) {
        let front_end = &mut self.front_ends[number as usize];
        let gap = stretched(self.config.mean_gap, exponential(&mut front_end.gaps));
        let next = after.saturating_add(gap);
        if next < self.config.until && self.config.count.is_none_or(|count| front_end.created < count) {
            self.arrivals.push(Reverse((next, number)));
        }
    }

    fn begin(&mut self, now: Time, front_end: u32, actions: &mut Actions) {
        let number = self.front_ends[front_end as usize].created;
        self.front_ends[front_end as usize].created += 1;
        let index = number * self.front_ends.len() as u64 + u64::from(front_end);
        let page = Page {
            front_end,
            created: now,
            level: 0,
            left: 0,
            next: 0,
            answered: 0,
            sum: Span::ZERO,
            fastest: Span::MAX,
        };
        self.pages.insert(index, page);
        self.begin_level(now, index, actions);
        self.schedule(now, front_end);
    }

    fn begin_level(&mut self, now: Time, index: u64, actions: &mut Actions) {
        let Some(page) = self.pages.get_mut(&index) else { return };
        let (first, count) = (page.next, self.config.levels[page.level]);
        page.left = count;
        page.next += count;
        for number in first..first + count {
            let retrieval = index * self.retrievals + u64::from(number);
            let open = Retrieval {
                page: index,
                created: now,
                retried: 0,
                out: 0,
                is_settled: false,
                is_answered: false,
            };
            self.open.insert(retrieval, open);
            if let Some(deadline) = self.config.deadline {
                self.timers.push(Reverse((now.saturating_add(deadline), retrieval, Due::Deadline)));
            }
            self.ask(now, retrieval, actions);
        }
    }

    /// Asks `replicas` back-ends: at first the ones from a drawn one on, in each retry the following ones.
    fn ask(&mut self, now: Time, index: u64, actions: &mut Actions) {
        let config = &self.config;
        let Some(open) = self.open.get_mut(&index) else { return };
        let Some(page) = self.pages.get(&open.page) else { return };
        let client = config.front_ends[page.front_end as usize];
        let back_ends = config.back_ends.len() as u64;
        let first = uniform_choice(&mut Streams::keyed(self.draws ^ 1, index), back_ends)
            + u64::from(open.retried) * u64::from(config.replicas);
        let mut stream = Streams::keyed(self.draws, index);
        let response_bytes = config.sizes.sample(&mut stream);
        let request_bytes = config.request.sample(&mut stream).get().max(1);
        // Each back-end draws its own service time, also one that is asked again.
        let mut services = Streams::keyed(self.draws ^ (2 + u64::from(open.retried)), index);
        for replica in 0..u64::from(config.replicas) {
            let server = ((first + replica) % back_ends) as usize;
            let host = config.back_ends[server];
            let ask = PendingRequest {
                index,
                query: Some(open.page),
                owner: index,
                client,
                server: host,
                queue: server,
                connection: self.pool.connection(client, host, 0, actions),
                request_bytes,
                response_bytes,
                service: config.service.sample(&mut services),
            };
            self.exchanges.ask(now, ask, actions);
        }
        open.out += config.replicas;
        let once = u64::from(open.retried == 0);
        let beyond = u64::from(config.replicas) - once;
        self.extra.retries += 1 - once;
        self.extra.replicas += u64::from(config.replicas) - 1;
        self.extra.bytes += beyond * response_bytes;
        if let Some(timeout) = config.timeout.filter(|_| open.retried < config.retries) {
            self.timers.push(Reverse((now.saturating_add(timeout), index, Due::Again(open.retried))));
        }
    }

    /// Settles a retrieval, with its answer or without: the page no longer waits for it.
    fn settle(&mut self, now: Time, index: u64, latency: Option<Span>, actions: &mut Actions) {
        let Some(open) = self.open.get_mut(&index) else { return };
        if std::mem::replace(&mut open.is_settled, true) {
            return;
        }
        let number = open.page;
        let Some(page) = self.pages.get_mut(&number) else { return };
        page.left -= 1;
        if let Some(latency) = latency {
            page.answered += 1;
            page.sum += latency;
            page.fastest = page.fastest.min(latency);
        }
        if page.left > 0 {
            return;
        }
        page.level += 1;
        if page.level < self.config.levels.len() {
            self.begin_level(now, number, actions);
        } else if let Some(page) = self.pages.remove(&number) {
            actions.records.queries.extend(self.record(number, &page, Some(now)));
        }
    }

    fn is_old(&self, index: u64, due: Due) -> bool {
        self.open.get(&index).is_none_or(|open| {
            open.is_settled || matches!(due, Due::Again(retried) if retried != open.retried)
        })
    }

    fn on_timer(&mut self, now: Time, index: u64, due: Due, actions: &mut Actions) {
        match due {
            Due::Deadline => {
                self.settle(now, index, None, actions);
            }
            Due::Again(_) => {
                if let Some(open) = self.open.get_mut(&index) {
                    open.retried += 1;
                }
                self.ask(now, index, actions);
            }
        }
    }

    fn forget_old_timers(&mut self) {
        while let Some(&Reverse((_, index, due))) = self.timers.peek()
            && self.is_old(index, due)
        {
            self.timers.pop();
        }
    }

    fn record(&self, index: u64, page: &Page, completed: Option<Time>) -> Option<QueryRecord> {
        (page.created >= self.config.warmup).then_some(QueryRecord {
            workload: self.config.workload,
            index,
            created: page.created,
            completed,
            servers: self.retrievals as u32,
            in_deadline: page.answered,
            response_mean: page.sum / u64::from(page.answered.max(1)),
            response_min: page.fastest,
        })
    }

    /// Returns an exchange as the message of its retrieval, which begins with the first request.
    fn message(&self, open: &Retrieval, exchange: MessageRecord) -> Option<MessageRecord> {
        let mut message = exchange;
        message.created = open.created;
        if message.completed.is_some() {
            message.split.recovery += exchange.created - open.created;
        }
        (open.created >= self.config.warmup).then_some(message)
    }
}

impl Source for PagesSource {
    fn next_due(&self) -> Time {
        let arrival = self.arrivals.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        let timer = self.timers.peek().map_or(Time::MAX, |Reverse((at, ..))| *at);
        arrival.min(timer).min(self.exchanges.next_due())
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        self.exchanges.on_due(now, actions);
        while let Some(&Reverse((at, index, due))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            if !self.is_old(index, due) {
                self.on_timer(now, index, due, actions);
            }
        }
        while let Some(&Reverse((at, front_end))) = self.arrivals.peek()
            && at <= now
        {
            self.arrivals.pop();
            self.begin(now, front_end, actions);
        }
        self.forget_old_timers();
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Some(done) = self.exchanges.on_message(arrival, actions) else { return };
        let Some(open) = self.open.get_mut(&done.owner) else { return };
        open.out -= 1;
        let is_first = !std::mem::replace(&mut open.is_answered, true);
        let open = *open;
        if is_first {
            let latency = arrival.now - open.created;
            let in_time = self.config.deadline.is_none_or(|deadline| latency < deadline);
            actions.records.messages.extend(self.message(&open, done.message));
            self.settle(arrival.now, done.owner, in_time.then_some(latency), actions);
        }
        if open.out == 0 {
            // It is settled: by this answer or an earlier one.
            self.open.remove(&done.owner);
        }
        self.forget_old_timers();
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let PagesConfig { front_ends, back_ends, connection_per_message, .. } = &self.config;
        pairs(front_ends, back_ends).filter(|_| !connection_per_message).collect()
    }

    fn hints(&self, tell: &mut dyn FnMut(Hint)) {
        self.exchanges.hints(tell);
    }

    fn is_finished(&self) -> bool {
        self.arrivals.is_empty() && self.pages.is_empty() && self.exchanges.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let mut last = None;
        let mut unfinished: Vec<_> = self.exchanges.unfinished().collect();
        unfinished.sort_by_key(|done| (done.owner, done.message.created));
        for done in unfinished {
            let open = self.open.get(&done.owner).filter(|open| !open.is_answered);
            // One message a retrieval, for any number of requests.
            if let Some(open) = open.filter(|_| last.replace(done.owner) != Some(done.owner)) {
                actions.records.messages.extend(self.message(open, done.message));
            }
        }
        actions
            .records
            .queries
            .extend(self.pages.iter().filter_map(|(&index, page)| self.record(index, page, None)));
        if self.config.replicas > 1 || self.config.timeout.is_some() {
            actions.records.extra.push(self.extra);
        }
    }
}
