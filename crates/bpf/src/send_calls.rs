//! [`SendCalls`] reads the bytes that programs have given to send calls of TCP and that were not acknowledged
//! (`programs/send_calls.bpf.c`).

use std::fmt;
use std::io::Read as _;
use std::net::Ipv4Addr;

use libbpf_rs::{Iter, Link};

use crate::shared::{SendCallSettings, SendDemand, Shared};
use crate::{Error, Program, tracepoints};

/// The estimator of demand by send calls. Its programs leave the kernel with this value, or with the process that has
/// it, however it ends: nothing is pinned.
pub struct SendCalls {
    _calls: Vec<Link>,
    sockets: Link,
    program: Program,
    /// Memory for the records of one reading.
    records: Vec<u8>,
}

impl SendCalls {
    /// Loads and attaches the programs for the network namespace with this inode number (`/proc/PID/ns/net`). A send
    /// call that is under way counts once it continues.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] if the kernel does not describe its types (BTF) or lacks a tracepoint, which the
    /// error names, and otherwise the errors of [`Program::clock`].
    pub fn attach(network: u64) -> Result<SendCalls, Error> {
        let here = tracepoints::present(TRACEPOINTS.into_iter())?;
        if let Some(missing) = TRACEPOINTS.iter().find(|name| !here.contains(name)) {
            return Err(Error::Unsupported(format!(
                "this kernel has no tracepoint {missing}, which the estimator send_calls needs"
            )));
        }
        let settings = SendCallSettings { network };
        let mut program = Program::load("send_calls", READER, Some(&settings.to_bytes()))?;
        let (mut calls, mut sockets) = (Vec::new(), None);
        for part in program.object_mut().progs_mut() {
            let link = part.attach().map_err(Error::while_doing("attaching send_calls"))?;
            if part.name() == READER { sockets = Some(link) } else { calls.push(link) }
        }
        let sockets = sockets.expect("the image has this program");
        Ok(SendCalls { _calls: calls, sockets, program, records: Vec::new() })
    }

    /// Calls `each` with the receiver and the bytes of every TCP connection over IPv4 that has some, of the network
    /// namespace of this thread, which is to be that of [`SendCalls::attach`].
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel refuses.
    pub fn demand(&mut self, mut each: impl FnMut(Ipv4Addr, u64)) -> Result<(), Error> {
        let failed = || self.program.failed("reading sockets by");
        let mut sockets = Iter::new(&self.sockets).map_err(failed())?;
        self.records.clear();
        sockets.read_to_end(&mut self.records).map_err(|error| failed()(error.into()))?;
        for record in self.records.chunks_exact(size_of::<SendDemand>()) {
            let record = SendDemand::from_bytes(record).expect("a chunk has its length");
            let [a, b, c, d, ..] = record.receiver.to_ne_bytes();
            each(Ipv4Addr::new(a, b, c, d), record.bytes);
        }
        Ok(())
    }
}

impl fmt::Debug for SendCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendCalls").finish_non_exhaustive()
    }
}

/// The program of `send_calls.bpf.c` that reads sockets.
const READER: &str = "demand";
const TRACEPOINTS: [&str; 2] = ["tcp_sendmsg_locked", "sock_send_length"];
