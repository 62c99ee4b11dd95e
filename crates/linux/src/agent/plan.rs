//! [`Plan`]: what hosts send to each other and when, drawn from the same named streams as in a simulated run.

use std::collections::BTreeMap;

use plimsoll_fabric::engine::Streams;
use plimsoll_mechanisms::tcp::Connections;
use plimsoll_results::outcome::WorkloadInfo;
use plimsoll_scenario::distribution::{TimeDistribution, exponential};
use plimsoll_scenario::model::{self, HostName, Hosts, Model, Pick, Workload};
use plimsoll_scenario::quantity::Load;
use plimsoll_units::{Bytes, Span, Time};
use plimsoll_wiring::{Unbuildable, stretched, uniform_choice};
use plimsoll_workloads::Traffic;

/// A message, and its answer where there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    /// When it is sent, on the workloads' clock.
    pub(crate) at: Time,
    /// Which of its workload.
    pub(crate) index: u64,
    /// The query that it is part of.
    pub(crate) query: Option<u64>,
    /// Bytes from client to server; without a number, until the run ends.
    pub(crate) bytes: Option<u64>,
    /// Bytes of the answer, and the time that it takes the server.
    pub(crate) answer: Option<(u64, Span)>,
}

/// A connection and what it carries, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lane {
    /// Index of the workload.
    pub(crate) workload: u16,
    pub(crate) client: u32,
    pub(crate) server: u32,
    /// Opened for its one message, and not before.
    pub(crate) fresh: bool,
    pub(crate) priority: u8,
    pub(crate) items: Vec<Item>,
}

/// A source that is asked at its times, and told what arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Driven {
    /// Its number in the scenario.
    pub(crate) number: u16,
    pub(crate) priority: u8,
    /// Bytes of its single packets that are no payload: of those whose size is that of the frame, what Ethernet, IP and
    /// UDP take; of others the scenario's header.
    pub(crate) packet_header: u64,
}

/// Everything that is sent.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workloads: Vec<WorkloadInfo>,
    pub(crate) lanes: Vec<Lane>,
    /// Sources that are driven as the simulator drives them, in the order of their numbers.
    pub(crate) driven: Vec<Driven>,
    /// When the run ends at the latest, on the workloads' clock.
    pub(crate) horizon: Time,
    /// Some flows send for as long as the run lasts.
    pub(crate) endless: bool,
}

/// Most connections of a run: each has two or three threads.
const LANES_MAX: usize = 1_000;

/// Headers of Ethernet, IPv4 and UDP.
const UDP_FRAME: u64 = 14 + 20 + 8;

struct Builder<'a> {
    model: &'a Model,
    streams: &'a Streams,
    name: &'a str,
    until: Time,
    lanes: BTreeMap<(u32, u32, u64), Vec<Item>>,
    fresh: u64,
}

struct Asking {
    client: u32,
    servers: Vec<u32>,
    request: u64,
    mean_gap: f64,
    fan_out: bool,
    random: bool,
    count: Option<u64>,
    start: Span,
}

impl Plan {
    /// The plan of `model`.
    ///
    /// # Errors
    /// If a workload cannot be built, or there are too many connections.
    pub(crate) fn new(model: &Model) -> Result<Plan, Unbuildable> {
        let streams = Streams::new(model.run.seed);
        let until = model.run.duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
        let mut plan = Plan {
            workloads: Traffic::new(model, &streams)?.infos,
            lanes: Vec::new(),
            driven: Vec::new(),
            horizon: Time::MAX,
            endless: false,
        };
        for (index, (name, workload)) in model.workload.iter().enumerate() {
            let priority = model.host.priority.get(name).copied().unwrap_or(0);
            let packet_header = match workload {
                Workload::Packets(_) => UDP_FRAME,
                _ => model.transport.header.get(),
            };
            let driven = Driven { number: index as u16, priority, packet_header };
            if is_driven(workload) {
                plan.driven.push(driven);
                continue;
            }
            let mut builder =
                Builder { model, streams: &streams, name, until, lanes: BTreeMap::new(), fresh: 0 };
            builder.take(workload)?;
            let shared = builder.shares_connections();
            if is_asking(workload) && !shared && plan.lanes.len() + builder.lanes.len() > LANES_MAX {
                plan.driven.push(driven);
                continue;
            }
            let index = index as u16;
            plan.lanes.extend(builder.lanes.into_iter().map(|((client, server, fresh), items)| Lane {
                workload: index,
                client,
                server,
                fresh: fresh > 0,
                priority,
                items,
            }));
        }
        plan.endless = plan.lanes.iter().flat_map(|lane| &lane.items).any(|item| item.bytes.is_none());
        plan.horizon = match model.run.duration {
            None => Time::MAX,
            Some(duration) if plan.endless => Time::ZERO + duration,
            Some(duration) => (Time::ZERO + duration).saturating_add(model.run.drain),
        };
        if plan.lanes.len() > LANES_MAX {
            let problem = format!(
                "{} connections; at most {LANES_MAX} are emulated. Fewer flows, or \
                 `transport.connections = \"long-lived\"`, need fewer",
                plan.lanes.len()
            );
            return Err(Unbuildable { key: "workload".to_owned(), problem });
        }
        Ok(plan)
    }
}

