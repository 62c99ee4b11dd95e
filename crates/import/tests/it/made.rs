//! Captures in nanoseconds of TCP segments and UDP datagrams between hosts 10.0.0.0/24.

use std::io::Read;

use plimsoll_import::capture::{CaptureFound, CaptureOptions, NamedCapture, read};
use plimsoll_import::{ClassTraffic, FoundExchange, FoundFlow, ImportFound, Remark};

pub const SYN: u8 = 2;
pub const ACK: u8 = 0x10;
pub const FIN: u8 = 1;
pub const RST: u8 = 4;

/// An end of a conversation: the last byte of its address, and its port.
pub type End = (u8, u16);

/// A capture in the making.
#[derive(Clone)]
pub struct Tape {
    pub file: Vec<u8>,
    /// The TOS byte of the packets.
    pub tos: u8,
    /// The first bytes of payloads.
    pub payload: Vec<u8>,
    identification: u16,
}

impl Tape {
    pub fn new() -> Tape {
        let words = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32];
        let file = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Tape { file, tos: 0, payload: vec![0; 8], identification: 0 }
    }

    /// Adds a segment at a time in microseconds, of `payload` bytes from `sequence` on.
    pub fn tcp(
        &mut self,
        us: u64,
        ends: (End, End),
        flags: u8,
        numbers: (u32, u32),
        payload: u32,
    ) -> &mut Tape {
        let ((_, from), (_, to)) = ends;
        let mut tcp = Vec::new();
        tcp.extend(from.to_be_bytes());
        tcp.extend(to.to_be_bytes());
        tcp.extend(numbers.0.to_be_bytes());
        tcp.extend(numbers.1.to_be_bytes());
        tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        self.packet(us, ends, 6, tcp, payload)
    }

    /// Adds a datagram of `payload` bytes.
    pub fn udp(&mut self, us: u64, ends: (End, End), payload: u32) -> &mut Tape {
        let ((_, from), (_, to)) = ends;
        let mut udp = Vec::new();
        udp.extend(from.to_be_bytes());
        udp.extend(to.to_be_bytes());
        udp.extend((payload as u16 + 8).to_be_bytes());
        udp.extend([0; 2]);
        self.packet(us, ends, 17, udp, payload)
    }

    fn packet(&mut self, us: u64, ends: (End, End), protocol: u8, head: Vec<u8>, payload: u32) -> &mut Tape {
        self.identification = self.identification % u16::MAX + 1;
        let total = 20 + head.len() as u32 + payload;
        let mut frame = vec![2, 0, 0, 0, 0, ends.1.0, 2, 0, 0, 0, 0, ends.0.0, 8, 0, 0x45, self.tos];
        frame.extend((total as u16).to_be_bytes());
        frame.extend(self.identification.to_be_bytes());
        frame.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, ends.0.0, 10, 0, 0, ends.1.0]);
        frame.extend(head);
        frame.extend(self.payload.iter().take(payload as usize));
        let seconds = 1_700_000_000 + us / 1_000_000;
        for word in [seconds as u32, (us % 1_000_000 * 1_000) as u32, frame.len() as u32, total + 14] {
            self.file.extend(word.to_le_bytes());
        }
        self.file.extend(frame);
        self
    }

    pub fn read(&self) -> CaptureFound {
        self.read_with(&CaptureOptions::default())
    }

    pub fn read_with(&self, options: &CaptureOptions) -> CaptureFound {
        read(vec![input("a.pcap", &self.file[..])], options).unwrap()
    }
}

pub fn input<R: Read>(name: &str, input: R) -> NamedCapture<R> {
    NamedCapture { name: name.to_owned(), input }
}

/// Returns the names of all classes.
pub fn names(found: &ImportFound) -> Vec<&str> {
    found.classes.iter().map(|class| class.name.as_str()).collect()
}

pub fn exchanges(found: &ImportFound) -> Vec<FoundExchange> {
    let of = |traffic: &ClassTraffic| match traffic {
        ClassTraffic::Exchanges(all) => all.clone(),
        _ => Vec::new(),
    };
    found.classes.iter().flat_map(|class| of(&class.traffic)).collect()
}

pub fn flows(found: &ImportFound) -> Vec<FoundFlow> {
    let of = |traffic: &ClassTraffic| match traffic {
        ClassTraffic::Flows(all) => all.clone(),
        _ => Vec::new(),
    };
    found.classes.iter().flat_map(|class| of(&class.traffic)).collect()
}

/// Returns whether a note of this kind has these words.
pub fn notes(found: &ImportFound, remark: Remark, words: &str) -> bool {
    found.notes.iter().any(|note| note.remark == remark && note.text.contains(words))
}
