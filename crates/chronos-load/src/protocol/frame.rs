//! The frame header of memcached's UDP protocol (protocol.txt, "UDP protocol").

/// The length of the header before each datagram's part of a request or reply.
pub const FRAME_BYTES: usize = 8;

/// The position of a datagram in a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramFrame {
    /// The number of the request.
    pub request: u16,
    /// The datagram's index, counted from 0.
    pub sequence: u16,
    /// The number of datagrams in the reply.
    pub total: u16,
}

impl DatagramFrame {
    /// Returns the frame of a request of one datagram.
    pub fn of_request(request: u16) -> [u8; FRAME_BYTES] {
        let [high, low] = request.to_be_bytes();
        [high, low, 0, 0, 0, 1, 0, 0]
    }

    /// Splits `datagram` into its frame and the rest; returns none if it is not part of a reply.
    pub fn split(datagram: &[u8]) -> Option<(DatagramFrame, &[u8])> {
        let (head, body) = datagram.split_first_chunk::<FRAME_BYTES>()?;
        let field = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let frame = DatagramFrame { request: field(0), sequence: field(2), total: field(4) };
        (frame.sequence < frame.total).then_some((frame, body))
    }
}
