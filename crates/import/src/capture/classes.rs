//! [`Classes`]: the property that divides traffic into classes, and their names in a scenario.

use std::collections::BTreeMap;

use plimsoll_bursts::Frame;

use super::ends::End;
use super::options::CaptureClassBy;

/// The properties from which the class of a conversation follows, as its first packet shows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassOf {
    pub(super) is_datagram: bool,
    pub(super) dscp: u8,
    /// The end that sent the first packet, and its peer.
    pub(super) from: End,
    pub(super) to: End,
    /// The first packet opens a connection (SYN), or accepts one (SYN with ACK).
    pub(super) opens: bool,
    pub(super) accepts: bool,
    /// Plimsoll has made the ports up, so that they say nothing of servers.
    pub(super) made_up: bool,
}

impl ClassOf {
    pub(super) fn new(frame: &Frame, from: End, to: End, made_up: bool) -> ClassOf {
        let syn = frame.segment.is_some_and(|segment| segment.syn);
        let acknowledges = frame.segment.is_some_and(|segment| segment.ack.is_some());
        ClassOf {
            is_datagram: frame.datagram.is_some(),
            dscp: frame.dscp,
            from,
            to,
            opens: syn && !acknowledges,
            accepts: syn && acknowledges,
            made_up,
        }
    }

    /// Returns whether the end that sent the first packet is the client. Without a SYN the server has a port below
    /// Linux's client ports (`ip_local_port_range`), or did not speak first.
    pub(super) fn is_from_client(&self) -> bool {
        let is_served = |end: End| end.port < EPHEMERAL;
        match (self.opens, self.accepts) {
            (true, _) => true,
            (_, true) => false,
            _ => self.made_up || is_served(self.to) || !is_served(self.from),
        }
    }
}

/// The first port that Linux gives to clients by default.
const EPHEMERAL: u16 = 32_768;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ClassKey {
    Tcp(u16),
    Udp(u16),
    Dscp(u8),
    All,
    /// The classes beyond the most that are kept.
    Other,
}

/// The classes that were seen, by number.
pub(super) struct Classes {
    by: CaptureClassBy,
    numbers: BTreeMap<ClassKey, u16>,
    keys: Vec<ClassKey>,
}

/// The most classes that are distinguished while reading.
const CLASSES_MAX: usize = 64;

impl Classes {
    pub(super) fn new(by: CaptureClassBy) -> Classes {
        Classes { by, numbers: BTreeMap::new(), keys: Vec::new() }
    }

    /// Returns the number of the class of a conversation.
    pub(super) fn number(&mut self, of: &ClassOf) -> u16 {
        let server = if of.is_from_client() { of.to } else { of.from };
        let key = match (self.by, of.is_datagram) {
            (CaptureClassBy::Port, false) => ClassKey::Tcp(server.port),
            (CaptureClassBy::Port, true) => ClassKey::Udp(server.port),
            (CaptureClassBy::Dscp, _) => ClassKey::Dscp(of.dscp),
            (CaptureClassBy::One, _) => ClassKey::All,
        };
        let is_new = !self.numbers.contains_key(&key);
        let key = if is_new && self.keys.len() >= CLASSES_MAX { ClassKey::Other } else { key };
        let next = self.keys.len() as u16;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        number
    }

    /// Returns the name of a class, as a scenario may have it.
    pub(super) fn name(&self, number: u16) -> String {
        match self.keys[usize::from(number)] {
            ClassKey::Tcp(port) => format!("port-{port}"),
            ClassKey::Udp(port) => format!("udp-{port}"),
            ClassKey::Dscp(dscp) => format!("dscp-{dscp}"),
            ClassKey::All => "all".to_owned(),
            ClassKey::Other => "other".to_owned(),
        }
    }
}
