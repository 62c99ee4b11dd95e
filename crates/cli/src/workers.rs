//! [`Pool`]: the processes that `plimsoll run --workers` starts, here or by a command on other machines, and the tasks
//! of approximate runs that they carry out.
//!
//! ```text
//! Round ──> waiting tasks ──a thread for each worker──> plimsoll work ──> answers, in the order of the tasks
//!                └────────────── a worker that ends gives back its task ──────┘
//! ```

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use plimsoll_experiment::question::{label, program};
use plimsoll_process::note;
use plimsoll_scenario::Point;
use plimsoll_scenario::model::words;
use plimsoll_sim::RunError;
use plimsoll_sim::approximate::{Answer, Round, Task};
use plimsoll_sim::batch::{BatchError, Workers};
use plimsoll_text::shortened;
use plimsoll_units::whole;

use crate::output;
use crate::work::{Reply, Request};

/// The workers of approximate runs.
#[derive(clap::Args, Clone, Debug)]
pub struct WorkerOptions {
    /// Have the sampled links of approximate runs simulated by N processes, which `--worker-command` starts. The
    /// outcome does not depend on it, and a process that ends early costs its task alone, which another one repeats.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    workers: Option<u16>,
    /// Command that starts a worker, such as `srun --ntasks=1 --exact plimsoll work` or `ssh node7 plimsoll work`; this
    /// program by default.
    #[arg(long, value_name = "COMMAND", requires = "workers")]
    worker_command: Option<String>,
}

impl WorkerOptions {
    /// Starts the workers, if any are asked for. `recorded` is the text of the scenario, and `points` are some of its
    /// points.
    pub fn start(&self, recorded: &str, points: &[&Point]) -> anyhow::Result<Option<Pool>> {
        let Some(count) = self.workers else { return Ok(None) };
        all_approximate(points.iter().copied())?;
        let command = match &self.worker_command {
            None => {
                // Where Python has called the command line, its own program is another one.
                let this = std::env::current_exe().ok();
                let this = this.filter(|path| path.file_name().is_some_and(|name| name == program()));
                let this = this.map_or_else(|| program().to_owned(), |path| path.to_string_lossy().into_owned());
                vec![this, "work".to_owned()]
            }
            Some(text) => words(text).ok_or_else(|| {
                anyhow!(
                    "--worker-command {text:?}: expected a program and its arguments, such as `ssh node7 plimsoll \
                     work`"
                )
            })?,
        };
        Pool::start(usize::from(count), &command, recorded).map(Some)
    }
}

/// Checks that all points are approximate runs, whose links workers can simulate.
pub fn all_approximate<'a>(points: impl IntoIterator<Item = &'a Point>) -> anyhow::Result<()> {
    match points.into_iter().find(|point| point.model.run.approximate().is_none()) {
        Some(whole) => Err(anyhow!(
            "`--workers` is for approximate runs, and `{}` is a whole one: add `--approximate`, or divide its points \
             with `--shard`",
            label(whole)
        )),
        None => Ok(()),
    }
}

/// Workers, and the tasks that wait for them.
pub struct Pool {
    shared: Arc<Shared>,
    children: Vec<Arc<Mutex<Child>>>,
    /// By index of the run: the number of its point in the scenario.
    pub points: Vec<usize>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified at each change of the state.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// The workers that have not ended.
    alive: usize,
    is_closed: bool,
    /// Why the last worker has ended.
    ended: String,
}

/// A task, and where its answer goes.
struct Waiting {
    /// The number of the point in the scenario, from 0.
    point: usize,
    number: usize,
    task: Task,
    round: Arc<Answers>,
}

