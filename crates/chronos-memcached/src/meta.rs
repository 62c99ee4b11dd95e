//! Meta commands: two letters, a key, and flags of one letter that select the operation and the answer.
//!
//! Flags are read twice: here, to find errors and the operation on the item; and when the request runs, since the
//! answer has them in the order in which the client wrote them.

mod execute;
mod flags;

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
pub use execute::execute;
use flags::MetaFlags;
use plimsoll_chronos::Step;

use crate::clock::Clock;
use crate::request::{Bits, ReplyStyle, Request, RequestHead, Verb};
use crate::server::Memcached;
use crate::session::Session;
use crate::text::KEY_BYTES_MAX;
use crate::text::words::{self, Words};

/// The most words of a meta command, its name included.
const WORDS_MAX: usize = 19;
const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";

/// The buffer of a decoded base64 key, if there is one.
pub type Decoded = Option<[u8; 256]>;

/// Returns the key that `request` means.
#[inline]
pub fn key<'k>(request: &Request<'k>, decoded: &'k mut Decoded) -> &'k [u8] {
    if request.head.style != ReplyStyle::Meta || !request.head.has(Bits::KEY_BINARY) {
        return request.key;
    }
    let decoded = decoded.insert([0; 256]);
    let bytes = decode(request.key, decoded).expect("checked when it was read");
    &decoded[..bytes]
}

/// Parses a get of `key`, which is of a valid length, if its flags are plain; None for all others, valid or not.
#[inline]
pub fn plain_get<'a>(key: &'a [u8], tokens: &'a [u8]) -> Option<Request<'a>> {
    let (bits, is_answered) = flags::plain(tokens)?;
    let mut head = RequestHead::new(Verb::Get, ReplyStyle::Meta);
    head.bits = bits;
    Some(Request { head, key, tokens: if is_answered { tokens } else { &[] }, value: &[] })
}

/// Reads a meta command (all but mn) whose line consumes `consumed` bytes; `words` follow its name.
pub fn parse<'a>(
    server: &Memcached,
    session: &mut Session,
    clock: Clock,
    input: &'a [u8],
    consumed: usize,
    command: u8,
    words: &'a [u8],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let parsed = match command {
        b's' => return parse_set(server, session, clock, input, consumed, words, reply),
        b'e' => parse_inspect(words),
        _ => parse_key(clock, command, words),
    };
    let error = match parsed {
        Ok(request) => {
            let mut decoded = None;
            let key = key(&request, &mut decoded);
            return server.run(consumed, request, key);
        }
        Err(error) => error,
    };
    answer(error, consumed, reply)
}

fn answer<'a>(text: &str, consumed: usize, reply: &mut Vec<u8>) -> Step<Request<'a>> {
    reply.extend_from_slice(text.as_bytes());
    reply.extend_from_slice(b"\r\n");
    Step::Done { consumed }
}

fn parse_inspect(words: &[u8]) -> Result<Request<'_>, &'static str> {
    let mut rest = Words(words);
    let key = rest.next().filter(|key| key.len() <= KEY_BYTES_MAX).ok_or(BAD_FORMAT)?;
    let mut head = RequestHead::new(Verb::Inspect, ReplyStyle::Meta);
    if rest.next() == Some(b"b") {
        head.bits |= Bits::KEY_BINARY;
        check_base64(key).ok_or(BAD_FORMAT)?;
    }
    Ok(Request::new(head, key))
}

fn parse_key(clock: Clock, command: u8, words: &[u8]) -> Result<Request<'_>, &'static str> {
    let mut rest = Words(words);
    let key = rest.next().ok_or("ERROR")?;
    let tokens = rest.0;
    if key.len() > KEY_BYTES_MAX {
        return Err(BAD_FORMAT);
    }
    let get = command == b'g';
    let verb = match command {
        b'g' => Verb::Get,
        b'd' => Verb::Delete,
        _ => Verb::Increment,
    };
    let mut head = RequestHead::new(verb, ReplyStyle::Meta);
    head.delta = 1;
    let flags = MetaFlags::read(&mut head, clock, key, tokens);
    if flags.count + 2 > WORDS_MAX {
        return Err(if get {
            "CLIENT_ERROR options flags are too long"
        } else {
            "CLIENT_ERROR options flags too long"
        });
    }
    let mode = match flags.mode {
        Ok(mode) => mode,
        Err(error) if get => return Err(error),
        Err(_) => return Err("CLIENT_ERROR invalid or duplicate flag"),
    };
    if command == b'a' {
        head.verb = match mode {
            None | Some(b'I' | b'+') => Verb::Increment,
            Some(b'D' | b'-') => Verb::Decrement,
            Some(_) => return Err("CLIENT_ERROR invalid mode for ma M token"),
        };
    }
    check_opaque(flags)?;
    Ok(Request { head, key, tokens, value: &[] })
}

