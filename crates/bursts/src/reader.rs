//! [`Reader`]: the packets of a pcap or pcapng stream, one at a time, in bounded memory.
//!
//! `pcap-parser` parses file headers and blocks; the four words before each packet of a pcap file are parsed here. The
//! buffer is our own, because a reader must report the byte at which a file breaks off, and must not allocate the size
//! in a length field before the bytes are there.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::Range;

use pcap_parser::nom::Err as Parse;
use pcap_parser::pcapng::{self, Block};
use pcap_parser::{PcapHeader, parse_pcap_header};
use plimsoll_units::{Span, Time};

use crate::link::{LINK_TYPES, LinkLayer};

/// The most bytes of a record or block. The largest snap length in use is 256 KiB; blocks of secrets or names are
/// shorter than a few MiB.
pub const BLOCK_BYTES_MAX: usize = 16 << 20;

/// The most interfaces of one capture.
const INTERFACES_MAX: usize = 65_536;

/// The number of bytes that one call requests from the input.
const CHUNK: usize = 1 << 20;

/// Timestamps count from this long before the first packet, so that packets which are out of order have a time too.
const BEFORE_FIRST_PS: i128 = 3_600 * PS_PER_SECOND;
const PS_PER_SECOND: i128 = 1_000_000_000_000;
const DAY_PS: i128 = 86_400 * PS_PER_SECOND;
/// The last time that a [`Time`] holds with room for a frame's own, 213 days.
const LAST_PS: i128 = u64::MAX as i128 - PS_PER_SECOND;

/// A packet as the capture has it.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The number of the packet in its file, from 1.
    pub number: u64,
    /// The time since an hour before the first packet of the file. A jump of the clock beyond the range of [`Time`]
    /// counts as a day ([`Skipped::jumps`]).
    pub time: Time,
    /// The index of the interface.
    pub interface: u32,
    /// The length of the packet before it was cut to the snap length, in bytes, without the frame check sequence.
    pub length: u32,
    /// The kind of the outermost header.
    pub(crate) link: LinkLayer,
    /// The bytes that were captured.
    pub data: &'a [u8],
}

impl<'a> Captured<'a> {
    /// Returns a packet that begins with an Ethernet header, from another source than a capture file.
    pub fn ethernet(number: u64, time: Time, length: u32, data: &'a [u8]) -> Captured<'a> {
        Captured { number, time, interface: 0, length, link: LinkLayer::Ethernet, data }
    }
}

/// An interface of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The name, where the capture has one.
    pub name: Option<String>,
    /// The resolution of timestamps that the capture declares.
    pub tick: Span,
    /// Whether Plimsoll wrote the capture, whose simulated clock is exact.
    pub exact: bool,
    link: Result<LinkLayer, u32>,
    /// The bytes of the frame check sequence at the end of each packet.
    fcs: u32,
    snap: u32,
    /// Ticks a second, the picoseconds of one if they are whole, and seconds to add.
    per_second: u128,
    ps_per_tick: Option<u64>,
    offset: i64,
}

/// Deviations that a reader met and corrected or left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    /// The number of packets that were left out, since their interface has an unsupported link type.
    pub unsupported: u64,
    /// These link types, ascending.
    pub link_types: BTreeSet<u32>,
    /// The number of packets that were left out, since they have no timestamp (simple packet blocks).
    pub untimed: u64,
    /// The number of packets whose time is more than an hour before the first packet's or more than 213 days after it.
    /// Each is taken for one day after the packet before it, and the following ones keep their distance from it.
    pub jumps: u64,
}

/// A capture cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum ReadError {
    #[error(
        "not a packet capture: it starts with the bytes {found}; allowed: pcap (microseconds or nanoseconds) and \
         pcapng, in either byte order, uncompressed"
    )]
    NotACapture { found: String },
    #[error("an empty file is no packet capture; allowed: pcap and pcapng")]
    Empty,
    #[error(
        "packet {packet}, byte offset {offset}: link type {link} is not supported; allowed: {LINK_TYPES}"
    )]
    LinkType { packet: u64, offset: u64, link: u32 },
    #[error(
        "packet {packet}, byte offset {offset}: no packet has a timestamp, so there are no gaps; allowed: enhanced \
         packet blocks (type 6) and packet blocks (type 2), and simple ones (type 3) beside them"
    )]
    Untimed { packet: u64, offset: u64 },
    #[error(
        "packet {packet}, byte offset {offset}: the capture ends within a {what} of {wanted} bytes ({has} are there)"
    )]
    Truncated { packet: u64, offset: u64, what: &'static str, wanted: u64, has: u64 },
    #[error("packet {packet}, byte offset {offset}: {what}")]
    Damaged { packet: u64, offset: u64, what: String },
    #[error("packet {packet}, byte offset {offset}: cannot read the capture: {error}")]
    Io { packet: u64, offset: u64, error: io::Error },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// Records; `modified` ones have eight bytes more in their headers.
    Pcap { big: bool, modified: bool },
    /// The blocks of a pcapng section.
    Pcapng { big: bool },
}

