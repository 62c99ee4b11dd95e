//! A world runs as one logical process beside the others.

use plimsoll_fabric::Outbox;
use plimsoll_units::Time;

use super::exchange::{Exchange, LpStatus};
use super::plan::LpPlan;
use super::process::{Process, ProcessMail};
use crate::error::RunError;
use crate::progress::Progress;
use crate::world::World;

impl World {
    /// Leaves everything outside of logical process `here` to the others.
    pub(super) fn become_process(&mut self, plan: &LpPlan, here: u8) {
        let links = self.fabric.network().links();
        let ends_in: Vec<u8> = links.iter().map(|link| plan.process_of(link.to)).collect();
        self.fabric.set_boundary(here, plan.processes, ends_in);
        if !plan.hosts.contains(&here) {
            self.sources.workloads.clear();
        }
        self.sources.actions.here = Some(plan.hosts.iter().map(|&host| host == here).collect());
        self.hosts.become_process(Process::new(here, plan.processes, plan.hosts.clone()));
    }

    /// Runs this logical process to the end of the run.
    pub(super) fn run_process(
        &mut self,
        exchange: &Exchange,
        here: u8,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), RunError> {
        let mut beside = |own: Progress| {
            let (packet_hops, events) = exchange.work_beside(here);
            let (packet_hops, events) = (own.packet_hops + packet_hops, own.events + events);
            progress(Progress { packet_hops, events, ..own })
        };
        let mut batch = ProcessMail::default();
        let mut done = Time::ZERO;
        self.begin();
        self.publish(exchange, here, done);
        while done < Time::MAX {
            if exchange.has_failed() {
                return Err(RunError::Cancelled);
            }
            let edition = exchange.edition();
            let bound = exchange.bound();
            self.take_early();
            exchange.take_mail(here, &mut batch, |mail| {
                self.take(mail);
                self.next_event_time()
            });
            if bound.done <= done {
                exchange.wait(edition);
                continue;
            }
            let bound = bound.within(exchange.stretch_from(done.max(self.next_event_time())));
            let before = self.finished;
            self.run_until(bound.last, &mut beside, &mut None)?;
            if self.finished != before {
                // The loop stopped where all workloads had finished; the others may still need this process.
                self.run_until(bound.last, &mut beside, &mut None)?;
            }
            done = bound.done;
            self.publish(exchange, here, done);
        }
        Ok(())
    }

    fn next_event_time(&self) -> Time {
        self.fabric.next_event_time().unwrap_or(Time::MAX)
    }

    /// Posts the packets and pauses that have left this process, and publishes its progress.
    fn publish(&mut self, exchange: &Exchange, here: u8, done: Time) {
        let counters = self.fabric.counters();
        let status = LpStatus {
            done,
            next: self.next_event_time(),
            finished: self.finished.unwrap_or(Time::MAX),
            packet_hops: counters.packet_hops,
            events: counters.events,
        };
        let share = self.fabric.take_demand_share();
        if let Some(process) = self.hosts.process_mut() {
            for (to, announcements) in (0..).zip(&mut process.announcements) {
                let share = share.as_ref().filter(|_| to != here);
                exchange.post(here, to, self.fabric.outbox(to), announcements, share);
            }
        }
        exchange.publish(here, status);
    }

    /// Takes what another logical process has sent.
    pub(super) fn take(&mut self, mail: &mut ProcessMail) {
        let Outbox { packets, stamps, signals } = &mut mail.crossings;
        let mut stamps = stamps.drain(..);
        for place in 0..packets.len() {
            if let Some(later) = packets.get(place + RECEIPTS_AHEAD) {
                self.fabric.prefetch_receipt(later.port, RECEIPTS_AHEAD);
            }
            let crossing = &packets[place];
            let carried = if crossing.has_stamps { stamps.next() } else { None };
            self.fabric.receive(crossing, carried);
        }
        packets.clear();
        signals.drain(..).for_each(|sent| self.fabric.receive_signal(sent));
        let network = self.fabric.network();
        mail.announcements.drain(..).for_each(|announcement| self.hosts.hear(network, announcement));
        mail.demand.drain(..).for_each(|share| self.fabric.add_demand_share(share));
    }

    /// Takes again what came before its connection was opened.
    fn take_early(&mut self) {
        let early = self.hosts.process_mut().map(|process| std::mem::take(&mut process.early));
        let network = self.fabric.network();
        early.into_iter().flatten().for_each(|announcement| self.hosts.hear(network, announcement));
    }
}

/// The number of packets by which prefetching is ahead of their receipt.
const RECEIPTS_AHEAD: usize = 8;
