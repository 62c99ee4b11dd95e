//! memcached's ASCII protocol: `get WORD...`, `set`, `delete`, `stats`, `version`, `quit`.
//!
//! `get` answers with posting lists. The key of `set` and `delete` names a document, or, as in the paper's experiment,
//! a word whose posting list is the client's own ([`Sets`]).

use plimsoll_chronos::Step;

use crate::answer;
use crate::budget::Full;
use crate::document::{About, Term};
use crate::request::{Request, SuccessForm};
use crate::service::{SearchService, Session, Sets};
use crate::{ID_BYTES_MAX, check_id};

/// Bytes of the longest line of words.
const LINE_BYTES_MAX: usize = 1 << 16;
/// memcached reports this even to clients that asked for no reply.
const NO_MEMORY: &str = "SERVER_ERROR out of memory storing object\r\n";

/// Reads a command, or the next word of a `get`.
pub fn parse<'a>(
    search: &SearchService,
    session: &mut Session,
    input: &'a [u8],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    if session.in_get {
        return next_word(search, session, input, 0, reply);
    }
    let Some(end) = input.iter().take(LINE_BYTES_MAX).position(|&byte| byte == b'\n') else {
        if input.len() < LINE_BYTES_MAX {
            session.in_head = true;
            return Step::Incomplete { total: input.len() + 1 };
        }
        reply.extend(b"CLIENT_ERROR line too long\r\n");
        return Step::Close;
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let consumed = end + 1;
    if line.starts_with(b"get ") {
        session.in_get = line[4..].iter().any(|&byte| byte != b' ');
        if session.in_get {
            return next_word(search, session, input, 4, reply);
        }
    }
    if is_http(line) {
        return Step::Close;
    }
    let mut parts = line.split(|&byte| byte == b' ').filter(|part| !part.is_empty());
    let command = parts.next().unwrap_or_default();
    let arguments: Vec<&[u8]> = parts.take(6).collect();
    match (command, &arguments[..]) {
        (b"set", [key, rest @ ..]) => set(search, input, consumed, key, rest, reply),
        (b"delete", [key, rest @ ..]) => delete(search, consumed, key, rest, reply),
        (b"stats", []) => search.step(consumed, Request::Count(SuccessForm::Stored), reply),
        (b"version", []) => {
            reply.extend(concat!("VERSION ", env!("CARGO_PKG_VERSION"), "\r\n").as_bytes());
            Step::Done { consumed }
        }
        (b"quit", []) => Step::Close,
        _ => {
            reply.extend(b"ERROR\r\n");
            Step::Done { consumed }
        }
    }
}

/// Reports whether a line other than a `get` is a request line of HTTP: three words and more, of which the last begins
/// with `HTTP/`. As with memcached it ends the connection, so that the body behind it is not executed as commands. No
/// valid command looks like this.
fn is_http(line: &[u8]) -> bool {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    words.next_back().is_some_and(|last| last.starts_with(b"HTTP/")) && words.count() >= 2
}

/// Parses a complete line; `start` bytes of the input are consumed.
fn next_word<'a>(
    search: &SearchService,
    session: &mut Session,
    input: &'a [u8],
    start: usize,
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let is_end = |&byte: &u8| matches!(byte, b' ' | b'\r' | b'\n');
    let blanks = input[start..].iter().take_while(|&&byte| byte == b' ').count();
    let start = start + blanks;
    let length = input[start..].iter().position(is_end).expect("the line is whole");
    let word = &input[start..start + length];
    let consumed = start + length;
    if word.is_empty() || word.len() > ID_BYTES_MAX {
        session.in_get = false;
        let rest = input[consumed..].iter().position(|&byte| byte == b'\n').expect("the line is whole");
        let answer: &[u8] =
            if word.is_empty() { b"END\r\n" } else { b"CLIENT_ERROR bad command line format\r\n" };
        reply.extend(answer);
        return Step::Done { consumed: consumed + rest + 1 };
    }
    search.step(consumed, Request::Get(Term::new(search.hash(), word)), reply)
}