/// Parses `ms key bytes flags`, and the value.
fn parse_set<'a>(
    server: &Memcached,
    session: &mut Session,
    clock: Clock,
    input: &'a [u8],
    consumed: usize,
    words: &'a [u8],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let mut rest = Words(words);
    let Some(key) = rest.next() else { return answer("ERROR", consumed, reply) };
    let Some(bytes) = rest.next() else { return answer(BAD_FORMAT, consumed, reply) };
    let tokens = rest.0;
    if key.len() > KEY_BYTES_MAX {
        return answer(BAD_FORMAT, consumed, reply);
    }
    let mut head = RequestHead::new(Verb::Set, ReplyStyle::Meta);
    let flags = MetaFlags::read(&mut head, clock, key, tokens);
    if flags.count + 3 > WORDS_MAX {
        return answer("CLIENT_ERROR options flags too long", consumed, reply);
    }
    let Some(bytes @ 0..=0x7fff_fffd) = words::signed_32(bytes) else {
        return answer(BAD_FORMAT, consumed, reply);
    };
    let bytes = bytes as usize;
    if let Err(error) = set_verb(&mut head, flags) {
        session.skip = bytes + 2;
        return answer(error, consumed, reply);
    }
    let mut decoded = None;
    if server.is_too_large(key.len(), head.client_flags, bytes) {
        session.skip = bytes + 2;
        server.shared.too_large.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        answer("SERVER_ERROR object too large for cache", consumed, reply);
        head.verb = Verb::Evict;
        let request = Request::new(head, key);
        let key = self::key(&request, &mut decoded);
        return server.run(consumed, request, key);
    }
    let total = consumed + bytes + 2;
    let Some(value) = input.get(consumed..total) else { return Step::Incomplete { total } };
    let Some(value) = value.strip_suffix(b"\r\n") else {
        return answer("CLIENT_ERROR bad data chunk", total, reply);
    };
    let request = Request { head, key, tokens, value };
    let key = self::key(&request, &mut decoded);
    server.run(total, request, key)
}

fn set_verb(head: &mut RequestHead, flags: MetaFlags) -> Result<(), &'static str> {
    let mode = flags.mode?;
    check_opaque(flags)?;
    head.verb = match mode {
        None | Some(b'S') => Verb::Set,
        Some(b'E') => Verb::Add,
        Some(b'A') => Verb::Append,
        Some(b'P') => Verb::Prepend,
        Some(b'R') => Verb::Replace,
        Some(_) => return Err("CLIENT_ERROR invalid mode for ms M token"),
    };
    if head.has(Bits::CAS) && matches!(head.verb, Verb::Set | Verb::Replace) {
        head.verb = Verb::Cas;
    }
    Ok(())
}

fn check_opaque(flags: MetaFlags) -> Result<(), &'static str> {
    if flags.opaque_fits { Ok(()) } else { Err("CLIENT_ERROR opaque token too long") }
}

/// Returns None if `key` is not base64 of at least a byte.
fn check_base64(key: &[u8]) -> Option<()> {
    decode(key, &mut [0; 256]).map(|_| ())
}

/// As memcached, skips bytes that are not characters of base64, and ignores bits that are left over.
fn decode(key: &[u8], decoded: &mut [u8; 256]) -> Option<usize> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let mut letters = [0; 256];
    let mut count = 0;
    for &letter in key {
        if letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'=') {
            letters[count] = letter;
            count += 1;
        }
    }
    LENIENT.decode_slice(&letters[..count], decoded).ok().filter(|&bytes| bytes > 0)
}
