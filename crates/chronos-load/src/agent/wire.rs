//! [`Wire`]: messages as lines over TCP, of bounded length and within a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::{SockRef, TcpKeepalive};

/// A connection between a caller and an agent.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    /// Bytes that arrived behind the last message.
    rest: Vec<u8>,
}

/// The reason that no message was received.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("the connection ended")]
    Ended,
    #[error("no answer came within {} s", .0.as_secs())]
    Late(Duration),
    #[error("a message has more than {0} bytes")]
    TooLong(usize),
    #[error("a message is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the connection is lost: {0}")]
    Lost(#[from] io::Error),
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> io::Result<Wire> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_MAX))?;
        // The connections of a machine that is gone do not end by themselves.
        let keepalive = TcpKeepalive::new().with_time(SILENCE_MAX).with_interval(SILENCE_MAX).with_retries(3);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        Ok(Wire { stream, rest: Vec::new() })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<(), WireError> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        Ok(self.stream.write_all(&line)?)
    }

    /// Receives a message of at most `bytes_max` bytes that is whole within `patience`.
    pub(super) fn receive<M: DeserializeOwned>(
        &mut self,
        bytes_max: usize,
        patience: Duration,
    ) -> Result<M, WireError> {
        let deadline = Instant::now() + patience;
        let mut piece = vec![0; PIECE_BYTES];
        let mut looked_at = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.rest[looked_at..]) {
                let line: Vec<u8> = self.rest.drain(..=looked_at + end).collect();
                return Ok(serde_json::from_slice(&line)?);
            }
            looked_at = self.rest.len();
            if looked_at > bytes_max {
                return Err(WireError::TooLong(bytes_max));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(WireError::Late(patience));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(WireError::Ended),
                Ok(length) => self.rest.extend_from_slice(&piece[..length]),
                Err(error) if is_timeout(&error) || error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Whether a read ended because its time was over, rather than since the other machine is gone (`TimedOut`).
pub(super) fn is_timeout(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// The silence after which the other side is probed, three times.
const SILENCE_MAX: Duration = Duration::from_secs(5);
const WRITE_MAX: Duration = Duration::from_secs(10);
const PIECE_BYTES: usize = 16 * 1024;