/// Reads packets from a stream.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    /// The unread bytes of the buffer.
    from: usize,
    until: usize,
    /// The place of `from` in the stream.
    offset: u64,
    /// The number of packets that were read.
    packets: u64,
    ended: bool,
    format: Format,
    interfaces: Vec<Interface>,
    /// The index in `interfaces` of the current section's first.
    section: usize,
    exact: bool,
    clock: Clock,
    skipped: Skipped,
}

/// Turns the stamps of a capture into times.
#[derive(Debug, Default)]
struct Clock {
    /// The number added to a stamp, in ps; `None` before the first packet.
    shift: Option<i128>,
    /// The stamp that is time zero for the first packet.
    zero: Option<i128>,
    /// The last time, in ps.
    last: i128,
    jumps: u64,
}

impl Clock {
    fn time(&mut self, at: i128) -> Time {
        let shift = *self.shift.get_or_insert(BEFORE_FIRST_PS - at);
        self.zero.get_or_insert(at - BEFORE_FIRST_PS);
        let mut time = at + shift;
        if !(0..=LAST_PS).contains(&time) {
            self.jumps += 1;
            // If too many of them have used the range up, the clock begins anew.
            let next = self.last + DAY_PS;
            let next = if next > LAST_PS { BEFORE_FIRST_PS } else { next };
            self.shift = Some(next - at);
            time = next;
        }
        self.last = time;
        Time::from_ps(time as u64)
    }
}

impl<R: Read> Reader<R> {
    /// Reads the head of a capture.
    ///
    /// # Errors
    /// Returns an error if the input is not a capture.
    pub fn new(input: R) -> Result<Reader<R>, ReadError> {
        let mut reader = Reader {
            input,
            buffer: vec![0; CHUNK],
            from: 0,
            until: 0,
            offset: 0,
            packets: 0,
            ended: false,
            format: Format::Pcapng { big: false },
            interfaces: Vec::new(),
            section: 0,
            exact: false,
            clock: Clock::default(),
            skipped: Skipped::default(),
        };
        let has = reader.fill(4)?;
        if has == 0 {
            return Err(ReadError::Empty);
        }
        if has >= 4 && reader.unread()[..4] == SECTION_MAGIC {
            return Ok(reader);
        }
        if has < 4 || !PCAP_MAGICS.contains(&word(reader.unread(), 0, false)) {
            let found = reader.unread()[..has.min(4)].iter().map(|byte| format!("{byte:02x}"));
            return Err(ReadError::NotACapture { found: found.collect::<Vec<_>>().join(" ") });
        }
        reader.need(PCAP_HEADER, "file header")?;
        let header = match parse_pcap_header(&reader.buffer[reader.from..reader.until]) {
            Ok((_, header)) => header,
            Err(_) => return Err(reader.damaged("the file header cannot be read".to_owned())),
        };
        reader.begin_pcap(&header);
        reader.consume(PCAP_HEADER);
        Ok(reader)
    }

    /// Returns the interfaces that the capture has described so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns the stamp at which the times of this capture are zero, in picoseconds since the Epoch; `None` before the
    /// first packet. A jump of the clock leaves it.
    pub fn zero_ps(&self) -> Option<i128> {
        self.clock.zero
    }

    /// Returns the deviations so far, with the number of the clock's jumps.
    pub fn skipped(&self) -> Skipped {
        Skipped { jumps: self.clock.jumps, ..self.skipped.clone() }
    }

