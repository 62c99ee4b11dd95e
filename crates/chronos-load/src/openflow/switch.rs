//! A switch without its socket: the handshake, packets without a rule, and the match of replies to packet-ins.

use std::collections::VecDeque;

use plimsoll_units::Time;

use super::wire::{MessageKind, NO_BUFFER, PORTS, ProtocolVersion, mac};
use crate::book::Book;

/// The counts of messages from the controller.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct ControllerMessages {
    /// The packet-ins that were answered.
    pub answered: u64,
    /// The flow-mods, which install rules.
    pub flow_mods: u64,
    /// The packet-outs, which send packets.
    pub packet_outs: u64,
    /// The error messages that the controller sent.
    pub errors: u64,
    /// The packet-ins that timed out.
    pub lost: u64,
}

/// A switch without its socket.
#[derive(Debug)]
pub struct Switch {
    version: ProtocolVersion,
    datapath: u64,
    /// The number of source addresses of its packets.
    macs: u64,
    /// Whether packet-ins name a buffer, which replies name too.
    buffered: bool,
    /// Whether the controller has requested the switch's features.
    pub is_ready: bool,
    /// The bytes that wait to be sent to the controller.
    pub out: Vec<u8>,
    input: Vec<u8>,
    /// The send time of each packet-in without an answer; none for an answered one between them.
    pending: VecDeque<Option<Time>>,
    /// The number of the first packet-in in `pending`.
    first: u64,
    packet: [u8; PACKET_BYTES],
}

