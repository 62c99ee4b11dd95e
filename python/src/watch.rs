//! Work on threads without Python's lock, while the calling thread reports progress and handles signals.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use plimsoll_experiment::BenchWatch;
use plimsoll_sim::Progress;
use pyo3::prelude::*;

use crate::errors::{Cancelled, DefectError};
use crate::mechanisms::Failure;

/// The progress of some runs, and whether they are to end.
pub(crate) struct PythonBoard<'a> {
    /// The first exception of a mechanism in Python, which ends the runs.
    failure: &'a Failure,
    is_cancelled: AtomicBool,
    done: AtomicUsize,
    /// The number of runs; 0 where it is unknown.
    of: AtomicUsize,
    packet_hops: AtomicU64,
    /// The share of each unfinished run, and its packets that have completed a link so far.
    running: Mutex<Vec<(usize, f64, u64)>>,
    message: Mutex<String>,
}

impl BenchWatch for PythonBoard<'_> {
    fn on_progress(&self, run: usize, share: Option<f64>, progress: Progress) {
        let now = (run, share.unwrap_or(0.0), progress.packet_hops);
        if let Ok(mut running) = self.running.lock() {
            match running.iter_mut().find(|(known, ..)| *known == run) {
                Some(run) => *run = now,
                None => running.push(now),
            }
        }
    }

    fn on_run(&self, run: usize, packet_hops: u64) {
        if let Ok(mut running) = self.running.lock() {
            running.retain(|(known, ..)| *known != run);
        }
        self.packet_hops.fetch_add(packet_hops, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns false if the work is to end.
    fn goes_on(&self) -> bool {
        !self.is_cancelled.load(Ordering::Relaxed) && !self.failure.is_set()
    }
}

impl PythonBoard<'_> {
    /// Returns the board of `runs` runs; 0 if the number is not known yet.
    pub(crate) fn of(runs: usize, failure: &Failure) -> PythonBoard<'_> {
        PythonBoard {
            failure,
            is_cancelled: AtomicBool::default(),
            done: AtomicUsize::default(),
            of: AtomicUsize::new(runs),
            packet_hops: AtomicU64::default(),
            running: Mutex::default(),
            message: Mutex::default(),
        }
    }

    /// Notes how many of how many runs are done, where somebody else counts them.
    pub(crate) fn count(&self, done: usize, of: usize, packet_hops: u64) -> bool {
        self.done.store(done, Ordering::Relaxed);
        self.of.store(of, Ordering::Relaxed);
        self.packet_hops.store(packet_hops, Ordering::Relaxed);
        self.goes_on()
    }

    /// Notes what is known so far, in words.
    pub(crate) fn say(&self, text: String) {
        if let Ok(mut message) = self.message.lock() {
            *message = text;
        }
    }

    /// Handles signals, and calls the progress function: with the finished runs, all runs, the runs with a share of
    /// each unfinished one, packet-hops, and a text.
    fn report(&self, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = progress else { return Ok(()) };
            let (share, hops) = self.running.lock().map_or((0.0, 0), |running| {
                running.iter().fold((0.0, 0), |(share, hops), run| (share + run.1, hops + run.2))
            });
            let done = self.done.load(Ordering::Relaxed);
            let hops = self.packet_hops.load(Ordering::Relaxed) + hops;
            let message = self.message.lock().map(|message| message.clone()).unwrap_or_default();
            let told = (done, self.of.load(Ordering::Relaxed), done as f64 + share, hops, message);
            match progress.call1(py, told)?.extract::<Option<bool>>(py) {
                Ok(Some(false)) => Err(Cancelled::new_err("the progress function returned False")),
                _ => Ok(()),
            }
        })
    }
}

/// Does `work` on a thread of its own, and returns what it returns. `work` has to end soon once `goes_on`
/// returns false, which happens if the progress function raises or returns False, or a signal handler raises, as that
/// of Ctrl-C does; that exception is then returned.
pub(crate) fn supervise<T: Send>(
    py: Python<'_>,
    board: &PythonBoard<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let work = move || {
                // Attached once, a thread is attached again at a tenth of the cost whenever it calls into Python.
                let done = Python::attach(|py| py.detach(|| catch_unwind(AssertUnwindSafe(work))));
                // The receiver waits until this is sent.
                let _ = sender.send(());
                done
            };
            let worker = thread::Builder::new().spawn_scoped(scope, work)?;
            let mut raised = None;
            while receiver.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = board.report(progress.as_ref()).err();
                    board.is_cancelled.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            let done = worker.join().and_then(|done| done);
            if let Some(raised) = raised {
                return Err(raised);
            }
            let done = done.map_err(|panic| DefectError::new_err(message(panic.as_ref())))?;
            board.report(progress.as_ref())?;
            Ok(done)
        })
    })
}

/// The interval between two calls of the progress function.
const PAUSE: Duration = Duration::from_millis(100);

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the simulator panicked");
    format!("{text}: this is a defect of Plimsoll; please report it with the scenario")
}
