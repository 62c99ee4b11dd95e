//! [`Trace`] follows a server's requests for a time.

use std::time::{Duration, Instant};

use crate::cost::Meter;
use crate::server::POLL;
use crate::slices::{SLICE, Slices};
use crate::traced::Traced;
use crate::{Error, ProcessorSampler, Request, RequestRecorder, Session, SlowRequest, Symbols, Target};

/// How a server is traced.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceOptions {
    /// One connection of this many is traced.
    pub sample: u32,
    /// The share of the time in which requests are traced, above 0 and up to 1.
    pub duty: f64,
    /// The time after which tracing ends.
    pub length: Duration,
    /// The number of first requests that are kept whole.
    pub first: usize,
    /// The rate of the link in bits per second, instead of what the device reports.
    pub link_bps: Option<u64>,
}

/// A trace in progress, with its results so far.
#[derive(Debug)]
pub struct Trace {
    options: TraceOptions,
    session: Session,
    recorder: RequestRecorder,
    first: Vec<SlowRequest>,
    meter: Meter,
    slices: Slices,
    /// Samples all the time, also between slices.
    sampler: Result<ProcessorSampler, Error>,
}

impl Trace {
    /// Begins to trace.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the kernel rejects the programs.
    pub fn begin(target: &Target, options: TraceOptions) -> Result<Trace, Error> {
        let TraceOptions { sample, duty, length, .. } = options;
        let meter = Meter::new(if duty < 1.0 { SLICE.min(length) } else { length });
        let mut session = Session::load(target, sample)?;
        let slices = Slices::begin(duty, &mut session)?;
        let sampler = ProcessorSampler::begin(target);
        let recorder = RequestRecorder::new(SLOWEST_KEPT);
        Ok(Trace { options, session, recorder, first: Vec::new(), meter, slices, sampler })
    }

    /// Traces until the time is over, the server has ended, or `is_stopped`.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the records cannot be read.
    pub fn follow(mut self, target: Target, is_stopped: impl Fn() -> bool) -> Result<Traced, Error> {
        let begin = Instant::now();
        let mut ended = None;
        while begin.elapsed() < self.options.length && ended.is_none() {
            if is_stopped() {
                ended = Some("stopped by a signal".to_owned());
            } else if !target.is_alive() {
                ended = Some(format!("{} (process {}) ended", target.name, target.processes[0]));
            } else {
                std::thread::sleep(POLL);
                let requests = self.slices.poll(&mut self.session)?;
                requests.into_iter().for_each(|request| self.take(request));
                self.meter.poll(begin.elapsed(), &mut self.session, &self.recorder, &target)?;
            }
        }
        for request in self.session.finish()? {
            self.recorder.add(request);
        }
        let Trace { options, session, recorder, first, meter, sampler, .. } = self;
        let mut symbols = Symbols::default();
        let profile = sampler.and_then(|sampler| sampler.end(FUNCTIONS, &mut symbols));
        Ok(Traced {
            report: recorder.report(session.matcher().unmatched(), session.seconds()),
            link_bps: options.link_bps.or_else(|| target.link_bps()),
            sample: options.sample,
            duty: options.duty,
            lost_records: session.lost(),
            records: session.records(),
            locks: session.longest_locks(LOCKS, &mut symbols),
            profile: profile.map_err(|error| error.to_string()),
            cost: meter.cost(),
            first,
            ended,
            target,
        })
    }

    fn take(&mut self, request: Request) {
        if self.first.len() < self.options.first {
            self.first.push(SlowRequest::of(&request));
        }
        self.recorder.add(request);
    }
}

/// The slowest requests that are kept with all their spans.
const SLOWEST_KEPT: usize = 1_000;
/// The futexes that are listed.
const LOCKS: usize = 10;
/// The functions that are listed.
const FUNCTIONS: usize = 25;
