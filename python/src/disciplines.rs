//! Queue disciplines in Python: an object for each port, whose methods are called for packets that come and leave.
//!
//! ```text
//!            push                                 pop
//! port ──────────────> waiting: Queued + Packet ──────> port
//!                        │ enqueue(packet)    ^ dequeue() returns one of the packets, and those that it drops
//!                        v                    │
//!                      object in Python: packets in an order of its own
//! ```
//!
//! The packets themselves wait here, so that the object can neither lose nor change one; each packet that it returns
//! has to be one that waits. After an exception packets are served in the order of their arrival until the run has
//! stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_fabric::net::port::{QueueDiscipline, Queued};
use plimsoll_fabric::net::topology::Node;
use plimsoll_fabric::net::{EcnField, Flags, topology};
use plimsoll_mechanisms::pfc::PauseState;
use plimsoll_units::Time;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::mechanisms::{ClassArguments, Failure};

/// The packets that wait at one port, and the object in Python that orders them.
pub(crate) struct PythonDiscipline {
    /// The object; none if its class has raised an exception.
    object: Option<Py<PyAny>>,
    /// The packets that wait, by their numbers.
    waiting: BTreeMap<u64, WaitingObject>,
    /// The number of packets that have come.
    arrived: u64,
    failure: Failure,
}

/// A packet that waits, as the simulator and as the object have it.
struct WaitingObject {
    queued: Queued,
    /// The packet as the object sees it; none if it came after a failure.
    packet: Option<Py<Packet>>,
}

impl fmt::Debug for PythonDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Discipline with {} packets", self.waiting.len())
    }
}

impl PythonDiscipline {
    /// Makes the object of the port that sends on `link`, which the object knows when it is initialised.
    pub(crate) fn make(
        class: &Py<PyAny>,
        arguments: &ClassArguments,
        link: &topology::Link,
        failure: Failure,
    ) -> PythonDiscipline {
        let made = Python::attach(|py| {
            let link = Bound::new(py, PythonLink::of(link))?;
            arguments.call_with(class.bind(py), |object| object.setattr(intern!(py, "link"), link))
        });
        let object = made.map_err(|error| failure.set(error)).ok();
        PythonDiscipline { object, waiting: BTreeMap::new(), arrived: 0, failure }
    }

    /// Removes the packet that came first, of those that `pause` lets through.
    fn first(&mut self, pause: PauseState) -> Option<Queued> {
        let may = |(_, waiting): &(&u64, &WaitingObject)| pause.may(waiting.queued.packet.priority);
        let number = *self.waiting.iter().find(may)?.0;
        self.waiting.remove(&number).map(|waiting| waiting.queued)
    }
}

impl QueueDiscipline for PythonDiscipline {
    fn push(&mut self, queued: Queued, dropped: &mut dyn FnMut(Queued)) {
        let number = self.arrived;
        self.arrived += 1;
        let Some(object) = self.object.as_ref().filter(|_| !self.failure.is_set()) else {
            self.waiting.insert(number, WaitingObject { queued, packet: None });
            return;
        };
        let waiting = &mut self.waiting;
        let called = Python::attach(|py| {
            let packet = Bound::new(py, Packet::of(number, &queued))?;
            let since = us(queued.since);
            waiting.insert(number, WaitingObject { queued, packet: Some(packet.clone().unbind()) });
            let told = (packet, since);
            let returned = object.bind(py).call_method1(intern!(py, "enqueue"), told)?;
            drop_all(waiting, &returned, "enqueue", dropped)
        });
        if let Err(error) = called {
            self.failure.set(error);
        }
    }

