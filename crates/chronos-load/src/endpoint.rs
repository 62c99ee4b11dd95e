//! [`ServerAddress`] is the address of a server, and creates sockets to it.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

/// The address at which a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServerAddress {
    /// The address of a TCP port.
    Tcp(SocketAddr),
    /// The address of a UDP port.
    Udp(SocketAddr),
    /// The path of a UNIX stream socket.
    Unix(PathBuf),
}

/// The reason why a text is not an [`ServerAddress`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is not the address of a server: {problem}; write HOST:PORT, udp:HOST:PORT, or unix:PATH")]
pub struct BadEndpoint {
    text: String,
    problem: String,
}

impl FromStr for ServerAddress {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<ServerAddress, BadEndpoint> {
        let bad = |problem: String| BadEndpoint { text: text.to_owned(), problem };
        let resolve = |host: &str| {
            let mut found = host.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
            found.next().ok_or_else(|| bad("the name has no address".to_owned()))
        };
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(ServerAddress::Unix(path.into())),
            Some(("udp", host)) => Ok(ServerAddress::Udp(resolve(host)?)),
            Some(("tcp", host)) => Ok(ServerAddress::Tcp(resolve(host)?)),
            _ if text.starts_with('/') => Ok(ServerAddress::Unix(text.into())),
            _ => Ok(ServerAddress::Tcp(resolve(text)?)),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Tcp(address) => write!(f, "{address}"),
            ServerAddress::Udp(address) => write!(f, "udp:{address}"),
            ServerAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ServerAddress {
    /// Returns whether requests travel as datagrams.
    pub fn is_datagrams(&self) -> bool {
        matches!(self, ServerAddress::Udp(_))
    }

    /// Returns a connected socket that never blocks.
    ///
    /// # Errors
    /// Returns an error if no process listens there, or the system returns an error.
    pub fn connect(&self) -> io::Result<Socket> {
        let socket = match self {
            ServerAddress::Tcp(address) => {
                let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
                socket.connect_timeout(&SockAddr::from(*address), CONNECT_MAX)?;
                socket.set_tcp_nodelay(true)?;
                socket
            }
            ServerAddress::Udp(address) => {
                let socket = Socket::new(Domain::for_address(*address), Type::DGRAM, None)?;
                // This is best effort: the system may allow less.
                let _ = socket.set_recv_buffer_size(DATAGRAM_BUFFER_BYTES);
                socket.connect(&SockAddr::from(*address))?;
                socket
            }
            ServerAddress::Unix(path) => {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.connect(&SockAddr::unix(path)?)?;
                socket
            }
        };
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The size of the receive buffer, which holds a burst of replies, so that the generator loses none.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        for text in ["127.0.0.1:11211", "udp:127.0.0.1:11211", "unix:/run/memcached.sock"] {
            assert_eq!(text.parse::<ServerAddress>().unwrap().to_string(), text);
        }
        assert_eq!(
            "/run/memcached.sock".parse::<ServerAddress>(),
            Ok(ServerAddress::Unix("/run/memcached.sock".into()))
        );
        let error = "127.0.0.1".parse::<ServerAddress>().unwrap_err().to_string();
        let words = "`127.0.0.1` is not the address of a server";
        assert!(error.contains(words) && error.contains("udp:HOST:PORT"), "{error}");
    }
}
