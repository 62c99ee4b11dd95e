//! [`Session`] traces a live server: records of the kernel's programs in, requests out.

use plimsoll_bpf::shared::{
    REQUEST_CLOSED, REQUEST_QUEUED, REQUEST_READ, REQUEST_READY, REQUEST_RECEIVED, REQUEST_RESUMED,
    REQUEST_SEND, REQUEST_TRANSMITTED, REQUEST_WAITED, RequestRecord,
};
use plimsoll_bpf::{CostGuard, RequestTrace, RequestTraceOptions};
use rustix::time::{ClockId, clock_gettime};

use crate::event::{Event, EventKind, Flow, Packet, Protocol};
use crate::locks::Sleep;
use crate::{Error, FutexSleeps, Locks, Matcher, Request, Sorter, Symbols, Target};

/// A server that is being traced. The kernel is as before once this value is dropped, or its process ends.
#[derive(Debug)]
pub struct Session {
    trace: RequestTrace,
    records: Vec<RequestRecord>,
    sorter: Sorter,
    matcher: Matcher,
    lost: u64,
    /// When the programs were attached last; `None` while they are not.
    began: Option<u64>,
    /// The time for which they were attached before that, in ns.
    traced_ns: u64,
    events: u64,
    cost: Option<CostGuard>,
    locks: Locks,
}

impl Session {
    /// Loads the programs for `target`, without attaching them. One connection of `sample` is traced.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if they cannot be loaded.
    pub fn load(target: &Target, sample: u32) -> Result<Session, Error> {
        let options = RequestTraceOptions {
            network: target.network,
            sample,
            tcp: target.ports.iter().any(|port| !port.is_udp),
            udp: target.ports.iter().any(|port| port.is_udp),
        };
        let trace = RequestTrace::load(options)?;
        target.ports.iter().try_for_each(|port| trace.add_port(port.number))?;
        target.processes.iter().try_for_each(|process| trace.add_process(*process))?;
        Ok(Session {
            trace,
            records: Vec::new(),
            sorter: Sorter::default(),
            matcher: Matcher::default(),
            lost: 0,
            began: None,
            traced_ns: 0,
            events: 0,
            cost: None,
            locks: Locks::default(),
        })
    }

    /// Loads the programs for servers of TCP, or else of UDP, and unloads them: whether this kernel takes them.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if it does not.
    pub fn try_programs(udp: bool) -> Result<(), Error> {
        RequestTrace::load(RequestTraceOptions { network: 0, sample: 1, tcp: !udp, udp })?;
        Ok(())
    }

    /// Attaches the programs: tracing begins, or begins again.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the kernel rejects one.
    pub fn attach(&mut self) -> Result<(), Error> {
        self.trace.attach()?;
        // Before the last program was attached, requests lack the events of programs attached later.
        self.began = Some(now());
        Ok(())
    }

    /// Reads what happened, and returns the requests that are complete. Call it every few milliseconds.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the records cannot be read.
    pub fn poll(&mut self) -> Result<Vec<Request>, Error> {
        // Events stamped before this time have been written: only an interrupt comes between the two.
        let horizon = now().saturating_sub(HELD_BACK_NS);
        self.read()?;
        self.match_until(horizon);
        Ok(self.matcher.take())
    }

    /// Detaches the programs and returns the last requests. [`Session::attach`] may follow.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the records cannot be read.
    pub fn finish(&mut self) -> Result<Vec<Request>, Error> {
        // While the programs are detached one by one, events are missing.
        let end = now();
        self.trace.detach();
        self.read()?;
        self.match_until(end);
        self.sorter.clear();
        self.matcher.finish();
        if let Some(began) = self.began.take() {
            self.traced_ns += end - began;
        }
        Ok(self.matcher.take())
    }

    /// Begins to measure the time that the programs take.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the kernel does not measure it.
    pub fn begin_cost(&mut self) -> Result<(), Error> {
        self.cost = Some(self.trace.measure_cost()?);
        Ok(())
    }

    /// Ends that measurement, and returns how often the programs ran and how long, in ns: the programs at packets and
    /// sockets, then the programs at the scheduler.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the kernel does not report it.
    pub fn end_cost(&mut self) -> Result<[(u64, u64); 2], Error> {
        self.cost = None;
        Ok(self.trace.cost()?)
    }

    /// Returns the matcher, which has the numbers of unmatched requests.
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Returns the sleeps of the server's threads at futexes.
    pub fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Returns the futexes where the server's threads slept longest in sum. The processes must still run to find the
    /// places and the callers.
    pub fn longest_locks(&self, most: usize, symbols: &mut Symbols) -> Vec<FutexSleeps> {
        self.locks.longest(most, symbols, |stack| self.trace.stack(stack).unwrap_or_default())
    }

