//! [`HostGate`]: the stages between a host's transport and its NIC: random loss, then the paper's pacer.

use plimsoll_mechanisms::loss::UniformLoss;
use plimsoll_units::{Stream, Streams, Time};
use rand::Rng;

use crate::host_pacer::{ScheduledPacer, host_pacers};
use crate::links::{Hooks, Links};
use crate::net::{Packet, Port, PortId, Sink};
use crate::spec::FabricSpec;

/// The stages that a packet passes between its host's transport and the NIC.
#[derive(Debug)]
pub(crate) struct HostGate {
    loss: Option<HostLoss>,
    pub(crate) pacer: Option<ScheduledPacer>,
}

/// The random loss of a host, with the stream that it draws from.
#[derive(Debug)]
struct HostLoss {
    loss: UniformLoss,
    stream: Stream,
}

/// Builds the gates of all hosts; none where a gate would do nothing. Where hosts are `observed`, or acknowledgements
/// return telemetry, all have one.
pub(crate) fn host_gates(spec: &FabricSpec, streams: &Streams, observed: bool) -> Vec<HostGate> {
    let pacers = host_pacers(spec, streams);
    if pacers.is_empty() && spec.host_loss <= 0.0 && !observed && !spec.has_telemetry() {
        return Vec::new();
    }
    let mut pacers = pacers.into_iter();
    let gate = |host| HostGate { loss: HostLoss::new(spec, host, streams), pacer: pacers.next() };
    (0..spec.network.hosts()).map(gate).collect()
}

impl HostLoss {
    fn new(spec: &FabricSpec, host: u32, streams: &Streams) -> Option<HostLoss> {
        let stream = || streams.stream(&format!("host/{host}/loss"));
        (spec.host_loss > 0.0).then(|| HostLoss { loss: UniformLoss::new(spec.host_loss), stream: stream() })
    }
}

impl HostGate {
    /// Handles a packet from the transport. Returns the time of the pacer's next event, if it is a new one.
    pub(crate) fn on_packet<H: Hooks>(
        &mut self,
        now: Time,
        packet: Packet,
        nic: &mut Port,
        links: &mut Links<H>,
    ) -> Option<Time> {
        links.hooks.on_sent(now, &packet);
        if self.loses() {
            links.lost_at_host(now, &packet);
            return None;
        }
        match &mut self.pacer {
            Some(pacer) => pacer.on_packet(now, packet, nic, links),
            None => {
                let slot = links.hold(packet);
                nic.on_arrival(PortId(packet.src.0), now, slot, links);
                None
            }
        }
    }

    /// Returns whether the host loses its next packet.
    pub(crate) fn loses(&mut self) -> bool {
        let HostLoss { loss, stream } = match &mut self.loss {
            Some(loss) => loss,
            None => return false,
        };
        loss.loses(|| stream.next_u64())
    }
}
