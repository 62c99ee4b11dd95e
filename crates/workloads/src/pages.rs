//! `pages`: front-ends that make pages of many retrievals, with deadlines, retries and replicated reads.
//!
//! ```text
//! page ──> level 0: retrievals, each asked of `replicas` back-ends ──> first answer, or the deadline
//!               └── asked again after `timeout`           all of the level settled ──> next level
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_fabric::engine::{Stream, Streams};
use plimsoll_fabric::net::HostId;
use plimsoll_results::outcome::{ExtraLoad, Message, Query};
use plimsoll_scenario::distribution::{Sampler, exponential};
use plimsoll_units::{Bytes, Span, Time};

use super::exchange::{Ask, Exchanges, Pool};
use super::{Actions, Arrival, Opened, Workload, stretched, uniform_choice};

/// Sizes of what is retrieved.
#[derive(Debug)]
pub(crate) enum Sizes {
    Of(Sampler<Bytes>),
    /// One of these, all equally likely.
    OneOf(Vec<Bytes>),
}

impl Sizes {
    fn sample(&self, stream: &mut Stream) -> u64 {
        let size = match self {
            Sizes::Of(sampler) => sampler.sample(stream),
            Sizes::OneOf(sizes) => sizes[uniform_choice(stream, sizes.len() as u64) as usize],
        };
        size.get().max(1)
    }
}

/// What pages are made of.
#[derive(Debug)]
pub(crate) struct PagesConfig {
    pub(crate) workload: u16,
    pub(crate) front_ends: Vec<HostId>,
    pub(crate) back_ends: Vec<HostId>,
    /// Mean seconds between two pages of a front-end.
    pub(crate) mean_gap: f64,
    /// Retrievals of each level.
    pub(crate) levels: Vec<u32>,
    pub(crate) request: Sampler<Bytes>,
    pub(crate) sizes: Sizes,
    pub(crate) service: Sampler<Span>,
    pub(crate) threads: u32,
    pub(crate) deadline: Option<Span>,
    pub(crate) timeout: Option<Span>,
    pub(crate) retries: u32,
    pub(crate) replicas: u32,
    /// Pages of each front-end.
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    pub(crate) connection_per_message: bool,
}

/// A page that waits for retrievals.
#[derive(Clone, Copy, Debug)]
struct Page {
    front_end: u32,
    created: Time,
    level: usize,
    /// Retrievals of this level that are not settled.
    left: u32,
    /// Number of the next level's first retrieval.
    next: u32,
    answered: u32,
    sum: Span,
    fastest: Span,
}

/// A retrieval of which an answer may still come.
#[derive(Clone, Copy, Debug)]
struct Retrieval {
    page: u64,
    created: Time,
    /// How often it has been asked again.
    retried: u32,
    /// Requests without an answer.
    out: u32,
    /// The page does not wait for it any more.
    is_settled: bool,
    is_answered: bool,
}

/// What is due of a retrieval.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    Deadline,
    /// The timeout of the ask after so many retries.
    Again(u32),
}

/// A front-end's page arrivals.
#[derive(Debug)]
struct FrontEnd {
    gaps: Stream,
    created: u64,
}

/// Front-ends and their pages.
#[derive(Debug)]
pub(crate) struct Pages {
    config: PagesConfig,
    /// Family of the keyed streams for sizes; the next one is for back-ends, those after it for service times.
    draws: u64,
    /// Retrievals of a page.
    retrievals: u64,
    pool: Pool,
    exchanges: Exchanges,
    front_ends: Vec<FrontEnd>,
    /// When which front-end begins a page.
    arrivals: BinaryHeap<Reverse<(Time, u32)>>,
    /// By index of the page.
    pages: BTreeMap<u64, Page>,
    /// By index of the retrieval.
    open: BTreeMap<u64, Retrieval>,
    /// Deadlines and timeouts of retrievals; some are out of date.
    timers: BinaryHeap<Reverse<(Time, u64, Due)>>,
    extra: ExtraLoad,
}

impl Pages {
    pub(crate) fn new(config: PagesConfig, streams: &Streams, name: &str) -> Pages {
        let front_ends = config.front_ends.iter().map(|host| FrontEnd {
            gaps: streams.stream(&format!("workload/{name}/front-end/{}/gaps", host.0)),
            created: 0,
        });
        let mut pages = Pages {
            draws: streams.word(&format!("workload/{name}/draws")),
            retrievals: config.levels.iter().map(|&level| u64::from(level)).sum(),
            pool: Pool::new(config.connection_per_message),
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

    /// Asks `replicas` back-ends: at first those from a drawn one on, in each retry the ones that follow.
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
        // Each back-end takes a time of its own, also one that is asked again.
        let mut services = Streams::keyed(self.draws ^ (2 + u64::from(open.retried)), index);
        for replica in 0..u64::from(config.replicas) {
            let server = ((first + replica) % back_ends) as usize;
            let host = config.back_ends[server];
            let ask = Ask {
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

    /// The page goes on without this retrieval, or with its answer.
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
            actions.queries.extend(self.record(number, &page, Some(now)));
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

    fn record(&self, index: u64, page: &Page, completed: Option<Time>) -> Option<Query> {
        (page.created >= self.config.warmup).then_some(Query {
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

    /// An exchange as the message that its retrieval is: from when it was first asked for.
    fn message(&self, open: &Retrieval, exchange: Message) -> Option<Message> {
        let mut message = exchange;
        message.created = open.created;
        if message.completed.is_some() {
            message.split.recovery += exchange.created - open.created;
        }
        (open.created >= self.config.warmup).then_some(message)
    }
}

impl Workload for Pages {
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
            actions.messages.extend(self.message(&open, done.message));
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
        super::pairs(front_ends, back_ends).filter(|_| !connection_per_message).collect()
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
            // One message a retrieval, however often it was asked for.
            if let Some(open) = open.filter(|_| last.replace(done.owner) != Some(done.owner)) {
                actions.messages.extend(self.message(open, done.message));
            }
        }
        actions.queries.extend(self.pages.iter().filter_map(|(&index, page)| self.record(index, page, None)));
        if self.config.replicas > 1 || self.config.timeout.is_some() {
            actions.extra.push(self.extra);
        }
    }
}
