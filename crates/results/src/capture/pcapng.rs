//! Packets as a pcapng file (draft-ietf-opsawg-pcapng): a section header, one interface a port with
//! its name and a resolution of nanoseconds, and one enhanced packet block a packet.
//!
//! Times are nanoseconds, Wireshark's finest unit; the columns of the run keep picoseconds.

use std::io::{self, Write};

use plimsoll_text::printable;
use plimsoll_units::Time;

use super::frame::CapturedHeaders;
use super::{Capture, PacketRecord};

/// Writes packets as they come.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    interfaces: u32,
}

/// Direction of a frame through its interface (section 4.3.1, bits 0 and 1 of the flags).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameDirection {
    /// The interface received the packet.
    Inbound = 1,
    /// The interface sent the packet.
    Outbound = 2,
}

/// Writes all packets that a run has kept.
///
/// # Errors
/// Errors of `out`.
pub fn write(capture: &Capture, out: impl Write) -> io::Result<()> {
    let mut writer = Writer::new(out, capture.ports.iter().map(String::as_str))?;
    for packet in &capture.packets {
        writer.packet(&packet.record())?;
    }
    writer.finish().map(drop)
}

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINK_ETHERNET: u16 = 1;
const OPTION_END: u16 = 0;
const OPTION_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_APPLICATION: u16 = 4;
/// Option of an enhanced packet block: the direction of the frame.
const OPTION_FLAGS: u16 = 2;
/// Timestamps have a resolution of 10^-9 s.
const NANOSECONDS: u8 = 9;

impl<W: Write> Writer<W> {
    /// Starts a capture with these ports as its interfaces.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new<'a>(out: W, ports: impl IntoIterator<Item = &'a str>) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, interfaces: 0 };
        let mut header = Vec::new();
        header.extend(0x1A2B_3C4Du32.to_le_bytes());
        header.extend([1, 0, 0, 0]); // Version 1.0.
        header.extend(u64::MAX.to_le_bytes()); // Length of the section: not known.
        option(&mut header, OPTION_APPLICATION, b"plimsoll");
        option(&mut header, OPTION_END, b"");
        writer.block(SECTION_HEADER, &header)?;
        for port in ports {
            let mut body = Vec::new();
            body.extend(LINK_ETHERNET.to_le_bytes());
            body.extend([0; 2]);
            body.extend(0u32.to_le_bytes()); // No limit on the captured length.
            option(&mut body, OPTION_NAME, printable(port).as_bytes());
            option(&mut body, OPTION_RESOLUTION, &[NANOSECONDS]);
            option(&mut body, OPTION_END, b"");
            writer.block(INTERFACE, &body)?;
            writer.interfaces += 1;
        }
        Ok(writer)
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// Errors of the output; an interface that was not named at the start.
    pub fn packet(&mut self, packet: &PacketRecord<'_>) -> io::Result<()> {
        let frame = CapturedHeaders::of(packet);
        let body = self.enhanced(packet.interface, packet.time, &frame.headers, frame.wire_bytes)?;
        self.block(ENHANCED_PACKET, &body)
    }

    /// Writes a frame as it was on the wire, or its first `bytes` of `wire_bytes`.
    ///
    /// # Errors
    /// Errors of the output; an interface that was not named at the start.
    pub fn frame(
        &mut self,
        interface: u32,
        time: Time,
        direction: FrameDirection,
        bytes: &[u8],
        wire_bytes: u32,
    ) -> io::Result<()> {
        let mut body = self.enhanced(interface, time, bytes, wire_bytes)?;
        option(&mut body, OPTION_FLAGS, &(direction as u32).to_le_bytes());
        option(&mut body, OPTION_END, b"");
        self.block(ENHANCED_PACKET, &body)
    }

