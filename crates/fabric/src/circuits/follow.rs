//! A fabric follows the controller of its circuits: hosts' queues open and close, and the circuit switch passes packets
//! or loses them.

use std::collections::BTreeSet;

use plimsoll_circuits::{Demand, Estimator, Instruction};
use plimsoll_units::{Span, Time};

use super::gathering::{DemandShare, GatheredDemand};
use super::{CircuitLog, CircuitLosses, CircuitState, Circuits, Passage, ScheduleTimes};
use crate::fabric::Fabric;
use crate::links::{Hooks, Links};
use crate::net::port::ClassSignal;
use crate::net::{HostId, Port, PortId, Slot};

impl<H: Hooks> Fabric<H> {
    /// Carries out the controller's instructions when the clock of the circuits is due.
    #[cold]
    pub(crate) fn on_circuits_due(&mut self, now: Time) {
        let Some(circuits) = &mut self.circuits else { return };
        circuits.events += 1;
        while circuits.controller.next_due() <= now {
            match circuits.controller.on_due(now) {
                None => {}
                Some(Instruction::ReadDemand) => {
                    let gathered = now + circuits.gathering;
                    let ready = gathered + circuits.computation;
                    circuits.log.next_made = Some(ScheduleTimes { read: now, gathered, ready });
                    circuits.asked = true;
                }
                Some(instruction) => {
                    circuits.carry_out(now, &instruction, &mut self.ports, &mut self.links);
                }
            }
        }
        let (at, owner) = circuits.next_event();
        if at < Time::MAX {
            self.links.events.push(at, owner);
        }
    }

    /// Returns whether the controller waits for the hosts' demand.
    pub fn wants_demand(&self) -> bool {
        self.circuits.as_ref().is_some_and(|circuits| circuits.asked)
    }

    /// Returns the time from reading the hosts' demand to the week that it is for; `None` in a network without
    /// circuits.
    pub fn circuit_lead(&self) -> Option<Span> {
        self.circuits.as_ref().map(|circuits| circuits.controller.lead())
    }

    /// Returns where the demand of hosts is to be read; `None` in a network without circuits.
    pub fn estimator(&self) -> Option<Estimator> {
        self.circuits.as_ref().map(|circuits| circuits.estimator)
    }

    /// Gives the controller the bytes that wait in the hosts above their NICs, which it [wants](Fabric::wants_demand).
    /// The bytes that wait in the NICs are added here. In one logical process of several these are the bytes of its own
    /// hosts, and the schedule is made when the [shares](Fabric::add_demand_share) of the others have come.
    pub fn set_demand(&mut self, mut demand: Demand) {
        let Some(circuits) = &mut self.circuits else { return };
        circuits.asked = false;
        circuits.add_nic_demand(&self.ports, &mut demand);
        let dead =
            self.links.faults.as_ref().map_or_else(BTreeSet::new, |faults| faults.known_dead().clone());
        let gathered = match (&mut circuits.shares, &circuits.log.next_made) {
            (Some(gathering), Some(made)) => gathering.read(made.read, demand, dead),
            _ => Some(GatheredDemand { demand, dead }),
        };
        self.schedule_circuits(gathered);
    }

    /// Returns the demand of this logical process's hosts that is to be sent to the other processes, once.
    pub fn take_demand_share(&mut self) -> Option<DemandShare> {
        self.circuits.as_mut()?.shares.as_mut()?.take_own()
    }

    /// Takes the demand of the hosts of another logical process.
    pub fn add_demand_share(&mut self, share: DemandShare) {
        let gathering = self.circuits.as_mut().and_then(|circuits| circuits.shares.as_mut());
        let gathered = gathering.and_then(|gathering| gathering.add(share));
        self.schedule_circuits(gathered);
    }

    /// Has the controller make the schedule of the next week. Only pairs of hosts all of whose links are alive get
    /// circuits.
    fn schedule_circuits(&mut self, gathered: Option<GatheredDemand>) {
        let (Some(circuits), Some(hops), Some(GatheredDemand { demand, dead })) =
            (&mut self.circuits, self.network.hybrid(), gathered)
        else {
            return;
        };
        let network = &self.network;
        circuits.controller.on_demand_of(&demand, |sender, receiver| {
            let (sender, receiver) = (HostId(sender as u32), HostId(receiver as u32));
            let circuits = (0..hops.planes())
                .flat_map(|plane| [hops.circuit_from(sender.0, plane), hops.circuit_to(receiver.0, plane)]);
            let ends = [PortId(sender.0), network.port_towards(receiver)];
            dead.is_empty() || !ends.into_iter().chain(circuits).any(|port| dead.contains(&port))
        });
        circuits.log.next_known = Some(demand);
    }

    /// Returns whether this week has a circuit from `host` to `destination`, now or later.
    pub fn has_circuit(&self, host: HostId, destination: HostId) -> bool {
        let queues = self.ports[host.0 as usize].class_queues();
        queues.is_some_and(|queues| queues.has_circuit(destination.0))
    }

