//! [`Endpoint`]: one end of a connection; the handshake (RFC 9293, section 3.5; with ECN, RFC 3168,
//! section 6.1.1), and the order in which segments leave.

use plimsoll_units::{Span, Time};

use crate::transports::packet_types::PacketTypes;

use super::config::TcpConfig;
use super::congestion::SubflowWindow;
use super::receiver::TcpReceiver;
use super::segment::{EcnField, Flags, SackBlocks, TcpSegment};
use super::sender::{Offer, TcpSender};

/// One end of a connection.
///
/// The properties that follow from `kind` (the controller, ECN, how marks are echoed and segments acknowledged) are
/// taken from the [`Config`] with which the endpoint is made. The configuration that its methods take may differ in
/// these, so that connections of different kinds can share one.
///
/// After every [`write`](Endpoint::write), [`on_segment`](Endpoint::on_segment) and
/// [`on_deadline`](Endpoint::on_deadline), call [`poll_transmit`](Endpoint::poll_transmit) until it
/// returns `None`, and call `on_deadline` at [`deadline`](Endpoint::deadline).
#[derive(Debug)]
pub struct Endpoint {
    state: ConnectionState,
    /// A SYN or SYN-ACK must be sent now.
    syn_due: bool,
    /// Number of times that the SYN or SYN-ACK was sent.
    syns_sent: u16,
    /// This end requests ECN, or accepts it, in the handshake.
    wants_ecn: bool,
    /// The other end requested ECN in its SYN.
    peer_ecn: bool,
    /// When the SYN or SYN-ACK was first sent.
    syn_sent_at: Time,
    sender: TcpSender,
    receiver: TcpReceiver,
    segments_sent: u64,
    ce_received: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConnectionState {
    /// Waits for a SYN, or to be opened.
    Listen,
    SynSent,
    SynReceived,
    Established,
}

/// The bytes that an arriving segment delivered and acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delivered {
    /// Bytes handed to the application, in order.
    pub new_bytes: u64,
    /// Bytes of this end newly acknowledged by the other.
    pub acked: u64,
    /// Data has arrived behind a gap, which may complete a message that need not wait for the gap to close.
    pub is_ahead: bool,
}

/// A sample of the sender's window and timers, for time series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowState {
    /// The congestion window in bytes of payload.
    pub cwnd_bytes: u64,
    /// Slow start threshold in bytes; `u64::MAX` while slow start has no end.
    pub ssthresh_bytes: u64,
    /// DCTCP's estimate of the marked share; 0 for others.
    pub alpha: f64,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Length of the retransmission timer, backed off.
    pub rto: Span,
}

/// Counts of an endpoint since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// The number of sent segments of any kind, pure ACKs and SYNs included.
    pub segments_sent: u64,
    /// The number of received segments of any kind.
    pub segments_received: u64,
    /// The number of sent segments with payload, retransmissions included.
    pub data_segments: u64,
    /// Segments with data that was sent before.
    pub retransmissions: u64,
    /// Times the retransmission timer fired, the handshake's included.
    pub timeouts: u64,
    /// The number of times that fast recovery began.
    pub fast_retransmits: u64,
    /// The number of received ACKs of new data that carried ECE.
    pub ece_acks: u64,
    /// The number of cuts of the window because of marks.
    pub ecn_cuts: u64,
    /// The number of received segments with the ECN mark CE.
    pub ce_received: u64,
    /// Packets by type; of queue pairs of RoCE only.
    pub types: PacketTypes,
}

impl Endpoint {
    /// A closed end that answers a SYN; with `handshake = false` an established one.
    pub fn new(config: &TcpConfig) -> Endpoint {
        Endpoint {
            state: if config.params.handshake {
                ConnectionState::Listen
            } else {
                ConnectionState::Established
            },
            syn_due: false,
            syns_sent: 0,
            wants_ecn: config.ecn,
            peer_ecn: false,
            syn_sent_at: Time::ZERO,
            sender: TcpSender::new(config),
            receiver: TcpReceiver::new(config),
            segments_sent: 0,
            ce_received: 0,
        }
    }

    /// Returns whether the controller may take account of the path ([`Endpoint::set_path`]).
    pub fn regards_path(&self) -> bool {
        self.sender.controller.is_boxed()
    }

    /// Passes the number of switches on the path of this end's packets to the controller.
    pub fn set_path(&mut self, switches: u32) {
        self.sender.controller.on_path(switches);
    }

    /// Opens the connection actively. Does nothing if it is open or opening.
    pub fn open(&mut self, _config: &TcpConfig, _now: Time) {
        if self.state == ConnectionState::Listen {
            self.state = ConnectionState::SynSent;
            self.syn_due = true;
        }
    }

    /// The application appends `bytes` to the stream; the first write opens the connection.
    #[inline]
    pub fn write(&mut self, config: &TcpConfig, now: Time, bytes: u64) {
        self.sender.write(config, bytes);
        if self.state == ConnectionState::Listen {
            self.open(config, now);
        }
    }

