//! Serves metrics at `GET /metrics`, on threads of its own.
//!
//! A client cannot hold the server up: a request has one deadline for all its bytes, a bounded length, and beyond a few
//! connections at a time the oldest is closed for the newest. Nothing is authenticated.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A socket that serves metrics.
#[derive(Debug)]
pub enum Listener {
    /// A UNIX socket of a path.
    Unix(UnixListener),
    /// A TCP socket at this address.
    Tcp(TcpListener),
}

/// The addresses of TCP that a listener may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Only loopback addresses are allowed.
    Loopback,
    /// Every address is allowed.
    Everywhere,
}

impl Listener {
    /// Binds `unix:/PATH`, or an address and port. A UNIX socket that nobody listens on is replaced.
    ///
    /// # Errors
    /// Returns an error if the text has another form, the address is not allowed, or it is in use.
    pub fn bind(text: &str, reach: Reach) -> io::Result<Listener> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            // A killed process leaves its socket behind, at which nobody listens.
            let stale = fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_socket())
                && UnixStream::connect(&path).is_err();
            if stale {
                fs::remove_file(&path)?;
            }
            return UnixListener::bind(&path).map(Listener::Unix);
        }
        let allowed = match reach {
            Reach::Loopback => "expected unix:/PATH, 127.0.0.1:PORT or [::1]:PORT",
            Reach::Everywhere => "expected unix:/PATH, or an address and port such as 127.0.0.1:9464",
        };
        let address: SocketAddr =
            text.parse().map_err(|_| io::Error::other(format!("not an address; {allowed}")))?;
        if reach == Reach::Loopback && !address.ip().is_loopback() {
            return Err(io::Error::other(format!("not a local address; {allowed}")));
        }
        TcpListener::bind(address).map(Listener::Tcp)
    }

    /// Returns the listening address; port 0 is replaced by the port that the system chose.
    pub fn address(&self) -> String {
        match self {
            Listener::Unix(listener) => {
                let path = listener.local_addr().ok().and_then(|at| at.as_pathname().map(PathBuf::from));
                format!("unix:{}", path.unwrap_or_default().display())
            }
            Listener::Tcp(listener) => listener.local_addr().map(|at| at.to_string()).unwrap_or_default(),
        }
    }

    fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Listener::Unix(listener) => Stream::Unix(listener.accept()?.0),
            Listener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
        })
    }
}

/// Serves metrics as [`serve`] does, on a thread that ends with the process.
///
/// # Errors
/// Returns an error if the system has no thread.
pub fn spawn(
    listener: Listener,
    text: impl Fn() -> Result<String, String> + Send + Sync + 'static,
) -> io::Result<()> {
    let serving = move || {
        // Without the listener there are no metrics; the server goes on.
        let _ = serve(&listener, &text);
    };
    thread::Builder::new().name("metrics".to_owned()).spawn(serving).map(drop)
}

/// Answers requests for `/metrics` with the result of `text`, until the listener fails.
///
/// # Errors
/// Returns the error of the listener.
pub fn serve(listener: &Listener, text: &(dyn Fn() -> Result<String, String> + Sync)) -> io::Result<()> {
    thread::scope(|scope| {
        let mut open: VecDeque<Open> = VecDeque::new();
        loop {
            let stream = match listener.accept() {
                Ok(stream) => stream,
                Err(error) if is_passing(&error) => {
                    // Where there are no descriptors left, some come back with the clients that are served.
                    thread::sleep(RETRY_AFTER);
                    continue;
                }
                Err(error) => return Err(error),
            };
            open.retain(|open| !open.is_done.load(Ordering::Relaxed));
            if open.len() >= CONNECTIONS_MAX
                && let Some(oldest) = open.pop_front()
            {
                oldest.stream.shut_down();
            }
            let Ok(other) = stream.try_clone() else { continue };
            let is_done = Arc::new(AtomicBool::new(false));
            open.push_back(Open { stream: other, is_done: Arc::clone(&is_done) });
            let answering = move || {
                let mut until = Until::new(stream);
                // A client that sends nothing, is slow or disconnects is not answered.
                let _ = answer(&mut until, text).and_then(|()| until.end());
                is_done.store(true, Ordering::Relaxed);
            };
            if thread::Builder::new().spawn_scoped(scope, answering).is_err() {
                open.pop_back();
            }
        }
    })
}

/// Whether connections may be accepted after this error: what failed was one of them, or a lack that passes.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::CONNABORTED, Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| passing.contains(&error))
}

/// A connection that is being answered.
struct Open {
    stream: Stream,
    is_done: Arc<AtomicBool>,
}

/// A connection of either kind.
#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    /// Ends the connection, whichever thread uses it.
    fn shut_down(&self) {
        // It may have ended already.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn set_timeouts(&self, time: Duration) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(time)).and_then(|()| stream.set_write_timeout(Some(time)))
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(time)).and_then(|()| stream.set_write_timeout(Some(time)))
            }
        }
    }
}

/// A connection with a deadline for all its reads and writes together.
struct Until {
    stream: Stream,
    deadline: Instant,
}

impl Until {
    fn new(stream: Stream) -> Until {
        Until { stream, deadline: Instant::now() + PATIENCE }
    }

    /// Ends the answer, and reads what the client has sent beside its request: unread, it would reset the connection,
    /// and take the answer back.
    fn end(&mut self) -> io::Result<()> {
        match &self.stream {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write)?,
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write)?,
        }
        io::copy(&mut self.take(REQUEST_MAX as u64), &mut io::sink()).map(drop)
    }

    fn wait(&mut self) -> io::Result<&mut Stream> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_timeouts(left)?;
        Ok(&mut self.stream)
    }
}

impl Read for Until {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.wait()? {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Until {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.wait()? {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn answer(stream: &mut (impl Read + Write), text: &dyn Fn() -> Result<String, String>) -> io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        match stream.read(&mut piece)? {
            0 => break,
            length => request.extend_from_slice(&piece[..length]),
        }
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let (status, more, body) = match words[..] {
        [method, target, version] if version.starts_with(b"HTTP/1.") => {
            let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
            match (method, path) {
                (_, path) if path != b"/metrics" => ("404 Not Found", "", "GET /metrics\n".to_owned()),
                (b"GET" | b"HEAD", _) => match text() {
                    Ok(body) => ("200 OK", "", body),
                    Err(error) => ("500 Internal Server Error", "", format!("{error}\n")),
                },
                _ => ("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET /metrics\n".to_owned()),
            }
        }
        _ => ("400 Bad Request", "", "GET /metrics\n".to_owned()),
    };
    let kind = if status.starts_with("200") { OPEN_METRICS } else { "text/plain; charset=utf-8" };
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if words.first() != Some(&&b"HEAD"[..]) {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The deadline of a whole request: half of Prometheus's timeout.
const PATIENCE: Duration = Duration::from_secs(5);
const REQUEST_MAX: usize = 8 * 1024;
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 8;
const RETRY_AFTER: Duration = Duration::from_millis(50);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
