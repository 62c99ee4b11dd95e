//! Encodes requests as bytes, and parses replies, without sockets or a clock.
//!
//! ```text
//! Request ──> Protocol::encode ──> bytes ──> (network) ──> bytes ──> Protocol::parse ──> Parsed
//! ```
//! A reply is parsed value by value, so that a long multi-get is never parsed twice.

mod ascii;
mod binary;
mod frame;
mod message;
mod meta;

use clap::ValueEnum;

pub use frame::{DatagramFrame, FRAME_BYTES};
pub use message::{Answer, Parsed, Request, RequestKind, Texts, excerpt};

/// The protocol of requests and replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Protocol {
    /// memcached's text protocol: `get`, `set`.
    Ascii,
    /// memcached's meta commands: `mg`, `ms`, `mn`.
    Meta,
    /// memcached's binary protocol.
    Binary,
    /// `get TERM` of chronos-search, whose replies are posting lists: the same list each time for a term.
    Search,
}

impl Protocol {
    /// Appends the encoded `request`.
    pub fn encode(self, request: &Request, texts: &Texts, out: &mut Vec<u8>) {
        match self {
            Protocol::Ascii | Protocol::Search => ascii::encode(request, texts, out),
            Protocol::Meta => meta::encode(request, texts, out),
            Protocol::Binary => binary::encode(request, texts, out),
        }
    }

    /// Parses the head of `input` as the next part of the reply to `request`, of whose keys the first `passed` have
    /// been answered, or are known to be missing.
    pub fn parse<'a>(self, request: &Request, passed: usize, texts: &Texts, input: &'a [u8]) -> Parsed<'a> {
        match self {
            Protocol::Ascii | Protocol::Search => ascii::parse(request, passed, texts, input),
            Protocol::Meta => meta::parse(request, passed, texts, input),
            Protocol::Binary => binary::parse(request, passed, texts, input),
        }
    }

    /// Returns the longest value over UDP, where a request is one datagram of at most 1400 bytes.
    pub fn value_bytes_max_udp(key_bytes: usize) -> usize {
        1400 - FRAME_BYTES - key_bytes - 64
    }
}

#[cfg(test)]
mod tests;