/// Whether a source's messages depend on what has arrived before, or are too many for a list.
fn is_driven(workload: &Workload) -> bool {
    matches!(
        workload,
        Workload::Ping(_)
            | Workload::ClosedLoop(_)
            | Workload::Shuffle(_)
            | Workload::Barrier(_)
            | Workload::Commit(_)
            | Workload::Pages(_)
            | Workload::Ptp(_)
            | Workload::Packets(_)
    )
}

/// Whether a source asks servers at times known before, so that it can be a list or be driven.
fn is_asking(workload: &Workload) -> bool {
    matches!(workload, Workload::Rpc(_) | Workload::Transfer(_) | Workload::FanOut(_))
}

impl Builder<'_> {
    fn error(&self, key: &str, problem: impl ToString) -> Unbuildable {
        Unbuildable { key: format!("workload.{}.{key}", self.name), problem: problem.to_string() }
    }

    fn take(&mut self, workload: &Workload) -> Result<(), Unbuildable> {
        match workload {
            Workload::Rpc(rpc) => {
                let client = self.host(&rpc.client, "client")?;
                let response = rpc.response.sampler();
                let asking = Asking {
                    client,
                    servers: self.hosts(&rpc.servers, client, "servers")?,
                    request: rpc.request.get(),
                    mean_gap: self.mean_gap(rpc.load, client, response.mean()),
                    fan_out: false,
                    random: rpc.pick == Pick::Random,
                    count: rpc.count,
                    start: rpc.start,
                };
                self.requests(&asking, &rpc.response, &rpc.service)
            }
            Workload::Transfer(transfer) => {
                let client = self.host(&transfer.client, "client")?;
                let asking = Asking {
                    client,
                    servers: self.hosts(&transfer.servers, client, "servers")?,
                    request: transfer.request.get(),
                    mean_gap: self.mean_gap(transfer.load, client, transfer.size.sampler().mean()),
                    fan_out: false,
                    random: transfer.pick == Pick::Random,
                    count: transfer.count,
                    start: transfer.start,
                };
                self.requests(&asking, &transfer.size, &TimeDistribution::default())
            }
            Workload::FanOut(fan_out) => {
                let client = self.host(&fan_out.client, "client")?;
                let asking = Asking {
                    client,
                    servers: self.hosts(&fan_out.servers, client, "servers")?,
                    request: fan_out.request.get(),
                    mean_gap: 1.0 / fan_out.queries_per_second,
                    fan_out: true,
                    random: false,
                    count: fan_out.count,
                    start: fan_out.start,
                };
                self.requests(&asking, &fan_out.response, &fan_out.service)
            }
            Workload::Flows(flows) => self.flows(flows),
            Workload::Permutation(permutation) => {
                self.permutation(permutation);
                Ok(())
            }
            Workload::AllToAll(all) => {
                self.all_to_all(all);
                Ok(())
            }
            Workload::Incast(incast) => self.incast(incast),
            Workload::FlowList(list) => {
                let mut flows: Vec<_> = list.flows.iter().collect();
                flows.retain(|flow| Time::ZERO + flow.start < self.until);
                flows.sort_by_key(|flow| flow.start);
                for (index, flow) in flows.into_iter().enumerate() {
                    let at = Time::ZERO + flow.start;
                    self.flow(index as u64, at, flow.source, flow.destination, Some(flow.size), false);
                }
                Ok(())
            }
            driven => unreachable!("a source of kind `{}` is driven", driven.kind()),
        }
    }

    fn host(&self, name: &HostName, key: &str) -> Result<u32, Unbuildable> {
        let number = self.model.topology.host(&name.0);
        number.ok_or_else(|| self.error(key, format!("there is no host `{}`", name.0)))
    }

    fn hosts(&self, hosts: &Hosts, other: u32, key: &str) -> Result<Vec<u32>, Unbuildable> {
        let numbers = hosts.resolve(&self.model.topology, Some(other));
        let numbers = numbers.map_err(|unknown| self.error(key, unknown))?;
        if numbers.is_empty() { Err(self.error(key, "no hosts")) } else { Ok(numbers) }
    }

    /// Mean seconds between messages of `mean_bytes` that offer `load` on the link of `host`.
    fn mean_gap(&self, load: Load, host: u32, mean_bytes: f64) -> f64 {
        mean_bytes * 8.0 / load.bits_per_second(self.model.topology.host_rate(host))
    }

    fn shares_connections(&self) -> bool {
        self.model.transport.connections == Connections::LongLived
    }

    fn requests(
        &mut self,
        asking: &Asking,
        response: &plimsoll_scenario::distribution::SizeDistribution,
        service: &TimeDistribution,
    ) -> Result<(), Unbuildable> {
        if asking.count.is_none() && self.until == Time::MAX {
            return Err(self.error("count", "a run without `run.duration` needs a count"));
        }
        let (response, service) = (response.sampler(), service.sampler());
        let mut gaps = self.streams.stream(&format!("workload/{}/gaps", self.name));
        let draws = self.streams.word(&format!("workload/{}/draws", self.name));
        let servers = asking.servers.len() as u64;
        let mut at = Time::ZERO + asking.start;
        for created in 0.. {
            at = at.saturating_add(stretched(asking.mean_gap, exponential(&mut gaps)));
            if asking.count.is_some_and(|count| created >= count) || at >= self.until {
                break;
            }
            let chosen = if asking.fan_out {
                0..servers
            } else if asking.random {
                let server = uniform_choice(&mut Streams::keyed(draws ^ 1, created), servers);
                server..server + 1
            } else {
                created % servers..created % servers + 1
            };
            for server in chosen {
                let index = if asking.fan_out { created * servers + server } else { created };
                let mut stream = Streams::keyed(draws, index);
                let item = Item {
                    at,
                    index,
                    query: asking.fan_out.then_some(created),
                    bytes: Some(asking.request.max(1)),
                    answer: Some((response.sample(&mut stream).get().max(1), service.sample(&mut stream))),
                };
                self.put(asking.client, asking.servers[server as usize], item, !self.shares_connections());
            }
        }
        Ok(())
    }

    fn put(&mut self, client: u32, server: u32, item: Item, fresh: bool) {
        self.fresh += u64::from(fresh);
        let number = if fresh { self.fresh } else { 0 };
        self.lanes.entry((client, server, number)).or_default().push(item);
    }

    fn flow(&mut self, index: u64, at: Time, source: u32, to: u32, bytes: Option<Bytes>, own: bool) {
        let item =
            Item { at, index, query: None, bytes: bytes.map(|bytes| bytes.get().max(1)), answer: None };
        self.put(source, to, item, own || !self.shares_connections());
    }

    fn flows(&mut self, flows: &model::Flows) -> Result<(), Unbuildable> {
        let to = self.host(&flows.to, "to")?;
        let from = self.hosts(&flows.from, to, "from")?;
        let starts = self.streams.word(&format!("workload/{}/starts", self.name));
        let mut list: Vec<(Time, u32)> = (0u64..)
            .zip(from)
            .map(|(index, source)| {
                let mut stream = Streams::keyed(starts, index);
                let late = Span::from_ps(uniform_choice(&mut stream, flows.start_within.as_ps().max(1)));
                (Time::ZERO + flows.start + flows.stagger * index + late, source)
            })
            .collect();
        list.sort_by_key(|(at, _)| *at);
        for (index, (at, source)) in list.into_iter().enumerate() {
            self.flow(index as u64, at, source, to, flows.size, true);
        }
        Ok(())
    }

    fn permutation(&mut self, permutation: &model::Permutation) {
        let hosts = self.model.topology.host_count();
        let mut stream = self.streams.stream(&format!("workload/{}/permutation", self.name));
        let mut to: Vec<u32> = (0..hosts).collect();
        for last in (1..hosts as usize).rev() {
            to.swap(last, uniform_choice(&mut stream, last as u64) as usize);
        }
        let window = permutation.start_within.as_ps().max(1);
        let mut list: Vec<(Time, u32, u32)> = (0u32..)
            .zip(to)
            .map(|(source, to)| (Time::from_ps(uniform_choice(&mut stream, window)), source, to))
            .collect();
        list.sort_by_key(|(at, ..)| *at);
        for (index, (at, source, to)) in list.into_iter().enumerate() {
            self.flow(index as u64, at, source, to, permutation.size, true);
        }
    }

    fn all_to_all(&mut self, all: &model::AllToAll) {
        let hosts = u64::from(self.model.topology.host_count());
        let size = all.size.sampler();
        let mean_gap = self.mean_gap(all.load, 0, size.mean()) / hosts as f64;
        let draws = self.streams.word(&format!("workload/{}/draws", self.name));
        let mut gaps = self.streams.stream(&format!("workload/{}/gaps", self.name));
        let mut at = Time::ZERO + all.start;
        for index in 0.. {
            at = at.saturating_add(stretched(mean_gap, exponential(&mut gaps)));
            if all.count.is_some_and(|count| index >= count) || at >= self.until {
                break;
            }
            let mut stream = Streams::keyed(draws, index);
            let source = uniform_choice(&mut stream, hosts) as u32;
            let other = uniform_choice(&mut stream, hosts - 1) as u32;
            let to = other + u32::from(other >= source);
            self.flow(index, at, source, to, Some(size.sample(&mut stream)), false);
        }
    }

    fn incast(&mut self, incast: &model::Incast) -> Result<(), Unbuildable> {
        let to = self.host(&incast.to, "to")?;
        let from = self.hosts(&incast.from, to, "from")?;
        let starts = (0..incast.rounds).map(|round| Time::ZERO + incast.start + incast.every * round);
        let starts: Vec<Time> = starts.take_while(|at| *at < self.until).collect();
        let all = starts.into_iter().flat_map(|at| from.iter().map(move |source| (at, *source)));
        for (index, (at, source)) in all.enumerate() {
            self.flow(index as u64, at, source, to, Some(incast.size), false);
        }
        Ok(())
    }
}
