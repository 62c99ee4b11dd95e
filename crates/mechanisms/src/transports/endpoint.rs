//! [`Endpoint`]: one end of a connection, of whichever family carries it.

use plimsoll_units::{Rate, Span, Time};

use super::describe::Carrier;
use super::entropy::PathChoices;
use super::homa::HomaEnd;
use super::ndp::NdpEnd;
use super::roce::QueuePair;
use super::uet::Pdc;
use crate::tcp::{self, Counters, Delivered, Offer, TcpConfig, TcpSegment, WindowState};
use crate::telemetry::Stamps;

/// One end of a connection whose messages are byte streams in order: TCP's, a queue pair of RoCE, a packet delivery
/// context of Ultra Ethernet, or an end of NDP or Homa.
///
/// After every [`write`](Endpoint::write), [`on_segment`](Endpoint::on_segment) and
/// [`on_deadline`](Endpoint::on_deadline), call [`poll_transmit`](Endpoint::poll_transmit) until it returns `None`, and
/// call `on_deadline` at [`deadline`](Endpoint::deadline).
#[derive(Debug)]
pub enum Endpoint {
    /// An end of a TCP connection.
    Tcp(tcp::Endpoint),
    /// An end of a connection of RoCE.
    Roce(Box<QueuePair>),
    /// An end of a packet delivery context of Ultra Ethernet.
    Uet(Box<Pdc>),
    /// An end of a connection of NDP.
    Ndp(Box<NdpEnd>),
    /// An end of a connection of Homa.
    Homa(Box<HomaEnd>),
}

/// The path of an endpoint's packets, as its controller may take account of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathFacts {
    /// The switches on the shortest path.
    pub switches: u32,
    /// The rate at which the NIC sends.
    pub nic_rate: Rate,
    /// The time that a full packet and its acknowledgement take on an idle network.
    pub round_trip: Span,
    /// The longest such time between two hosts of the network; zero where no transport asks for it.
    pub longest_round_trip: Span,
    /// The links among which the packets choose, where labels can name them.
    pub choices: Option<PathChoices>,
    /// The word on which the sender's choice of paths depends.
    pub entropy_seed: u64,
}

/// Calls a method of whichever endpoint it is: TCP's, the queue pair's, the packet delivery context's, NDP's or Homa's.
macro_rules! of_each {
    ($self:ident, $tcp:ident => $of_tcp:expr, $pair:ident => $of_pair:expr, $pdc:ident => $of_pdc:expr,
     $ndp:ident => $of_ndp:expr, $homa:ident => $of_homa:expr) => {
        match $self {
            Endpoint::Tcp($tcp) => $of_tcp,
            Endpoint::Roce($pair) => $of_pair,
            Endpoint::Uet($pdc) => $of_pdc,
            Endpoint::Ndp($ndp) => $of_ndp,
            Endpoint::Homa($homa) => $of_homa,
        }
    };
}

impl Endpoint {
    /// Makes a closed end of the family that `config` names.
    pub fn new(config: &TcpConfig) -> Endpoint {
        match config.carrier() {
            Carrier::Stack => Endpoint::Tcp(tcp::Endpoint::new(config)),
            Carrier::Roce => Endpoint::Roce(Box::new(QueuePair::new(&config.roce))),
            Carrier::Uet => Endpoint::Uet(Box::new(Pdc::new(&config.uet))),
            Carrier::Ndp => Endpoint::Ndp(Box::new(NdpEnd::new(&config.ndp))),
            Carrier::Homa => Endpoint::Homa(Box::default()),
        }
    }

    /// Returns whether the controller may take account of the path ([`Endpoint::set_path`]).
    pub fn regards_path(&self) -> bool {
        of_each!(self, tcp => tcp.regards_path(), _pair => true, _pdc => true, _ndp => true, _homa => false)
    }

    /// Tells the controller the path of this end's packets.
    pub fn set_path(&mut self, config: &TcpConfig, path: PathFacts) {
        of_each!(self,
            tcp => tcp.set_path(path.switches),
            pair => pair.set_path(&config.roce, path.nic_rate, path.round_trip, path.switches),
            pdc => pdc.set_path(&config.uet, path.nic_rate, path.longest_round_trip, path.entropy_seed),
            ndp => ndp.set_path(&config.ndp, path.round_trip, path.choices, path.entropy_seed),
            _homa => ());
    }

