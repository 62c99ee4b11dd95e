//! [`DemandReader`]: the demand of a host's sockets, by one of two estimators.
//!
//! ```text
//! program ── send call ──> socket: never sent │ sent, not acknowledged ──> receiver
//!           └───────────────── send_calls ───────────────────────────┘
//!                         └ socket_buffers ┘
//! ```

use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;

use plimsoll_bpf::SendCalls;
use plimsoll_linux::SockDiag;

use crate::{LiveError, LiveEstimator};

/// A source of the bytes that wait in this host for other hosts.
#[derive(Debug)]
pub(crate) enum DemandReader {
    SocketBuffers(SockDiag),
    SendCalls(SendCalls),
}

impl DemandReader {
    /// Opens the source in the network namespace of this thread.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub(crate) fn open(estimator: LiveEstimator) -> Result<DemandReader, LiveError> {
        match estimator {
            LiveEstimator::SocketBuffers => {
                SockDiag::open().map(DemandReader::SocketBuffers).map_err(LiveError::doing("reading sockets"))
            }
            LiveEstimator::SendCalls => {
                let network =
                    std::fs::metadata(NETWORK).map_err(LiveError::doing(format!("reading {NETWORK}")))?;
                Ok(DemandReader::SendCalls(SendCalls::attach(network.ino())?))
            }
        }
    }

    /// Calls `each` with the receiver and the bytes of every TCP connection over IPv4.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Ipv4Addr, u64)) -> Result<(), LiveError> {
        match self {
            DemandReader::SocketBuffers(sockets) => sockets
                .tcp(|socket| each(socket.to, socket.unsent))
                .map_err(LiveError::doing("reading sockets")),
            DemandReader::SendCalls(calls) => Ok(calls.demand(each)?),
        }
    }
}

const NETWORK: &str = "/proc/thread-self/ns/net";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use plimsoll_testing::eventually;

    use super::*;

    fn sum(reader: &mut DemandReader, receiver: Ipv4Addr) -> u64 {
        let mut sum = 0;
        reader.read(|to, bytes| sum += if to == receiver { bytes } else { 0 }).unwrap();
        sum
    }

    /// Two receivers that do not read: sockets hold a part of what two calls have given, and `send_calls` knows all of
    /// it. Once the calls have returned and the receivers read, neither estimator has demand left.
    #[test]
    fn socket_buffers_are_the_part_of_send_calls_that_sockets_hold() {
        let mut calls = match DemandReader::open(LiveEstimator::SendCalls) {
            Err(LiveError::Kernel(plimsoll_bpf::Error::Unsupported(reason))) => {
                return plimsoll_testing::skipped!("{reason}");
            }
            calls => calls.unwrap(),
        };
        let mut sockets = DemandReader::open(LiveEstimator::SocketBuffers).unwrap();
        let [.., high, low] = std::process::id().to_be_bytes();
        let receivers = [(1, 8_usize << 20), (2, 12 << 20)]
            .map(|(last, given)| (Ipv4Addr::new(127, high.max(1), low, last), given));
        let ends = receivers.map(|(receiver, given)| {
            let listener = TcpListener::bind((receiver, 0)).unwrap();
            let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let sending = thread::spawn(move || sender.write_all(&vec![0; given]).unwrap());
            (sending, listener.accept().unwrap().0)
        });
        for ((receiver, given), (_, end)) in receivers.iter().zip(&ends) {
            let mut held = 0;
            eventually("sockets that hold what they can", || {
                let arrived = rustix::io::ioctl_fionread(end).unwrap();
                held = sum(&mut sockets, *receiver);
                arrived > 0 && held > 0 && sum(&mut calls, *receiver) == *given as u64 - arrived
            });
            assert!(sum(&mut calls, *receiver) > held + (1 << 20), "{held} bytes in the socket");
        }
        for ((receiver, given), (sending, mut end)) in receivers.into_iter().zip(ends) {
            end.read_exact(&mut vec![0; given]).unwrap();
            sending.join().unwrap();
            eventually("no demand", || (sum(&mut sockets, receiver), sum(&mut calls, receiver)) == (0, 0));
        }
    }
}
