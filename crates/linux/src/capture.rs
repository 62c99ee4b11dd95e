//! [`Capture`]: writes the frames of every host to a pcapng file of its own.
//!
//! A thread of its own writes; frames that it cannot keep up with are left out and counted, so that the fabric never
//! waits for the disk.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use plimsoll_fabric::net::HostId;
use plimsoll_results::capture::pcapng::{Direction, Writer};
use plimsoll_units::Time;

/// The direction of a frame, seen from the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The host has sent it.
    FromHost,
    /// The host receives it.
    ToHost,
}

/// Where frames are captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureTo {
    /// The folder of the files `h0.pcapng`, `h1.pcapng`, ...; it is created if it does not exist.
    pub folder: PathBuf,
    /// The most bytes kept of a frame.
    pub bytes_max: usize,
}

/// Writes the frames of every host to a file.
#[derive(Debug)]
pub struct Capture {
    sender: SyncSender<Kept>,
    writer: JoinHandle<io::Result<()>>,
    bytes_max: usize,
    left_out: u64,
}

#[derive(Debug)]
struct Kept {
    host: HostId,
    at: Time,
    way: Way,
    bytes: Vec<u8>,
    wire_bytes: u32,
}

/// The most frames that wait to be written.
const WAITING_MAX: usize = 16_384;

impl Capture {
    /// Creates the files of `hosts` hosts.
    ///
    /// # Errors
    /// Fails if they cannot be created.
    pub fn start(to: &CaptureTo, hosts: u32) -> io::Result<Capture> {
        fs::create_dir_all(&to.folder)?;
        let mut files = Vec::new();
        for host in 0..hosts {
            let name = format!("h{host}");
            let file = File::create(to.folder.join(format!("{name}.pcapng")))?;
            files.push(Writer::new(BufWriter::new(file), [name.as_str()])?);
        }
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let writer = thread::Builder::new().name("capture".into()).spawn(move || write(files, &receiver))?;
        Ok(Capture { sender, writer, bytes_max: to.bytes_max, left_out: 0 })
    }

    /// Keeps a frame of `host` at `at`, a time of the fabric's clock.
    pub fn keep(&mut self, host: HostId, at: Time, way: Way, frame: &[u8]) {
        let bytes = frame[..frame.len().min(self.bytes_max)].to_vec();
        let kept = Kept { host, at, way, bytes, wire_bytes: frame.len() as u32 };
        match self.sender.try_send(kept) {
            Ok(()) => {}
            // A writer that has failed says why in the end.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.left_out += 1,
        }
    }

    /// Completes the files: the frames that were left out, because the disk was too slow.
    ///
    /// # Errors
    /// Fails if they could not be written.
    pub fn finish(self) -> io::Result<u64> {
        drop(self.sender);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer of captures panicked")))?;
        Ok(self.left_out)
    }
}

fn write(mut files: Vec<Writer<BufWriter<File>>>, frames: &Receiver<Kept>) -> io::Result<()> {
    for Kept { host, at, way, bytes, wire_bytes } in frames {
        let direction = match way {
            Way::FromHost => Direction::Outbound,
            Way::ToHost => Direction::Inbound,
        };
        files[host.0 as usize].frame(0, at, direction, &bytes, wire_bytes)?;
    }
    files.into_iter().try_for_each(|file| file.finish().map(drop))
}
