//! The scenario's workloads become sources of traffic.

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::HostId;
use plimsoll_mechanisms::tcp::Connections;
use plimsoll_results::outcome::{Supply, WorkloadInfo};
use plimsoll_scenario::distribution::TimeDistribution;
use plimsoll_scenario::model::{self, HostName, Hosts, Model, Workload as Kind};
use plimsoll_scenario::quantity::Load;
use plimsoll_units::{Bytes, Span, Time};
use plimsoll_wiring::Unbuildable;

use crate::{Flow, OneWay, Poisson, RawPackets, Requests, RequestsConfig, Workload, uniform_choice};

mod apps;

/// All sources of a run.
pub struct Traffic {
    /// By number.
    pub workloads: Vec<Box<dyn Workload>>,
    /// Their names and kinds.
    pub infos: Vec<WorkloadInfo>,
    /// Some flows send for as long as the run lasts.
    pub endless: bool,
    duration: Option<Span>,
    drain: Span,
}

/// What every builder of a source needs.
struct Context<'a> {
    model: &'a Model,
    streams: &'a Streams,
    name: &'a str,
    index: u16,
    until: Time,
    warmup: Time,
}

impl Traffic {
    /// Those of `model`, which draw from `streams`.
    ///
    /// # Errors
    /// If one of them cannot be built.
    pub fn new(model: &Model, streams: &Streams) -> Result<Traffic, Unbuildable> {
        let mut traffic = Traffic {
            workloads: Vec::new(),
            infos: Vec::new(),
            endless: false,
            duration: model.run.duration,
            drain: model.run.drain,
        };
        let until = model.run.duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
        for (index, (name, kind)) in model.workload.iter().enumerate() {
            let context = Context {
                model,
                streams,
                name,
                index: index as u16,
                until,
                warmup: Time::ZERO + model.run.warmup,
            };
            traffic.infos.push(WorkloadInfo {
                name: name.clone(),
                kind: kind.kind().to_owned(),
                deadline: deadline(kind),
                observed: observed(kind).map(str::to_owned),
                supply: supply(kind),
            });
            traffic.endless |= supply(kind) == Supply::Endless;
            traffic.workloads.push(context.source(kind)?);
        }
        Ok(traffic)
    }

    /// When the run ends at the latest. Endless flows end with the duration; everything else has
    /// the drain on top, in which what is open may finish.
    pub fn horizon(&self) -> Time {
        match self.duration {
            None => Time::MAX,
            Some(duration) if self.endless => Time::ZERO + duration,
            Some(duration) => (Time::ZERO + duration).saturating_add(self.drain),
        }
    }
}

fn error(key: impl Into<String>, problem: impl ToString) -> Unbuildable {
    Unbuildable { key: key.into(), problem: problem.to_string() }
}

/// Boxes, so that the list of workloads owns them.
fn boxed(workload: impl Workload + 'static) -> Box<dyn Workload> {
    Box::new(workload)
}

fn deadline(kind: &Kind) -> Option<Span> {
    match kind {
        Kind::Rpc(rpc) => rpc.deadline,
        Kind::FanOut(fan_out) => fan_out.deadline,
        Kind::Pages(pages) => pages.deadline,
        _ => None,
    }
}

/// What the observations of a kind are.
fn observed(kind: &Kind) -> Option<&'static str> {
    matches!(kind, Kind::Ptp(_)).then_some("clock offset")
}

fn supply(kind: &Kind) -> Supply {
    let counted = |count: Option<u64>| if count.is_some() { Supply::Fixed } else { Supply::Duration };
    let sized = |size: Option<Bytes>| if size.is_some() { Supply::Fixed } else { Supply::Endless };
    match kind {
        Kind::Flows(flows) => sized(flows.size),
        Kind::Permutation(permutation) => sized(permutation.size),
        Kind::Incast(_) | Kind::FlowList(_) => Supply::Fixed,
        Kind::Shuffle(shuffle) => counted(shuffle.waves),
        Kind::Barrier(barrier) => counted(barrier.rounds),
        Kind::Rpc(rpc) => counted(rpc.count),
        Kind::Transfer(transfer) => counted(transfer.count),
        Kind::FanOut(fan_out) => counted(fan_out.count),
        Kind::AllToAll(all) => counted(all.count),
        Kind::Packets(packets) => counted(packets.count),
        Kind::Ping(ping) => counted(ping.count),
        Kind::ClosedLoop(closed) => counted(closed.count),
        Kind::Commit(commit) => counted(commit.count),
        Kind::Pages(pages) => counted(pages.count),
        Kind::Ptp(ptp) => counted(ptp.count),
    }
}

