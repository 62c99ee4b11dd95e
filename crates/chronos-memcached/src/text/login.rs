//! `-Y`: the first `set` of a text connection carries "user password"; nothing else is answered before.

use std::sync::atomic::Ordering;

use memchr::memchr;
use plimsoll_chronos::Step;

use super::words::{self, Words};
use crate::request::Request;
use crate::server::Memcached;
use crate::session::Session;

/// A line longer than this without an end is not a login.
const LINE_BYTES_MAX: usize = 2048;
/// Bytes that names and passwords can have together.
const CREDENTIALS_BYTES_MAX: usize = 2048;

/// Parses a login, and checks it.
pub fn login<'a>(
    server: &Memcached,
    session: &mut Session,
    input: &'a [u8],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let Some(bytes) = session.credentials else { return first_line(session, input, reply) };
    if input.len() < bytes {
        return Step::Incomplete { total: bytes };
    }
    session.credentials = None;
    let answer = match input[..bytes].strip_suffix(b"\r\n") {
        None => "CLIENT_ERROR bad command line termination",
        Some(line) => check(server, session, line),
    };
    reply.extend_from_slice(answer.as_bytes());
    reply.extend_from_slice(b"\r\n");
    Step::Done { consumed: bytes }
}

fn first_line<'a>(session: &mut Session, input: &'a [u8], reply: &mut Vec<u8>) -> Step<Request<'a>> {
    let Some(end) = memchr(b'\n', input) else {
        return if input.len() > LINE_BYTES_MAX {
            Step::Close
        } else {
            Step::Incomplete { total: input.len() + 1 }
        };
    };
    let line = &input[..end];
    let line = &line[..memchr(0, line).unwrap_or(end)];
    if words::is_http(line.strip_suffix(b"\r").unwrap_or(line)) {
        return Step::Close;
    }
    let (words, count) = words::first_words::<5>(line);
    let bytes = words::unsigned_32(words[4]).map(|bytes| bytes as usize + 2);
    match bytes.filter(|_| count >= 5 && words[0] == b"set") {
        Some(bytes) if bytes <= CREDENTIALS_BYTES_MAX => session.credentials = Some(bytes),
        Some(_) => return Step::Close,
        None => reply.extend_from_slice(b"CLIENT_ERROR unauthenticated\r\n"),
    }
    Step::Done { consumed: end + 1 }
}

fn check(server: &Memcached, session: &mut Session, line: &[u8]) -> &'static str {
    let mut words = Words(line);
    let (Some(user), Some(password)) = (words.next(), words.next()) else {
        return "CLIENT_ERROR bad authentication token format";
    };
    server.shared.auth_commands.fetch_add(1, Ordering::Relaxed);
    if server.settings.credentials.as_ref().is_some_and(|known| known.accept(user, password)) {
        session.authenticated = true;
        return "STORED";
    }
    server.shared.auth_errors.fetch_add(1, Ordering::Relaxed);
    "CLIENT_ERROR authentication failure"
}
