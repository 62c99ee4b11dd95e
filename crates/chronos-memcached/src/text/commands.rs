//! Parses command lines into requests, or answers them at once.

use std::sync::atomic::Ordering;

use memchr::{memchr, memchr3};
use plimsoll_chronos::Step;

use super::KEY_BYTES_MAX;
use super::words::{self, Words, first_words};
use crate::clock::Clock;
use crate::meta;
use crate::request::{Arguments, Bits, Command, ReplyStyle, Request, RequestHead, Verb};
use crate::server::Memcached;
use crate::session::{MultiGet, Session};
use crate::stats::VERSION;

/// A line that has not ended after this many bytes must be a get.
const LINE_BYTES_MAX: usize = 2048;
/// No line may be longer; memcached would take memory without bound.
const GET_BYTES_MAX: usize = 16 << 20;

pub(super) const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
const BAD_EXPIRY: &str = "CLIENT_ERROR invalid exptime argument";

/// Reads the head of `input`.
#[inline]
pub fn parse<'a>(
    server: &Memcached,
    session: &mut Session,
    clock: Clock,
    input: &'a [u8],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    if let Some(get) = session.multi_get {
        return next_key(server, session, get, input);
    }
    if session.without_end == 0
        && let Some((consumed, request)) = frequent(input)
    {
        return server.run(consumed, request, request.key);
    }
    let Some(end) = line_end(session, input) else { return no_line(session, input) };
    let consumed = end + 1;
    let mut line = &input[..end];
    if end > 1 && line[end - 1] == b'\r' {
        line = &line[..end - 1];
    }
    if let Some(end) = memchr(0, line) {
        line = &line[..end];
    }
    CommandLine { server, session, clock, input, line, consumed, reply }.parse()
}

/// Returns a get of one key, in text or as a meta command whose flags are plain, and its length: the most frequent
/// requests, found with one search. None for all others, valid or not.
#[inline]
fn frequent(input: &[u8]) -> Option<(usize, Request<'_>)> {
    /// The most bytes behind a key: a space and a letter for each plain flag, and the line's end.
    const FLAGS_BYTES_MAX: usize = 2 * 26 + 2;
    let (is_meta, start) = match input {
        [b'g', b'e', b't', b' ', ..] => (false, 4),
        [b'm', b'g', b' ', ..] => (true, 3),
        _ => return None,
    };
    let rest = &input[start..input.len().min(start + KEY_BYTES_MAX + FLAGS_BYTES_MAX)];
    // C's strings end at a zero byte.
    let key_end = memchr3(b' ', b'\n', 0, rest)?;
    let line_end = match rest[key_end] {
        b'\n' => key_end,
        b' ' if is_meta => key_end + memchr(b'\n', &rest[key_end..])?,
        _ => return None,
    };
    let line = &rest[..line_end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (key, tokens) = line.split_at(key_end.min(line.len()));
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return None;
    }
    let request = if is_meta {
        meta::plain_get(key, tokens)?
    } else {
        let mut head = RequestHead::new(Verb::Get, ReplyStyle::Text);
        head.bits = Bits::END;
        Request::new(head, key)
    };
    Some((start + line_end + 1, request))
}

/// Returns the second word of `input`: the key of all frequent requests.
#[inline]
pub fn glance(input: &[u8]) -> Option<&[u8]> {
    let head = &input[..input.len().min(2 * KEY_BYTES_MAX)];
    let rest = &head[memchr(b' ', head)? + 1..];
    Some(&rest[..memchr3(b' ', b'\r', b'\n', rest)?])
}

/// Returns the end of the first line of `input`. Bytes that were searched before the line was complete are not searched
/// again.
#[inline]
fn line_end(session: &mut Session, input: &[u8]) -> Option<usize> {
    let seen = std::mem::take(&mut session.without_end).min(input.len());
    Some(seen + memchr(b'\n', &input[seen..])?)
}

fn no_line<'a>(session: &mut Session, input: &[u8]) -> Step<Request<'a>> {
    session.without_end = input.len();
    if input.len() > LINE_BYTES_MAX {
        let blanks = input.iter().position(|&byte| byte != b' ').unwrap_or(input.len());
        let rest = &input[blanks..];
        let is_get = rest.starts_with(b"get ") || rest.starts_with(b"gets ");
        if blanks > 100 || !is_get || input.len() > GET_BYTES_MAX {
            return Step::Close;
        }
    }
    Step::Incomplete { total: input.len() + 1 }
}

