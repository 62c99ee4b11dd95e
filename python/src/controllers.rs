//! Congestion controllers in Python: an object for each end of a connection, whose methods are called for its ACKs.
//!
//! A window may be any number of bytes, which is rounded to a whole one: arithmetic in Python gives fractions. A
//! controller that has raised an exception leaves the window alone until its run has stopped.

use std::fmt;

use plimsoll_mechanisms::tcp::{self, Cause, CongestionControl, Limits};
use plimsoll_units::Span;
use pyo3::prelude::*;

use crate::errors;
use crate::mechanisms::{ClassArguments, Failure};

/// A controller of one end of a connection.
pub(crate) struct PythonController {
    /// The object; none if its class has raised an exception.
    object: Option<Py<PyAny>>,
    sets_window: bool,
    has_on_ack: bool,
    has_grow: bool,
    failure: Failure,
}

impl fmt::Debug for PythonController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Controller")
    }
}

impl PythonController {
    pub(crate) fn make(class: &Py<PyAny>, arguments: &ClassArguments, failure: Failure) -> PythonController {
        let made = Python::attach(|py| -> PyResult<_> {
            let object = arguments.call(class.bind(py))?;
            let sets_window =
                object.getattr_opt("sets_window")?.is_some_and(|sets| sets.is_truthy().unwrap_or(false));
            Ok((sets_window, object.hasattr("on_ack")?, object.hasattr("grow")?, object.unbind()))
        });
        match made {
            Ok((sets_window, has_on_ack, has_grow, object)) => {
                PythonController { object: Some(object), sets_window, has_on_ack, has_grow, failure }
            }
            Err(error) => {
                failure.set(error);
                PythonController {
                    object: None,
                    sets_window: false,
                    has_on_ack: false,
                    has_grow: false,
                    failure,
                }
            }
        }
    }

    /// Calls a method that may change the window.
    fn on(&self, method: &str, limits: &Limits, window: &mut tcp::Window, ack: &tcp::Ack) {
        let Some(object) = self.object.as_ref().filter(|_| !self.failure.is_set()) else { return };
        let called = Python::attach(|py| {
            let shown = Bound::new(py, PythonWindow::of(window, limits))?;
            object.bind(py).call_method1(method, (&shown, NewAck::of(ack)))?;
            let shown = shown.borrow();
            Ok((shown.cwnd, shown.ssthresh))
        });
        match called {
            Ok((cwnd, ssthresh)) => {
                let least = if self.sets_window { 1 } else { limits.segment };
                (window.cwnd, window.ssthresh) = (cwnd.max(least), ssthresh);
            }
            Err(error) => self.failure.set(error),
        }
    }
}

impl CongestionControl for PythonController {
    fn sets_window(&self) -> bool {
        self.sets_window
    }

    fn on_ack(&mut self, limits: &Limits, window: &mut tcp::Window, ack: &tcp::Ack) {
        if self.has_on_ack {
            self.on("on_ack", limits, window, ack);
        }
    }

    fn grow(&mut self, limits: &Limits, window: &mut tcp::Window, ack: &tcp::Ack) {
        if self.has_grow {
            self.on("grow", limits, window, ack);
        }
    }

    fn cut(&mut self, limits: &Limits, window: &tcp::Window, cut: &tcp::Cut) -> u64 {
        let Some(object) = self.object.as_ref().filter(|_| !self.failure.is_set()) else {
            return cut.base / 2;
        };
        let called = Python::attach(|py| {
            let told = (PythonWindow::of(window, limits), WindowCut::of(cut));
            whole("cut", &object.bind(py).call_method1("cut", told)?)
        });
        called.unwrap_or_else(|error| {
            self.failure.set(error);
            cut.base / 2
        })
    }
}

/// The congestion window of one end of a connection, in bytes. Assigned numbers are rounded to whole bytes.
#[pyclass(name = "Window", module = "plimsoll._plimsoll")]
pub(crate) struct PythonWindow {
    /// The congestion window.
    #[pyo3(get)]
    cwnd: u64,
    /// The slow start threshold.
    #[pyo3(get)]
    ssthresh: u64,
    /// The payload of a full segment.
    #[pyo3(get)]
    segment: u64,
    /// The limit that the sender caps `cwnd` at.
    #[pyo3(get)]
    max_window: u64,
    /// The window of a new connection.
    #[pyo3(get)]
    initial_window: u64,
}