impl Switch {
    /// Creates a switch that has sent its hello. `macs` is 2 or more.
    pub fn new(version: ProtocolVersion, datapath: u64, macs: u64, buffered: bool) -> Switch {
        let mut out = Vec::new();
        version.hello(&mut out);
        let mut packet = [0; PACKET_BYTES];
        // The packet is UDP over IPv4 from 10.0.0.1 to 10.0.0.2, with 46 bytes.
        packet[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
        packet[16..24].copy_from_slice(&[0, 46, 0, 0, 0, 0, 64, 17]);
        packet[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[38..40].copy_from_slice(&[0, 26]);
        Switch {
            version,
            datapath,
            macs,
            buffered,
            is_ready: false,
            out,
            input: Vec::new(),
            pending: VecDeque::new(),
            first: 0,
            packet,
        }
    }

    /// Returns the number of packet-ins without an answer.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Sends a packet-in for a packet without a rule. The packet's source is the next address, at its port; its
    /// destination is the source of the packet before, whose port a learning controller therefore knows.
    pub fn packet_in(&mut self, now: Time) {
        let number = self.first + self.pending.len() as u64;
        let (source, destination) = (number % self.macs, (number + self.macs - 1) % self.macs);
        self.packet[..6].copy_from_slice(&mac(0, self.datapath, destination));
        self.packet[6..12].copy_from_slice(&mac(0, self.datapath, source));
        let port = 1 + (source % u64::from(PORTS)) as u16;
        let buffer = if self.buffered { number as u32 & BUFFER_MASK } else { NO_BUFFER };
        self.version.packet_in(buffer, port, &self.packet, &mut self.out);
        self.pending.push_back(Some(now));
    }

    /// Handles input from the controller. Answers are counted, and their latencies recorded if `measured`.
    ///
    /// # Errors
    /// Returns an error if the input is not OpenFlow, or of another version.
    pub fn receive(
        &mut self,
        now: Time,
        bytes: &[u8],
        measured: bool,
        replies: &mut ControllerMessages,
        book: &mut Book,
    ) -> Result<(), String> {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut done = 0;
        while let Some(message) = self.version.split(&input[done..])? {
            done += message.bytes.len();
            match message.kind {
                MessageKind::Hello if message.version < self.version.number() => {
                    return Err(format!(
                        "the controller speaks wire version {}, not {}; see --openflow-version",
                        message.version,
                        self.version.number()
                    ));
                }
                MessageKind::Error => {
                    replies.errors += 1;
                    let (_, kind) = message.bytes.split_at(super::wire::HEADER);
                    book.example(|| {
                        format!("the controller sent an error: type and code {:?}", kind.get(..4))
                    });
                }
                MessageKind::FeaturesRequest => self.is_ready = true,
                MessageKind::FlowMod => replies.flow_mods += 1,
                MessageKind::PacketOut => replies.packet_outs += 1,
                _ => {}
            }
            self.version.reply(&message, self.datapath, &mut self.out);
            let named = self.version.buffer(&message);
            if let Some(sent) = self.answered(named, message.kind) {
                replies.answered += u64::from(measured);
                if measured {
                    Book::record(&mut book.latency, now.saturating_since(sent));
                }
            }
        }
        input.drain(..done);
        self.input = input;
        Ok(())
    }

    /// Returns the send time of the packet-in to which a message is the first answer.
    fn answered(&mut self, named: Option<u32>, kind: MessageKind) -> Option<Time> {
        let offset = match named? {
            NO_BUFFER if !self.buffered && kind == MessageKind::PacketOut => 0,
            NO_BUFFER => return None,
            buffer => buffer.wrapping_sub(self.first as u32) & BUFFER_MASK,
        };
        let sent = self.pending.get_mut(offset as usize)?.take();
        self.forget_answered();
        sent
    }

    fn forget_answered(&mut self) {
        while let Some(None) = self.pending.front() {
            self.pending.pop_front();
            self.first += 1;
        }
    }

    /// Times out packet-ins that were sent before `limit`; returns their number.
    pub fn give_up(&mut self, limit: Time) -> u64 {
        let mut count = 0;
        while let Some(Some(sent)) = self.pending.front()
            && *sent < limit
        {
            self.pending.pop_front();
            self.first += 1;
            count += 1;
            self.forget_answered();
        }
        count
    }
}

/// The length of the shortest Ethernet frame, without its checksum.
const PACKET_BYTES: usize = 60;
/// The bits of a packet-in's number that number its buffer; none of them equals [`NO_BUFFER`].
const BUFFER_MASK: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_units::Span;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Returns the switch's output after the message `text`.
    fn told(switch: &mut Switch, now: Time, text: &str) -> (Vec<u8>, ControllerMessages, Book) {
        let (mut replies, mut book) = (ControllerMessages::default(), Book::default());
        switch.out.clear();
        switch.receive(now, &hex(text), true, &mut replies, &mut book).unwrap();
        (std::mem::take(&mut switch.out), replies, book)
    }

    #[test]
    fn the_handshake_is_what_the_specifications_say() {
        for (version, byte, length) in
            [(ProtocolVersion::V10, 1, 8 + 24 + 4 * 48), (ProtocolVersion::V13, 4, 32)]
        {
            let mut switch = Switch::new(version, 0x77, 10, true);
            assert_eq!(switch.out, [byte, 0, 0, 8, 0, 0, 0, 0]);
            assert!(!switch.is_ready);
            let (features, ..) = told(&mut switch, us(0), &format!("0{byte} 05 0008 00000009"));
            assert!(switch.is_ready);
            assert_eq!(features.len(), length);
            assert_eq!(features[..16], hex(&format!("0{byte} 06 {length:04x} 00000009 0000000000000077")));
        }
        let mut switch = Switch::new(ProtocolVersion::V13, 1, 10, true);
        assert_eq!(told(&mut switch, us(0), "04 02 000a 00000005 abcd").0, hex("04 03 000a 00000005 abcd"));
        assert_eq!(told(&mut switch, us(0), "04 14 0008 00000006").0, hex("04 15 0008 00000006"));
        assert_eq!(told(&mut switch, us(0), "04 07 0008 00000006").0, hex("04 08 000c 00000006 0000ffff"));
        // The descriptions of ports follow: 16 and 64 bytes each.
        let (ports, ..) = told(&mut switch, us(0), "04 12 0010 00000007 000d0000 00000000");
        assert_eq!((ports[1], ports.len()), (19, 16 + 4 * 64));
        let mut switch = Switch::new(ProtocolVersion::V10, 1, 10, true);
        assert_eq!(told(&mut switch, us(0), "01 12 0008 00000006").0, hex("01 13 0008 00000006"));
        assert_eq!(told(&mut switch, us(0), "01 10 000c 00000007 00000000").0.len(), 12 + 1056);
    }

    #[test]
    fn packets_are_reported_as_the_specifications_say() {
        for (version, head) in [
            (ProtocolVersion::V10, "01 0a 004e 00000000 00000001 003c 0002 00 00"),
            (
                ProtocolVersion::V13,
                "04 0a 0066 00000000 00000001 003c 00 00 0000000000000000 0001 000c 80000004 00000002 00000000 0000",
            ),
        ] {
            let mut switch = Switch::new(version, 3, 10, true);
            switch.packet_in(us(0));
            switch.out.clear();
            switch.packet_in(us(0));
            let packet = "020003000000 020003000001 0800 45";
            let expected = hex(&format!("{head} {packet}"));
            assert_eq!(switch.out[..expected.len()], expected);
            assert_eq!(usize::from(u16::from_be_bytes([switch.out[2], switch.out[3]])), switch.out.len());
        }
    }

    #[test]
    fn an_answer_is_the_first_message_that_names_the_buffer() {
        let flow_mod = |buffer: u32| format!("01 0e 0048 00000000 {} {buffer:08x} 00000000", "00".repeat(56));
        let packet_out = |buffer: u32| format!("01 0d 0010 00000000 {buffer:08x} 00000000");
        let mut switch = Switch::new(ProtocolVersion::V10, 1, 10, true);
        (0..3).for_each(|number| switch.packet_in(us(number)));
        let (_, replies, book) = told(&mut switch, us(11), &format!("{}{}", flow_mod(1), packet_out(1)));
        assert_eq!(
            replies,
            ControllerMessages { answered: 1, flow_mods: 1, packet_outs: 1, ..ControllerMessages::default() }
        );
        assert_eq!(book.latency.max() / 1_000, 10);
        assert_eq!(told(&mut switch, us(12), &flow_mod(NO_BUFFER)).1.answered, 0);
        // The first part ends within a message, which is handled when the rest arrives.
        let whole = packet_out(0);
        let (first, second) = whole.split_at(14);
        assert_eq!(told(&mut switch, us(12), first).1.answered, 0);
        assert_eq!(told(&mut switch, us(12), second).1.answered, 1);
        assert_eq!((switch.outstanding(), switch.first), (1, 2));
        assert_eq!((switch.give_up(us(2)), switch.give_up(us(3)), switch.outstanding()), (0, 1, 0));
    }

    #[test]
    fn without_buffers_a_packet_out_answers_the_oldest() {
        let mut switch = Switch::new(ProtocolVersion::V13, 1, 10, false);
        (0..2).for_each(|number| switch.packet_in(us(number)));
        let flow_mod = format!("04 0e 0038 00000000 {}ffffffff{}", "00".repeat(24), "00".repeat(20));
        assert_eq!(
            told(&mut switch, us(5), &flow_mod).1,
            ControllerMessages { flow_mods: 1, ..ControllerMessages::default() }
        );
        let (_, replies, book) =
            told(&mut switch, us(5), "04 0d 0018 00000000 ffffffff 00000001 0000000000000000");
        assert_eq!((replies.answered, book.latency.max() / 1_000), (1, 5));
    }

    proptest::proptest! {
        /// Any input is either handled or rejected.
        #[test]
        fn any_bytes_are_taken_or_refused(
            kind in 0..32_u8,
            length in 0..120_u16,
            rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120),
        ) {
            for version in [ProtocolVersion::V10, ProtocolVersion::V13] {
                let mut switch = Switch::new(version, 1, 10, true);
                switch.packet_in(us(0));
                let mut input = vec![version.number(), kind];
                input.extend_from_slice(&length.to_be_bytes());
                input.extend_from_slice(&rest);
                let _ = switch.receive(us(1), &input, true, &mut ControllerMessages::default(), &mut Book::default());
            }
        }
    }

    #[test]
    fn what_is_no_openflow_is_told() {
        let (mut replies, mut book) = (ControllerMessages::default(), Book::default());
        let mut receive = |text: &str| {
            let mut switch = Switch::new(ProtocolVersion::V13, 1, 10, true);
            switch.receive(us(0), &hex(text), true, &mut replies, &mut book).unwrap_err()
        };
        assert!(receive("04 00 0007 00000000").contains("a message of 7 bytes"));
        assert!(receive("01 00 0008 00000000").contains("speaks wire version 1, not 4"));
    }
}
