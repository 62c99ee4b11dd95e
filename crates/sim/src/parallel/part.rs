//! A part of a network runs beside the others.

use plimsoll_units::Time;

use super::border::{Border, Letter};
use super::exchange::{Exchange, Report};
use super::plan::Plan;
use crate::world::World;
use crate::{Progress, RunError};

impl World {
    /// Leaves everything outside of `part` to the others.
    pub(super) fn become_part(&mut self, plan: &Plan, part: u8) {
        let border = Border::new(self, plan, part);
        if !plan.hosts.contains(&part) {
            self.workloads.clear();
        }
        self.actions.here = Some(plan.hosts.iter().map(|&host| host == part).collect());
        self.wires.border = Some(Box::new(border));
    }

    /// Runs this part to the end of the run.
    pub(super) fn run_part(
        &mut self,
        exchange: &Exchange,
        part: u8,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), RunError> {
        let mut beside = |own: Progress| {
            let (packet_hops, events) = exchange.work_beside(part);
            let (packet_hops, events) = (own.packet_hops + packet_hops, own.events + events);
            progress(Progress { packet_hops, events, ..own })
        };
        let mut batch = Vec::new();
        let mut done = Time::ZERO;
        self.begin();
        self.publish(exchange, part, done);
        while done < Time::MAX {
            if exchange.has_failed() {
                return Err(RunError::Cancelled);
            }
            let edition = exchange.edition();
            let bound = exchange.bound();
            self.open_early_letters();
            exchange.take_letters(part, &mut batch, |letters| {
                letters.drain(..).for_each(|letter| self.take(letter));
                self.next_event()
            });
            if bound.done <= done {
                exchange.wait(edition);
                continue;
            }
            let before = self.finished;
            self.run_until(bound.last, &mut beside)?;
            if self.finished != before {
                // It stopped there, and goes on.
                self.run_until(bound.last, &mut beside)?;
            }
            done = bound.done;
            self.publish(exchange, part, done);
        }
        Ok(())
    }

    fn next_event(&self) -> Time {
        self.wires.events.peek_time().unwrap_or(Time::MAX)
    }

    fn publish(&mut self, exchange: &Exchange, part: u8, done: Time) {
        let report = Report {
            done,
            next: self.next_event(),
            finished: self.finished.unwrap_or(Time::MAX),
            packet_hops: self.wires.counters.packet_hops,
            events: self.wires.counters.events,
        };
        if let Some(border) = &mut self.wires.border {
            exchange.publish(part, border, report);
        }
    }

    /// Takes what another part has sent.
    pub(super) fn take(&mut self, letter: Letter) {
        match letter {
            Letter::Packet { port, arrives, packet } => {
                self.wires.lanes.push(port, arrives, packet, &mut self.wires.events);
            }
            Letter::Message { connection, to, message } => {
                match self.connections.get_mut(connection as usize) {
                    Some(Some(connection)) => connection.half(to).expect(message),
                    Some(None) => {}
                    // The other part is ahead: the connection is yet to be opened here. It will have been before any
                    // of the message arrives, because a stretch of time is not longer than the lookahead.
                    None => self.early_letters.push(letter),
                }
            }
        }
    }

    fn open_early_letters(&mut self) {
        for letter in std::mem::take(&mut self.early_letters) {
            self.take(letter);
        }
    }
}