/// Returns the next key of a get whose line was found valid.
fn next_key<'a>(
    server: &Memcached,
    session: &mut Session,
    get: MultiGet,
    input: &'a [u8],
) -> Step<Request<'a>> {
    let mut words = Words(&input[..get.keys_bytes]);
    let key = words.next().unwrap_or_default();
    let keys_bytes = words.0.len();
    let mut head = RequestHead::new(get.command.verb, ReplyStyle::Text);
    (head.expiry, head.bits) = (get.expiry, get.command.bits);
    let mut consumed = get.keys_bytes - keys_bytes;
    if keys_bytes > 0 {
        session.multi_get = Some(MultiGet { keys_bytes, ..get });
    } else {
        session.multi_get = None;
        head.bits |= Bits::END;
        consumed += get.ending_bytes;
    }
    server.run(consumed, Request::new(head, key), key)
}

/// One command line while it is parsed.
pub(super) struct CommandLine<'a, 's> {
    pub(super) server: &'s Memcached,
    pub(super) session: &'s mut Session,
    pub(super) clock: Clock,
    input: &'a [u8],
    pub(super) line: &'a [u8],
    /// Bytes of the line with its end.
    pub(super) consumed: usize,
    pub(super) reply: &'s mut Vec<u8>,
}

impl<'a> CommandLine<'a, '_> {
    fn parse(&mut self) -> Step<Request<'a>> {
        let mut words = Words(self.line);
        let name = words.next().unwrap_or_default();
        if name.len() < 2 {
            return self.answer("ERROR");
        }
        if let Some(command) = Command::of_name(name) {
            return match command.arguments {
                Arguments::Value | Arguments::Piece => self.store(command.verb),
                Arguments::Keys => self.get_keys(command, 0, words.0, "ERROR"),
                Arguments::ExpiryAndKeys => self.expiry_and_keys(command, words),
                Arguments::Expiry | Arguments::Number => self.key_and_number(command),
                Arguments::Key => self.delete(),
            };
        }
        match name {
            b"mg" | b"ms" | b"md" | b"ma" | b"me" => {
                let (server, clock, input) = (self.server, self.clock, self.input);
                meta::parse(server, self.session, clock, input, self.consumed, name[1], words.0, self.reply)
            }
            b"mn" => self.answer("MN"),
            b"stats" => self.stats(),
            b"flush_all" => self.flush(),
            b"version" => self.answer(&format!("VERSION {VERSION}")),
            b"quit" => {
                self.session.close = true;
                Step::Done { consumed: self.consumed }
            }
            b"verbosity" => self.verbosity(),
            b"cache_memlimit" => self.memory_limit(),
            b"shutdown" => self.shutdown(),
            b"refresh_certs" => self.refresh_certificates(),
            b"lru_crawler" => self.crawler(),
            b"slabs" => self.slabs(),
            b"watch" => self.watch(),
            _ if words::is_http(self.line) => Step::Close,
            _ => self.answer("ERROR"),
        }
    }

    /// Appends an answer that needs no partition.
    pub(super) fn answer(&mut self, text: &str) -> Step<Request<'a>> {
        self.reply.extend_from_slice(text.as_bytes());
        self.reply.extend_from_slice(b"\r\n");
        Step::Done { consumed: self.consumed }
    }

    /// Answers at once, unless the client asked for no answer.
    pub(super) fn answer_unless(&mut self, quiet: bool, text: &str) -> Step<Request<'a>> {
        if quiet { Step::Done { consumed: self.consumed } } else { self.answer(text) }
    }

    fn expiry_and_keys(&mut self, command: Command, mut words: Words<'a>) -> Step<Request<'a>> {
        let Some(expiry) = words.next() else { return self.answer("ERROR") };
        let Some(expiry) = words::signed_32(expiry) else {
            return self.answer(BAD_EXPIRY);
        };
        self.get_keys(command, self.clock.expiry(expiry), words.0, "END")
    }

    /// Answers key by key, if all of them are short enough; `none` without any.
    fn get_keys(&mut self, command: Command, expiry: u32, keys: &'a [u8], none: &str) -> Step<Request<'a>> {
        let Some(last) = keys.iter().rposition(|&byte| byte != b' ') else { return self.answer(none) };
        if Words(keys).any(|key| key.len() > KEY_BYTES_MAX) {
            return self.answer(BAD_FORMAT);
        }
        let before = keys.as_ptr() as usize - self.input.as_ptr() as usize;
        let keys_bytes = last + 1;
        let get = MultiGet { command, expiry, keys_bytes, ending_bytes: self.consumed - before - keys_bytes };
        let step = next_key(self.server, self.session, get, &self.input[before..]);
        match step {
            Step::Run { consumed, partition, request } => {
                Step::Run { consumed: before + consumed, partition, request }
            }
            other => other,
        }
    }

    fn store(&mut self, verb: Verb) -> Step<Request<'a>> {
        let (words, count) = first_words::<7>(self.line);
        let least = if verb == Verb::Cas { 6 } else { 5 };
        if count != least && count != least + 1 {
            return self.answer("ERROR");
        }
        let quiet = words[count - 1] == b"noreply";
        let key = words[1];
        let numbers = (words::unsigned_32(words[2]), words::signed_32(words[3]), words::signed_32(words[4]));
        let (Some(client_flags), Some(expiry), Some(bytes)) = numbers else {
            return self.answer_unless(quiet, BAD_FORMAT);
        };
        let cas = if verb == Verb::Cas { words::unsigned_64(words[5]) } else { Some(0) };
        let (Some(cas), true) = (cas, key.len() <= KEY_BYTES_MAX && (0..=i32::MAX - 2).contains(&bytes))
        else {
            return self.answer_unless(quiet, BAD_FORMAT);
        };
        let bytes = bytes as usize;
        if self.server.is_too_large(key.len(), client_flags, bytes) {
            return self.too_large(verb, key, quiet, bytes);
        }
        let total = self.consumed + bytes + 2;
        let Some(value) = self.input.get(self.consumed..total) else { return Step::Incomplete { total } };
        let Some(value) = value.strip_suffix(b"\r\n") else {
            self.consumed = total;
            return self.answer_unless(quiet, "CLIENT_ERROR bad data chunk");
        };
        let mut head = RequestHead::new(verb, ReplyStyle::Text);
        head.client_flags = client_flags;
        head.expiry = self.clock.expiry(expiry);
        head.cas = cas;
        head.bits = if quiet { Bits::QUIET } else { 0 };
        self.server.run(total, Request { head, key, tokens: &[], value }, key)
    }

    /// Refuses a value before it arrives. The item that `set` would have replaced is out of date, and is removed.
    fn too_large(&mut self, verb: Verb, key: &'a [u8], quiet: bool, bytes: usize) -> Step<Request<'a>> {
        self.server.shared.too_large.fetch_add(1, Ordering::Relaxed);
        self.session.skip = bytes + 2;
        let step = self.answer_unless(quiet, "SERVER_ERROR object too large for cache");
        if verb != Verb::Set {
            return step;
        }
        let head = RequestHead::new(Verb::Evict, ReplyStyle::Text);
        self.server.run(self.consumed, Request::new(head, key), key)
    }

    /// Parses `name key number [noreply]`, where the number is an expiry time or one to add or to subtract.
    fn key_and_number(&mut self, command: Command) -> Step<Request<'a>> {
        let (words, count) = first_words::<4>(self.line);
        if count != 3 && count != 4 {
            return self.answer("ERROR");
        }
        let quiet = words[count - 1] == b"noreply";
        let key = words[1];
        if key.len() > KEY_BYTES_MAX {
            return self.answer_unless(quiet, BAD_FORMAT);
        }
        let mut head = RequestHead::new(command.verb, ReplyStyle::Text);
        if command.arguments == Arguments::Expiry {
            let Some(expiry) = words::signed_32(words[2]) else {
                return self.answer_unless(quiet, BAD_EXPIRY);
            };
            head.expiry = self.clock.expiry(expiry);
        } else {
            let Some(delta) = words::unsigned_64(words[2]) else {
                return self.answer_unless(quiet, "CLIENT_ERROR invalid numeric delta argument");
            };
            head.delta = delta;
        }
        head.bits = if quiet { Bits::QUIET } else { 0 };
        self.server.run(self.consumed, Request::new(head, key), key)
    }

    fn delete(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<4>(self.line);
        if !(2..=4).contains(&count) {
            return self.answer("ERROR");
        }
        let key = words[1];
        let mut quiet = false;
        if count > 2 {
            let zero = words[2] == b"0";
            quiet = words[count - 1] == b"noreply";
            let valid = (count == 3 && (zero || quiet)) || (count == 4 && zero && quiet);
            if !valid {
                const USAGE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
                return self.answer_unless(quiet, USAGE);
            }
        }
        if key.len() > KEY_BYTES_MAX {
            return self.answer_unless(quiet, BAD_FORMAT);
        }
        let mut head = RequestHead::new(Verb::Delete, ReplyStyle::Text);
        head.bits = if quiet { Bits::QUIET } else { 0 };
        self.server.run(self.consumed, Request::new(head, key), key)
    }
}