fn set<'a>(
    search: &SearchService,
    input: &'a [u8],
    line: usize,
    key: &'a [u8],
    arguments: &[&[u8]],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let quiet = arguments.get(3) == Some(&&b"noreply"[..]);
    let numbers = match arguments {
        [flags, expiry, bytes] | [flags, expiry, bytes, b"noreply"] => {
            number::<u32>(flags).zip(number::<u32>(expiry)).zip(number::<usize>(bytes))
        }
        _ => None,
    };
    let Some(((flags, expiry), bytes)) = numbers.filter(|_| key.len() <= ID_BYTES_MAX) else {
        return refuse(line, "CLIENT_ERROR bad command line format\r\n", reply);
    };
    if bytes > search.settings().document_bytes_max {
        reply.extend(b"SERVER_ERROR object too large for cache\r\n");
        return Step::Skip { bytes: line.saturating_add(bytes).saturating_add(2) };
    }
    let total = line + bytes + 2;
    let Some(block) = input.get(line..total) else {
        return Step::Incomplete { total };
    };
    let Some(value) = block.strip_suffix(b"\r\n") else {
        return refuse(total, "CLIENT_ERROR bad data chunk\r\n", reply);
    };
    if expiry != 0 {
        return refuse(total, "CLIENT_ERROR nothing expires here: the expiry time must be 0\r\n", reply);
    }
    if search.settings().sets == Sets::Postings {
        let term = Term::new(search.hash(), key);
        return search.step(total, Request::Set { term, flags, value, quiet }, reply);
    }
    let (Ok(id), Ok(text)) = (str::from_utf8(key), str::from_utf8(value)) else {
        return refuse(total, "CLIENT_ERROR not UTF-8\r\n", reply);
    };
    if let Err(wrong) = check_id(id) {
        return refuse(total, &format!("CLIENT_ERROR {wrong}\r\n"), reply);
    }
    let about = About { id: id.into(), ..About::default() };
    let answer = move |_| if quiet { SuccessForm::Quiet } else { SuccessForm::Stored };
    search.put(total, about, text, answer, reply).unwrap_or_else(|Full| refuse(total, NO_MEMORY, reply))
}

fn delete<'a>(
    search: &SearchService,
    consumed: usize,
    key: &'a [u8],
    arguments: &[&[u8]],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let quiet = match arguments {
        // A time of 0 is from memcached's past, and allowed.
        [] | [b"0"] => false,
        [b"noreply"] | [b"0", b"noreply"] => true,
        _ => return refuse(consumed, "CLIENT_ERROR bad command line format\r\n", reply),
    };
    if key.len() > ID_BYTES_MAX {
        return refuse(consumed, "CLIENT_ERROR bad command line format\r\n", reply);
    }
    if search.settings().sets == Sets::Postings {
        let term = Term::new(search.hash(), key);
        return search.step(consumed, Request::Forget { term, quiet }, reply);
    }
    let answer = if quiet { SuccessForm::Quiet } else { SuccessForm::Deleted };
    let deleted = str::from_utf8(key).ok().and_then(|id| search.delete(consumed, id, answer, reply));
    deleted.unwrap_or_else(|| refuse(consumed, if quiet { "" } else { "NOT_FOUND\r\n" }, reply))
}

/// Answers with memcached's `STORED`, or reports that the budget is full.
pub fn set_done(result: Result<(), Full>, quiet: bool, reply: &mut Vec<u8>) {
    match result {
        Err(Full) => reply.extend(NO_MEMORY.as_bytes()),
        Ok(()) => answer::done(if quiet { SuccessForm::Quiet } else { SuccessForm::Stored }, reply),
    }
}

/// Answers with memcached's `DELETED` or `NOT_FOUND`.
pub fn forgotten(known: bool, quiet: bool, reply: &mut Vec<u8>) {
    match (quiet, known) {
        (true, _) => {}
        (false, true) => answer::done(SuccessForm::Deleted, reply),
        (false, false) => reply.extend(b"NOT_FOUND\r\n"),
    }
}

fn refuse<'a>(consumed: usize, answer: &str, reply: &mut Vec<u8>) -> Step<Request<'a>> {
    reply.extend(answer.as_bytes());
    Step::Done { consumed }
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    str::from_utf8(digits).ok()?.parse().ok()
}