    /// An enhanced packet block's body without options.
    fn enhanced(&self, interface: u32, time: Time, bytes: &[u8], wire_bytes: u32) -> io::Result<Vec<u8>> {
        if interface >= self.interfaces {
            let what = format!("packet on interface {interface} of {}", self.interfaces);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let time = time.as_ps() / 1_000;
        let mut body = Vec::with_capacity(40 + bytes.len());
        body.extend(interface.to_le_bytes());
        body.extend(((time >> 32) as u32).to_le_bytes());
        body.extend((time as u32).to_le_bytes());
        body.extend((bytes.len() as u32).to_le_bytes());
        body.extend(wire_bytes.to_le_bytes());
        body.extend(bytes);
        pad(&mut body);
        Ok(body)
    }

    /// Returns the output, flushed.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// `body` must have a length that is a multiple of four.
    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = (body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(body)?;
        self.out.write_all(&length)
    }
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use plimsoll_units::Span;

    use super::*;
    use crate::capture::{CapturedPacket, EcnField, Flags};

    fn packets() -> Vec<PacketRecord<'static>> {
        let data = PacketRecord {
            time: Time::ZERO + Span::from_ns(1_500),
            interface: 0,
            source: 3,
            destination: 0,
            flow: 70_001,
            seq: 1_000,
            ack: Some(101),
            size: 990,
            payload: 950,
            flags: Flags::default(),
            ecn: EcnField::Ce,
            sack: &[],
        };
        let syn = PacketRecord {
            time: Time::ZERO,
            seq: 0,
            ack: None,
            size: 40,
            payload: 0,
            flags: Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            ecn: EcnField::NotEct,
            ..data
        };
        let ack = PacketRecord {
            time: Time::ZERO + Span::from_secs(3_000_000),
            interface: 1,
            source: 0,
            destination: 3,
            seq: 101,
            ack: Some((1 << 32) + 1_950),
            size: 40,
            payload: 0,
            flags: Flags::ECE,
            ecn: EcnField::Ect,
            sack: &[(2_900, 3_850), (4_800, 5_750)],
            ..data
        };
        vec![syn, data, ack]
    }

    fn capture() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), ["tor -> h0", "h0 -> tor"]).unwrap();
        packets().iter().for_each(|packet| writer.packet(packet).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn blocks_chain_up_to_the_end() {
        let bytes = capture();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert!(length.is_multiple_of(4));
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            at += length;
        }
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, INTERFACE, 6, 6, 6]);
    }

    #[test]
    fn a_capture_is_written_packet_by_packet() {
        let kept = Capture {
            ports: vec!["tor -> h0".to_owned(), "h0 -> tor".to_owned()],
            packets: packets().iter().map(CapturedPacket::new).collect(),
        };
        let mut out = Vec::new();
        write(&kept, &mut out).unwrap();
        assert_eq!(out, capture());
    }

    #[test]
    fn an_unknown_interface_is_an_error() {
        let mut writer = Writer::new(Vec::new(), ["a"]).unwrap();
        assert!(writer.packet(&PacketRecord { interface: 1, ..packets()[0] }).is_err());
    }

    #[test]
    fn tshark_reads_the_right_bits() {
        let found = Command::new("tshark").arg("--version").output().is_ok_and(|out| out.status.success());
        if !found {
            plimsoll_testing::skipped!("tshark is not installed");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("capture.pcapng");
        std::fs::write(&file, capture()).unwrap();
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&file).args(["-n", "-T", "fields", "-E", "separator=,", "-E", "aggregator=+"]);
        tshark.args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
        tshark.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
        for field in [
            "frame.interface_name",
            "frame.time_epoch",
            "frame.len",
            "ip.src",
            "ip.dst",
            "ip.dsfield.ecn",
            "ip.checksum.status",
            "tcp.stream",
            "tcp.seq",
            "tcp.ack",
            "tcp.len",
            "tcp.flags.syn",
            "tcp.flags.ack",
            "tcp.flags.ece",
            "tcp.flags.cwr",
            "tcp.options.sack_le",
            "tcp.options.sack_re",
        ] {
            tshark.args(["-e", field]);
        }
        let out = tshark.output().unwrap();
        assert_eq!(
            String::from_utf8(out.stdout).unwrap().lines().collect::<Vec<_>>(),
            [
                "tor -> h0,0.000000000,58,10.0.0.4,10.0.0.1,0,1,0,0,0,0,1,0,1,1,,",
                "tor -> h0,0.000001500,1004,10.0.0.4,10.0.0.1,3,1,0,1001,102,950,0,1,0,0,,",
                "h0 -> tor,3000000.000000000,74,10.0.0.1,10.0.0.4,2,1,0,102,1951,0,0,1,1,0,2901+4801,3851+5751",
            ],
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }

    #[test]
    fn tshark_finds_the_tcp_checksum_right() {
        // It verifies whole packets only, so these have no payload.
        let found = Command::new("tshark").arg("--version").output().is_ok_and(|out| out.status.success());
        if !found {
            plimsoll_testing::skipped!("tshark is not installed");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("capture.pcapng");
        std::fs::write(&file, capture()).unwrap();
        let out = Command::new("tshark")
            .arg("-r")
            .arg(&file)
            .args(["-n", "-o", "tcp.check_checksum:TRUE", "-Y", "tcp.checksum.status == \"Good\""])
            .args(["-T", "fields", "-e", "frame.number"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(out.stdout).unwrap(), "1\n3\n");
    }
}
