//! A small HTTP server: a request, an answer, and the connection ends.
//!
//! ```text
//! Listener ──> a thread a connection ──> head and body, within limits ──> the caller's function ──> Answer
//! ```
//! A client cannot hold the server up: a request has one deadline for all its bytes, a bounded length that is checked
//! before anything is allocated for it, and beyond a number of connections the oldest is closed for the newest. Where
//! the system has no thread for a connection, it is answered with 503 where it was accepted.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_process::note;

use crate::listener::{Listener, Stream};

/// The limits of a server's clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of a request's body.
    pub body: usize,
    /// Most connections at a time.
    pub connections: usize,
    /// The time that a whole exchange may take; then the connection is closed.
    pub patience: Duration,
}

/// A request that was read as a whole.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    /// The authority of an absolute target.
    authority: Option<String>,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// Returns the method, as it was sent: `GET`.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the path of the target, without the part behind a question mark.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the value of a parameter behind the question mark, as it was sent.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// Returns the host that the request is for: that of an absolute target, whatever `Host` is sent beside it (RFC
    /// 9112, section 3.2.2), or else of the header.
    pub fn host(&self) -> Option<&str> {
        self.authority.as_deref().or_else(|| self.header("Host"))
    }

    /// Returns the value of a header, in whichever case its name was sent; none if it was sent twice, as either may be
    /// the one that counts.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, value) = named.next()?;
        named.next().is_none().then_some(value.as_str())
    }

    /// Returns the body; empty if there is none.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// The status with its words: `200 OK`.
    pub status: &'static str,
    /// The `Content-Type` of the body.
    pub kind: &'static str,
    /// Further headers, by name and value.
    pub headers: &'static [(&'static str, &'static str)],
    /// The text that is sent.
    pub body: String,
}

impl HttpAnswer {
    /// Makes an answer in plain text.
    pub fn text(status: &'static str, body: impl Into<String>) -> HttpAnswer {
        HttpAnswer { status, kind: "text/plain; charset=utf-8", headers: &[], body: body.into() }
    }
}

/// Answers requests until the listener fails. Input that is not a valid request is answered here, with the reason.
///
/// # Errors
/// Returns the error of the listener.
pub fn serve(
    listener: &Listener,
    limits: Limits,
    answer: &(dyn Fn(&Request) -> HttpAnswer + Sync),
) -> io::Result<()> {
    thread::scope(|scope| {
        // Connections that are being answered, which their threads own: each is closed as soon as its thread ends.
        let mut open: VecDeque<Weak<Stream>> = VecDeque::new();
        let mut is_noted = false;
        let mut refuse = |stream: Arc<Stream>, error: &io::Error| {
            if !is_noted {
                note!("warning: a connection is answered with 503, as there is no thread for it: {error}");
                is_noted = true;
            }
            // A client that is slow or disconnects is not answered.
            let _ = refuse(stream);
        };
        loop {
            let stream = match listener.accept() {
                Ok(stream) => Arc::new(stream),
                Err(error) if is_passing(&error) => {
                    // Where there are no descriptors left, some come back with the clients that are served.
                    thread::sleep(RETRY_AFTER);
                    continue;
                }
                Err(error) => return Err(error),
            };
            open.retain(|open| open.strong_count() > 0);
            if open.len() >= limits.connections
                && let Some(oldest) = open.pop_front().and_then(|oldest| oldest.upgrade())
            {
                oldest.shut_down();
            }
            open.push_back(Arc::downgrade(&stream));
            let mut until = Until::new(Arc::clone(&stream), limits.patience);
            let answering = move || {
                // A client that sends nothing, is slow or disconnects is not answered.
                let _ = exchange(&mut until, limits, answer).and_then(|()| until.end());
            };
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, answering) {
                refuse(stream, &error);
            }
        }
    })
}

/// Answers a connection for which the system has no thread. Others wait meanwhile, so the client has little time.
fn refuse(stream: Arc<Stream>) -> io::Result<()> {
    let mut until = Until::new(stream, PATIENCE_IN_NEED);
    send(
        &mut until,
        false,
        &HttpAnswer::text("503 Service Unavailable", "the server has no thread for this\n"),
    )?;
    until.end()
}

/// Returns whether connections may be accepted after this error: only one connection failed, or a resource is short for
/// a while.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::CONNABORTED, Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| passing.contains(&error))
}

/// A connection with a deadline for all its reads and writes together.
struct Until {
    stream: Arc<Stream>,
    deadline: Instant,
}

impl Until {
    fn new(stream: Arc<Stream>, patience: Duration) -> Until {
        Until { stream, deadline: Instant::now() + patience }
    }

    /// Ends the answer, and reads the bytes that the client has sent beside its request: unread, they would reset the
    /// connection, and the client would lose the answer.
    fn end(&mut self) -> io::Result<()> {
        match &*self.stream {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write)?,
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write)?,
        }
        io::copy(&mut self.take(HEAD_MAX as u64), &mut io::sink()).map(drop)
    }

    fn wait(&self) -> io::Result<&Stream> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_timeouts(left)?;
        Ok(&self.stream)
    }
}

