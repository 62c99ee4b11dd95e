//! [`Programs`]: the user's own programs, each in the namespace of a host.
//!
//! ```text
//! thread: wait for `start` ──> COMMAND in namespace and cgroup ──> its end, `stop`, or the end of the run
//! ```
//!
//! No shell reads a command: it is split into words. The one line of ours that joins a cgroup takes them as arguments.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_scenario::model::words;
use plimsoll_units::{Span, Time};

use crate::agents::agent::AgentSettings;
use crate::agents::cgroups::{CgroupLevel, LevelsOfPrograms};
use crate::failure::{failed, start_thread};

/// A program to run in a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The number of the host.
    pub host: u32,
    /// QJump's level of its sockets, 0 to 7; `None` leaves their own.
    pub level: Option<u8>,
    /// Program and arguments, quoted as in a shell ([`words`]).
    pub command: String,
    /// When it starts, on the workloads' clock.
    pub start: Span,
    /// When it is killed if it still runs; in any case when the sending ends.
    pub stop: Option<Span>,
    /// The file for its output; standard error, if `None`.
    pub log: Option<PathBuf>,
}

/// A program that has ended, or was ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramEnd {
    /// The program that has ended.
    pub program: Program,
    /// Its exit status; `None` if it was killed at its time, or had not started.
    pub status: Option<ExitStatus>,
}

impl ProgramEnd {
    /// Returns whether it ended by itself, with a status of failure.
    pub fn has_failed(&self) -> bool {
        self.status.is_some_and(|status| !status.success())
    }
}

/// The programs of a run; ended when dropped, with all that they have started.
#[derive(Debug)]
pub(crate) struct Programs {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<ProgramEnd>>>,
}

/// Interval at which a program is checked.
const PATIENCE: Duration = Duration::from_millis(10);

impl Programs {
    /// Begins to supervise `programs`, in the namespaces with these names. The sending ends after `duration`.
    ///
    /// # Errors
    /// If a host does not exist, or its level cannot be set up.
    pub(crate) fn start(
        programs: &[Program],
        names: &[String],
        settings: &AgentSettings,
        duration: Option<Span>,
    ) -> io::Result<Programs> {
        let mut levels = LevelsOfPrograms::new(&settings.shares);
        let mut started = Programs { over: Arc::default(), threads: Vec::new() };
        for (number, program) in programs.iter().enumerate() {
            let name = names.get(program.host as usize);
            let name = name.ok_or_else(|| io::Error::other(format!("there is no host h{}", program.host)))?;
            let level = program.level.map(|level| levels.prepare(program.host, level, number)).transpose()?;
            let keeper = Keeper {
                program: program.clone(),
                stop: program.stop.into_iter().chain(duration).min(),
                namespace: name.clone(),
                level,
                settings: settings.clone(),
                over: Arc::clone(&started.over),
            };
            let what = format_args!("a thread for the program `{}`", program.command);
            started.threads.push(start_thread(what, move || keeper.keep())?);
        }
        Ok(started)
    }

    /// Returns whether all have ended, or were ended at their time.
    pub(crate) fn are_over(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Ends the programs that still run, and returns the exit of each.
    ///
    /// # Errors
    /// If one could not be started.
    pub(crate) fn finish(mut self) -> io::Result<Vec<ProgramEnd>> {
        self.over.store(true, Ordering::Relaxed);
        let join = |thread: JoinHandle<io::Result<ProgramEnd>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the keeper of a program panicked")))
        };
        self.threads.drain(..).map(join).collect()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Supervises one program.
struct Keeper {
    program: Program,
    stop: Option<Span>,
    namespace: String,
    level: Option<CgroupLevel>,
    settings: AgentSettings,
    over: Arc<AtomicBool>,
}

impl Keeper {
    fn keep(self) -> io::Result<ProgramEnd> {
        let begin = Time::ZERO + self.settings.origin + self.program.start;
        while self.settings.clock.now() < begin {
            if self.is_over() {
                return Ok(ProgramEnd { program: self.program, status: None });
            }
            thread::sleep(PATIENCE);
        }
        let mut child = self.spawn()?;
        let stop = self.stop.map_or(Time::MAX, |stop| Time::ZERO + stop);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if self.is_over() || self.settings.now() >= stop {
                break None;
            }
            thread::sleep(PATIENCE);
        };
        // Processes that it has started may outlive it.
        kill_group(&child);
        child.wait()?;
        Ok(ProgramEnd { program: self.program, status })
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn spawn(&self) -> io::Result<Child> {
        let words =
            words(&self.program.command).ok_or_else(|| io::Error::other("there is nothing to run"))?;
        let mut command = match &self.level {
            // The shell joins the cgroup, and the program that replaces it stays in it.
            Some(level) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $$ > \"$1\" && shift && exec ip \"$@\"", "sh"]).arg(level.members());
                shell
            }
            None => Command::new("ip"),
        };
        command.args(["netns", "exec", &self.namespace]).args(words).stdin(Stdio::null()).process_group(0);
        match &self.program.log {
            Some(path) => {
                let log = File::create(path).map_err(|error| failed(path.display(), error))?;
                command.stdout(log.try_clone()?).stderr(log);
            }
            None => {
                command.stdout(io::stderr());
            }
        }
        command.spawn().map_err(|error| {
            failed(format_args!("cannot start the program `{}`", self.program.command), error)
        })
    }
}

fn kill_group(child: &Child) {
    if let Ok(group) = i32::try_from(child.id())
        && let Some(group) = rustix::process::Pid::from_raw(group)
    {
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}
