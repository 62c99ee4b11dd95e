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

/// Commands, without the quiet ones.
mod opcode {
    pub const GET: u8 = 0x00;
    pub const SET: u8 = 0x01;
    pub const ADD: u8 = 0x02;
    pub const REPLACE: u8 = 0x03;
    pub const DELETE: u8 = 0x04;
    pub const INCREMENT: u8 = 0x05;
    pub const DECREMENT: u8 = 0x06;
    pub const QUIT: u8 = 0x07;
    pub const FLUSH: u8 = 0x08;
    pub const NOOP: u8 = 0x0a;
    pub const VERSION: u8 = 0x0b;
    pub const GETK: u8 = 0x0c;
    pub const APPEND: u8 = 0x0e;
    pub const PREPEND: u8 = 0x0f;
    pub const STAT: u8 = 0x10;
    pub const TOUCH: u8 = 0x1c;
    pub const GAT: u8 = 0x1d;
    pub const SASL_LIST: u8 = 0x20;
    pub const SASL_AUTH: u8 = 0x21;
    pub const SASL_STEP: u8 = 0x22;
    pub const GATK: u8 = 0x23;
}

/// A quiet command's other self, and whether it is one.
fn unquiet(opcode: u8) -> (u8, bool) {
    match opcode {
        0x09 => (opcode::GET, true),
        0x0d => (opcode::GETK, true),
        0x11..=0x16 => (opcode - 0x10, true),
        0x17 => (opcode::QUIT, true),
        0x18 => (opcode::FLUSH, true),
        0x19 => (opcode::APPEND, true),
        0x1a => (opcode::PREPEND, true),
        0x1e => (opcode::GAT, true),
        0x24 => (opcode::GATK, true),
        plain => (plain, false),
    }
}

/// What went wrong, with the words that memcached has for it.
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