    /// Returns how many packets the circuit switch has lost, by cause; `None` in a network without one.
    pub fn circuit_losses(&self) -> Option<CircuitLosses> {
        self.circuits.as_ref().map(|circuits| circuits.log.losses)
    }

    /// Returns the log of the circuits up to `end`.
    pub fn take_circuit_log(&mut self, end: Time) -> Option<CircuitLog> {
        let circuits = self.circuits.as_mut()?;
        (0..circuits.crossbars.len()).for_each(|plane| circuits.log.take_down(end, plane));
        circuits.log.end_week(end);
        let Circuits { log, activity, .. } = &mut **circuits;
        log.complete(|sender, receiver, first| activity.onset_before(sender, receiver, first));
        Some(std::mem::take(&mut circuits.log))
    }

    /// Handles the arrival of the packet in `slot` at the far end of the link of `port` in a hybrid network: adds the
    /// link's transit time to it, and returns the way that it takes next. The circuit switch passes it on at once.
    pub(crate) fn passes_hybrid(&mut self, now: Time, port: PortId, slot: Slot) -> Passage {
        let (Some(circuits), Some(hops)) = (&mut self.circuits, self.network.hybrid()) else {
            return Passage::OnPath;
        };
        let packet = self.links.lanes.packet_mut(slot);
        let link = self.network.link(port);
        let scheduled = self.links.faults.as_ref().and_then(|faults| faults.link(port));
        let rate =
            scheduled.map_or(link.rate, |changing| changing.rate_at(now - link.propagation, link.rate));
        let bits = rate.byte_time().span(u64::from(packet.size));
        let plane_of = |switch: Option<u32>| switch.and_then(|switch| hops.plane_of(switch));
        if plane_of(self.network.near_switch(port)).is_some() {
            // The crossbar passes bits on as they come.
            packet.add_transit(link.propagation);
            return Passage::OnPath;
        }
        if scheduled.is_none() {
            // The port of a link that changes has added the time itself.
            packet.add_transit(bits + link.propagation);
        }
        if port.0 < self.network.hosts()
            && let Some(counted) = &mut circuits.counted
        {
            *counted.sent.get_mut(packet.src.0 as usize, packet.dst.0 as usize) += u64::from(packet.size);
        }
        if hops.is_packet_uplink(port) {
            circuits.log.count_beside(packet);
        }
        let Some(plane) = plane_of(self.network.far_switch(port)) else { return Passage::OnPath };
        if !circuits.passes(now, bits, packet) {
            return Passage::Lost;
        }
        let out = hops.circuit_to(packet.dst.0, plane);
        Passage::Through(out, now + self.network.link(out).propagation)
    }
}

impl Circuits {
    fn carry_out<H: Hooks>(
        &mut self,
        now: Time,
        instruction: &Instruction,
        ports: &mut [Port],
        links: &mut Links<H>,
    ) {
        let hosts = self.controller.plan().residue.ports();
        let mut tell = |host: usize, signal: ClassSignal<'_>| {
            ports[host].on_class_signal(PortId(host as u32), now, signal, links);
        };
        match instruction {
            Instruction::ReadDemand => {}
            Instruction::Begin => {
                let is_waiting = self.shares.as_ref().is_some_and(|gathering| gathering.is_waiting());
                assert!(!is_waiting, "the lead is no shorter than the lookahead");
                let plan = self.controller.plan();
                let switching = self.controller.switching();
                let carried = switching.packet_bytes(switching.window) as f64;
                let rated = self.residue_share.map(|share| plan.residue.within((carried * share) as u64));
                let spread = rated.is_some().then_some(switching.window);
                let residue = rated.as_ref().unwrap_or(&plan.residue);
                for host in 0..hosts {
                    tell(host, ClassSignal::Week(&plan.configurations, residue, spread));
                }
                self.log.begin_week(now, self.controller.week(), plan.configurations.len());
                for (plane, crossbar) in self.crossbars.iter().enumerate() {
                    if let CircuitState::Lit(matching) = &crossbar.state {
                        // A circuit that remains established is counted in each week.
                        self.log.take_down(now, plane);
                        self.log.put_up(now, self.controller.week(), plane, matching);
                    }
                }
            }
            Instruction::Pause(plane) => {
                (0..hosts).for_each(|host| tell(host, ClassSignal::Close(*plane as u32)));
            }
            Instruction::Darken(plane) => {
                self.log.take_down(now, *plane);
                self.crossbars[*plane].change(now, CircuitState::Dark);
            }
            Instruction::Light(plane, matching) => {
                self.crossbars[*plane].change(now, CircuitState::Lit(matching.clone()));
                self.log.put_up(now, self.controller.week(), *plane, matching);
                for (sender, receiver) in matching.circuits() {
                    tell(sender, ClassSignal::Open(*plane as u32, receiver as u32));
                }
            }
        }
    }
}