impl Read for Until {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.wait()? {
            Stream::Unix(stream) => Read::read(&mut &*stream, buffer),
            Stream::Tcp(stream) => Read::read(&mut &*stream, buffer),
        }
    }
}

impl Write for Until {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.wait()? {
            Stream::Unix(stream) => Write::write(&mut &*stream, bytes),
            Stream::Tcp(stream) => Write::write(&mut &*stream, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a request and sends its answer.
fn exchange(
    stream: &mut (impl Read + Write),
    limits: Limits,
    answer: &dyn Fn(&Request) -> HttpAnswer,
) -> io::Result<()> {
    let (is_head, answer) = match read(stream, limits)? {
        Ok(request) => (request.method == "HEAD", answer(&request)),
        Err(refusal) => (false, refusal),
    };
    send(stream, is_head, &answer)
}

fn send(stream: &mut impl Write, is_head: bool, answer: &HttpAnswer) -> io::Result<()> {
    let HttpAnswer { status, kind, headers, body } = answer;
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if is_head { Ok(()) } else { stream.write_all(body.as_bytes()) }
}

/// Reads a request, or returns the answer to one that is not valid.
fn read(stream: &mut impl Read, limits: Limits) -> io::Result<Result<Request, HttpAnswer>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    let (end, mut request) = loop {
        match head(&bytes) {
            Ok(Some(found)) => break found,
            Ok(None) if bytes.len() < HEAD_MAX => {}
            Ok(None) | Err(httparse::Error::TooManyHeaders) => {
                let message =
                    format!("the headers have more than {HEAD_MAX} bytes or {HEADERS_MAX} fields\n");
                return Ok(Err(HttpAnswer::text("431 Request Header Fields Too Large", message)));
            }
            Err(error) => return Ok(Err(HttpAnswer::text(BAD_REQUEST, format!("not HTTP/1.1: {error}\n")))),
        }
        match stream.read(&mut piece)? {
            0 => return Ok(Err(HttpAnswer::text(BAD_REQUEST, "the request breaks off\n"))),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    };
    let is_of = |name: &str| request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let length = match request.header("Content-Length").map(str::parse::<u64>) {
        None if is_of("Content-Length") || is_of("Transfer-Encoding") => {
            return Ok(Err(HttpAnswer::text("411 Length Required", "one Content-Length is needed\n")));
        }
        None => 0,
        Some(Ok(length)) => length,
        Some(Err(_)) => return Ok(Err(HttpAnswer::text(BAD_REQUEST, "Content-Length is no number\n"))),
    };
    if length > limits.body as u64 {
        return Ok(Err(HttpAnswer::text("413 Content Too Large", "the request is too large\n")));
    }
    request.body = bytes.split_off(end);
    while (request.body.len() as u64) < length {
        match stream.read(&mut piece)? {
            0 => return Ok(Err(HttpAnswer::text(BAD_REQUEST, "the body breaks off\n"))),
            count => request.body.extend_from_slice(&piece[..count]),
        }
    }
    request.body.truncate(length as usize);
    Ok(Ok(request))
}

/// Parses a request's line and headers, and returns them with their length; none while they are not whole.
fn head(bytes: &[u8]) -> Result<Option<(usize, Request)>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(end) = head.parse(bytes)? else { return Ok(None) };
    let header = |header: &httparse::Header<'_>| {
        let value = std::str::from_utf8(header.value).map_err(|_| httparse::Error::HeaderValue)?;
        Ok((header.name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
    };
    let headers = head.headers.iter().map(header).collect::<Result<_, _>>()?;
    let word = |word: Option<&str>| word.unwrap_or_default().to_owned();
    let (method, target) = (word(head.method), word(head.path));
    let (authority, target) = match absolute(&target) {
        Some((authority, path)) => (Some(authority.to_owned()), path.to_owned()),
        None => (None, target),
    };
    Ok(Some((end, Request { method, authority, target, headers, body: Vec::new() })))
}

/// Returns the authority of an absolute target (RFC 9112, section 3.2.2), and its path and query; a URI without a path
/// means the root.
pub fn absolute(target: &str) -> Option<(&str, &str)> {
    const SCHEME: &str = "http://";
    let scheme = target.get(..SCHEME.len())?;
    let rest = &target[SCHEME.len()..];
    let path = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path);
    scheme.eq_ignore_ascii_case(SCHEME).then_some((authority, if path.is_empty() { "/" } else { path }))
}

const BAD_REQUEST: &str = "400 Bad Request";
/// The usual [`Limits::patience`]: half of Prometheus's timeout.
pub const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_IN_NEED: Duration = Duration::from_millis(200);
const HEAD_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;
const RETRY_AFTER: Duration = Duration::from_millis(50);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