    /// Returns how many records were lost, since the ring buffer was full, or arrived too late to be used.
    pub fn lost(&self) -> u64 {
        self.lost + self.sorter.late()
    }

    /// Returns how many records were read.
    pub fn records(&self) -> u64 {
        self.events
    }

    /// Returns how long the programs were attached, in seconds.
    pub fn seconds(&self) -> f64 {
        (self.traced_ns + self.began.map_or(0, |began| now() - began)) as f64 / 1e9
    }

    fn read(&mut self) -> Result<(), Error> {
        self.trace.read(&mut self.records)?;
        self.events += self.records.len() as u64;
        let began = self.began.unwrap_or(0);
        for mut record in self.records.drain(..).filter(|record| record.time_ns >= began) {
            forget_before(&mut record, began);
            if kind_of(&record) == REQUEST_WAITED {
                sleep_of(&record).into_iter().for_each(|sleep| self.locks.add(sleep));
            } else if let Some(event) = event_of(&record) {
                self.sorter.push(event);
            }
        }
        Ok(())
    }

    fn match_until(&mut self, horizon: u64) {
        let matcher = &mut self.matcher;
        self.sorter.drain(horizon, |event| matcher.on_event(event));
        if let Ok(lost) = self.trace.lost()
            && lost > self.lost
        {
            self.lost = lost;
            self.matcher.on_lost();
        }
    }
}

/// Removes the data from a thread's record that the kernel noted before the programs were attached last: meanwhile the
/// thread may have run and stopped again.
fn forget_before(record: &mut RequestRecord, began: u64) {
    if matches!(kind_of(record), REQUEST_RESUMED | REQUEST_WAITED) {
        if record.first < began {
            (record.first, record.bytes) = (0, 0);
        }
        if record.second < began {
            record.second = 0;
        }
    }
}

/// Returns the sleep at a futex in a record; `None` if its begin is unknown.
fn sleep_of(record: &RequestRecord) -> Option<Sleep> {
    (record.first != 0).then(|| Sleep {
        process: (record.thread >> 32) as u32,
        address: record.flow,
        operation: record.bytes,
        stack: (record.kind >> KIND_BITS).checked_sub(1).map(|stack| stack as u32),
        slept_ns: record.time_ns.saturating_sub(record.first),
    })
}

/// Returns the kind of a record, without the bits above it.
fn kind_of(record: &RequestRecord) -> u64 {
    record.kind & ((1 << KIND_BITS) - 1)
}

/// Translates a record of the programs.
fn event_of(record: &RequestRecord) -> Option<Event> {
    let flow = Flow::from_bits(record.flow);
    let thread = record.thread as u32;
    let bytes = record.bytes as u32;
    let packet = Packet {
        flow,
        thread,
        sequence: record.first as u32,
        bytes,
        device: (record.kind >> KIND_BITS) as u32,
        call: record.second,
    };
    let kind = match kind_of(record) {
        REQUEST_RECEIVED => EventKind::Received {
            flow,
            protocol: if record.second == IPPROTO_UDP { Protocol::Udp } else { Protocol::Tcp },
            sequence: record.first as u32,
            bytes,
        },
        REQUEST_READY => EventKind::Ready { flow, socket: (record.first != 0).then_some(record.first) },
        REQUEST_READ if record.first != 0 => EventKind::ReadDatagram { socket: record.first, thread, bytes },
        REQUEST_READ => EventKind::Read { flow, thread, bytes },
        REQUEST_SEND => EventKind::Send { flow, thread, bytes },
        REQUEST_QUEUED => EventKind::Queued(packet),
        REQUEST_TRANSMITTED => EventKind::Transmitted(packet),
        REQUEST_RESUMED => EventKind::Resumed {
            thread,
            stopped: record.first,
            woken: record.second,
            preempted: record.bytes != 0,
        },
        REQUEST_CLOSED => EventKind::Closed { flow },
        _ => return None,
    };
    Some(Event { at: record.time_ns, kind })
}

/// Returns the time of the clock that the programs read.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The lowest bits of a record's kind; the device or the stack is above.
const KIND_BITS: u32 = 8;
const IPPROTO_UDP: u64 = 17;
/// A virtual machine's processor can be taken away between a time stamp and its record: 20 ms cover most of that.
const HELD_BACK_NS: u64 = 20_000_000;
