//! Messages of a switch, for tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::time::Duration;

use plimsoll_chronos::{Direct, Now, ServedInput, Service, SessionTransport};
use plimsoll_chronos_openflow::{HEADER_BYTES, Header, OpenFlow, OpenFlowSettings, Session};

/// A controller of 16 partitions, and one connection to it.
pub struct Wire {
    pub direct: Direct<OpenFlow>,
    pub session: Session,
    pub now: Now,
}

impl Wire {
    pub fn new(settings: OpenFlowSettings) -> Wire {
        let service = OpenFlow::new(settings, 16, 7);
        let session = service.open(SessionTransport::Tcp);
        let now = Now { since_start: Duration::ZERO, unix_seconds: 0 };
        Wire { direct: Direct::new(service, 16), session, now }
    }

    /// Creates a connection of this version whose datapath is 1.
    pub fn up(version: u8, settings: OpenFlowSettings) -> Wire {
        let mut wire = Wire::new(settings);
        assert_eq!(kinds(&wire.send(&hello(version))), [0, 5]);
        let after = kinds(&wire.send(&features(version, 1)));
        assert_eq!(after, if version == 1 { vec![9, 18] } else { vec![9, 14, 20] });
        wire
    }

    pub fn wait(&mut self, seconds: u64) {
        self.now.since_start += Duration::from_secs(seconds);
    }

    /// Returns the answer to `input`, all of which must be consumed.
    pub fn send(&mut self, input: &[u8]) -> Vec<u8> {
        let (served, reply) = self.serve(input);
        assert_eq!(served, ServedInput { consumed: input.len(), close: false });
        reply
    }

    /// Waits, and returns the messages that the controller sends unasked, or None if it closes the connection.
    pub fn tick_after(&mut self, seconds: u64) -> Option<Vec<u8>> {
        self.wait(seconds);
        let mut sent = Vec::new();
        self.direct.service().tick(&mut self.session, self.now, &mut sent).then_some(sent)
    }

    pub fn serve(&mut self, input: &[u8]) -> (ServedInput, Vec<u8>) {
        let mut reply = Vec::new();
        let served = self.direct.serve(&mut self.session, self.now, input, &mut reply);
        (served, reply)
    }

    /// Returns the number of known stations of all switches.
    pub fn stations(&mut self) -> usize {
        let partitions = self.direct.partitions().iter();
        partitions.filter_map(|partition| partition.get(1)).map(|datapath| datapath.addresses.len()).sum()
    }
}

/// Returns a message with its header.
pub fn message(version: u8, kind: u8, transaction: u32, body: &[u8]) -> Vec<u8> {
    let mut message = vec![version, kind];
    message.extend(u16::try_from(HEADER_BYTES + body.len()).unwrap().to_be_bytes());
    message.extend(transaction.to_be_bytes());
    message.extend(body);
    message
}

pub fn hello(version: u8) -> Vec<u8> {
    message(version, 0, 1, &[])
}

pub fn features(version: u8, datapath: u64) -> Vec<u8> {
    let mut body = datapath.to_be_bytes().to_vec();
    body.extend([0, 0, 1, 0, 254, 0, 0, 0]);
    body.extend([0; 8]);
    message(version, 6, 2, &body)
}

/// Returns a packet-in of a frame, kept by the switch in `buffer` or not.
pub fn packet_in(version: u8, transaction: u32, buffer: u32, port: u32, frame: &[u8]) -> Vec<u8> {
    let mut body = buffer.to_be_bytes().to_vec();
    body.extend((frame.len() as u16).to_be_bytes());
    if version == 1 {
        body.extend((port as u16).to_be_bytes());
        body.extend([0, 0]);
    } else {
        // Reason, table, cookie; a match of 12 bytes and its padding.
        body.extend([0; 10]);
        body.extend([0, 1, 0, 12, 0x80, 0, 0, 4]);
        body.extend(port.to_be_bytes());
        body.extend([0; 4]);
        body.extend([0; 2]);
    }
    body.extend(frame);
    message(version, 10, transaction, &body)
}

pub fn port_status(version: u8, reason: u8, port: u32, config: u32, state: u32) -> Vec<u8> {
    let mut body = vec![reason, 0, 0, 0, 0, 0, 0, 0];
    if version == 1 {
        body.extend((port as u16).to_be_bytes());
        body.extend([0; 22]);
    } else {
        body.extend(port.to_be_bytes());
        body.extend([0; 28]);
    }
    body.extend(config.to_be_bytes());
    body.extend(state.to_be_bytes());
    body.extend([0; 16]);
    if version == 4 {
        body.extend([0; 8]);
    }
    message(version, 12, 9, &body)
}

/// Returns a frame from one station to another, by the last bytes of their addresses; 0xff is broadcast.
pub fn frame(source: u8, destination: u8) -> Vec<u8> {
    let address = |last| if last == 0xff { [0xff; 6] } else { [2, 0, 0, 0, 0, last] };
    [&address(destination)[..], &address(source), &[0x08, 0x00], &[source; 46]].concat()
}

/// Returns the messages in `bytes`, which must be whole.
pub fn split(mut bytes: &[u8]) -> Vec<(Header, &[u8])> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let header = Header::read(bytes).expect("a header");
        let (message, rest) = bytes.split_at(usize::from(header.length));
        messages.push((header, message));
        bytes = rest;
    }
    messages
}

pub fn kinds(bytes: &[u8]) -> Vec<u8> {
    split(bytes).iter().map(|(header, _)| header.kind).collect()
}
