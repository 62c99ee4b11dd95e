//! The frame header of memcached's UDP protocol (protocol.txt, "UDP protocol").

/// Bytes before each datagram's part of a request or reply.
pub const FRAME_BYTES: usize = 8;

/// Which part of which reply a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The number that the request had.
    pub request: u16,
    /// Counted from 0.
    pub sequence: u16,
    /// Datagrams of the reply.
    pub total: u16,
}

impl Frame {
    /// The frame of a request of one datagram.
    pub fn of_request(request: u16) -> [u8; FRAME_BYTES] {
        let [high, low] = request.to_be_bytes();
        [high, low, 0, 0, 0, 1, 0, 0]
    }

    /// The frame of `datagram`, and what follows it; none if it is no datagram of a reply.
    pub fn split(datagram: &[u8]) -> Option<(Frame, &[u8])> {
        let (head, body) = datagram.split_first_chunk::<FRAME_BYTES>()?;
        let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let frame = Frame { request: field(0), sequence: field(2), total: field(4) };
        (frame.sequence < frame.total).then_some((frame, body))
    }
}
