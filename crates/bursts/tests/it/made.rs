//! Captures made by hand: frames, and the files around them.

use plimsoll_bursts::{Analyser, Options, Report, analyse};
use plimsoll_units::Span;

/// A frame and its time in nanoseconds.
pub type Stamped = (u64, Vec<u8>);

/// A TCP segment from host `source` to host `destination`, as an Ethernet frame.
#[derive(Clone, Copy)]
pub struct Tcp {
    pub source: u8,
    pub destination: u8,
    pub sequence: u32,
    pub ack: u32,
    pub flags: u8,
    pub payload: usize,
    pub window: u16,
    /// The identification of IPv4.
    pub id: u16,
}

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// A segment of data from host 1 to host 2.
pub const DATA: Tcp =
    Tcp { source: 1, destination: 2, sequence: 1, ack: 1, flags: ACK, payload: 1_460, window: 0xffff, id: 0 };

impl Tcp {
    pub fn segment(&self) -> Vec<u8> {
        let mut tcp = vec![0, 80, 0, 80];
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([0x50, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.resize(20 + self.payload, 0xaa);
        tcp
    }

    pub fn ipv4(&self) -> Vec<u8> {
        let tcp = self.segment();
        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend(self.id.to_be_bytes());
        ip.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, self.source, 10, 0, 0, self.destination]);
        ip.extend(tcp);
        ip
    }

    pub fn ipv6(&self) -> Vec<u8> {
        let tcp = self.segment();
        let mut ip = vec![0x60, 0, 0, 0];
        ip.extend((tcp.len() as u16).to_be_bytes());
        ip.extend([6, 64]);
        for host in [self.source, self.destination] {
            ip.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        ip.extend(tcp);
        ip
    }

    /// An Ethernet frame with these tags, each an EtherType and a VLAN.
    pub fn frame_with(&self, tags: &[u16], is_v6: bool) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, self.destination, 2, 0, 0, 0, 0, self.source];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 7]);
        }
        let (kind, ip): (u16, _) = if is_v6 { (0x86dd, self.ipv6()) } else { (0x0800, self.ipv4()) };
        frame.extend(kind.to_be_bytes());
        frame.extend(ip);
        frame
    }

    pub fn frame(&self) -> Vec<u8> {
        self.frame_with(&[], false)
    }
}

/// The variants of a capture file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Form {
    pub is_pcapng: bool,
    pub is_big: bool,
    /// The ticks a second: a power of ten.
    pub decimals: u32,
    pub link: u32,
    /// The most bytes kept of a packet.
    pub snap: usize,
}

pub const PCAP: Form = Form { is_pcapng: false, is_big: false, decimals: 9, link: 1, snap: 65_535 };
pub const PCAPNG: Form = Form { is_pcapng: true, ..PCAP };

impl Form {
    pub fn word(&self, value: u32) -> [u8; 4] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn half(&self, value: u16) -> [u8; 2] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn block(&self, kind: u32, body: &[u8], out: &mut Vec<u8>) {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.word(body.len() as u32 + 12);
        out.extend(self.word(kind));
        out.extend(length);
        out.extend(body);
        out.extend(length);
    }

    /// Returns the file's head: the header, or a section with one interface.
    pub fn head(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.is_pcapng {
            let magic = if self.decimals == 9 { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
            out.extend(self.word(magic));
            out.extend(self.half(2));
            out.extend(self.half(4));
            out.extend([0; 8]);
            out.extend(self.word(self.snap as u32));
            out.extend(self.word(self.link));
            return out;
        }
        let mut section = self.word(0x1a2b_3c4d).to_vec();
        section.extend(self.half(1));
        section.extend(self.half(0));
        section.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &section, &mut out);
        let mut interface = self.half(self.link as u16).to_vec();
        interface.extend([0; 2]);
        interface.extend(self.word(self.snap as u32));
        for (code, value) in [(2, &b"eth0"[..]), (9, &[self.decimals as u8]), (0, &[])] {
            interface.extend(self.half(code));
            interface.extend(self.half(value.len() as u16));
            interface.extend(value);
            interface.resize(interface.len().next_multiple_of(4), 0);
        }
        self.block(1, &interface, &mut out);
        // A block of statistics, which has to be skipped.
        self.block(5, &[0; 12], &mut out);
        out
    }

    pub fn packet(&self, (ns, bytes): &Stamped, out: &mut Vec<u8>) {
        let kept = &bytes[..bytes.len().min(self.snap)];
        let at = ns + 1_700_000_000 * 1_000_000_000;
        let (captured, length) = (self.word(kept.len() as u32), self.word(bytes.len() as u32));
        if !self.is_pcapng {
            let fraction = at % 1_000_000_000 / 10u64.pow(9 - self.decimals);
            out.extend(self.word((at / 1_000_000_000) as u32));
            out.extend(self.word(fraction as u32));
            out.extend(captured);
            out.extend(length);
            out.extend(kept);
            return;
        }
        let ticks = at / 10u64.pow(9 - self.decimals);
        let mut body = self.word(0).to_vec();
        body.extend(self.word((ticks >> 32) as u32));
        body.extend(self.word(ticks as u32));
        body.extend(captured);
        body.extend(length);
        body.extend(kept);
        self.block(6, &body, out);
    }

    pub fn file(&self, packets: &[Stamped]) -> Vec<u8> {
        let mut out = self.head();
        packets.iter().for_each(|packet| self.packet(packet, &mut out));
        out
    }
}

/// Analyses a file that is whole.
pub fn report(file: &[u8], options: Options) -> Report {
    let mut analyser = Analyser::new(options);
    analyse(file, &mut analyser).unwrap();
    analyser.finish()
}

/// The segments of one TSO segment of 64 KB, back to back at 10 Gb/s from this time on: 44 of 1,460 bytes.
pub fn tso(start_ns: f64, sequence: u32) -> Vec<Stamped> {
    (0..44u32)
        .map(|number| {
            let segment = Tcp { sequence: sequence.wrapping_add(number * 1_460), ..DATA };
            // 1,514 bytes and 24 more take 1230.4 ns.
            ((start_ns + 1_230.4 * f64::from(number)) as u64, segment.frame())
        })
        .collect()
}

/// Options with this threshold.
pub fn gap_of(ns: u64) -> Options {
    Options { gap: Some(Span::from_ns(ns)), ..Options::default() }
}
