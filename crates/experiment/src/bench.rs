//! [`Bench`]: makes the runs that a store lacks, concurrently, and hands over the outcome of each.

use std::error::Error;
use std::thread;
use std::time::Duration;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_sim::batch::{self, BatchError, BatchWatch, Workers};
use plimsoll_sim::{Progress, RunError};
use plimsoll_units::Span;

/// The calls that a bench makes during its runs, from any thread.
pub trait BenchWatch: Sync {
    /// Run number `run` has begun.
    fn on_start(&self, _run: usize) {}

    /// Run number `run` has progressed. `share` is the finished part of its duration, 0 to 1; `None` for a run that
    /// ends when its work is done.
    fn on_progress(&self, _run: usize, _share: Option<f64>, _progress: Progress) {}

    /// Run number `run` is finished and kept.
    fn on_run(&self, _run: usize, _packet_hops: u64) {}

    /// Returns false to cancel all runs.
    fn goes_on(&self) -> bool {
        true
    }
}

/// A place for runs: threads, memory and a watch.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The number of concurrent runs. Where there are fewer, each has several threads.
    pub threads: usize,
    /// The bytes of memory that concurrent runs may need together.
    pub memory_max: u64,
    /// The observer of the runs, which hears their progress and may cancel them.
    pub watch: &'a dyn BenchWatch,
    /// Who carries out the tasks of approximate runs; none for the threads.
    pub workers: Option<&'a dyn Workers>,
}

/// Returns the wanted number of threads, or the number of processors.
pub fn threads(wanted: Option<usize>) -> usize {
    wanted.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Parses the time that a search may take, from a second to 30 days: `90s`, `5m`, `2h`.
///
/// # Errors
/// Returns the times that are allowed.
pub fn parse_budget(text: &str) -> Result<Duration, String> {
    let minutes = text.strip_suffix('m').map(|number| format!("{number}min"));
    let span = minutes.as_deref().unwrap_or(text).parse::<Span>().ok();
    span.map(|span| Duration::from_secs_f64(span.as_secs_f64()))
        .filter(|time| (Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 3_600)).contains(time))
        .ok_or_else(|| "write a time from 1s to 720h, such as 90s or 5m".to_owned())
}

/// Formats a duration for a terminal: `350 ms`, `3.2 s`, `85 s`, `5 min` or `2 h 05 min`.
pub fn duration(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{} ms", took.as_millis()),
        1..10 => format!("{:.1} s", took.as_secs_f64()),
        10..120 => format!("{:.0} s", took.as_secs_f64()),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}

impl Bench<'_> {
    /// Runs all of `models`, in order of their index. `keep` takes each outcome as soon as it is there, from any
    /// thread.
    ///
    /// # Errors Returns the first failure of a run or of `keep`, and `RunError::Cancelled` where the watch cancels.
    /// Outcomes that are kept by then stay.
    pub fn run(
        &self,
        models: &[&Model],
        keep: impl Fn(usize, Outcome) -> Result<(), Box<dyn Error + Send + Sync>> + Sync,
    ) -> Result<(), BatchError> {
        let ended = batch::run_all(models, self.threads, &Running { bench: self, models, keep });
        ended.map_err(|error| match error {
            BatchError::Owner(error) if error.is::<RunError>() => BatchError::Run(RunError::Cancelled),
            error => error,
        })
    }
}

/// The runs of a bench, and the function that takes their outcomes.
struct Running<'a, K> {
    bench: &'a Bench<'a>,
    models: &'a [&'a Model],
    keep: K,
}