    /// Takes back the last `bytes` that the application wrote, before any of them is sent.
    ///
    /// # Panics
    /// If some of them were sent.
    pub fn retract(&mut self, bytes: u64) {
        assert!(self.sender.max + bytes <= self.sender.written, "what was sent cannot be taken back");
        self.sender.written -= bytes;
    }

    /// Returns whether the connection is established, and no retransmission would precede new data.
    pub fn takes_new_data(&self) -> bool {
        let sender = &self.sender;
        self.state == ConnectionState::Established && !sender.resend && sender.nxt == sender.max
    }

    /// Passes the windows of the MPTCP connection of which this endpoint is subflow `own` to the controller.
    pub fn couple(&mut self, subflows: &[SubflowWindow], own: usize) {
        self.sender.controller.on_subflows(subflows, own);
    }

    /// A segment arrived, or several that receive offload has merged into one: it counts as as many as
    /// it would fill.
    #[inline(always)] // a simulator's hot loop calls it
    pub fn on_segment(&mut self, config: &TcpConfig, now: Time, segment: &TcpSegment) -> Delivered {
        self.sender.heard += 1;
        if segment.ecn == EcnField::Ce {
            self.ce_received += u64::from(config.segments_in(segment.len));
        }
        if (self.state != ConnectionState::Established || segment.flags.has(Flags::SYN))
            && !self.on_handshake(config, now, segment)
        {
            return Delivered::default();
        }
        let mut delivered = Delivered::default();
        if segment.flags.has(Flags::ACK) {
            delivered.acked = self.sender.on_ack(config, now, segment);
        }
        if segment.len > 0 {
            delivered.new_bytes = self.receiver.on_data(config, self.sender.ecn, now, segment);
        } else if self.sender.ecn && config.params.echo_marked_acks {
            self.receiver.on_ecn(segment);
        }
        delivered
    }

    /// Returns the next segment that leaves now: a SYN, then an ACK that is due, then data sent again, then new data.
    #[inline]
    pub fn poll_transmit(&mut self, config: &TcpConfig, now: Time) -> Option<TcpSegment> {
        if self.state != ConnectionState::Established {
            return self.poll_handshake(config, now);
        }
        if self.receiver.owes_ack() {
            return Some(self.pure_ack(config));
        }
        let chunk = self.sender.next_chunk(config, now)?;
        let (ack, ece) = self.receiver.take_ack();
        self.segments_sent += 1;
        let ect = self.sender.ecn && (config.params.ecn_on_acks || !chunk.flags.has(Flags::RETRANSMISSION));
        Some(TcpSegment {
            seq: chunk.seq,
            len: chunk.len,
            ack,
            flags: chunk.flags.with(Flags::ACK).with_if(ece, Flags::ECE),
            ecn: if ect { EcnField::Ect } else { EcnField::NotEct },
            entropy: 0,
            sack: self.receiver.sack(config),
        })
    }

    /// Returns whether the next segment that leaves is an ACK without data.
    #[inline]
    pub fn owes_ack(&self) -> bool {
        self.state == ConnectionState::Established && self.receiver.owes_ack()
    }

    /// Returns the new data that [`poll_transmit`](Endpoint::poll_transmit) would give, for a sender that waits for a
    /// piece worth sending. `None` if there is none, if something else comes first, or while losses are being repaired,
    /// when nothing should wait.
    pub fn offer(&self, config: &TcpConfig) -> Option<Offer> {
        let first = self.state != ConnectionState::Established || self.receiver.owes_ack();
        if first { None } else { self.sender.offer(config) }
    }

    fn pure_ack(&mut self, config: &TcpConfig) -> TcpSegment {
        let ((ack, ece), sack) = match self.receiver.take_earlier_ack() {
            Some(earlier) => (earlier, SackBlocks::NONE),
            None => (self.receiver.take_ack(), self.receiver.sack(config)),
        };
        self.segments_sent += 1;
        TcpSegment {
            seq: self.sender.max,
            len: 0,
            ack,
            flags: Flags::ACK.with_if(ece, Flags::ECE),
            ecn: if self.sender.ecn && config.params.ecn_on_acks { EcnField::Ect } else { EcnField::NotEct },
            entropy: 0,
            sack,
        }
    }

