//! [`Arm`]: the traffic and the offloads of a run.

use plimsoll_units::{Bytes, Rate, Span};
use serde::Deserialize;

use super::trains::PACKET_PAYLOAD;

/// The number of hosts of the thesis.
pub(super) const HOSTS: u32 = 7;
/// The thesis raised `tcp_limit_output_bytes` from 128 KB to this.
const OUTPUT_LIMIT: u64 = 2 << 20;
/// The largest segment of Linux by default.
const SEGMENT: u32 = 65_536;
/// The flows that a host of `Hstride` has at a time: a choice.
const FLOWS: u32 = 16;

/// The traffic among the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Pattern {
    /// Each host sends to the next.
    Stride,
    /// As `Stride`, and all hosts turn to their next destination at once.
    Pstride,
    /// Each host has several flows to a destination, which turn to the next one by one.
    Hstride,
    /// Each host sends to every other.
    AllToAll,
    /// One host sends to every other.
    OneToAll,
    /// One host sends to another.
    #[default]
    One,
    /// The first host has files, which the others copy.
    FileService,
    /// Each host but the last fetches from every other but the last, which asks them for their status.
    Sort,
    /// The first host is a memcached, which the others ask for values of 1 KB.
    Memcached,
}

/// The traffic and the settings of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Arm {
    pub(super) hosts: u32,
    pub(super) pattern: Pattern,
    pub(super) segmentation_offload: bool,
    pub(super) receive_offload: bool,
    /// The most bytes of a segment.
    pub(super) segment_bytes: u32,
    /// Whether TCP hands over packets one by one.
    pub(super) one_by_one: bool,
    pub(super) output_limit: u64,
    /// The bytes that a receiver waits for before it reads; without it, any.
    pub(super) low_water: Option<i32>,
    /// The time from a read of a receiver to its next one.
    pub(super) read_every: Span,
    /// The segments of the largest size that a receiver has a window for once its connections have sent for a while;
    /// without it, as many as its buffer takes.
    pub(super) window: Option<u32>,
    /// The flows that a host of `Hstride` has at a time.
    pub(super) flows: u32,
    /// The bytes that a client of `FileService` or `Sort` requests at a time.
    pub(super) read: Bytes,
    /// The requests that a client of `FileService` has under way.
    pub(super) outstanding: u32,
    /// The bytes that the disk of `FileService` reads at a time, for one client after the other.
    pub(super) read_ahead: Bytes,
    /// The rate of that disk.
    pub(super) disk: Rate,
    /// Whether the server of files sends each of these batches; else a whole read, when all of it is in memory.
    pub(super) sends_batches: bool,
    /// The rate of the hosts' links, where they have one.
    pub(super) rate: Option<Rate>,
}

impl Default for Arm {
    fn default() -> Arm {
        Arm {
            hosts: HOSTS,
            pattern: Pattern::default(),
            segmentation_offload: true,
            receive_offload: true,
            segment_bytes: SEGMENT,
            one_by_one: false,
            output_limit: OUTPUT_LIMIT,
            low_water: None,
            read_every: Span::ZERO,
            window: None,
            flows: FLOWS,
            read: Bytes::new(1_000_000),
            outstanding: 2,
            read_ahead: Bytes::new(128_000),
            disk: Rate::from_mbps(1_200),
            sends_batches: false,
            rate: None,
        }
    }
}

impl Arm {
    /// Returns the text of the arm in a run's settings. An arm without the keys of servers and of pauses between reads
    /// has the text that it had before there were these keys, so that its rows stay valid.
    pub(super) fn settings(&self) -> String {
        let Arm { read_every, read, outstanding, read_ahead, disk, sends_batches, .. } = Arm::default();
        let plain = Arm { read_every, read, outstanding, read_ahead, disk, sends_batches, ..*self };
        let text = format!("{self:?}");
        if *self != plain || matches!(self.pattern, Pattern::FileService | Pattern::Sort | Pattern::Memcached)
        {
            return text;
        }
        let of_servers = format!(
            ", read: {read:?}, outstanding: {outstanding:?}, read_ahead: {read_ahead:?}, disk: {disk:?}, \
             sends_batches: {sends_batches:?}"
        );
        text.replace(&format!(", read_every: {read_every:?}"), "").replace(&of_servers, "")
    }

    /// Returns the number of hosts that send data.
    pub(super) fn senders(&self) -> u32 {
        match self.pattern {
            Pattern::OneToAll | Pattern::One | Pattern::FileService | Pattern::Memcached => 1,
            Pattern::Sort => self.hosts - 1,
            Pattern::Stride | Pattern::Pstride | Pattern::Hstride | Pattern::AllToAll => self.hosts,
        }
    }

    /// Returns the bytes of the window that receivers offer at first, where they limit it. A sender makes no segment
    /// that is larger than half the largest window that it was ever offered (`tcp_bound_to_half_wnd`).
    pub(super) fn first_window_bytes(&self) -> Option<i32> {
        self.window.map(|segments| self.window_bytes(segments.max(2)))
    }

    /// Returns the bytes of a window for a number of segments: whole packets of each.
    pub(super) fn window_bytes(&self, segments: u32) -> i32 {
        let packets = (self.segment_bytes - SEGMENT_HEADERS) / PACKET_PAYLOAD;
        (segments * packets * PACKET_PAYLOAD) as i32
    }
}

/// The bytes of a segment that the kernel keeps for headers, at the least.
const SEGMENT_HEADERS: u32 = 320;
