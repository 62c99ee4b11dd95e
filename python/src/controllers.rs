//! Congestion controllers in Python: an object for each end of a connection, whose methods are called for its ACKs.
//!
//! A controller that has raised an exception leaves the window alone until its run has stopped.

use std::fmt;

use plimsoll_mechanisms::tcp::{self, Cause, CongestionControl, Limits};
use plimsoll_units::Span;
use pyo3::prelude::*;

use crate::mechanisms::{Arguments, Failure};

/// A controller of one end of a connection.
pub(crate) struct Controller {
    /// The object; none if its class has raised an exception.
    object: Option<Py<PyAny>>,
    sets_window: bool,
    has_on_ack: bool,
    has_grow: bool,
    failure: Failure,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Controller")
    }
}

impl Controller {
    pub(crate) fn make(class: &Py<PyAny>, arguments: &Arguments, failure: Failure) -> Controller {
        let made = Python::attach(|py| -> PyResult<_> {
            let object = arguments.call(class.bind(py))?;
            let sets_window =
                object.getattr_opt("sets_window")?.is_some_and(|sets| sets.is_truthy().unwrap_or(false));
            Ok((sets_window, object.hasattr("on_ack")?, object.hasattr("grow")?, object.unbind()))
        });
        match made {
            Ok((sets_window, has_on_ack, has_grow, object)) => {
                Controller { object: Some(object), sets_window, has_on_ack, has_grow, failure }
            }
            Err(error) => {
                failure.set(error);
                Controller { object: None, sets_window: false, has_on_ack: false, has_grow: false, failure }
            }
        }
    }

    /// Calls a method that may change the window.
    fn on(&self, method: &str, limits: &Limits, window: &mut tcp::Window, ack: &tcp::Ack) {
        let Some(object) = self.object.as_ref().filter(|_| !self.failure.is_set()) else { return };
        let called = Python::attach(|py| {
            let shown = Bound::new(py, Window::of(window, limits))?;
            object.bind(py).call_method1(method, (&shown, Ack::of(ack)))?;
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

impl CongestionControl for Controller {
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
            let told = (Window::of(window, limits), Cut::of(cut));
            object.bind(py).call_method1("cut", told)?.extract::<u64>()
        });
        called.unwrap_or_else(|error| {
            self.failure.set(error);
            cut.base / 2
        })
    }
}

/// The congestion window of one end of a connection, in bytes.
#[pyclass(module = "plimsoll._plimsoll")]
pub(crate) struct Window {
    #[pyo3(get, set)]
    cwnd: u64,
    /// Slow start threshold.
    #[pyo3(get, set)]
    ssthresh: u64,
    #[pyo3(get)]
    segment: u64,
    #[pyo3(get)]
    max_window: u64,
    #[pyo3(get)]
    initial_window: u64,
}

#[pymethods]
impl Window {
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

impl Window {
    fn of(window: &tcp::Window, limits: &Limits) -> Window {
        let tcp::Window { cwnd, ssthresh, .. } = *window;
        let Limits { segment, max_window, initial_window } = *limits;
        Window { cwnd, ssthresh, segment, max_window, initial_window }
    }
}

/// An ACK of new data, with times in microseconds.
#[pyclass(frozen, get_all, module = "plimsoll._plimsoll")]
pub(crate) struct Ack {
    now_us: f64,
    acked: u64,
    ack: u64,
    nxt: u64,
    ece: bool,
    rtt_us: Option<f64>,
    srtt_us: Option<f64>,
    window_limited: bool,
}

impl Ack {
    fn of(ack: &tcp::Ack) -> Ack {
        let tcp::Ack { now, acked, ack: number, nxt, ece, rtt, srtt, window_limited } = *ack;
        let (now_us, rtt_us) = (now.as_secs_f64() * 1e6, rtt.map(Span::as_us_f64));
        Ack { now_us, acked, ack: number, nxt, ece, rtt_us, srtt_us: smoothed(srtt), window_limited }
    }
}

/// The reason for a smaller window: a loss, a timeout or a mark.
#[pyclass(frozen, get_all, module = "plimsoll._plimsoll")]
pub(crate) struct Cut {
    now_us: f64,
    cause: &'static str,
    base: u64,
    una: u64,
    srtt_us: Option<f64>,
}

impl Cut {
    fn of(cut: &tcp::Cut) -> Cut {
        let tcp::Cut { now, cause, base, una, srtt } = *cut;
        let cause = match cause {
            Cause::Loss => "loss",
            Cause::Timeout => "timeout",
            Cause::Ecn => "ecn",
        };
        Cut { now_us: now.as_secs_f64() * 1e6, cause, base, una, srtt_us: smoothed(srtt) }
    }
}

/// Returns the smoothed round-trip time in us, if there has been a sample.
fn smoothed(srtt: Span) -> Option<f64> {
    (!srtt.is_zero()).then(|| srtt.as_us_f64())
}