impl Context<'_> {
    fn source(&self, kind: &Kind) -> Result<Box<dyn Workload>, Unbuildable> {
        Ok(match kind {
            Kind::Rpc(rpc) => self.rpc(rpc)?,
            Kind::Transfer(transfer) => self.transfer(transfer)?,
            Kind::FanOut(fan_out) => self.fan_out(fan_out)?,
            Kind::Flows(flows) => self.flows(flows)?,
            Kind::AllToAll(all) => self.all_to_all(all),
            Kind::Permutation(permutation) => self.permutation(permutation),
            Kind::Incast(incast) => self.incast(incast)?,
            Kind::FlowList(list) => self.flow_list(list),
            Kind::Packets(packets) => self.packets(packets)?,
            Kind::Ping(ping) => self.ping(ping)?,
            Kind::ClosedLoop(closed) => self.closed_loop(closed)?,
            Kind::Shuffle(shuffle) => self.shuffle(shuffle)?,
            Kind::Barrier(barrier) => self.barrier(barrier)?,
            Kind::Commit(commit) => self.commit(commit)?,
            Kind::Pages(pages) => self.pages(pages)?,
            Kind::Ptp(ptp) => self.ptp(ptp)?,
        })
    }

    fn key(&self, key: &str) -> String {
        format!("workload.{}.{key}", self.name)
    }

    fn host(&self, name: &HostName, key: &str) -> Result<HostId, Unbuildable> {
        let number = self.model.topology.host(&name.0);
        number.map(HostId).ok_or_else(|| error(self.key(key), format!("there is no host `{}`", name.0)))
    }

    fn hosts(&self, hosts: &Hosts, other: HostId, key: &str) -> Result<Vec<HostId>, Unbuildable> {
        self.hosts_except(hosts, &[other], key)
    }

    fn hosts_except(&self, hosts: &Hosts, others: &[HostId], key: &str) -> Result<Vec<HostId>, Unbuildable> {
        let others: Vec<u32> = others.iter().map(|host| host.0).collect();
        let numbers = hosts.resolve_except(&self.model.topology, &others);
        let numbers = numbers.map_err(|unknown| error(self.key(key), unknown))?;
        if numbers.is_empty() {
            return Err(error(self.key(key), "no hosts"));
        }
        Ok(numbers.into_iter().map(HostId).collect())
    }

    /// Mean seconds between messages of `mean_bytes` that offer `load` on the link of `host`.
    fn mean_gap(&self, load: Load, host: HostId, mean_bytes: f64) -> f64 {
        mean_bytes * 8.0 / load.bits_per_second(self.model.topology.host_rate(host.0))
    }

    fn shares_connections(&self) -> bool {
        self.model.transport.connections == Connections::LongLived
    }

    fn requests(&self, config: RequestsConfig) -> Box<dyn Workload> {
        boxed(Requests::new(config, self.streams, self.name))
    }

    fn rpc(&self, rpc: &model::Rpc) -> Result<Box<dyn Workload>, Unbuildable> {
        let client = self.host(&rpc.client, "client")?;
        let response = rpc.response.sampler();
        Ok(self.requests(RequestsConfig {
            workload: self.index,
            client,
            servers: self.hosts(&rpc.servers, client, "servers")?,
            request_bytes: rpc.request.get(),
            mean_gap: self.mean_gap(rpc.load, client, response.mean()),
            response,
            service: rpc.service.sampler(),
            fan_out: false,
            random_server: rpc.pick == model::Pick::Random,
            deadline: rpc.deadline,
            count: rpc.count,
            start: Time::ZERO + rpc.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_request: !self.shares_connections(),
        }))
    }

    fn transfer(&self, transfer: &model::Transfer) -> Result<Box<dyn Workload>, Unbuildable> {
        let client = self.host(&transfer.client, "client")?;
        let response = transfer.size.sampler();
        Ok(self.requests(RequestsConfig {
            workload: self.index,
            client,
            servers: self.hosts(&transfer.servers, client, "servers")?,
            request_bytes: transfer.request.get(),
            mean_gap: self.mean_gap(transfer.load, client, response.mean()),
            response,
            service: TimeDistribution::default().sampler(),
            fan_out: false,
            random_server: transfer.pick == model::Pick::Random,
            deadline: None,
            count: transfer.count,
            start: Time::ZERO + transfer.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_request: !self.shares_connections(),
        }))
    }

    fn fan_out(&self, fan_out: &model::FanOut) -> Result<Box<dyn Workload>, Unbuildable> {
        let client = self.host(&fan_out.client, "client")?;
        Ok(self.requests(RequestsConfig {
            workload: self.index,
            client,
            servers: self.hosts(&fan_out.servers, client, "servers")?,
            request_bytes: fan_out.request.get(),
            response: fan_out.response.sampler(),
            service: fan_out.service.sampler(),
            mean_gap: 1.0 / fan_out.queries_per_second,
            fan_out: true,
            random_server: false,
            deadline: fan_out.deadline,
            count: fan_out.count,
            start: Time::ZERO + fan_out.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_request: !self.shares_connections(),
        }))
    }

    fn flows(&self, flows: &model::Flows) -> Result<Box<dyn Workload>, Unbuildable> {
        let to = self.host(&flows.to, "to")?;
        let from = self.hosts(&flows.from, to, "from")?;
        let starts = self.streams.word(&format!("workload/{}/starts", self.name));
        let late = |index: usize| {
            let mut stream = Streams::keyed(starts, index as u64);
            Span::from_ps(uniform_choice(&mut stream, flows.start_within.as_ps().max(1)))
        };
        let list = from
            .into_iter()
            .enumerate()
            .map(|(index, source)| Flow {
                start: Time::ZERO + flows.start + flows.stagger * index as u64 + late(index),
                source,
                destination: to,
                bytes: flows.size.map(Bytes::get),
            })
            .collect();
        Ok(boxed(OneWay::list(self.index, self.warmup, list)))
    }

    fn all_to_all(&self, all: &model::AllToAll) -> Box<dyn Workload> {
        let hosts = self.model.topology.host_count();
        let size = all.size.sampler();
        let mean_gap = self.mean_gap(all.load, HostId(0), size.mean()) / f64::from(hosts);
        let start = Time::ZERO + all.start;
        let mut poisson = Poisson::new(self.streams, self.name, hosts, size, mean_gap, start);
        poisson.count = all.count;
        poisson.until = self.until;
        let source = OneWay::poisson(self.index, self.warmup, poisson);
        boxed(source.sharing_connections(self.shares_connections()))
    }

    fn permutation(&self, permutation: &model::Permutation) -> Box<dyn Workload> {
        let hosts = self.model.topology.host_count();
        let mut stream = self.streams.stream(&format!("workload/{}/permutation", self.name));
        // Sattolo's shuffle: one cycle, so nobody sends to itself.
        let mut to: Vec<u32> = (0..hosts).collect();
        for last in (1..hosts as usize).rev() {
            to.swap(last, uniform_choice(&mut stream, last as u64) as usize);
        }
        let window = permutation.start_within.as_ps();
        let list = to
            .into_iter()
            .enumerate()
            .map(|(source, destination)| Flow {
                start: Time::from_ps(uniform_choice(&mut stream, window.max(1))),
                source: HostId(source as u32),
                destination: HostId(destination),
                bytes: permutation.size.map(Bytes::get),
            })
            .collect();
        boxed(OneWay::list(self.index, self.warmup, list))
    }

    fn incast(&self, incast: &model::Incast) -> Result<Box<dyn Workload>, Unbuildable> {
        let to = self.host(&incast.to, "to")?;
        let from = self.hosts(&incast.from, to, "from")?;
        // No clock reaches all rounds of 1e18.
        let start_of = |round| (Time::ZERO + incast.start).saturating_add(incast.every.saturating_mul(round));
        let list = (0..incast.rounds)
            .map(start_of)
            .take_while(|&start| start < self.until)
            .flat_map(|start| {
                from.iter().map(move |&source| Flow {
                    start,
                    source,
                    destination: to,
                    bytes: Some(incast.size.get()),
                })
            })
            .collect();
        let source = OneWay::list(self.index, self.warmup, list);
        Ok(boxed(source.sharing_connections(self.shares_connections())))
    }

    fn flow_list(&self, list: &model::FlowList) -> Box<dyn Workload> {
        let flows = list
            .flows
            .iter()
            .map(|flow| Flow {
                start: Time::ZERO + flow.start,
                source: HostId(flow.source),
                destination: HostId(flow.destination),
                bytes: Some(flow.size.get()),
            })
            .filter(|flow| flow.start < self.until)
            .collect();
        let source = OneWay::list(self.index, self.warmup, flows);
        boxed(source.sharing_connections(self.shares_connections()))
    }

    fn packets(&self, packets: &model::Packets) -> Result<Box<dyn Workload>, Unbuildable> {
        let to = self.host(&packets.to, "to")?;
        let from = self.hosts(&packets.from, to, "from")?;
        let size = packets.size.sampler();
        let mean_gap = self.mean_gap(packets.load, from[0], size.mean());
        Ok(boxed(RawPackets::new(
            self.streams,
            self.name,
            self.index,
            &from,
            to,
            size,
            mean_gap,
            packets.arrivals == model::Arrivals::Constant,
            packets.burst.map(|burst| (burst, packets.pause)),
            packets.count,
            self.until,
            self.warmup,
        )))
    }
}