/// The answers to the tasks of a round.
struct Answers(Mutex<Vec<Option<Result<Answer, String>>>>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most characters of a wrong answer in an error.
const SHOWN_MAX: usize = 80;

/// How often a worker without pipes is asked for its exit status before it is ended.
const TRIES: u32 = 10;

/// The interval at which a run asks whether it goes on.
const ASKS_EVERY: Duration = Duration::from_millis(100);

impl Pool {
    fn start(count: usize, command: &[String], recorded: &str) -> anyhow::Result<Pool> {
        let shared = Arc::new(Shared::default());
        locked(&shared.state).alive = count;
        let mut pool = Pool { shared, children: Vec::new(), points: Vec::new() };
        let hello = Request::Scenario { text: recorded.to_owned(), build: output::VERSION.to_owned() };
        let hello = serde_json::to_string(&hello)?;
        for number in 1..=count {
            let (mut worker, child) = Worker::start(number, command)?;
            pool.children.push(child);
            let (shared, hello) = (Arc::clone(&pool.shared), hello.clone());
            thread::spawn(move || match worker.greet(&hello) {
                Ok(()) => worker.serve(&shared),
                Err(reason) => worker.has_ended(&mut locked(&shared.state), &shared.changed, &reason),
            });
        }
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        locked(&self.shared.state).is_closed = true;
        self.shared.changed.notify_all();
        for child in &self.children {
            end_with_descendants(&mut locked(child));
        }
    }
}

impl Workers for Pool {
    fn carry_out(
        &self,
        index: usize,
        round: &Round,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Answer>, BatchError> {
        let answers = Arc::new(Answers(Mutex::new(vec![None; round.tasks.len()])));
        let waiting = |(number, task): (usize, &Task)| Waiting {
            point: self.points[index],
            number,
            task: task.clone(),
            round: Arc::clone(&answers),
        };
        let mut state = locked(&self.shared.state);
        state.waiting.extend(round.tasks.iter().enumerate().map(waiting));
        self.shared.changed.notify_all();
        loop {
            let done = locked(&answers.0).iter().flatten().count();
            if done == round.tasks.len() {
                break;
            }
            let cancelled = !goes_on(done);
            if cancelled || state.alive == 0 {
                state.waiting.retain(|waiting| !Arc::ptr_eq(&waiting.round, &answers));
                return Err(match cancelled {
                    true => BatchError::Run(RunError::Cancelled),
                    false => owner(format!(
                        "no worker is left, and {done} of {} tasks of this stage were carried out; {}",
                        round.tasks.len(),
                        state.ended
                    )),
                });
            }
            state = match self.shared.changed.wait_timeout(state, ASKS_EVERY) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        drop(state);
        std::mem::take(&mut *locked(&answers.0))
            .into_iter()
            .flatten()
            .map(|answer| answer.map_err(owner))
            .collect()
    }
}

/// Ends a worker, and what a command such as `sh` has started for it.
fn end_with_descendants(child: &mut Child) {
    // The number of a process that has ended may be another's by now.
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    #[cfg(unix)]
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn owner(reason: String) -> BatchError {
    BatchError::Owner(anyhow!(reason).into())
}

/// A process that carries out tasks.
struct Worker {
    number: usize,
    child: Arc<Mutex<Child>>,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// The point of the task before.
    point: Option<usize>,
}

impl Worker {
    fn start(number: usize, words: &[String]) -> anyhow::Result<(Worker, Arc<Mutex<Child>>)> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is for the run, which ends its workers.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start worker {number} by `{}`", words.join(" ")))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or_else(|| anyhow!("worker {number} has no pipes"))?;
        let child = Arc::new(Mutex::new(child));
        let (to, from) = (BufWriter::new(to), BufReader::new(from));
        Ok((Worker { number, child: Arc::clone(&child), to, from, point: None }, child))
    }

    fn send(&mut self, line: &str) -> std::io::Result<()> {
        self.to.write_all(line.as_bytes())?;
        self.to.write_all(b"\n")?;
        self.to.flush()
    }

    /// Carries out tasks until there will be no more, or the process ends, which gives back its task.
    fn serve(mut self, shared: &Shared) {
        let mut state = locked(&shared.state);
        loop {
            if state.is_closed {
                return;
            }
            let Some(waiting) = state.waiting.pop_front() else {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let answer = self.carry_out(&waiting);
            state = locked(&shared.state);
            match answer {
                Ok(answer) => locked(&waiting.round.0)[waiting.number] = Some(answer),
                Err(_) if state.is_closed => return,
                Err(reason) => {
                    state.waiting.push_front(waiting);
                    return self.has_ended(&mut state, &shared.changed, &reason);
                }
            }
            shared.changed.notify_all();
        }
    }

    /// Sends the scenario, and waits until the worker is ready: no task waits for one that starts late.
    fn greet(&mut self, hello: &str) -> anyhow::Result<()> {
        match self.send(hello).map_err(anyhow::Error::from).and_then(|()| self.reply()) {
            Ok(Reply::Ready) => Ok(()),
            Ok(_) => Err(anyhow!("it has answered before it was asked")),
            Err(error) => Err(self.why(error)),
        }
    }

    /// Notes that the worker has ended, and why.
    fn has_ended(&self, state: &mut State, changed: &Condvar, reason: &anyhow::Error) {
        if state.is_closed {
            return;
        }
        state.alive -= 1;
        state.ended = format!("worker {} has ended: {reason:#}", self.number);
        if state.alive > 0 {
            note!("warning: {}; its tasks are carried out by others", state.ended);
        }
        changed.notify_all();
    }

    /// Carries out a task: its answer, or the reason why it has none. Fails if the process has ended.
    fn carry_out(&mut self, waiting: &Waiting) -> anyhow::Result<Result<Answer, String>> {
        match self.exchange(waiting) {
            Ok(Reply::Answer(answer)) => Ok(Ok(answer)),
            Ok(Reply::Error(reason)) => Ok(Err(reason)),
            Ok(Reply::Ready) => Err(anyhow!("it is ready a second time")),
            Err(error) => Err(self.why(error)),
        }
    }

    /// Returns the reason of an error of the pipes: the exit status of a process that has ended.
    fn why(&self, error: anyhow::Error) -> anyhow::Error {
        if !error.is::<std::io::Error>() {
            return error;
        }
        let mut child = locked(&self.child);
        for _ in 0..TRIES {
            if let Ok(Some(status)) = child.try_wait() {
                return anyhow!("{status}");
            }
            thread::sleep(ASKS_EVERY);
        }
        end_with_descendants(&mut child);
        error.context("it answers no more")
    }

    /// Sends a task, and waits for its answer. An `io::Error` is that of a process that has ended.
    fn exchange(&mut self, waiting: &Waiting) -> anyhow::Result<Reply> {
        if self.point != Some(waiting.point) {
            self.send(&serde_json::to_string(&Request::Point(waiting.point))?)?;
            self.point = Some(waiting.point);
        }
        self.send(&serde_json::to_string(&Request::Task(Box::new(waiting.task.clone())))?)?;
        self.reply()
    }

    fn reply(&mut self) -> anyhow::Result<Reply> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        serde_json::from_str(&line).map_err(|_| {
            let said = shortened(line.trim_end(), SHOWN_MAX);
            anyhow!("it said {said:?}, which is no answer: `--worker-command` has to start `plimsoll work`")
        })
    }
}
