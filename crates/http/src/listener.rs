//! [`Listener`]: the address of a server, on a UNIX socket or by TCP.

use std::fs;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// A socket that a server listens on.
#[derive(Debug)]
pub enum Listener {
    /// A UNIX socket of a path.
    Unix(UnixListener),
    /// A TCP socket at this address.
    Tcp(TcpListener),
}

/// The addresses of TCP that a listener may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenerReach {
    /// Only loopback addresses are allowed.
    Loopback,
    /// Every address is allowed.
    Everywhere,
}

impl Listener {
    /// Binds `unix:/PATH`, or an address and port. A UNIX socket without a listening process is replaced.
    ///
    /// # Errors
    /// Returns an error if the text has another form, the address is not allowed, or it is in use.
    pub fn bind(text: &str, reach: ListenerReach) -> io::Result<Listener> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            // A killed process leaves its socket behind, without a listening process.
            let stale = fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_socket())
                && UnixStream::connect(&path).is_err();
            if stale {
                fs::remove_file(&path)?;
            }
            return UnixListener::bind(&path).map(Listener::Unix);
        }
        let allowed = match reach {
            ListenerReach::Loopback => "expected unix:/PATH, 127.0.0.1:PORT or [::1]:PORT",
            ListenerReach::Everywhere => "expected unix:/PATH, or an address and port such as 127.0.0.1:9464",
        };
        let address: SocketAddr =
            text.parse().map_err(|_| io::Error::other(format!("not an address; {allowed}")))?;
        if reach == ListenerReach::Loopback && !address.ip().is_loopback() {
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

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Listener::Unix(listener) => Stream::Unix(listener.accept()?.0),
            Listener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
        })
    }
}

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Ends the connection, whichever thread uses it.
    pub(crate) fn shut_down(&self) {
        // The connection may have ended already.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    pub(crate) fn set_timeouts(&self, time: Duration) -> io::Result<()> {
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