    /// The application appends a message of `bytes` bytes.
    #[inline]
    pub fn write(&mut self, config: &TcpConfig, now: Time, bytes: u64) {
        of_each!(self,
            tcp => tcp.write(config, now, bytes),
            pair => pair.write(&config.roce, now, bytes),
            pdc => pdc.write(bytes),
            ndp => ndp.write(&config.ndp, now, bytes),
            homa => homa.write(now, bytes));
    }

    /// The application posts a READ of the other end's next message, of `bytes` bytes; with RoCE only.
    pub fn read(&mut self, config: &TcpConfig, now: Time, bytes: u64) {
        of_each!(self, _tcp => (), pair => pair.read(&config.roce, now, bytes), _pdc => (), _ndp => (), _homa => ());
    }

    /// A segment arrived. `stamps` returns the telemetry that came with it; only RoCE asks.
    #[inline(always)] // a simulator's hot loop calls it
    pub fn on_segment(
        &mut self,
        config: &TcpConfig,
        now: Time,
        segment: &TcpSegment,
        stamps: impl FnOnce() -> Option<Stamps>,
    ) -> Delivered {
        of_each!(self,
            tcp => tcp.on_segment(config, now, segment),
            pair => pair.on_segment(&config.roce, now, segment, stamps().as_ref()),
            pdc => pdc.on_segment(&config.uet, now, segment),
            ndp => ndp.on_segment(&config.ndp, now, segment),
            homa => homa.on_segment(&config.homa, now, segment))
    }

    /// Returns the next segment that leaves now.
    #[inline]
    pub fn poll_transmit(&mut self, config: &TcpConfig, now: Time) -> Option<TcpSegment> {
        of_each!(self,
            tcp => tcp.poll_transmit(config, now),
            pair => pair.poll_transmit(&config.roce, now),
            pdc => pdc.poll_transmit(&config.uet, now),
            ndp => ndp.poll_transmit(&config.ndp, now),
            homa => homa
                .next_control()
                .or_else(|| homa.next_data(&config.homa, now).map(|(segment, _)| segment)))
    }

    /// Returns whether the next segment that leaves has no data.
    #[inline]
    pub fn owes_ack(&self) -> bool {
        of_each!(self,
            tcp => tcp.owes_ack(),
            pair => pair.owes_answer(),
            pdc => pdc.owes_answer(),
            ndp => ndp.owes_answer(),
            homa => homa.owes_control())
    }

    /// Returns whether the next segment waits until the NIC has sent all that it has: data of NICs' transports,
    /// which the NIC takes from one connection after the other.
    #[inline]
    pub fn awaits_nic(&self, config: &TcpConfig, now: Time) -> bool {
        of_each!(self,
            _tcp => false,
            pair => pair.offers_data(&config.roce, now),
            pdc => !pdc.owes_answer() && pdc.has_packet(&config.uet),
            ndp => !ndp.owes_answer() && ndp.has_packet(&config.ndp),
            homa => !homa.owes_control() && homa.ready(&config.homa).is_some())
    }

    /// Returns the new data that segmentation offload may hold back; `None` if there is none, and where a
    /// NIC cuts messages into packets.
    pub fn offer(&self, config: &TcpConfig) -> Option<Offer> {
        of_each!(self, tcp => tcp.offer(config), _pair => None, _pdc => None, _ndp => None, _homa => None)
    }

    /// Returns when [`on_deadline`](Endpoint::on_deadline) must be called, if nothing more may be sent at `now`;
    /// [`Time::MAX`] if never.
    #[inline]
    pub fn deadline(&self, config: &TcpConfig, now: Time) -> Time {
        of_each!(self,
            tcp => tcp.deadline(),
            pair => pair.deadline(&config.roce, now),
            pdc => pdc.deadline(&config.uet, now),
            ndp => ndp.deadline(&config.ndp),
            homa => homa.deadline(&config.homa))
    }

