//! The workloads that stand for applications.

use plimsoll_scenario::model;
use plimsoll_units::{Bytes, Time};

use plimsoll_wiring::Unbuildable;

use super::{Context, boxed, error};
use crate::{
    Barrier, BarrierConfig, Carrier, ClosedLoop, ClosedLoopConfig, CommitConfig, Commits, Pages, PagesConfig,
    PingConfig, Pings, Ptp, PtpConfig, Shuffle, ShuffleConfig, Sizes, Workload,
};

impl Context<'_> {
    /// A message as a single packet on the wire.
    fn packet(&self, payload: Bytes, key: &str) -> Result<u16, Unbuildable> {
        let bytes = payload.get().saturating_add(self.model.transport.header.get());
        u16::try_from(bytes).map_err(|_| error(self.key(key), format!("{bytes} B in one packet")))
    }

    pub(super) fn ping(&self, ping: &model::Ping) -> Result<Box<dyn Workload>, Unbuildable> {
        let datagram = ping.over == model::PingOver::Datagram;
        let config = PingConfig {
            workload: self.index,
            from: self.host(&ping.from, "from")?,
            to: self.host(&ping.to, "to")?,
            bytes: ping.size.get(),
            packet: datagram.then(|| self.packet(ping.size, "size")).transpose()?,
            interval: ping.interval,
            poisson: ping.arrivals == model::Arrivals::Poisson,
            one_at_a_time: ping.one_at_a_time,
            count: ping.count,
            start: Time::ZERO + ping.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_message: !self.shares_connections(),
        };
        Ok(boxed(Pings::new(config, self.streams, self.name)))
    }

    pub(super) fn closed_loop(&self, closed: &model::ClosedLoop) -> Result<Box<dyn Workload>, Unbuildable> {
        let clients = self.hosts_except(&closed.clients, &[], "clients")?;
        let config = ClosedLoopConfig {
            workload: self.index,
            servers: self.hosts_except(&closed.servers, &clients, "servers")?,
            clients,
            outstanding: closed.outstanding,
            request: closed.request.sampler(),
            response: closed.response.sampler(),
            service: closed.service.sampler(),
            threads: closed.threads,
            think: closed.think.sampler(),
            random_server: closed.pick == model::Pick::Random,
            count: closed.count,
            start: Time::ZERO + closed.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_message: !self.shares_connections(),
        };
        Ok(boxed(ClosedLoop::new(config, self.streams, self.name)))
    }

    pub(super) fn shuffle(&self, shuffle: &model::Shuffle) -> Result<Box<dyn Workload>, Unbuildable> {
        let config = ShuffleConfig {
            workload: self.index,
            mappers: self.hosts_except(&shuffle.mappers, &[], "mappers")?,
            reducers: self.hosts_except(&shuffle.reducers, &[], "reducers")?,
            size: shuffle.size.sampler(),
            request: shuffle.request.sampler(),
            parallel: shuffle.parallel,
            waves: shuffle.waves,
            pause: shuffle.pause,
            start: Time::ZERO + shuffle.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_message: !self.shares_connections(),
        };
        Ok(boxed(Shuffle::new(config, self.streams, self.name)))
    }

    pub(super) fn barrier(&self, barrier: &model::Barrier) -> Result<Box<dyn Workload>, Unbuildable> {
        let coordinator = match barrier.pattern {
            model::BarrierPattern::Coordinator => Some(self.host(&barrier.coordinator, "coordinator")?),
            model::BarrierPattern::AllToAll => None,
        };
        let config = BarrierConfig {
            workload: self.index,
            workers: self.hosts_except(&barrier.workers, coordinator.as_slice(), "workers")?,
            coordinator,
            bytes: barrier.size.get(),
            compute: barrier.compute.sampler(),
            rounds: barrier.rounds,
            start: Time::ZERO + barrier.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_message: !self.shares_connections(),
        };
        Ok(boxed(Barrier::new(config, self.streams, self.name)))
    }

    pub(super) fn commit(&self, commit: &model::Commit) -> Result<Box<dyn Workload>, Unbuildable> {
        let coordinator = self.host(&commit.coordinator, "coordinator")?;
        let packet = || self.packet(commit.message, "message");
        let config = CommitConfig {
            workload: self.index,
            coordinator,
            participants: self.hosts(&commit.participants, coordinator, "participants")?,
            bytes: commit.message.get(),
            carrier: match commit.over {
                model::CommitOver::Tcp => Carrier::Transport,
                model::CommitOver::Datagram => Carrier::Datagram(packet()?),
                model::CommitOver::Broadcast => Carrier::Broadcast(packet()?),
            },
            timeout: commit.timeout,
            depth: commit.depth,
            count: commit.count,
            start: Time::ZERO + commit.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_message: !self.shares_connections(),
        };
        Ok(boxed(Commits::new(config)))
    }

    pub(super) fn pages(&self, pages: &model::Pages) -> Result<Box<dyn Workload>, Unbuildable> {
        let front_ends = self.hosts_except(&pages.front_ends, &[], "front_ends")?;
        let config = PagesConfig {
            workload: self.index,
            back_ends: self.hosts_except(&pages.back_ends, &front_ends, "back_ends")?,
            front_ends,
            mean_gap: 1.0 / pages.pages_per_second,
            levels: pages.level_sizes(),
            request: pages.request.sampler(),
            sizes: match &pages.size {
                Some(size) => Sizes::Of(size.sampler()),
                None if pages.sizes.is_empty() => Sizes::OneOf(model::Pages::SIZES.to_vec()),
                None => Sizes::OneOf(pages.sizes.clone()),
            },
            service: pages.service.sampler(),
            threads: pages.threads,
            deadline: pages.deadline,
            timeout: pages.timeout,
            retries: pages.retries,
            replicas: pages.replicas,
            count: pages.count,
            start: Time::ZERO + pages.start,
            until: self.until,
            warmup: self.warmup,
            connection_per_message: !self.shares_connections(),
        };
        Ok(boxed(Pages::new(config, self.streams, self.name)))
    }

    pub(super) fn ptp(&self, ptp: &model::Ptp) -> Result<Box<dyn Workload>, Unbuildable> {
        let server = self.host(&ptp.server, "server")?;
        let config = PtpConfig {
            workload: self.index,
            server,
            clients: self.hosts(&ptp.clients, server, "clients")?,
            packet: self.packet(ptp.size, "size")?,
            interval: ptp.interval,
            count: ptp.count,
            start: Time::ZERO + ptp.start,
            until: self.until,
            warmup: self.warmup,
        };
        Ok(boxed(Ptp::new(config)))
    }
}
