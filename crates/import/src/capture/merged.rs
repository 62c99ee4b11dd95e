//! [`MergedCaptures`]: the frames of several captures in the order of their times, on one clock.

use std::io::Read;

use plimsoll_bursts::{Frame, Reader, Skipped};
use plimsoll_text::counted;
use plimsoll_units::Time;

use super::{CaptureError, NamedCapture};
use crate::found::{Note, Remark};

/// Captures that are read side by side.
pub(super) struct MergedCaptures<R> {
    captures: Vec<OpenCapture<R>>,
    decapsulate: bool,
    packets: u64,
    /// Packets that are cut within their headers.
    cut: u64,
}

struct OpenCapture<R> {
    name: String,
    reader: Reader<R>,
    /// The number of its first interface.
    first: u32,
    /// Picoseconds from the earliest zero of all captures to its own.
    later: u64,
    next: Option<Frame>,
    /// Why it was not read to its end.
    ended: Option<String>,
}

/// A capture has fewer interfaces than this.
const INTERFACES: u32 = 65_536;

impl<R: Read> MergedCaptures<R> {
    /// Opens the captures and reads the first frame of each.
    pub(super) fn new(
        inputs: Vec<NamedCapture<R>>,
        decapsulate: bool,
    ) -> Result<MergedCaptures<R>, CaptureError> {
        let mut captures = Vec::new();
        for (number, NamedCapture { name, input }) in (0..).zip(inputs) {
            let reader =
                Reader::new(input).map_err(|error| CaptureError::Read { name: name.clone(), error })?;
            let first = number * INTERFACES;
            let mut capture = OpenCapture { name, reader, first, later: 0, next: None, ended: None };
            capture.advance(decapsulate);
            captures.push(capture);
        }
        let zeros = captures.iter().filter_map(|capture| capture.reader.zero_ps());
        if let Some(earliest) = zeros.min() {
            for capture in &mut captures {
                let later = capture.reader.zero_ps().map_or(0, |zero| zero - earliest);
                capture.later = u64::try_from(later).unwrap_or(0);
            }
        }
        Ok(MergedCaptures { captures, decapsulate, packets: 0, cut: 0 })
    }

    /// Returns whether Plimsoll's simulator or emulator has written a capture.
    pub(super) fn is_simulated(&self) -> bool {
        let interfaces = |capture: &OpenCapture<R>| capture.reader.interfaces().iter().any(|of| of.exact);
        self.captures.iter().any(interfaces)
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns how many packets are cut within their headers, and what to do; empty if none is.
    pub(super) fn cut_text(&self) -> String {
        if self.cut == 0 {
            return String::new();
        }
        format!(
            "{} cut before the end of the TCP or UDP header: capture 96 bytes of each (tcpdump -s 96)",
            counted(self.cut, "packet")
        )
    }

    /// Returns the next frame of all captures.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let ready = self.captures.iter_mut().filter(|capture| capture.next.is_some());
        let capture = ready.min_by_key(|capture| capture.time())?;
        let time = capture.time();
        let frame = capture.next.take()?;
        capture.advance(self.decapsulate);
        self.packets += 1;
        self.cut += u64::from(frame.is_cut);
        Some(Frame { time, ..frame })
    }

    /// Returns the corrections and omissions made while reading.
    pub(super) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut note = |remark, text| notes.push(Note { remark, text });
        note(Remark::Found, counted(self.packets, "packet"));
        if self.cut > 0 {
            note(Remark::Warning, format!("{}; they are ignored", self.cut_text()));
        }
        for OpenCapture { name, reader, ended, .. } in &self.captures {
            let Skipped { unsupported, untimed, jumps, .. } = reader.skipped();
            let found = [
                (unsupported, "packet", "of an unsupported link type"),
                (untimed, "packet", "without a timestamp"),
                (jumps, "jump", "of the clock, each taken for a day"),
            ];
            for (number, noun, what) in found.into_iter().filter(|(number, ..)| *number > 0) {
                note(Remark::Ignored, format!("{name}: {} {what}", counted(number, noun)));
            }
            if let Some(ended) = ended {
                note(Remark::Ignored, format!("{name} was read up to a defect: {ended}"));
            }
        }
        notes
    }
}

impl<R: Read> OpenCapture<R> {
    /// Reads the next frame; a defect ends the capture.
    fn advance(&mut self, decapsulate: bool) {
        match self.reader.next() {
            Ok(captured) => {
                self.next = captured.map(|captured| Frame::decode(&captured, self.first, decapsulate));
            }
            Err(error) => self.ended = Some(error.to_string()),
        }
    }

    /// Returns the time of the next frame on the clock of all captures.
    fn time(&self) -> Time {
        let own = self.next.as_ref().map_or(u64::MAX, |frame| frame.time.as_ps());
        Time::from_ps(own.saturating_add(self.later))
    }
}
