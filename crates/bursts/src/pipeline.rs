//! [`analyse`]: reads and decodes a capture on one thread, and analyses its frames on another.
//!
//! Reading and analysing each take half of the time for a capture of headers. Batches of frames are sent to the other
//! thread in the order of the capture and return to be filled again, so memory is bounded and the report is the same as
//! with one thread. Short captures, and the beginning of long ones, are analysed on the reading thread.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::analyser::Analyser;
use crate::frame::Frame;
use crate::reader::{Interface, ReadError, Reader};

/// Frames in their order, and the interfaces that the capture has described since the batch before.
#[derive(Default)]
struct FrameBatch {
    /// The number of the first of these interfaces.
    first: u32,
    interfaces: Vec<Interface>,
    frames: Vec<Frame>,
}

/// The frames that are analysed where they are read.
const ALONE: usize = 16_384;
/// Frames of a batch, about 400 KB.
const BATCH: usize = 4_096;
/// Batches between the threads.
const BATCHES: usize = 3;

/// Reads a whole capture into an analyser. Frames before an error have been analysed.
///
/// # Errors
/// Returns an error that names the packet and the byte offset at which the capture cannot be read on.
pub fn analyse(input: impl Read, analyser: &mut Analyser) -> Result<(), ReadError> {
    let reader = Reader::new(input)?;
    let decapsulate = analyser.options().decapsulate;
    let first = analyser.begin_capture();
    let mut source = Source { reader, decapsulate, first, known: 0, held: None };
    let result = source.analyse_all(analyser);
    analyser.skipped(&source.reader.skipped());
    result
}

impl<R: Read> Source<R> {
    fn analyse_all(&mut self, analyser: &mut Analyser) -> Result<(), ReadError> {
        if !self.analyse(ALONE, analyser)? {
            return Ok(());
        }
        let analyses = &mut *analyser;
        let handed_over = thread::scope(|scope| {
            let (full, to_analyse) = sync_channel::<FrameBatch>(BATCHES);
            let (back, empty) = sync_channel::<FrameBatch>(BATCHES);
            (1..BATCHES).for_each(|_| {
                back.send(FrameBatch::default()).expect("the channel has room for all batches")
            });
            let analyse = move || {
                for mut batch in to_analyse {
                    batch.analyse(analyses);
                    // If the channel is closed, the reader has stopped.
                    let _ = back.send(batch);
                }
            };
            thread::Builder::new().spawn_scoped(scope, analyse).ok()?;
            Some(self.hand_over(&full, &empty))
        });
        // Where no thread can be started, this one analyses the rest, too.
        handed_over.unwrap_or_else(|| self.analyse(usize::MAX, analyser).map(drop))
    }
}

impl FrameBatch {
    /// Analyses the frames and leaves the batch empty.
    fn analyse(&mut self, analyser: &mut Analyser) {
        if !self.interfaces.is_empty() {
            analyser.interfaces(self.first, &self.interfaces);
            self.interfaces.clear();
        }
        self.frames.iter().for_each(|frame| analyser.frame(frame));
        self.frames.clear();
    }
}

/// A capture that is read.
struct Source<R> {
    reader: Reader<R>,
    decapsulate: bool,
    /// The number of its first interface, and how many of its interfaces the analyser has.
    first: u32,
    known: usize,
    /// The first frame of a new interface, which begins a batch.
    held: Option<Frame>,
}

impl<R: Read> Source<R> {
    /// Reads at most `most` frames and analyses them on this thread. Returns whether the capture has more.
    fn analyse(&mut self, most: usize, analyser: &mut Analyser) -> Result<bool, ReadError> {
        let mut batch = FrameBatch::default();
        let mut frames = 0;
        while frames < most {
            let result = self.fill(&mut batch, most - frames);
            frames += batch.frames.len();
            batch.analyse(analyser);
            if !result? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fills an empty batch with at most `most` frames, all of interfaces that it or an earlier one describes. Returns
    /// whether the capture has more.
    fn fill(&mut self, batch: &mut FrameBatch, most: usize) -> Result<bool, ReadError> {
        if let Some(frame) = self.held.take() {
            let described = self.reader.interfaces();
            batch.first = self.first + self.known as u32;
            batch.interfaces.extend_from_slice(&described[self.known..]);
            self.known = described.len();
            batch.frames.push(frame);
        }
        while batch.frames.len() < most.min(BATCH) {
            let Some(captured) = self.reader.next()? else { return Ok(false) };
            let is_new = captured.interface as usize >= self.known;
            let frame = Frame::decode(&captured, self.first, self.decapsulate);
            if is_new {
                self.held = Some(frame);
                return Ok(true);
            }
            batch.frames.push(frame);
        }
        Ok(true)
    }

    /// Continues to read, and hands batches to the thread that analyses, until the capture ends.
    fn hand_over(
        &mut self,
        full: &SyncSender<FrameBatch>,
        empty: &Receiver<FrameBatch>,
    ) -> Result<(), ReadError> {
        let mut batch = FrameBatch::default();
        loop {
            let result = self.fill(&mut batch, BATCH);
            // Both fail only where the other thread panics, which the scope passes on.
            if full.send(batch).is_err() {
                return Ok(());
            }
            if !result? {
                return Ok(());
            }
            match empty.recv() {
                Ok(next) => batch = next,
                Err(_) => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Report};

    /// Returns a capture in nanoseconds of `frames` frames, every tenth of another pair, with gaps that vary.
    fn capture(frames: u32) -> Vec<u8> {
        let mut file = Vec::new();
        [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32]
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
        let mut ns = 0;
        for number in 0..frames {
            ns += 1_231 + if number % 7 == 0 { number % 100 * 50 } else { 0 };
            let source = u8::from(number % 10 == 0);
            let frame = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, source, 0x88, 0xb5];
            [ns / 1_000_000_000, ns % 1_000_000_000, 14, 1_514]
                .iter()
                .for_each(|word| file.extend(word.to_le_bytes()));
            file.extend(frame);
        }
        file
    }

    fn of_one_thread(file: &[u8]) -> Report {
        let mut analyser = Analyser::new(Options::default());
        let mut reader = Reader::new(file).expect("it is a capture");
        let first = analyser.begin_capture();
        let mut known = 0;
        while let Ok(Some(captured)) = reader.next() {
            let (interface, frame) = (captured.interface as usize, Frame::decode(&captured, first, false));
            if interface >= known {
                known = reader.interfaces().len();
                analyser.interfaces(first, reader.interfaces());
            }
            analyser.frame(&frame);
        }
        analyser.finish()
    }

    fn text(report: &Report) -> String {
        serde_json::to_string(report).expect("it is an object")
    }

    #[test]
    fn two_threads_report_what_one_does() {
        for frames in [1, 16_384, 16_385, 20_480, 20_481, 60_000] {
            let file = capture(frames);
            let mut analyser = Analyser::new(Options::default());
            analyse(&file[..], &mut analyser).expect("it is whole");
            let report = analyser.finish();
            assert_eq!(report.frames, u64::from(frames));
            assert_eq!(text(&report), text(&of_one_thread(&file)), "{frames}");
        }
    }

    #[test]
    fn what_was_read_before_an_error_is_analysed() {
        let file = capture(30_000);
        let cut = &file[..file.len() - 5];
        let mut analyser = Analyser::new(Options::default());
        let error = analyse(cut, &mut analyser).expect_err("it breaks off").to_string();
        assert!(error.starts_with("packet 30000, byte offset "), "{error}");
        assert_eq!(analyser.finish().frames, 29_999);
    }
}