    /// Returns when [`on_deadline`](Endpoint::on_deadline) must be called, the earliest of the retransmission timer,
    /// the delayed ACK and the pacer; `Time::MAX` if none is set. An earlier call is harmless.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.sender.deadline.min(self.receiver.deadline()).min(self.sender.pacing_deadline)
    }

    /// Handles the [`deadline`](Endpoint::deadline) that has passed.
    pub fn on_deadline(&mut self, config: &TcpConfig, now: Time) {
        if now >= self.receiver.deadline() {
            self.receiver.on_deadline();
        }
        if now >= self.sender.pacing_deadline {
            self.sender.pacing_deadline = Time::MAX;
        }
        if now < self.sender.deadline {
            return;
        }
        if self.state == ConnectionState::Established {
            self.sender.on_timeout(config, now);
        } else {
            self.sender.stats.timeouts += 1;
            self.sender.rto.back_off(config);
            self.sender.restart_timer(now);
            self.syn_due = true;
        }
    }

    /// Returns the bytes handed to the application.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receiver.nxt()
    }

    /// Returns the bytes of this end that the other has acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.sender.una
    }

    /// Returns the bytes sent at least once.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sender.max
    }

    /// Returns the bytes that the application wrote.
    #[inline]
    pub fn written(&self) -> u64 {
        self.sender.written
    }

    /// Returns the written bytes that are neither acknowledged nor selectively acknowledged. pFabric ranks packets by
    /// them.
    pub fn remaining(&self) -> u64 {
        self.sender.remaining()
    }

    /// Returns whether the end waits for a SYN, or to be opened.
    pub fn is_closed(&self) -> bool {
        self.state == ConnectionState::Listen
    }

    /// Returns whether the handshake is complete, so that data may be sent.
    pub fn is_established(&self) -> bool {
        self.state == ConnectionState::Established
    }

    /// Returns whether everything written is acknowledged, and neither a handshake nor an ACK is pending.
    pub fn is_idle(&self) -> bool {
        let quiet = matches!(self.state, ConnectionState::Listen | ConnectionState::Established);
        quiet && self.sender.una == self.sender.written && !self.receiver.has_pending_ack()
    }

    /// Returns a sample of the sender's window and timers, for time series.
    pub fn window(&self) -> WindowState {
        WindowState {
            cwnd_bytes: self.sender.window.cwnd,
            ssthresh_bytes: self.sender.window.ssthresh,
            alpha: self.sender.controller.alpha(),
            srtt: self.sender.rto.srtt(),
            rto: self.sender.rto.current(),
        }
    }

    /// Returns the endpoint's counters since it was made.
    pub fn counters(&self) -> Counters {
        let stats = &self.sender.stats;
        Counters {
            segments_sent: self.segments_sent,
            segments_received: self.sender.heard,
            data_segments: stats.data_segments,
            retransmissions: stats.retransmissions,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            ece_acks: stats.ece_acks,
            ecn_cuts: stats.ecn_cuts,
            ce_received: self.ce_received,
            types: PacketTypes::default(),
        }
    }

    /// Prefetches the memory behind the endpoint that an arriving segment will use.
    #[inline]
    pub fn prefetch(&self) {
        self.sender.prefetch();
    }

    // ---- handshake ----

    /// Handles a segment before the connection is established, or a SYN after. Returns true if the segment is then
    /// processed as any other.
    #[cold]
    fn on_handshake(&mut self, config: &TcpConfig, now: Time, segment: &TcpSegment) -> bool {
        let (syn, ack) = (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK));
        match self.state {
            ConnectionState::Listen | ConnectionState::SynSent if syn && !ack => {
                // RFC 3168, section 6.1.1: a SYN with ECE and CWR requests ECN.
                self.peer_ecn = segment.flags.has(Flags::ECE.with(Flags::CWR));
                self.state = ConnectionState::SynReceived;
                self.syn_due = true;
                false
            }
            ConnectionState::SynSent if syn && ack => {
                self.peer_ecn = segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR);
                self.establish(config, now);
                self.receiver.ack_now();
                false
            }
            ConnectionState::SynReceived if syn && !ack => {
                self.syn_due = true;
                false
            }
            ConnectionState::SynReceived if ack => {
                self.establish(config, now);
                if syn {
                    self.receiver.ack_now();
                }
                !syn
            }
            ConnectionState::Established => {
                // A SYN or SYN-ACK was repeated: our ACK of it was lost.
                self.receiver.ack_now();
                false
            }
            _ => false,
        }
    }

    fn establish(&mut self, config: &TcpConfig, now: Time) {
        self.state = ConnectionState::Established;
        self.syn_due = false;
        self.sender.ecn = self.wants_ecn && self.peer_ecn;
        self.sender.deadline = Time::MAX;
        if self.syns_sent == 1 {
            self.sender.rto.sample(config, now.saturating_since(self.syn_sent_at));
        } else if self.syns_sent > 1 {
            self.sender.after_syn_loss(config);
        }
    }

    #[cold]
    fn poll_handshake(&mut self, config: &TcpConfig, now: Time) -> Option<TcpSegment> {
        if !self.syn_due {
            return None;
        }
        self.syn_due = false;
        if self.syns_sent == 0 {
            self.syn_sent_at = now;
        }
        self.syns_sent = self.syns_sent.saturating_add(1);
        self.sender.arm(now);
        self.segments_sent += 1;
        let flags = match self.state {
            ConnectionState::SynReceived => {
                Flags::SYN.with(Flags::ACK).with_if(self.wants_ecn && self.peer_ecn, Flags::ECE)
            }
            _ => Flags::SYN.with_if(self.wants_ecn, Flags::ECE.with(Flags::CWR)),
        };
        Some(TcpSegment {
            flags,
            ecn: if self.wants_ecn && config.params.ecn_on_acks { EcnField::Ect } else { EcnField::NotEct },
            ..TcpSegment::default()
        })
    }
}
