//! [`Endpoint`]: one end of a connection, of whichever family carries it.

use plimsoll_units::{Rate, Span, Time};

use super::describe::Carrier;
use super::entropy::PathChoices;
use super::homa::HomaEnd;
use super::ndp::NdpEnd;
use super::nic_end::NicEnd;
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

/// Calls a method of whichever endpoint it is: TCP's, or that of an end that a NIC carries; of this one, with `$own`
/// for its family's part of `$config` if that is given.
macro_rules! of_each {
    ($self:ident, $tcp:pat => $of_tcp:expr, $end:pat => $of_nic:expr) => {
        match $self {
            Endpoint::Tcp($tcp) => $of_tcp,
            Endpoint::Roce($end) => $of_nic,
            Endpoint::Uet($end) => $of_nic,
            Endpoint::Ndp($end) => $of_nic,
            Endpoint::Homa($end) => $of_nic,
        }
    };
    ($self:ident, $config:ident, $tcp:pat => $of_tcp:expr, $end:ident, $own:ident => $of_nic:expr) => {
        match $self {
            Endpoint::Tcp($tcp) => $of_tcp,
            Endpoint::Roce($end) => {
                let $own = QueuePair::config($config);
                $of_nic
            }
            Endpoint::Uet($end) => {
                let $own = Pdc::config($config);
                $of_nic
            }
            Endpoint::Ndp($end) => {
                let $own = NdpEnd::config($config);
                $of_nic
            }
            Endpoint::Homa($end) => {
                let $own = HomaEnd::config($config);
                $of_nic
            }
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
        match self {
            Endpoint::Tcp(tcp) => tcp.regards_path(),
            Endpoint::Roce(_) | Endpoint::Uet(_) | Endpoint::Ndp(_) => true,
            Endpoint::Homa(_) => false,
        }
    }

    /// Tells the controller the path of this end's packets.
    pub fn set_path(&mut self, config: &TcpConfig, path: PathFacts) {
        match self {
            Endpoint::Tcp(tcp) => tcp.set_path(path.switches),
            Endpoint::Roce(pair) => {
                pair.set_path(&config.roce, path.nic_rate, path.round_trip, path.switches);
            }
            Endpoint::Uet(pdc) => {
                pdc.set_path(&config.uet, path.nic_rate, path.longest_round_trip, path.entropy_seed);
            }
            Endpoint::Ndp(ndp) => {
                ndp.set_path(&config.ndp, path.round_trip, path.choices, path.entropy_seed);
            }
            Endpoint::Homa(_) => {}
        }
    }

    /// The application appends a message of `bytes` bytes.
    #[inline]
    pub fn write(&mut self, config: &TcpConfig, now: Time, bytes: u64) {
        of_each!(self, config, tcp => tcp.write(config, now, bytes), end, own => end.write(own, now, bytes));
    }

    /// The application posts a READ of the other end's next message, of `bytes` bytes; with RoCE only.
    pub fn read(&mut self, config: &TcpConfig, now: Time, bytes: u64) {
        if let Endpoint::Roce(pair) = self {
            pair.read(&config.roce, now, bytes);
        }
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
        match self {
            Endpoint::Tcp(tcp) => tcp.on_segment(config, now, segment),
            Endpoint::Roce(pair) => pair.on_segment(&config.roce, now, segment, stamps().as_ref()),
            Endpoint::Uet(pdc) => pdc.on_segment(&config.uet, now, segment),
            Endpoint::Ndp(ndp) => ndp.on_segment(&config.ndp, now, segment),
            Endpoint::Homa(homa) => homa.on_segment(&config.homa, now, segment),
        }
    }

    /// Returns the next segment that leaves now.
    #[inline]
    pub fn poll_transmit(&mut self, config: &TcpConfig, now: Time) -> Option<TcpSegment> {
        of_each!(self, config, tcp => tcp.poll_transmit(config, now), end, own => end.poll_transmit(own, now))
    }

    /// Returns whether the next segment that leaves has no data.
    #[inline]
    pub fn owes_ack(&self) -> bool {
        of_each!(self, tcp => tcp.owes_ack(), end => end.owes_answer())
    }

    /// Returns whether the next segment waits until the NIC has sent all that it has: data of NICs' transports,
    /// which the NIC takes from one connection after the other.
    #[inline]
    pub fn awaits_nic(&self, config: &TcpConfig, now: Time) -> bool {
        of_each!(self, config, _ => false, end, own => end.offers_data(own, now))
    }

    /// Returns whether nothing is to be sent before something arrives, is written or granted, or the deadline passes;
    /// false where that is not known.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        of_each!(self, _ => false, end => end.is_quiet())
    }

    /// Returns the new data that segmentation offload may hold back; `None` if there is none, and where a
    /// NIC cuts messages into packets.
    pub fn offer(&self, config: &TcpConfig) -> Option<Offer> {
        if let Endpoint::Tcp(tcp) = self { tcp.offer(config) } else { None }
    }

    /// Returns when [`on_deadline`](Endpoint::on_deadline) must be called, if nothing more may be sent at `now`;
    /// [`Time::MAX`] if never.
    #[inline]
    pub fn deadline(&self, config: &TcpConfig, now: Time) -> Time {
        of_each!(self, config, tcp => tcp.deadline(), end, own => end.deadline(own, now))
    }

    /// Handles the [`deadline`](Endpoint::deadline) that has passed.
    pub fn on_deadline(&mut self, config: &TcpConfig, now: Time) {
        of_each!(self, config, tcp => tcp.on_deadline(config, now), end, own => end.on_deadline(own, now));
    }

    /// Returns the bytes handed to the application.
    #[inline]
    pub fn received(&self) -> u64 {
        of_each!(self, end => end.received(), end => end.received())
    }

    /// Returns the bytes of this end that the other has acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        of_each!(self, end => end.acknowledged(), end => end.acknowledged())
    }

    /// Returns the bytes sent at least once.
    #[inline]
    pub fn sent(&self) -> u64 {
        of_each!(self, end => end.sent(), end => end.sent())
    }

    /// Returns the bytes that the application wrote.
    #[inline]
    pub fn written(&self) -> u64 {
        of_each!(self, end => end.written(), end => end.written())
    }

    /// Returns the written bytes that are not known to be received.
    pub fn remaining(&self) -> u64 {
        of_each!(self, tcp => tcp.remaining(), end => end.written() - end.acknowledged())
    }

    /// Returns whether an end that a NIC carries has packets outstanding, and may send none before an answer arrives,
    /// or the timeout; `None` of TCP's.
    pub fn awaits_answer(&self, config: &TcpConfig) -> Option<bool> {
        of_each!(self, config, _ => None, end, own => Some(end.awaits_answer(own)))
    }

    /// Returns whether everything written is acknowledged, and nothing is due to be sent.
    pub fn is_idle(&self) -> bool {
        of_each!(self, end => end.is_idle(), end => end.is_idle())
    }

    /// Returns a sample of the sender's window and timers, for time series.
    pub fn window(&self, config: &TcpConfig) -> WindowState {
        of_each!(self, config, tcp => tcp.window(), end, own => end.window(own))
    }

    /// Returns the endpoint's counters since it was made.
    pub fn counters(&self) -> Counters {
        of_each!(self, end => end.counters(), end => end.counters())
    }

    /// Asks memory for what an arriving segment will use behind the endpoint.
    #[inline]
    pub fn prefetch(&self) {
        of_each!(self, tcp => tcp.prefetch(), end => plimsoll_memory::prefetch_for_later(&**end));
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
