//! Memory is bounded, and damaged captures are read up to the damage.

use std::io::{self, Read};

use plimsoll_import::Remark;
use plimsoll_import::capture::{CaptureError, CaptureOptions, read};

use crate::made::{ACK, Tape, exchanges, flows, input, notes};

/// A capture of `of` connections, each with a request and a response and without an end, made while it is read.
struct Long {
    made: Vec<u8>,
    read: usize,
    connections: u32,
    of: u32,
}

impl Read for Long {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.made.len() && self.connections < self.of {
            let number = self.connections;
            let (from, port) = (1 + (number / 60_000) as u8, 1_024 + (number % 60_000) as u16);
            let (client, server) = ((from, port), (200, 80));
            let us = u64::from(number) * 10;
            let mut tape = Tape::new();
            tape.file.clear();
            tape.tcp(us, (client, server), ACK, (1, 1), 100).tcp(
                us + 5,
                (server, client),
                ACK,
                (1, 101),
                200,
            );
            tape.tcp(us + 6, (client, server), ACK, (101, 201), 0);
            (self.made, self.read) = (tape.file, 0);
            self.connections += 1;
        }
        let bytes = into.len().min(self.made.len() - self.read);
        into[..bytes].copy_from_slice(&self.made[self.read..][..bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}

fn long(of: u32) -> Long {
    Long { made: Tape::new().file, read: 0, connections: 0, of }
}

#[test]
fn conversations_under_way_are_bounded() {
    let options = CaptureOptions { conversations_max: 1_000, ..CaptureOptions::default() };
    let found = read(vec![input("long", long(20_000))], &options).unwrap();
    assert_eq!(found.conversations_peak, 2_000);
    // The evicted conversations are whole.
    assert_eq!(exchanges(&found.found).len(), 20_000);
    assert_eq!(flows(&found.found).len(), 0);
}

#[test]
fn the_number_of_messages_is_bounded() {
    let options = CaptureOptions { conversations_max: 10, messages_max: 5_000, ..CaptureOptions::default() };
    let found = read(vec![input("long", long(20_000))], &options).unwrap();
    assert_eq!(exchanges(&found.found).len(), 5_000);
    assert!(notes(&found.found, Remark::Ignored, "--messages-max"), "{:?}", found.found.notes);
}

#[test]
fn hosts_beyond_the_most_are_left_out() {
    let options = CaptureOptions { hosts_max: 2, ..CaptureOptions::default() };
    let found = read(vec![input("long", long(62_000))], &options).unwrap().found;
    assert_eq!((found.hosts.len(), exchanges(&found).len()), (2, 60_000));
    assert!(notes(&found, Remark::Ignored, "of hosts beyond the first 2"), "{:?}", found.notes);
}

fn small() -> Vec<u8> {
    let mut file = Vec::new();
    long(20).read_to_end(&mut file).unwrap();
    file
}

#[test]
fn a_capture_that_breaks_off_is_read_up_to_there() {
    let file = small();
    let found = read(vec![input("cut", &file[..file.len() - 5])], &CaptureOptions::default()).unwrap().found;
    // The last acknowledgement is lost: the last response may go on.
    assert_eq!(exchanges(&found).len(), 19);
    assert!(notes(&found, Remark::Ignored, "cut was read up to a defect: packet 60"), "{:?}", found.notes);
}

#[test]
fn files_without_traffic_are_errors() {
    let error = |file: &[u8]| read(vec![input("x", file)], &CaptureOptions::default()).unwrap_err();
    assert!(matches!(error(b"no capture"), CaptureError::Read { .. }));
    assert!(matches!(error(&Tape::new().file), CaptureError::Empty { .. }));
    let mut silent = Tape::new();
    silent.tcp(0, ((1, 2), (2, 3)), ACK, (1, 1), 0);
    assert!(error(&silent.file).to_string().contains("no requests and no flows in x"));
    // A frame of 154 bytes, of which 40 are captured, 6 of the TCP header.
    let mut cut = Tape::new();
    cut.tcp(0, ((1, 2), (2, 3)), ACK, (1, 1), 100);
    cut.file[24 + 8..24 + 12].copy_from_slice(&40u32.to_le_bytes());
    cut.file.truncate(24 + 16 + 40);
    let error = error(&cut.file).to_string();
    assert!(error.contains("1 packet cut before the end of the TCP or UDP header"), "{error}");
}

/// No bytes of a capture may be a panic, or memory without end.
#[test]
fn damaged_captures_do_no_harm() {
    let file = small();
    for seed in 0..500u64 {
        let mut damaged = file.clone();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..1 + seed % 8 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let place = 24 + state as usize % (damaged.len() - 24);
            damaged[place] = (state >> 32) as u8;
        }
        if let Ok(found) = read(vec![input("damaged", &damaged[..])], &CaptureOptions::default()) {
            assert!(exchanges(&found.found).len() + flows(&found.found).len() > 0, "seed {seed}");
        }
    }
}

/// The captures that the analysis of bursts has once got wrong.
#[test]
fn known_captures_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../bursts/tests/cases");
    let mut read_files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = std::fs::read(entry.unwrap().path()).unwrap();
        let found = read(vec![input("case", &file[..])], &CaptureOptions::default());
        assert!(found.is_ok_and(|found| !found.found.classes.is_empty()) || file.len() < 1_000);
        read_files += 1;
    }
    assert!(read_files >= 5);
}
