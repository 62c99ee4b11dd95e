//! Requests as bytes, and bytes as replies: no socket, no clock.
//!
//! ```text
//! Request ──> Protocol::encode ──> bytes ──> (network) ──> bytes ──> Protocol::parse ──> Parsed
//! ```
//! A reply is read a value at a time, so that a long multi-get is never read twice.

mod ascii;
mod binary;
mod frame;
mod meta;

use clap::ValueEnum;
use smallvec::SmallVec;

pub use frame::{FRAME_BYTES, Frame};

use crate::keys::KeyText;
use crate::values::Values;

/// What is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Protocol {
    /// memcached's text protocol: `get`, `set`.
    Ascii,
    /// memcached's meta commands: `mg`, `ms`, `mn`.
    Meta,
    /// memcached's binary protocol.
    Binary,
    /// `get TERM` to chronos-search, whose replies are posting lists: the same term, the same list.
    Search,
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads all its keys.
    Get,
    /// Stores its only key.
    Set,
}

/// What is sent at once to one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Reads or stores.
    pub kind: Kind,
    /// Numbers of keys.
    pub keys: SmallVec<[u64; 2]>,
    /// What a set stores.
    pub version: u64,
    /// Which request of its connection it is; the binary protocol has it sent back.
    pub tag: u16,
}

/// The head of some input, as a part of the reply to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// More is needed.
    Incomplete,
    /// The value of a key; the reply goes on.
    Value {
        /// Bytes of input.
        consumed: usize,
        /// Which of the request's keys.
        position: usize,
        /// What it is.
        value: &'a [u8],
    },
    /// The reply is over.
    Over {
        /// Bytes of input.
        consumed: usize,
        /// What came of the request.
        answer: Answer,
    },
    /// No reply to this request: all that follows means nothing.
    Bad(String),
}

/// What came of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It was done; keys of a get that had no value are not there.
    Done,
    /// The server refused, and said why.
    Refused(String),
}

/// All that requests and replies are written with.
#[derive(Debug)]
pub struct Texts {
    /// How keys are written.
    pub keys: KeyText,
    /// What they hold.
    pub values: Values,
    /// Number of virtual buckets (the vBucket field of the binary protocol); 0 leaves the field 0.
    pub vbuckets: u16,
}

impl Protocol {
    /// Appends `request`.
    pub fn encode(self, request: &Request, texts: &Texts, out: &mut Vec<u8>) {
        match self {
            Protocol::Ascii | Protocol::Search => ascii::encode(request, texts, out),
            Protocol::Meta => meta::encode(request, texts, out),
            Protocol::Binary => binary::encode(request, texts, out),
        }
    }

    /// Reads the head of `input` as the next part of the reply to `request`, of whose keys the first `passed` have
    /// been answered, or are known to be missing.
    pub fn parse<'a>(self, request: &Request, passed: usize, texts: &Texts, input: &'a [u8]) -> Parsed<'a> {
        match self {
            Protocol::Ascii | Protocol::Search => ascii::parse(request, passed, texts, input),
            Protocol::Meta => meta::parse(request, passed, texts, input),
            Protocol::Binary => binary::parse(request, passed, texts, input),
        }
    }

    /// The most bytes that a value may have over UDP, where a request is one datagram of at most 1400 bytes.
    pub fn value_bytes_max_udp(key_bytes: usize) -> usize {
        1400 - FRAME_BYTES - key_bytes - 64
    }
}

/// A line and where the bytes after it start; none if there is no whole line.
fn line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr::memchr(b'\n', input)?;
    Some((input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]), end + 1))
}

/// Without a whole line: more may come, or it is no line at all.
fn no_line(input: &[u8]) -> Parsed<'static> {
    if input.len() <= LINE_BYTES_MAX { Parsed::Incomplete } else { bad(input) }
}

/// A reply that is none.
fn bad(found: &[u8]) -> Parsed<'static> {
    Parsed::Bad(format!("`{}` is no reply to the request", excerpt(found)))
}

/// The start of `bytes`, as something to print.
pub fn excerpt(bytes: &[u8]) -> String {
    let end = bytes.len().min(60);
    format!("{}{}", bytes[..end].escape_ascii(), if end < bytes.len() { "..." } else { "" })
}

/// A line that refuses the request, as all text protocols have it.
fn refusal(line: &[u8]) -> Option<Answer> {
    let refusals: [&[u8]; 5] = [b"ERROR", b"SERVER_ERROR", b"CLIENT_ERROR", b"NOT_STORED", b"NS"];
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    refusals.contains(&word).then(|| Answer::Refused(excerpt(line)))
}

/// A number in decimal.
fn number(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 10 {
        return None;
    }
    text.iter().try_fold(0_usize, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + usize::from(byte - b'0'))
    })
}

/// A value of `bytes` bytes that starts at `start` and has a line end of its own.
fn block(input: &[u8], start: usize, bytes: usize, position: usize) -> Parsed<'_> {
    let end = start + bytes;
    match input.get(end..end + 2) {
        None => Parsed::Incomplete,
        Some(b"\r\n") => Parsed::Value { consumed: end + 2, position, value: &input[start..end] },
        Some(other) => bad(other),
    }
}

/// Which of the keys from `passed` on is `text`.
fn position(request: &Request, passed: usize, texts: &Texts, text: &[u8]) -> Option<usize> {
    (passed..request.keys.len()).find(|&position| texts.keys.is(request.keys[position], text))
}

/// Bytes of a line without a line's end that are too many for one.
const LINE_BYTES_MAX: usize = 2048;

#[cfg(test)]
mod tests;