#[pymethods]
impl PythonWindow {
    /// Whether the window is below the slow start threshold.
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    #[setter]
    fn set_cwnd(&mut self, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.cwnd = whole("window.cwnd", bytes)?;
        Ok(())
    }

    #[setter]
    fn set_ssthresh(&mut self, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        self.ssthresh = whole("window.ssthresh", bytes)?;
        Ok(())
    }
}

impl PythonWindow {
    fn of(window: &tcp::Window, limits: &Limits) -> PythonWindow {
        let tcp::Window { cwnd, ssthresh, .. } = *window;
        let Limits { segment, max_window, initial_window } = *limits;
        PythonWindow { cwnd, ssthresh, segment, max_window, initial_window }
    }
}

/// An ACK of new data, with times in microseconds.
#[pyclass(frozen, get_all, name = "Ack", module = "plimsoll._plimsoll")]
pub(crate) struct NewAck {
    /// The arrival time since the start of the run, in microseconds.
    now_us: f64,
    /// The number of bytes that it acknowledges for the first time.
    acked: u64,
    /// The acknowledgement number: all bytes below it have arrived.
    ack: u64,
    /// The number of the next byte to send; an ACK at or above it ends the round that is in flight now.
    nxt: u64,
    /// Whether it carries the ECN echo.
    ece: bool,
    /// The round-trip time that it measured, in microseconds; None if it measured none.
    rtt_us: Option<f64>,
    /// The smoothed round-trip time in microseconds; None before the first sample.
    srtt_us: Option<f64>,
    /// Whether the window limits the sender, not the application (RFC 7661, section 4.3). Computed where
    /// `sets_window` is true; otherwise true, since `grow` is only called if it is.
    window_limited: bool,
}

impl NewAck {
    fn of(ack: &tcp::Ack) -> NewAck {
        let tcp::Ack { now, acked, ack: number, nxt, ece, rtt, srtt, window_limited } = *ack;
        let (now_us, rtt_us) = (now.as_secs_f64() * 1e6, rtt.map(Span::as_us_f64));
        NewAck { now_us, acked, ack: number, nxt, ece, rtt_us, srtt_us: smoothed(srtt), window_limited }
    }
}

/// The reason for a smaller window: a loss, a timeout or a mark.
#[pyclass(frozen, get_all, name = "Cut", module = "plimsoll._plimsoll")]
pub(crate) struct WindowCut {
    /// The time since the start of the run, in microseconds.
    now_us: f64,
    /// The cause: `loss`, `timeout` or `ecn`.
    cause: &'static str,
    /// The number of bytes to take a share of: for a loss those that `transport.cut_from` names, for a mark the window.
    base: u64,
    /// The number of the first byte that is not acknowledged.
    una: u64,
    /// The smoothed round-trip time in microseconds; None before the first sample.
    srtt_us: Option<f64>,
}

impl WindowCut {
    fn of(cut: &tcp::Cut) -> WindowCut {
        let tcp::Cut { now, cause, base, una, srtt } = *cut;
        let cause = match cause {
            Cause::Loss => "loss",
            Cause::Timeout => "timeout",
            Cause::Ecn => "ecn",
        };
        WindowCut { now_us: now.as_secs_f64() * 1e6, cause, base, una, srtt_us: smoothed(srtt) }
    }
}

/// Returns the smoothed round-trip time in us, if there has been a sample.
fn smoothed(srtt: Span) -> Option<f64> {
    (!srtt.is_zero()).then(|| srtt.as_us_f64())
}

/// Returns a number of bytes that a controller computed as a whole one.
fn whole(field: &str, bytes: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(bytes) = bytes.extract::<u64>() {
        return Ok(bytes);
    }
    match bytes.extract::<f64>() {
        Ok(number) if (0.0..u64::MAX as f64).contains(&number) => Ok(number.round() as u64),
        _ => Err(errors::field(
            bytes.py(),
            field,
            format!("a controller set it to {}", bytes.repr()?),
            "a number of bytes from 0 to 2^64 - 1, which is rounded to a whole one",
        )),
    }
}
