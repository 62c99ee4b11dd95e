//! [`Flight`]: bytes that the kernel sends for a connection, kept until the kernel has finished with them.

use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use super::SEND;

/// Bytes that the kernel sends for a connection.
pub(super) struct Flight {
    pub(super) key: u32,
    pub(super) incarnation: u32,
    pub(super) pieces: Vec<Vec<u8>>,
    slices: Vec<libc::iovec>,
    header: Box<libc::msghdr>,
    /// Bytes that are still to be sent.
    pub(super) left: usize,
}

impl Flight {
    pub(super) fn new() -> Flight {
        let (pieces, slices) = (Vec::new(), Vec::new());
        Flight { key: 0, incarnation: 0, pieces, slices, header: empty_header(), left: 0 }
    }

    /// Points the slices to the pieces.
    pub(super) fn aim(&mut self) {
        let slice =
            |piece: &mut Vec<u8>| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() };
        self.slices.clear();
        self.slices.extend(self.pieces.iter_mut().map(slice));
    }

    /// Returns the operation that sends the rest.
    pub(super) fn entry(&mut self, socket: i32, number: usize) -> squeue::Entry {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let token = SEND | number as u64;
        if let [slice] = self.slices[..] {
            let send = opcode::Send::new(Fd(socket), slice.iov_base.cast(), slice.iov_len as u32);
            return send.flags(flags).build().user_data(token);
        }
        self.header.msg_iov = self.slices.as_mut_ptr();
        // musl has the field as an `int`.
        self.header.msg_iovlen = self.slices.len() as _;
        let send = opcode::SendMsg::new(Fd(socket), &raw const *self.header).flags(flags as u32);
        send.build().user_data(token)
    }

    /// Returns the bytes of memory that its pieces take.
    pub(super) fn held(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }

    /// Notes that `sent` bytes are sent.
    pub(super) fn advance(&mut self, sent: usize) {
        self.left -= sent;
        let mut sent = sent;
        let gone = self.slices.iter().take_while(|slice| {
            let is_gone = slice.iov_len <= sent;
            sent -= if is_gone { slice.iov_len } else { 0 };
            is_gone
        });
        let gone = gone.count();
        self.slices.drain(..gone);
        if let Some(first) = self.slices.first_mut() {
            first.iov_base = first.iov_base.cast::<u8>().wrapping_add(sent).cast();
            first.iov_len -= sent;
        }
    }
}

#[expect(unsafe_code, reason = "libc's structures have private padding")]
fn empty_header() -> Box<libc::msghdr> {
    // SAFETY: all-zero is a valid `msghdr`: null pointers with lengths of zero.
    Box::new(unsafe { std::mem::zeroed() })
}
