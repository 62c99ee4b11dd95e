//! [`FrameCapture`]: writes the frames of every host to a pcapng file of its own.
//!
//! A separate thread writes; frames beyond its speed are left out and counted, so that the fabric never waits for the
//! disk.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use plimsoll_fabric::net::HostId;
use plimsoll_results::capture::pcapng::{FrameDirection, Writer};
use plimsoll_units::Time;

use crate::failure::{failed, start_thread};

/// The direction of a frame, seen from the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The host has sent it.
    FromHost,
    /// The host receives it.
    ToHost,
}

/// The folder in which frames are captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureTo {
    /// The folder of the files `h0.pcapng`, `h1.pcapng`, ...; it is created if it does not exist.
    pub folder: PathBuf,
    /// The most bytes kept of a frame.
    pub bytes_max: usize,
}

/// Writes the frames of every host to a file.
#[derive(Debug)]
pub struct FrameCapture {
    sender: SyncSender<Kept>,
    writer: JoinHandle<io::Result<()>>,
    to: CaptureTo,
    hosts: u32,
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

impl FrameCapture {
    /// Creates the files of `hosts` hosts.
    ///
    /// # Errors
    /// Fails if they cannot be created.
    pub fn start(to: &CaptureTo, hosts: u32) -> io::Result<FrameCapture> {
        let files = files(to, hosts).inspect_err(|_| remove(to, hosts))?;
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let writer = start_thread("a thread that writes captures", move || write(files, &receiver))
            .inspect_err(|_| remove(to, hosts))?;
        Ok(FrameCapture { sender, writer, to: to.clone(), hosts, left_out: 0 })
    }

    /// Keeps a frame of `host` at `at`, a time of the fabric's clock.
    pub fn keep(&mut self, host: HostId, at: Time, way: Way, frame: &[u8]) {
        let bytes = frame[..frame.len().min(self.to.bytes_max)].to_vec();
        let kept = Kept { host, at, way, bytes, wire_bytes: frame.len() as u32 };
        match self.sender.try_send(kept) {
            Ok(()) => {}
            // A writer that has failed reports the reason at the end.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.left_out += 1,
        }
    }

    /// Completes the files: the frames that were left out, because the disk was too slow.
    ///
    /// # Errors
    /// Fails if they could not be written; they are removed then.
    pub fn finish(self) -> io::Result<u64> {
        drop(self.sender);
        let written = self.writer.join();
        let written = written.unwrap_or_else(|_| Err(io::Error::other("the writer of captures panicked")));
        written.inspect_err(|_| remove(&self.to, self.hosts)).map(|()| self.left_out)
    }
}

/// The file of a host, with its path.
type OfHost = (PathBuf, Writer<BufWriter<File>>);

fn path(folder: &Path, host: u32) -> PathBuf {
    folder.join(format!("h{host}.pcapng"))
}

/// Creates a file for each host.
fn files(to: &CaptureTo, hosts: u32) -> io::Result<Vec<OfHost>> {
    fs::create_dir_all(&to.folder).map_err(|error| failed(to.folder.display(), error))?;
    let create = |host| {
        let path = path(&to.folder, host);
        let writer = File::create(&path)
            .and_then(|file| Writer::new(BufWriter::new(file), [format!("h{host}").as_str()]));
        match writer {
            Ok(writer) => Ok((path, writer)),
            Err(error) => Err(failed(path.display(), error)),
        }
    };
    (0..hosts).map(create).collect()
}

/// Removes the files of a capture that failed, and their folder.
fn remove(to: &CaptureTo, hosts: u32) {
    for host in 0..hosts {
        let _ = fs::remove_file(path(&to.folder, host));
    }
    // It stays if other files are in it.
    let _ = fs::remove_dir(&to.folder);
}

fn write(mut files: Vec<OfHost>, frames: &Receiver<Kept>) -> io::Result<()> {
    for Kept { host, at, way, bytes, wire_bytes } in frames {
        let direction = match way {
            Way::FromHost => FrameDirection::Outbound,
            Way::ToHost => FrameDirection::Inbound,
        };
        let (path, file) = &mut files[host.0 as usize];
        file.frame(0, at, direction, &bytes, wire_bytes).map_err(|error| failed(path.display(), error))?;
    }
    files
        .into_iter()
        .try_for_each(|(path, file)| file.finish().map(drop).map_err(|error| failed(path.display(), error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_created_is_named_and_the_others_are_removed() {
        let folder = std::env::temp_dir().join(format!("plimsoll-capture-{}", std::process::id()));
        let in_the_way = path(&folder, 1);
        fs::create_dir_all(&in_the_way).expect("the folder can be made");
        let to = CaptureTo { folder: folder.clone(), bytes_max: 100 };
        let error = FrameCapture::start(&to, 3).expect_err("a folder has the name of a file").to_string();
        assert!(error.starts_with(&format!("{}: ", in_the_way.display())), "{error}");
        assert_eq!(fs::read_dir(&folder).expect("it is not empty").count(), 1);
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