    /// Handles the [`deadline`](Endpoint::deadline) that has passed.
    pub fn on_deadline(&mut self, config: &TcpConfig, now: Time) {
        of_each!(self,
            tcp => tcp.on_deadline(config, now),
            pair => pair.on_deadline(&config.roce, now),
            pdc => pdc.on_deadline(&config.uet, now),
            ndp => ndp.on_deadline(&config.ndp, now),
            homa => homa.on_deadline(&config.homa, now));
    }

    /// Returns the bytes handed to the application.
    #[inline]
    pub fn received(&self) -> u64 {
        of_each!(self,
            tcp => tcp.received(),
            pair => pair.received(),
            pdc => pdc.received(),
            ndp => ndp.received(),
            homa => homa.received())
    }

    /// Returns the bytes of this end that the other has acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        of_each!(self,
            tcp => tcp.acknowledged(),
            pair => pair.acknowledged(),
            pdc => pdc.acknowledged(),
            ndp => ndp.acknowledged(),
            homa => homa.acknowledged())
    }

    /// Returns the bytes sent at least once.
    #[inline]
    pub fn sent(&self) -> u64 {
        of_each!(self,
            tcp => tcp.sent(),
            pair => pair.sent(),
            pdc => pdc.sent(),
            ndp => ndp.sent(),
            homa => homa.sent())
    }

    /// Returns the bytes that the application wrote.
    #[inline]
    pub fn written(&self) -> u64 {
        of_each!(self,
            tcp => tcp.written(),
            pair => pair.written(),
            pdc => pdc.written(),
            ndp => ndp.written(),
            homa => homa.written())
    }

    /// Returns the written bytes that are not known to be received.
    pub fn remaining(&self) -> u64 {
        of_each!(self,
            tcp => tcp.remaining(),
            pair => pair.written() - pair.acknowledged(),
            pdc => pdc.written() - pdc.acknowledged(),
            ndp => ndp.written() - ndp.acknowledged(),
            homa => homa.written() - homa.acknowledged())
    }

    /// Returns whether everything written is acknowledged, and nothing is due to be sent.
    pub fn is_idle(&self) -> bool {
        of_each!(self,
            tcp => tcp.is_idle(),
            pair => pair.is_idle(),
            pdc => pdc.is_idle(),
            ndp => ndp.is_idle(),
            homa => homa.is_idle())
    }

    /// Returns a sample of the sender's window and timers, for time series.
    pub fn window(&self, config: &TcpConfig) -> WindowState {
        of_each!(self,
            tcp => tcp.window(),
            pair => pair.window(&config.roce),
            pdc => pdc.window(&config.uet),
            ndp => ndp.window(&config.ndp),
            homa => homa.window(&config.homa))
    }

    /// Returns the endpoint's counters since it was made.
    pub fn counters(&self) -> Counters {
        of_each!(self,
            tcp => tcp.counters(),
            pair => pair.counters(),
            pdc => pdc.counters(),
            ndp => ndp.counters(),
            homa => homa.counters())
    }

    /// Asks memory for what an arriving segment will use behind the endpoint.
    #[inline]
    pub fn prefetch(&self) {
        of_each!(self,
            tcp => tcp.prefetch(),
            pair => plimsoll_memory::prefetch_for_later(&**pair),
            pdc => plimsoll_memory::prefetch_for_later(&**pdc),
            ndp => plimsoll_memory::prefetch_for_later(&**ndp),
            homa => plimsoll_memory::prefetch_for_later(&**homa));
    }
}

impl TcpConfig {
    /// Returns what carries the connections.
    pub fn carrier(&self) -> Carrier {
        match self.custom {
            Some(_) => Carrier::Stack,
            None => self.params.kind.describe().family.carrier,
        }
    }

    /// Returns whether messages are fetched by their receivers (`roce.operation = "read"`).
    pub fn reads(&self) -> bool {
        self.carrier() == Carrier::Roce && self.roce.reads()
    }

    /// Bytes of a READ request on the wire: the header of a packet, and the RETH with address, key and length.
    pub fn read_request_bytes(&self) -> u32 {
        self.params.header.get() as u32 + RETH_BYTES
    }
}

/// Bytes of the RDMA extended transport header, which a READ request has behind the BTH: an address of 8 B, a key of
/// 4 B and a length of 4 B (InfiniBand Architecture Specification, volume 1).
const RETH_BYTES: u32 = 16;
