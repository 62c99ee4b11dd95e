//! Requests and parsed replies, and the parts that all forms of replies share.

use smallvec::SmallVec;

use crate::keys::KeyText;
use crate::values::Values;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// The request reads all its keys.
    Get,
    /// The request stores its only key.
    Set,
}

/// A request to one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Whether it reads or stores.
    pub kind: RequestKind,
    /// The numbers of its keys.
    pub keys: SmallVec<[u64; 2]>,
    /// The version that a set stores.
    pub version: u64,
    /// The low bits of the request's number on its connection; the binary protocol returns them.
    pub tag: u16,
}

/// The head of some input, parsed as part of the reply to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// More input is needed.
    Incomplete,
    /// The value of a key; the reply continues.
    Value {
        /// The bytes of input to consume.
        consumed: usize,
        /// The index of the key in the request.
        position: usize,
        /// The bytes of the value.
        value: &'a [u8],
    },
    /// The reply is complete.
    Over {
        /// The bytes of input to consume.
        consumed: usize,
        /// The result of the request.
        answer: Answer,
    },
    /// The input is not a reply to this request, and cannot be parsed further.
    Bad(String),
}

/// The result of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The request succeeded; a get's keys without a value are absent.
    Done,
    /// The server rejected the request with this message.
    Refused(String),
}

/// The texts of which requests and replies consist.
#[derive(Debug)]
pub struct Texts {
    /// The text of each key, by its number.
    pub keys: KeyText,
    /// The content of values.
    pub values: Values,
    /// The number of virtual buckets (the vBucket field of the binary protocol); 0 leaves the field 0.
    pub vbuckets: u16,
}

/// Returns a line and the start of the bytes after it; none without a whole line.
pub(super) fn line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr::memchr(b'\n', input)?;
    Some((input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]), end + 1))
}

/// Decides about input without a whole line: more may follow, or it is too long for a line.
pub(super) fn no_line(input: &[u8]) -> Parsed<'static> {
    if input.len() <= LINE_BYTES_MAX { Parsed::Incomplete } else { bad(input) }
}

/// Rejects input that is not a reply.
pub(super) fn bad(found: &[u8]) -> Parsed<'static> {
    Parsed::Bad(format!("`{}` is not a reply to the request", excerpt(found)))
}

/// Returns the printable start of `bytes`.
pub fn excerpt(bytes: &[u8]) -> String {
    let end = bytes.len().min(60);
    format!("{}{}", bytes[..end].escape_ascii(), if end < bytes.len() { "..." } else { "" })
}

/// Returns the rejection in a line, which has the same form in all text protocols.
pub(super) fn refusal(line: &[u8]) -> Option<Answer> {
    let refusals: [&[u8]; 5] = [b"ERROR", b"SERVER_ERROR", b"CLIENT_ERROR", b"NOT_STORED", b"NS"];
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    refusals.contains(&word).then(|| Answer::Refused(excerpt(line)))
}

/// Parses a decimal number.
pub(super) fn number(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > 10 {
        return None;
    }
    text.iter().try_fold(0_usize, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + usize::from(byte - b'0'))
    })
}

/// Parses a value of `bytes` bytes that starts at `start` and ends with a line end.
pub(super) fn block(input: &[u8], start: usize, bytes: usize, position: usize) -> Parsed<'_> {
    let end = start + bytes;
    match input.get(end..end + 2) {
        None => Parsed::Incomplete,
        Some(b"\r\n") => Parsed::Value { consumed: end + 2, position, value: &input[start..end] },
        Some(other) => bad(other),
    }
}

/// Returns the index of the key from `passed` on whose text is `text`.
pub(super) fn position(request: &Request, passed: usize, texts: &Texts, text: &[u8]) -> Option<usize> {
    (passed..request.keys.len()).find(|&position| texts.keys.is(request.keys[position], text))
}

/// The length from which input without a line end is not a line.
const LINE_BYTES_MAX: usize = 2048;
