//! Packet captures as requests, responses and flows, read as a stream.
//!
//! ```text
//! captures ──> MergedCaptures: frames by time ──> hosts by number ──> Conversations ──> Conversation ──> Collected
//!              (one clock, several files)                             by five-tuple      (turns: who     requests,
//!                                                                     two generations     sends)         flows, RTTs
//!
//! client ──request──> server        a message ends when the direction changes, and the segment that changes it
//! client <──response── server       acknowledges all that the other side has sent: an exchange
//! client ─────────────> server      nothing comes back: a flow, cut at pauses
//! client <────────────> server      both send at once: flows, until both sides are acknowledged
//! ```
//!
//! Bytes are counted by sequence numbers, so that a segment that is sent again counts once. A packet that passes
//! several interfaces counts where it is seen first; the last place gives the time of its arrival. Memory is bounded:
//! by the conversations under way, of which the idle ones are forgotten, and by the number of messages.

mod classes;
mod collected;
mod compared;
mod conversation;
mod conversations;
mod ends;
mod hosts;
mod merged;
mod options;
mod starts;
mod stream;
mod summary;

use std::io::Read;

use plimsoll_bursts::{Address, Frame, ReadError};
use plimsoll_units::Time;

use crate::found::ImportFound;
use classes::ClassOf;
use collected::Collected;
use conversations::Conversations;
use ends::{End, Endpoints};
use hosts::CapturedHosts;
use merged::MergedCaptures;

pub use compared::ComparedClass;
pub use options::{CaptureClassBy, CaptureOptions, StartBy};

/// A capture and its name, for messages.
pub struct NamedCapture<R> {
    /// The name of the file, as messages print it.
    pub name: String,
    /// The bytes of the file.
    pub input: R,
}

/// The traffic of captures, with the measurements that a run of it can be compared with.
#[derive(Debug)]
pub struct CaptureFound {
    /// The traffic, as what writes a scenario takes it.
    pub found: ImportFound,
    /// The measurements that a run of the scenario can be compared with, by class.
    pub compared: Vec<ComparedClass>,
    /// The most conversations that were kept at once.
    pub conversations_peak: usize,
}

/// A capture cannot be imported.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum CaptureError {
    #[error("{name}: {error}")]
    Read { name: String, error: ReadError },
    #[error("no packets in {names}: nothing to import")]
    Empty { names: String },
    #[error(
        "no requests and no flows in {names}: {packets} packets have no TCP or UDP payload between two hosts; {}",
        if cut.is_empty() { "--decapsulate looks into tunnels" } else { cut }
    )]
    Silent { names: String, packets: u64, cut: String },
}

/// Reads captures, which may be of several places at the same time.
///
/// # Errors
/// Fails if a file is not a capture, or none of them has traffic. A capture that breaks off is read up to there.
pub fn read<R: Read>(
    inputs: Vec<NamedCapture<R>>,
    options: &CaptureOptions,
) -> Result<CaptureFound, CaptureError> {
    let names = inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut merged = MergedCaptures::new(inputs, options.decapsulate)?;
    let is_simulated = merged.is_simulated();
    let class_by =
        options.class.unwrap_or(if is_simulated { CaptureClassBy::One } else { CaptureClassBy::Port });
    let mut importer = Importer {
        hosts: CapturedHosts::new(options.hosts_max),
        conversations: Conversations::new(options.conversations_max),
        collected: Collected::new(class_by, options),
        made_up: is_simulated,
    };
    let (mut first, mut last) = (None, Time::ZERO);
    while let Some(frame) = merged.next() {
        first.get_or_insert(frame.time);
        last = last.max(frame.time);
        importer.frame(&frame);
        if importer.collected.is_full() {
            break;
        }
    }
    let Some(first) = first else { return Err(CaptureError::Empty { names }) };
    let Importer { hosts, mut conversations, mut collected, .. } = importer;
    conversations.finish(|conversation| conversation.end_of_capture(last, &mut collected));
    if collected.is_silent() {
        return Err(CaptureError::Silent { names, packets: merged.packets(), cut: merged.cut_text() });
    }
    let mut notes = merged.notes();
    notes.extend(hosts.notes());
    let range = first..last;
    let peak = conversations.peak();
    let (found, compared) = summary::summarise(collected, &hosts, range, notes, options);
    Ok(CaptureFound { found, compared, conversations_peak: peak })
}

/// The state of an import: the hosts, the conversations under way, and their messages so far.
struct Importer {
    hosts: CapturedHosts,
    conversations: Conversations,
    collected: Collected,
    /// Plimsoll has made the ports up.
    made_up: bool,
}

impl Importer {
    fn frame(&mut self, frame: &Frame) {
        let is_datagram = frame.datagram.is_some();
        let ports = match (&frame.segment, &frame.datagram) {
            (Some(segment), _) => segment.ports,
            (None, Some(datagram)) => datagram.ports,
            (None, None) if frame.is_cut => return,
            (None, None) => return self.collected.leave_out_frame(),
        };
        let number = |hosts: &mut CapturedHosts, address: Address| hosts.number(address);
        let (source, destination) =
            (number(&mut self.hosts, frame.source), number(&mut self.hosts, frame.destination));
        let (Some(source), Some(destination)) = (source, destination) else { return };
        if source == destination {
            return self.collected.leave_out_frame();
        }
        let (from, to) = (End { host: source, port: ports.0 }, End { host: destination, port: ports.1 });
        let opens = frame.segment.is_none_or(|segment| segment.syn || segment.payload > 0);
        let (collected, made_up) = (&mut self.collected, self.made_up);
        let conversation = self.conversations.get(
            Endpoints::new(is_datagram, from, to),
            opens,
            || ClassOf::new(frame, from, to, made_up),
            collected,
        );
        let Some(conversation) = conversation else { return };
        match (&frame.segment, &frame.datagram) {
            (Some(segment), _) => conversation.on_segment(from, segment, frame, collected),
            (None, Some(datagram)) => conversation.on_datagram(from, *datagram, frame, collected),
            (None, None) => {}
        }
    }
}