impl<K: Fn(usize, Outcome) -> Result<(), Box<dyn Error + Send + Sync>> + Sync> BatchWatch for Running<'_, K> {
    fn on_start(&self, index: usize) {
        self.bench.watch.on_start(index);
    }

    fn on_progress(&self, index: usize, progress: Progress) -> bool {
        let of = |duration: Span| {
            // A run may end long before its horizon, which has room for the last replies.
            let end = duration.as_secs_f64().min(progress.horizon.as_secs_f64());
            (progress.now.as_secs_f64() / end).min(1.0)
        };
        self.bench.watch.on_progress(index, self.models[index].run.duration.map(of), progress);
        self.bench.watch.goes_on()
    }

    fn memory_max(&self) -> u64 {
        self.bench.memory_max
    }

    fn workers(&self) -> Option<&dyn Workers> {
        self.bench.workers
    }

    fn on_done(&self, index: usize, outcome: Outcome) -> Result<(), Box<dyn Error + Send + Sync>> {
        let of_links = outcome.approximation.as_ref().map(|known| known.packet_hops);
        let packet_hops = of_links.unwrap_or(outcome.counters.packet_hops);
        (self.keep)(index, outcome)?;
        self.bench.watch.on_run(index, packet_hops);
        // A run that is shorter than a step of progress is cancelled here.
        if self.bench.watch.goes_on() { Ok(()) } else { Err(Box::new(RunError::Cancelled)) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use plimsoll_scenario::Scenario;

    use super::*;

    /// Counts the calls of a bench, which it cancels after a number of finished runs.
    struct Counter {
        calls: Mutex<[usize; 2]>,
        most: usize,
    }

    impl BenchWatch for Counter {
        fn on_start(&self, _: usize) {
            self.calls.lock().expect("no thread panics")[0] += 1;
        }

        fn on_run(&self, _: usize, packet_hops: u64) {
            assert!(packet_hops > 0);
            self.calls.lock().expect("no thread panics")[1] += 1;
        }

        fn goes_on(&self) -> bool {
            self.calls.lock().expect("no thread panics")[1] < self.most
        }
    }

    #[test]
    fn a_bench_ends_at_the_first_error_and_where_its_watch_cancels_it() {
        let text = "version = 1\ntitle = 'some messages'\n[run]\nduration = '5ms'\n[topology]\nkind = 'rack'\n\
             hosts = 2\nrate = '1Gbps'\ndelay = '1us'\n[workload.w]\nkind = 'rpc'\nclient = 'h0'\n\
             servers = ['h1']\nrequest = '100B'\nresponse = '1KB'\nload = '100Mbps'\n";
        let scenario = Scenario::parse("one.toml", text, Path::new(".")).expect("it is valid");
        let models = [&scenario.points()[0].model; 3];
        let run = |most: usize, memory_max: u64, refused: usize| {
            let counter = Counter { calls: Mutex::default(), most };
            let bench = Bench { threads: 1, memory_max, watch: &counter, workers: None };
            let ended = bench.run(&models, |index, _| match index == refused {
                true => Err("the disk is full".into()),
                false => Ok(()),
            });
            let ended = ended.map_err(|error| error.to_string());
            (ended, counter.calls.into_inner().expect("no thread panics"))
        };
        let cancelled = Err(RunError::Cancelled.to_string());
        assert_eq!(run(9, u64::MAX, 9), (Ok(()), [3, 3]));
        assert_eq!(run(2, u64::MAX, 9), (cancelled, [2, 2]));
        assert_eq!(run(9, u64::MAX, 1), (Err("the disk is full".to_owned()), [2, 1]));
        assert_eq!(run(9, 1_000, 9).1, [0, 0]);
    }

    #[test]
    fn durations_are_short() {
        for (ms, text) in [(7, "7 ms"), (1_500, "1.5 s"), (12_345, "12 s"), (400_000, "6 min")] {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
        assert_eq!(duration(Duration::from_secs(7_320)), "2 h 02 min");
    }

    #[test]
    fn a_budget_is_a_time() {
        assert_eq!(parse_budget("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_budget("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["5", "0m", "10ms", "-5m", "1e9h"] {
            assert!(parse_budget(wrong).is_err(), "{wrong}");
        }
    }
}
