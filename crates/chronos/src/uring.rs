//! [`UringDriver`]: connections by completion. One call a turn submits the bytes to send and fetches the bytes
//! received.
//!
//! ```text
//! armed once:  accept, receive (into provided buffers; from a UNIX socket each time), poll of the alarm and of the
//!              UDP sockets
//! each turn:   io_uring_enter ──> completions ──> requests ──> sends, queued for the next call
//! ```
//!
//! The bytes that the kernel sends are owned by the driver (a *flight*) until their completion, even if the connection
//! ends. A descriptor is closed only after all queued operations that name it have been submitted.

mod buffers;
mod connections;
mod flight;

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use crate::connection::ConnectionOrigin;
use crate::datagrams::Datagrams;
use crate::look_ahead::DISTANCE;
use crate::mail::Newcomer;
use crate::port::DatagramPort;
use crate::shared::Shared;
use crate::sockets::{ACCEPT_PAUSE, ServerSocket, set_up};
use crate::worker::{IoDriver, Worker};
use crate::{Ahead, Service, SessionTransport, StartError};
use buffers::BufferRing;
use flight::Flight;

/// One thread's io_uring instance.
pub(crate) struct UringDriver {
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<BufferRing>,
    flights: ManuallyDrop<Slab<Flight>>,
    /// Flights that have ended, whose memory the next ones use.
    ended: Vec<Flight>,
    completions: Vec<(u64, i32, u32)>,
    /// The partitions and places that the received requests will use.
    seen: Vec<Option<(u32, u64)>>,
    listeners: Vec<ServerSocket>,
    datagrams: Datagrams,
    /// Ports for datagrams that may have more.
    again: Vec<usize>,
    /// Listeners that are to be armed again, and the time.
    accept_again: Vec<usize>,
    accept_after: Duration,
}

/// The most operations that are queued before they are submitted.
const ENTRIES: u32 = 256;
/// Completions for which the kernel keeps room.
const COMPLETIONS: u32 = 4096;

/// The kinds of operations, in the highest bits of the user data that the kernel returns.
const RECEIVE: u64 = 1 << 60;
const SEND: u64 = 2 << 60;
const ACCEPT: u64 = 3 << 60;
const POLL_ALARM: u64 = 4 << 60;
const POLL_DATAGRAMS: u64 = 5 << 60;
const CANCEL: u64 = 6 << 60;
const KIND: u64 = 15 << 60;
/// The number that follows the kind.
const NUMBER: u64 = u32::MAX as u64;
/// The part of a connection's incarnation for which there is room.
const INCARNATION: u32 = (1 << 28) - 1;

fn receive_token(key: u32, incarnation: u32) -> u64 {
    RECEIVE | u64::from(incarnation & INCARNATION) << 32 | u64::from(key)
}

