//! Bursts of frames in a packet capture, as BulletTrains measures them (Kapoor's thesis, chapter 3), read as a stream.
//!
//! ```text
//! bytes ──Reader──> Captured ──Frame::decode──> Frame ──Analyser──> Report
//!         └──────────── one thread ──────────────┘        └── another, in a long capture
//!
//! one pair   |car|car|car|....|car|car|..................|car|car|
//!            <-- burst --><gap><burst>                             a gap below the threshold joins frames to a burst
//!            <------- train ---------><-- inter-train -->          a gap up to the maximum inter-car gap, to a train
//! ```
//!
//! A gap runs from the end of a frame on the wire to the start of the next one of the same source and destination. The
//! wire holds more than a capture shows ([`Framing`]): preamble, check sequence and inter-frame gap, so back-to-back
//! frames have a gap of zero. Memory is constant but for a small state for each pair ([`Options::pairs_max`]).

#![forbid(unsafe_code)]

mod analyser;
mod flows;
mod frame;
mod link;
mod pipeline;
mod reader;
mod report;
mod run;
mod stamps;

pub use analyser::{Analyser, Framing, Options, Stamp, scaled_gap};
pub use flows::LastPackets;
pub use frame::{Address, CapturedSegment, Datagram, Frame};
pub use link::LINK_TYPES;
pub use pipeline::analyse;
pub use reader::{BLOCK_BYTES_MAX, Captured, Interface, ReadError, Reader, Skipped};
pub use report::{
    Acks, Distribution, LossBin, Losses, PairReport, Report, Retransmissions, Timestamps, Trains, Unresolved,
    cdf, quantile,
};
pub use run::{OpenRuns, Run};
