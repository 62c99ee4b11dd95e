//! [`Endpoints`]: the two ends of a conversation.

/// One end of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct End {
    /// The number of the host.
    pub(super) host: u32,
    /// The port of TCP or UDP.
    pub(super) port: u16,
}

/// The five-tuple of a conversation, the same for both directions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Endpoints {
    is_datagram: bool,
    lower: End,
    higher: End,
}

impl Endpoints {
    pub(super) fn new(is_datagram: bool, from: End, to: End) -> Endpoints {
        Endpoints { is_datagram, lower: from.min(to), higher: from.max(to) }
    }
}
