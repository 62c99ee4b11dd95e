//! Packet scripts: one endpoint, the test plays the other end. Full segments are 1000 B, times are in
//! microseconds, and an expectation that fails names the line of the script.

use plimsoll_mechanisms::tcp::{
    Delivered, EcnField, Endpoint, Flags, TcpConfig, TcpSegment, TransportParams,
};
use plimsoll_units::{Bytes, Span, Time};

/// Payload of a full segment.
pub const MSS: u64 = 1000;

/// The defaults with 1000 B segments, no handshake, an ACK for every segment, and no clock
/// granularity, so that times can be computed by hand.
pub fn params() -> TransportParams {
    TransportParams {
        segment: Bytes::new(MSS),
        handshake: false,
        ack_every: 1,
        rto_granularity: Span::ZERO,
        ..TransportParams::default()
    }
}

pub struct Script {
    pub config: TcpConfig,
    pub end: Endpoint,
    pub now: Time,
    /// Bytes the other end has sent in order.
    peer_seq: u64,
}

pub fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

impl Script {
    pub fn new(params: TransportParams) -> Script {
        let config = params.resolve().expect("valid parameters");
        Script { end: Endpoint::new(&config), config, now: Time::ZERO, peer_seq: 0 }
    }

    pub fn at(&mut self, microseconds: u64) -> &mut Script {
        self.now = us(microseconds);
        self
    }

    pub fn write(&mut self, bytes: u64) -> &mut Script {
        self.end.write(&self.config, self.now, bytes);
        self
    }

    pub fn input(&mut self, segment: TcpSegment) -> Delivered {
        self.end.on_segment(&self.config, self.now, &segment)
    }

    /// Delivers a pure ACK of everything below `ack`.
    pub fn ack(&mut self, ack: u64) -> &mut Script {
        self.ack_flags(ack, Flags::NONE, &[])
    }

    pub fn ack_ece(&mut self, ack: u64) -> &mut Script {
        self.ack_flags(ack, Flags::ECE, &[])
    }

    /// A pure ACK with SACK blocks arrives.
    pub fn sack(&mut self, ack: u64, blocks: &[(u64, u64)]) -> &mut Script {
        self.ack_flags(ack, Flags::NONE, blocks)
    }

    pub fn ack_flags(&mut self, ack: u64, flags: Flags, blocks: &[(u64, u64)]) -> &mut Script {
        let sack = blocks.iter().copied().collect();
        self.input(TcpSegment {
            seq: self.peer_seq,
            ack,
            flags: flags.with(Flags::ACK),
            sack,
            ..TcpSegment::default()
        });
        self
    }

    /// A segment with data arrives.
    pub fn data(&mut self, seq: u64, len: u32, ecn: EcnField) -> Delivered {
        self.data_flags(seq, len, ecn, Flags::NONE)
    }

    pub fn data_flags(&mut self, seq: u64, len: u32, ecn: EcnField, flags: Flags) -> Delivered {
        self.peer_seq = self.peer_seq.max(seq + u64::from(len));
        let ack = self.end.acknowledged();
        self.input(TcpSegment { seq, len, ack, flags: flags.with(Flags::ACK), ecn, ..TcpSegment::default() })
    }

    pub fn poll(&mut self) -> Option<TcpSegment> {
        self.end.poll_transmit(&self.config, self.now)
    }

    /// Full segments of new data leave, from `first` on.
    #[track_caller]
    pub fn sends(&mut self, first: u64, segments: u64) -> &mut Script {
        for index in 0..segments {
            self.sends_part(first + index * MSS, MSS as u32);
        }
        self
    }

    #[track_caller]
    pub fn sends_part(&mut self, seq: u64, len: u32) -> &mut Script {
        let segment =
            self.poll().unwrap_or_else(|| panic!("nothing leaves at {}, not {seq}+{len}", self.now));
        let again = segment.flags.has(Flags::RETRANSMISSION);
        assert_eq!((segment.seq, segment.len, again), (seq, len, false), "at {}", self.now);
        self
    }

    /// One segment leaves that was sent before.
    #[track_caller]
    pub fn resends(&mut self, seq: u64, len: u32) -> &mut Script {
        let segment =
            self.poll().unwrap_or_else(|| panic!("nothing leaves at {}, not {seq}+{len} again", self.now));
        let again = segment.flags.has(Flags::RETRANSMISSION);
        assert_eq!((segment.seq, segment.len, again), (seq, len, true), "at {}", self.now);
        self
    }

    /// Expects the endpoint to send a pure ACK with this number.
    #[track_caller]
    pub fn acks(&mut self, ack: u64) -> TcpSegment {
        let segment = self.poll().unwrap_or_else(|| panic!("no ACK at {}", self.now));
        assert_eq!((segment.len, segment.ack), (0, ack), "at {}", self.now);
        segment
    }

    #[track_caller]
    pub fn silent(&mut self) -> &mut Script {
        let segment = self.poll();
        assert!(segment.is_none(), "{segment:?} at {}", self.now);
        self
    }

    /// Expects a congestion window of `bytes` bytes.
    #[track_caller]
    pub fn cwnd(&mut self, bytes: u64) -> &mut Script {
        assert_eq!(self.end.window().cwnd_bytes, bytes, "cwnd at {}", self.now);
        self
    }

    #[track_caller]
    pub fn ssthresh(&mut self, bytes: u64) -> &mut Script {
        assert_eq!(self.end.window().ssthresh_bytes, bytes, "ssthresh at {}", self.now);
        self
    }

    #[track_caller]
    pub fn deadline(&mut self, microseconds: u64) -> &mut Script {
        assert_eq!(self.end.deadline(), us(microseconds), "deadline at {}", self.now);
        self
    }

    #[track_caller]
    pub fn no_deadline(&mut self) -> &mut Script {
        assert_eq!(self.end.deadline(), Time::MAX, "deadline at {}", self.now);
        self
    }

    /// Advances to the deadline and lets it pass.
    pub fn expire(&mut self) -> &mut Script {
        self.now = self.end.deadline();
        self.end.on_deadline(&self.config, self.now);
        self
    }
}
