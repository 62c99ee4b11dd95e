//! The binary protocol: a header of 24 bytes, extras, a key, a value.

mod execute;
mod login;
mod parse;
mod report;

pub use execute::{answer_get, execute, merge};
pub use parse::{glance, parse};
pub use report::merge_report;
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Header of requests and replies; the field `status` is the vBucket in a request.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    magic: u8,
    opcode: u8,
    key_bytes: U16,
    extras_bytes: u8,
    data_type: u8,
    status: U16,
    body_bytes: U32,
    opaque: [u8; 4],
    cas: U64,
}

const HEADER_BYTES: usize = size_of::<Header>();
const MAGIC_REQUEST: u8 = 0x80;
const MAGIC_REPLY: u8 = 0x81;

/// Commands without a key; [`Command::of_opcode`](crate::request::Command::of_opcode) has the others.
mod opcode {
    pub const QUIT: u8 = 0x07;
    pub const FLUSH: u8 = 0x08;
    pub const NOOP: u8 = 0x0a;
    pub const VERSION: u8 = 0x0b;
    pub const STAT: u8 = 0x10;
    pub const QUIT_QUIET: u8 = 0x17;
    pub const FLUSH_QUIET: u8 = 0x18;
    pub const SASL_LIST: u8 = 0x20;
    pub const SASL_AUTH: u8 = 0x21;
    pub const SASL_STEP: u8 = 0x22;
}

/// Errors, with memcached's texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    NotFound,
    Exists,
    TooLarge,
    Invalid,
    NotStored,
    NonNumeric,
    Login,
    Unknown,
    NoMemory(&'static str),
}

impl Failure {
    fn status(self) -> (u16, &'static str) {
        match self {
            Failure::NotFound => (0x01, "Not found"),
            Failure::Exists => (0x02, "Data exists for key."),
            Failure::TooLarge => (0x03, "Too large."),
            Failure::Invalid => (0x04, "Invalid arguments"),
            Failure::NotStored => (0x05, "Not stored."),
            Failure::NonNumeric => (0x06, "Non-numeric server-side value for incr or decr"),
            Failure::Login => (0x20, "Auth failure."),
            Failure::Unknown => (0x81, "Unknown command"),
            Failure::NoMemory(text) => (0x82, text),
        }
    }
}

/// A reply's place in its conversation.
#[derive(Clone, Copy, Debug)]
struct Echo {
    opcode: u8,
    opaque: [u8; 4],
}

impl Echo {
    /// Appends a reply whose body is `extras`, `key` and `value`.
    fn push(self, reply: &mut Vec<u8>, status: u16, cas: u64, [extras, key, value]: [&[u8]; 3]) {
        let header = Header {
            magic: MAGIC_REPLY,
            opcode: self.opcode,
            key_bytes: (key.len() as u16).into(),
            extras_bytes: extras.len() as u8,
            data_type: 0,
            status: status.into(),
            body_bytes: ((extras.len() + key.len() + value.len()) as u32).into(),
            opaque: self.opaque,
            cas: cas.into(),
        };
        reply.reserve(HEADER_BYTES + extras.len() + key.len() + value.len());
        reply.extend_from_slice(header.as_bytes());
        for part in [extras, key, value] {
            reply.extend_from_slice(part);
        }
    }

    fn fail(self, reply: &mut Vec<u8>, failure: Failure) {
        let (status, text) = failure.status();
        self.push(reply, status, 0, [b"", b"", text.as_bytes()]);
    }
}