    fn pop(&mut self, now: Time, pause: PauseState, dropped: &mut dyn FnMut(Queued)) -> Option<Queued> {
        if self.waiting.is_empty() {
            return None;
        }
        let Some(object) = self.object.as_ref().filter(|_| !self.failure.is_set()) else {
            return self.first(pause);
        };
        let waiting = &mut self.waiting;
        let called = Python::attach(|py| {
            let paused =
                PyTuple::new(py, (0..8u8).filter(|priority| !pause.may(*priority)).collect::<Vec<_>>())?;
            let nothing_is_paused = paused.is_empty();
            let mut returned = object.bind(py).call_method1(intern!(py, "dequeue"), (us(now), paused))?;
            if let Ok(pair) = returned.cast::<PyTuple>() {
                let Ok((next, victims)) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
                    return Err(no_pair(&returned));
                };
                drop_all(waiting, &victims, "dequeue", dropped)?;
                returned = next;
            }
            if returned.is_none() {
                // The port asks again only after the next packet, or when a priority resumes.
                let may_keep = waiting.is_empty() || !nothing_is_paused;
                return if may_keep { Ok(None) } else { Err(keeps(waiting.len())) };
            }
            let next = take(waiting, &returned, "dequeue")?;
            if !pause.may(next.packet.priority) {
                let message = format!(
                    "dequeue returned a packet of priority {}, which is paused",
                    next.packet.priority
                );
                return Err(PyValueError::new_err(message));
            }
            Ok(Some(next))
        });
        called.unwrap_or_else(|error| {
            self.failure.set(error);
            self.first(pause)
        })
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// Drops the packets that a method has returned, if any.
fn drop_all(
    waiting: &mut BTreeMap<u64, WaitingObject>,
    victims: &Bound<'_, PyAny>,
    method: &str,
    dropped: &mut dyn FnMut(Queued),
) -> PyResult<()> {
    if !victims.is_none() {
        for victim in victims.try_iter()? {
            dropped(take(waiting, &victim?, method)?);
        }
    }
    Ok(())
}

/// Removes a packet that a method has returned.
fn take(
    waiting: &mut BTreeMap<u64, WaitingObject>,
    returned: &Bound<'_, PyAny>,
    method: &str,
) -> PyResult<Queued> {
    let Ok(packet) = returned.cast::<Packet>() else {
        let message = format!("{method} returned {}; allowed: packets that wait, or None", returned.repr()?);
        return Err(PyTypeError::new_err(message));
    };
    let shown = packet.get();
    let waits = waiting.get(&shown.number).and_then(|waiting| waiting.packet.as_ref());
    if !waits.is_some_and(|waits| waits.is(packet)) {
        let message = format!("{method} returned packet {}, which does not wait in this queue", shown.number);
        return Err(PyValueError::new_err(message));
    }
    let Some(WaitingObject { mut queued, .. }) = waiting.remove(&shown.number) else {
        unreachable!("it has been looked up");
    };
    queued.mark = shown.mark.load(Ordering::Relaxed);
    Ok(queued)
}

/// Returns the error of a discipline that returns a tuple of another length than 2.
fn no_pair(returned: &Bound<'_, PyAny>) -> PyErr {
    let shown = returned.repr().map_or_else(|_| "a tuple".to_owned(), |text| text.to_string());
    let allowed = "a pair of the next packet, or None, and of those that are dropped";
    PyValueError::new_err(format!("dequeue returned {shown}; allowed: {allowed}"))
}

/// Returns the error of a discipline that sends nothing.
fn keeps(packets: usize) -> PyErr {
    let message = format!("dequeue returned None while {packets} packets wait and nothing is paused");
    PyValueError::new_err(message)
}

fn us(time: Time) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The link on which a port sends.
#[pyclass(frozen, get_all, name = "Link", module = "plimsoll._plimsoll")]
pub(crate) struct PythonLink {
    rate_bps: u64,
    delay_us: f64,
    from_host: Option<u32>,
    to_host: Option<u32>,
}

impl PythonLink {
    fn of(link: &topology::Link) -> PythonLink {
        let host = |node| match node {
            Node::Host(host) => Some(host.0),
            Node::Switch(_) => None,
        };
        PythonLink {
            rate_bps: link.rate.as_bps(),
            delay_us: link.propagation.as_secs_f64() * 1e6,
            from_host: host(link.from),
            to_host: host(link.to),
        }
    }
}

#[pymethods]
impl PythonLink {
    fn __repr__(&self) -> String {
        let end = |host: Option<u32>| host.map_or_else(|| "a switch".to_owned(), |host| format!("h{host}"));
        let PythonLink { rate_bps, delay_us, from_host, to_host } = self;
        format!("<Link from {} to {}: {rate_bps} bit/s, {delay_us} us>", end(*from_host), end(*to_host))
    }
}

/// A packet that waits at a port.
#[pyclass(frozen, module = "plimsoll._plimsoll")]
pub(crate) struct Packet {
    #[pyo3(get)]
    number: u64,
    #[pyo3(get)]
    size: u16,
    #[pyo3(get)]
    payload: u16,
    #[pyo3(get)]
    connection: u32,
    #[pyo3(get)]
    from_server: bool,
    #[pyo3(get)]
    source: u32,
    #[pyo3(get)]
    destination: u32,
    #[pyo3(get)]
    priority: u8,
    #[pyo3(get)]
    rank: u32,
    #[pyo3(get)]
    ecn_capable: bool,
    #[pyo3(get)]
    marked: bool,
    #[pyo3(get)]
    arrived_us: f64,
    mark: AtomicBool,
}

impl Packet {
    fn of(number: u64, queued: &Queued) -> Packet {
        let packet = &queued.packet;
        Packet {
            number,
            size: packet.size,
            payload: packet.len,
            connection: packet.flow,
            from_server: packet.flags.has(Flags::FROM_SERVER),
            source: packet.src.0,
            destination: packet.dst.0,
            priority: packet.priority,
            rank: packet.rank,
            ecn_capable: packet.ecn != EcnField::NotEct,
            marked: packet.ecn == EcnField::Ce,
            arrived_us: us(queued.since),
            mark: AtomicBool::new(false),
        }
    }
}

#[pymethods]
impl Packet {
    /// Marks the packet (ECN) when it is sent, if its transport is capable of that.
    fn mark(&self) {
        self.mark.store(true, Ordering::Relaxed);
    }

    fn __repr__(&self) -> String {
        let Packet { number, size, source, destination, .. } = self;
        format!("<Packet {number}: {size} B from h{source} to h{destination}>")
    }
}
