//! [`AgentThreads`]: a thread for each source, which drives it over the kernel's sockets.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use plimsoll_traffic::Source;

use super::context::{AgentContext, Shared};
use super::driver::{DriverRecords, SourceDriver};
use super::plan::AgentPlan;
use crate::failure::start_thread;

/// The threads of a run; dropping them ends them and closes all their sockets.
#[derive(Debug)]
pub(crate) struct AgentThreads {
    shared: Arc<Shared>,
    drivers: Vec<JoinHandle<DriverRecords>>,
}

impl AgentThreads {
    /// Starts a thread for each of `sources`, the sources of `plan`.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread; the threads created before end.
    pub(crate) fn start(
        plan: &Arc<AgentPlan>,
        context: &Arc<AgentContext>,
        sources: Vec<Box<dyn Source>>,
    ) -> io::Result<AgentThreads> {
        raise_descriptor_limit();
        let shared = Arc::new(Shared::new(sources.len()));
        let mut agents = AgentThreads { shared: Arc::clone(&shared), drivers: Vec::new() };
        for (number, source) in sources.into_iter().enumerate() {
            let what = format!("a thread for workload `{}`", plan.workloads[number].name);
            let (plan, context, shared) = (Arc::clone(plan), Arc::clone(context), Arc::clone(&shared));
            agents.drivers.push(start_thread(what, move || {
                // A thread that wakes up 50 us late, the kernel's default, would send late.
                let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                let driver = SourceDriver::new(&context, &shared, plan.driven[number], source);
                driver.and_then(SourceDriver::run).unwrap_or_else(|error| {
                    shared.fail(format!("workload `{}`: {error}", plan.workloads[number].name));
                    DriverRecords::default()
                })
            })?);
        }
        Ok(agents)
    }

    /// Returns whether every source is finished.
    pub(crate) fn is_done(&self) -> bool {
        self.shared.open.load(Ordering::Relaxed) == 0
    }

    /// Returns whether a driver has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// Returns why a driver has failed, if one has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    /// Returns the number of drivers whose connections are not open yet; workloads begin when all are.
    pub(crate) fn missing(&self) -> usize {
        self.drivers.len().saturating_sub(self.shared.connected.load(Ordering::Relaxed))
    }

    /// Ends the threads and returns their sources' records.
    pub(crate) fn finish(mut self) -> Vec<DriverRecords> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.drivers.drain(..).map(|driver| driver.join().unwrap_or_default()).collect()
    }
}

impl Drop for AgentThreads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for driver in self.drivers.drain(..) {
            let _ = driver.join();
        }
    }
}

/// Raises the limit of open files to the most that this process may have: each connection has two sockets.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where the limit stays low, opening one socket too many fails with an error that names it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
