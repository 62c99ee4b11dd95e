//! A fabric as one logical process of a parallel run.

use plimsoll_mechanisms::telemetry::Stamps;
use plimsoll_units::Time;

use super::Fabric;
use crate::boundary::{Boundary, Crossing, Outbox};
use crate::flow_control::SentSignal;
use crate::links::Hooks;
use crate::net::PortId;

impl<H: Hooks> Fabric<H> {
    /// Makes this fabric process `here` of the `processes` of a parallel run: packets and pauses sent on links that
    /// leave it go to an outbox. `ends_in` is the process at the far end of each link.
    pub fn set_boundary(&mut self, here: u8, processes: u8, ends_in: Vec<u8>) {
        if let Some(circuits) = &mut self.circuits {
            circuits.become_process(processes.into());
        }
        for (port, _) in self.ports.iter_mut().zip(&ends_in).filter(|(_, process)| **process != here) {
            port.decide_in_time();
        }
        self.links.boundary = Some(Box::new(Boundary::new(here, ends_in)));
    }

    /// Returns the packets and signals that have left for a process; the caller empties it. `None` if no link leads
    /// there.
    pub fn outbox(&mut self, process: u8) -> Option<&mut Outbox> {
        self.links.boundary.as_mut()?.outbox(process)
    }

    /// Puts a packet that has left another logical process on its link, with its telemetry.
    pub fn receive(&mut self, crossing: &Crossing, stamps: Option<Stamps>) {
        let Crossing { port, arrives, packet, .. } = *crossing;
        let slot = self.links.lanes.hold(packet);
        if let (Some(telemetry), Some(stamps)) = (&mut self.links.telemetry, stamps) {
            telemetry.put(slot, stamps);
        }
        self.links.lanes.append(port, arrives, slot, &mut self.links.events);
    }

    /// Takes a signal of flow control that another logical process has sent to a port of this one.
    pub fn receive_signal(&mut self, sent: SentSignal) {
        if let Some(control) = &mut self.links.flow_control {
            control.receive(sent, &mut self.links.events);
        }
    }

    /// Takes over the ports of `other` for which `is_other` holds, with their gates and pauses, and adds its counters,
    /// less the `replicated` events that this fabric has counted as well. The run has ended at `end`.
    pub fn absorb(
        &mut self,
        mut other: Fabric<H>,
        replicated: u64,
        end: Time,
        is_other: impl Fn(PortId) -> bool,
    ) {
        for port in (0..self.ports.len() as u32).map(PortId).filter(|port| is_other(*port)) {
            let place = port.0 as usize;
            std::mem::swap(&mut self.ports[place], &mut other.ports[place]);
            if let Some(gate) = self.gates.get_mut(place) {
                std::mem::swap(gate, &mut other.gates[place]);
            }
            if let (Some(own), Some(other)) = (&mut self.links.flow_control, &mut other.links.flow_control) {
                own.swap_pauses(other, port);
            }
        }
        if let (Some(own), Some(other)) = (&mut self.links.meter, &other.links.meter) {
            own.absorb(other);
        }
        if let (Some(own), Some(other)) = (&mut self.links.flow_control, &other.links.flow_control) {
            own.absorb(other, end);
        }
        let of_faults = other.links.faults.as_ref().map_or(0, |faults| faults.events());
        let of_nights = other.links.nights.as_ref().map_or(0, |clock| clock.events);
        let of_circuits = other.circuits.as_ref().map_or(0, |circuits| circuits.events());
        other.links.counters.events -= replicated + of_faults + of_nights + of_circuits;
        self.links.counters += other.links.counters;
        if let (Some(own), Some(other)) = (&mut self.circuits, other.circuits) {
            own.absorb(*other, end);
        }
    }
}