    /// Returns the next packet, or `None` at the end. Packets of a pcapng capture that cannot be analysed are left out
    /// and counted ([`Reader::skipped`]).
    ///
    /// # Errors
    /// Returns an error if the capture ends within a packet, is damaged, cannot be read, or has no packet of a
    /// supported link type.
    #[allow(clippy::should_implement_trait, reason = "the packet borrows the reader's buffer")]
    pub fn next(&mut self) -> Result<Option<Captured<'_>>, ReadError> {
        match self.format {
            Format::Pcap { big, modified } => self.next_record(big, modified),
            Format::Pcapng { .. } => self.next_block(),
        }
    }

    fn begin_pcap(&mut self, header: &PcapHeader) {
        let big = header.is_bigendian();
        self.format = Format::Pcap { big, modified: header.is_modified_format() };
        // The upper bits say whether packets have a frame check sequence, and of how many 16-bit words.
        let network = header.network.0 as u32;
        let fcs = if network & 0x0400_0000 != 0 { (network >> 28) * 2 } else { 0 };
        let per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
        self.interfaces = vec![Interface {
            name: None,
            tick: Span::from_ps(PS_PER_SECOND as u64 / per_second),
            exact: false,
            link: LinkLayer::of(network & 0xffff),
            fcs,
            snap: header.snaplen,
            per_second: u128::from(per_second),
            ps_per_tick: Some(PS_PER_SECOND as u64 / per_second),
            offset: 0,
        }];
    }

    fn next_record(&mut self, big: bool, modified: bool) -> Result<Option<Captured<'_>>, ReadError> {
        let head = if modified { 24 } else { 16 };
        if self.fill(head)? == 0 {
            return Ok(None);
        }
        self.need(head, "record header")?;
        let captured = word(self.unread(), 8, big) as usize;
        if captured > BLOCK_BYTES_MAX {
            return Err(self.damaged(format!(
                "a record claims {captured} captured bytes; allowed: at most {BLOCK_BYTES_MAX}"
            )));
        }
        let length = head + captured;
        self.need(length, "record")?;
        let at = self.from;
        let (packet, offset) = (self.packets + 1, self.offset);
        let interface = &self.interfaces[0];
        let (link, fcs, tick) = (interface.link, interface.fcs, interface.tick);
        let link = link.map_err(|link| ReadError::LinkType { packet, offset, link })?;
        self.consume(length);
        self.packets = packet;
        // The eight further bytes of the modified format are between the header and the data.
        let bytes = &self.buffer[at..at + length];
        let (seconds, ticks, length) = (word(bytes, 0, big), word(bytes, 4, big), word(bytes, 12, big));
        let at = i128::from(seconds) * PS_PER_SECOND + i128::from(ticks) * i128::from(tick.as_ps());
        let time = self.clock.time(at);
        Ok(Some(captured_of(packet, time, 0, link, fcs, length, &bytes[head..])))
    }

    fn next_block(&mut self) -> Result<Option<Captured<'_>>, ReadError> {
        loop {
            if self.fill(12)? == 0 {
                return self.nothing_supported().map_or(Ok(None), Err);
            }
            self.need(12, "block")?;
            if self.unread()[..4] == SECTION_MAGIC {
                self.begin_section()?;
            }
            let Format::Pcapng { big } = self.format else { return Ok(None) };
            let length = word(self.unread(), 4, big) as usize;
            if !(12..=BLOCK_BYTES_MAX).contains(&length) || !length.is_multiple_of(4) {
                return Err(self.damaged(format!(
                    "a block claims {length} bytes; allowed: multiples of 4 from 12 to {BLOCK_BYTES_MAX}"
                )));
            }
            self.need(length, "block")?;
            let kind = word(self.unread(), 0, big);
            if kind == ENHANCED || kind == OBSOLETE {
                let Some(packet) = self.packet(kind, length, big)? else { continue };
                // Borrowed anew, since a loop cannot return a value that its next round may borrow.
                let at = self.from - length;
                let bytes = &self.buffer[at + packet.data.start..at + packet.data.end];
                let Packet { time, interface, link, fcs, length, .. } = packet;
                return Ok(Some(captured_of(self.packets, time, interface, link, fcs, length, bytes)));
            }
            if kind == SIMPLE {
                self.skipped.untimed += 1;
                self.packets += 1;
            }
            match kind {
                SECTION | INTERFACE => self.described(length, big)?,
                _ => self.check_end(length, big)?,
            }
            self.consume(length);
        }
    }

    /// Reads the byte order of a section, on which the length of its first block depends.
    fn begin_section(&mut self) -> Result<(), ReadError> {
        let big = match word(self.unread(), 8, true) {
            0x1A2B_3C4D => true,
            0x4D3C_2B1A => false,
            other => {
                let what =
                    format!("a section has the byte-order magic {other:08x}; allowed: 1a2b3c4d, 4d3c2b1a");
                return Err(self.damaged(what));
            }
        };
        self.format = Format::Pcapng { big };
        self.section = self.interfaces.len();
        Ok(())
    }

    /// Reads the block of a section or an interface.
    fn described(&mut self, length: usize, big: bool) -> Result<(), ReadError> {
        let bytes = &self.buffer[self.from..self.from + length];
        let parsed = if big { pcapng::parse_block_be(bytes) } else { pcapng::parse_block_le(bytes) };
        let found = match parsed {
            Ok((_, Block::SectionHeader(section))) => {
                let names = section.options.iter().filter(|option| option.code.0 == OPTION_APPLICATION);
                Ok(Err(names.filter_map(|option| option.as_bytes().ok()).any(|name| name == b"plimsoll")))
            }
            Ok((_, Block::InterfaceDescription(found))) => {
                let name = found.if_name().and_then(Result::ok).map(str::to_owned);
                let fcs = found.options.iter().find(|option| option.code.0 == OPTION_FCS);
                let fcs = fcs.and_then(|option| option.value.first()).map_or(0, |bytes| u32::from(*bytes));
                let offset = if big { found.if_tsoffset.swap_bytes() } else { found.if_tsoffset };
                let link = found.linktype.0 as u32;
                resolution(found.if_tsresol).map(|per_second| {
                    Ok(Interface {
                        name,
                        tick: Span::from_ps((PS_PER_SECOND as u128).div_ceil(per_second) as u64),
                        exact: self.exact,
                        link: LinkLayer::of(link),
                        fcs,
                        snap: found.snaplen,
                        per_second,
                        ps_per_tick: (PS_PER_SECOND as u128)
                            .is_multiple_of(per_second)
                            .then_some((PS_PER_SECOND as u128 / per_second) as u64),
                        offset,
                    })
                })
            }
            Ok(_) | Err(Parse::Incomplete(_) | Parse::Error(_) | Parse::Failure(_)) => {
                Err("the description of a section or an interface cannot be read".to_owned())
            }
        };
        match found {
            Ok(Ok(interface)) if self.interfaces.len() < INTERFACES_MAX => self.interfaces.push(interface),
            Ok(Ok(_)) => return Err(self.damaged(format!("more than {INTERFACES_MAX} interfaces"))),
            Ok(Err(exact)) => self.exact = exact,
            Err(what) => return Err(self.damaged(what)),
        }
        Ok(())
    }

    /// Checks the length at the end of a block.
    fn check_end(&mut self, length: usize, big: bool) -> Result<(), ReadError> {
        let again = word(self.unread(), length - 4, big) as usize;
        if again != length {
            return Err(self.damaged(format!("a block of {length} bytes has the length {again} at its end")));
        }
        Ok(())
    }

    /// Reads a block with a packet and consumes it; `None` if its link type is not supported.
    fn packet(&mut self, kind: u32, length: usize, big: bool) -> Result<Option<Packet>, ReadError> {
        let (packet, offset, at) = (self.packets + 1, self.offset, self.from);
        let damaged = |what: String| ReadError::Damaged { packet, offset, what };
        self.check_end(length, big)?;
        let bytes = &self.buffer[at..at + length];
        if length < PACKET_HEAD + 4 {
            return Err(damaged("the packet's block cannot be read".to_owned()));
        }
        // The obsolete block has the number of drops in the upper half of the first word.
        let number = match (kind, big) {
            (ENHANCED, _) => word(bytes, 8, big),
            (_, true) => word(bytes, 8, big) >> 16,
            (_, false) => word(bytes, 8, big) & 0xffff,
        };
        let ticks = u64::from(word(bytes, 12, big)) << 32 | u64::from(word(bytes, 16, big));
        let (captured, length_on_wire) = (word(bytes, 20, big) as usize, word(bytes, 24, big));
        if captured > length - PACKET_HEAD - 4 {
            return Err(damaged("a packet is longer than its block".to_owned()));
        }
        let index = self.section + number as usize;
        let interface = self.interfaces.get(index).ok_or_else(|| {
            damaged(format!(
                "a packet of interface {number}; its section has {}",
                self.interfaces.len() - self.section
            ))
        })?;
        self.packets = packet;
        let link = match interface.link {
            Ok(link) => link,
            Err(link) => {
                self.skipped.unsupported += 1;
                self.skipped.link_types.insert(link);
                self.consume(length);
                return Ok(None);
            }
        };
        let fcs = interface.fcs;
        // At most 2^64 ticks of 10^12 ps, which an i128 holds.
        let time = match interface.ps_per_tick {
            Some(ps) => u128::from(ticks) * u128::from(ps),
            None => u128::from(ticks) * PS_PER_SECOND as u128 / interface.per_second,
        };
        let time = self.clock.time(time as i128 + i128::from(interface.offset) * PS_PER_SECOND);
        self.consume(length);
        let data = PACKET_HEAD..PACKET_HEAD + captured;
        Ok(Some(Packet { time, interface: index as u32, link, fcs, length: length_on_wire, data }))
    }

    /// Returns the error of a capture that has packets, none of which can be analysed.
    fn nothing_supported(&self) -> Option<ReadError> {
        let Skipped { unsupported, untimed, .. } = self.skipped;
        if self.packets == 0 || unsupported + untimed < self.packets {
            return None;
        }
        let (packet, offset) = (self.packets, self.offset);
        Some(match self.skipped.link_types.first() {
            Some(&link) => ReadError::LinkType { packet, offset, link },
            None => ReadError::Untimed { packet, offset },
        })
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.from..self.until]
    }

    fn consume(&mut self, bytes: usize) {
        self.from += bytes;
        self.offset += bytes as u64;
    }

    fn damaged(&self, what: String) -> ReadError {
        ReadError::Damaged { packet: self.packets + 1, offset: self.offset, what }
    }

    /// Reads until at least this many bytes are in the buffer, or the input ends; returns their number. The buffer
    /// grows only as bytes arrive.
    #[inline]
    fn fill(&mut self, wanted: usize) -> Result<usize, ReadError> {
        if self.until - self.from < wanted && !self.ended {
            self.refill(wanted)?;
        }
        Ok(self.until - self.from)
    }

    #[cold]
    fn refill(&mut self, wanted: usize) -> Result<(), ReadError> {
        self.buffer.copy_within(self.from..self.until, 0);
        self.until -= self.from;
        self.from = 0;
        while self.until < wanted {
            if self.until == self.buffer.len() {
                self.buffer.resize(self.buffer.len() + CHUNK, 0);
            }
            match self.input.read(&mut self.buffer[self.until..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(more) => self.until += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(ReadError::Io { packet: self.packets + 1, offset: self.offset, error });
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn need(&mut self, wanted: usize, what: &'static str) -> Result<(), ReadError> {
        let has = self.fill(wanted)?;
        if has >= wanted {
            return Ok(());
        }
        let (packet, offset) = (self.packets + 1, self.offset);
        Err(ReadError::Truncated { packet, offset, what, wanted: wanted as u64, has: has as u64 })
    }
}

/// A packet of a block that was consumed.
struct Packet {
    time: Time,
    interface: u32,
    link: LinkLayer,
    fcs: u32,
    length: u32,
    /// The place of the captured bytes in the block.
    data: Range<usize>,
}

/// Removes the frame check sequence from a packet.
fn captured_of(
    number: u64,
    time: Time,
    interface: u32,
    link: LinkLayer,
    fcs: u32,
    length: u32,
    data: &[u8],
) -> Captured<'_> {
    let length = length.max(data.len() as u32).saturating_sub(fcs);
    let data = &data[..data.len().min(length as usize)];
    Captured { number, time, interface, length, link, data }
}

/// Returns the ticks a second of an `if_tsresol` (section 4.2 of the pcapng draft).
fn resolution(value: u8) -> Result<u128, String> {
    let power = u32::from(value & 0x7f);
    let ticks = if value & 0x80 == 0 { 10u128.checked_pow(power) } else { 1u128.checked_shl(power) };
    // Finer than any 64-bit stamp can count a second in; also keeps the arithmetic within 128 bits.
    ticks.filter(|ticks| *ticks <= 1 << 63).ok_or_else(|| {
        format!("an interface has the timestamp resolution {value:#04x}; allowed: up to 10^-18 or 2^-63 s")
    })
}

#[inline]
fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

const PCAP_HEADER: usize = 24;
/// The magics as little-endian words: microseconds, nanoseconds, modified; then the swapped ones.
const PCAP_MAGICS: [u32; 5] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34, 0xd4c3_b2a1, 0x4d3c_b2a1];
const SECTION_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE: u32 = 2;
/// The bytes of a packet's block before the captured ones.
const PACKET_HEAD: usize = 28;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;
/// The application's name in a section header, and the length of the check sequence in an interface description.
const OPTION_APPLICATION: u16 = 4;
const OPTION_FCS: u16 = 13;