impl UringDriver {
    /// Creates the driver of a thread with these listeners; on that thread.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        me: u32,
        listeners: Vec<ServerSocket>,
        datagrams: Datagrams,
    ) -> Result<UringDriver, StartError> {
        let failed = |what| move |source| StartError::Worker { what, source };
        let (ring, buffers) = UringDriver::set_up()
            .map_err(failed("io_uring (Linux 6.1 or later, and kernel.io_uring_disabled = 0)"))?;
        let mut driver = UringDriver {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            flights: ManuallyDrop::new(Slab::new()),
            ended: Vec::new(),
            completions: Vec::new(),
            seen: Vec::new(),
            accept_again: (0..listeners.len()).collect(),
            listeners,
            again: Vec::new(),
            datagrams,
            accept_after: Duration::ZERO,
        };
        driver.poll(shared.alarm(me).as_raw_fd(), POLL_ALARM).map_err(failed("io_uring"))?;
        let ports: Vec<(u64, i32)> =
            driver.datagrams.polled().map(|(number, port)| (number, port.as_raw_fd())).collect();
        for (number, port) in ports {
            driver.poll(port, POLL_DATAGRAMS | number).map_err(failed("io_uring"))?;
        }
        Ok(driver)
    }

    /// Reports whether the kernel has the operations that this needs, and lets this process use them.
    pub(crate) fn is_available() -> bool {
        // The ring goes before the buffers, which nothing uses yet.
        UringDriver::set_up().is_ok_and(|(ring, _buffers)| {
            drop(ring);
            true
        })
    }

    fn set_up() -> io::Result<(IoUring, BufferRing)> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(COMPLETIONS)
            .build(ENTRIES)?;
        let buffers = BufferRing::register(&ring)?;
        Ok((ring, buffers))
    }

    /// Queues an operation for the next submission.
    #[expect(unsafe_code, reason = "the kernel acts on what the operation points to")]
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the operations of this file point to nothing (receive, accept, poll, cancel) or to a flight, whose
        // memory stays where it is until the send's completion.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            // The kernel has no room for completions until some are fetched, which the next turn does.
            Err(error) if is_passing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn poll(&mut self, descriptor: i32, token: u64) -> io::Result<()> {
        let poll = opcode::PollAdd::new(Fd(descriptor), libc::POLLIN as u32).multi(true);
        self.push(&poll.build().user_data(token))
    }

    /// Submits the queued operations, and fetches completions, waiting up to `wait` for one.
    #[expect(unsafe_code, reason = "the crate's safe calls cannot fetch completions without waiting")]
    fn enter(&mut self, wait: Duration) -> io::Result<()> {
        let (queued, must_run) = {
            let submission = self.ring.submission();
            (submission.len(), submission.taskrun() || submission.cq_overflow())
        };
        let is_any = !self.ring.completion().is_empty();
        let result = if !wait.is_zero() && !is_any {
            let timeout = Timespec::new().sec(wait.as_secs()).nsec(wait.subsec_nanos());
            self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
        } else if queued > 0 || must_run {
            // SAFETY: no signal mask is passed, and the count is that of the queue.
            unsafe {
                let get_events = 1;
                self.ring.submitter().enter::<libc::sigset_t>(queued as u32, 0, get_events, None)
            }
        } else {
            Ok(0)
        };
        if let Err(error) = result
            && !is_passing(&error)
        {
            return Err(error);
        }
        let entry = |entry: cqueue::Entry| (entry.user_data(), entry.result(), entry.flags());
        self.completions.extend(self.ring.completion().map(entry));
        Ok(())
    }

    fn complete<S: Service>(
        &mut self,
        worker: &mut Worker<S>,
        (token, result, flags): (u64, i32, u32),
    ) -> io::Result<()> {
        let number = (token & NUMBER) as u32;
        match token & KIND {
            RECEIVE => self.on_received(worker, token, result, flags),
            SEND => self.on_sent(worker, number as usize, result),
            ACCEPT => return self.on_accepted(worker, number as usize, result, flags),
            POLL_DATAGRAMS => {
                if !self.again.contains(&(number as usize)) {
                    self.again.push(number as usize);
                }
                let port = self.datagrams.ports().get(number as usize);
                let port = port.and_then(DatagramPort::descriptor).map(|port| port.as_raw_fd());
                if let Some(port) = port.filter(|_| !cqueue::more(flags) && result >= 0) {
                    return self.poll(port, token);
                }
            }
            POLL_ALARM if !cqueue::more(flags) => {
                let alarm = worker.engine.shared.alarm(worker.engine.me).as_raw_fd();
                return self.poll(alarm, POLL_ALARM);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the partition and the place of the request that came with a completion, if they are seen at a glance.
    fn glance<S: Service>(
        &self,
        worker: &mut Worker<S>,
        &(token, result, flags): &(u64, i32, u32),
    ) -> Option<(u32, u64)> {
        if token & KIND != RECEIVE || result <= 0 {
            return None;
        }
        let connection = worker.connections.get((token & NUMBER) as usize)?;
        if connection.tls.is_some() || !connection.input.is_empty() {
            return None;
        }
        worker.engine.glance(self.buffers.get(cqueue::buffer_select(flags)?, result as usize))
    }

    fn on_accepted<S: Service>(
        &mut self,
        worker: &mut Worker<S>,
        number: usize,
        result: i32,
        flags: u32,
    ) -> io::Result<()> {
        let socket = (result >= 0).then(|| new_descriptor(result));
        // None once the server stops, which ends the accept.
        let Some(listener) = self.listeners.get(number) else { return Ok(()) };
        if !cqueue::more(flags) {
            self.accept_again.push(number);
        }
        let Some(socket) = socket else {
            let passing = [libc::ECANCELED, libc::ECONNABORTED, libc::EINTR, libc::EPROTO];
            if !passing.contains(&-result) {
                worker.engine.counters().accept_errors.add(1);
                self.accept_after = worker.engine.now.since_start.saturating_add(ACCEPT_PAUSE);
            }
            return Ok(());
        };
        let (transport, tls) = (listener.transport, listener.tls.clone());
        if transport == SessionTransport::Tcp {
            set_up(&socket);
        }
        worker.deal(self, Newcomer { socket, transport, tls, seat: None })
    }

    fn arm_accepts(&mut self, now: Duration) -> io::Result<()> {
        if self.accept_again.is_empty() || now < self.accept_after {
            return Ok(());
        }
        for number in std::mem::take(&mut self.accept_again) {
            let Some(listener) = self.listeners.get(number) else { continue };
            let accept = opcode::AcceptMulti::new(Fd(listener.socket.as_raw_fd())).flags(libc::SOCK_CLOEXEC);
            self.push(&accept.build().user_data(ACCEPT | number as u64))?;
        }
        Ok(())
    }
}

#[expect(unsafe_code, reason = "the kernel made the descriptor for this process")]
fn new_descriptor(number: i32) -> OwnedFd {
    // SAFETY: a successful accept returned it, and no other code has it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Reports whether an error of `io_uring_enter` has passed by the next turn.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

impl<S: Service> IoDriver<S> for UringDriver {
    fn turn(&mut self, worker: &mut Worker<S>, wait: Duration) -> io::Result<bool> {
        self.arm_accepts(worker.engine.now.since_start)?;
        self.enter(wait)?;
        worker.tick();
        if !wait.is_zero() {
            worker.engine.counters().sleeps.add(1);
        }
        let mut completions = std::mem::take(&mut self.completions);
        let happened = self.datagrams.look(worker) || !completions.is_empty() || !self.again.is_empty();
        self.seen.clear();
        if S::LOOKS_AHEAD && completions.len() > 1 {
            let mut seen = std::mem::take(&mut self.seen);
            seen.extend(completions.iter().map(|completion| self.glance(worker, completion)));
            self.seen = seen;
        }
        for &seen in self.seen.iter().take(DISTANCE).flatten() {
            worker.engine.look_ahead(seen, Ahead::Data);
        }
        for (index, completion) in completions.drain(..).enumerate() {
            if let Some(&Some(seen)) = self.seen.get(index + DISTANCE) {
                worker.engine.look_ahead(seen, Ahead::Data);
            }
            self.complete(worker, completion)?;
        }
        self.completions = completions;
        self.again.retain(|&number| self.datagrams.receive(worker, number));
        Ok(happened)
    }

    fn open(&mut self, worker: &mut Worker<S>, key: u32) -> io::Result<()> {
        self.serve(worker, key);
        Ok(())
    }

    fn serve(&mut self, worker: &mut Worker<S>, key: u32) {
        if matches!(worker.connections[key as usize].link, ConnectionOrigin::Datagram { .. }) {
            return self.datagrams.answer(worker, key);
        }
        loop {
            if !self.send(worker, key) {
                return self.close(worker, key);
            }
            if !worker.may_go_on(key) {
                break;
            }
            worker.parse(key);
        }
        if worker.connections[key as usize].is_finished() || !self.receive(worker, key) {
            self.close(worker, key);
        }
    }

    fn close(&mut self, worker: &mut Worker<S>, key: u32) {
        UringDriver::close(self, worker, key);
    }

    fn flush(&mut self, worker: &mut Worker<S>) {
        self.datagrams.flush(worker);
    }

    fn is_busy(&self) -> bool {
        !self.again.is_empty() || self.datagrams.is_stuck()
    }

    fn is_sent(&mut self) -> bool {
        self.datagrams.is_sent()
    }

    fn stop_listening(&mut self) {
        self.datagrams.stop_looking();
        for listener in self.listeners.drain(..) {
            // The accept that is armed holds it open: this ends it.
            let _ = shutdown(&listener.socket, Shutdown::Both);
        }
    }
}

impl Drop for UringDriver {
    #[expect(unsafe_code, reason = "what the kernel may still use is not freed")]
    fn drop(&mut self) {
        // Waits until every operation has ended. If that fails the memory is left to the end of the process.
        let _ = self.ring.submit();
        let timeout = Timespec::new().sec(1);
        let ended = self.ring.submitter().register_sync_cancel(Some(timeout), CancelBuilder::any());
        let is_quiet = match ended {
            Ok(()) => true,
            Err(error) => error.raw_os_error() == Some(libc::ENOENT),
        };
        // SAFETY: each is dropped once, here; the ring before the memory to which its operations point.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            if is_quiet {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.flights);
            }
        }
    }
}
