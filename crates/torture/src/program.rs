//! Finds, starts, watches and kills the programs under attack.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::trial::Broken;

/// The longest time that a program may take for anything before it counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The pause between two checks of an awaited condition.
const REST: Duration = Duration::from_millis(2);

/// The folder that holds the programs under attack.
#[derive(Debug)]
pub struct ProgramFolder(PathBuf);

impl ProgramFolder {
    /// Finds the programs in this folder.
    ///
    /// # Errors
    /// Returns an error if one of them is missing.
    pub fn find(folder: &Path) -> Result<ProgramFolder> {
        for name in ["plimsoll", "chronos-memcached", "chronos-search", "chronos-openflow"] {
            if !folder.join(name).is_file() {
                bail!(
                    "{} is missing in {}: build it, or name its folder by --programs",
                    name,
                    folder.display()
                );
            }
        }
        Ok(ProgramFolder(fs::canonicalize(folder)?))
    }

    /// Returns a command that runs this program without standard input.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.0.join(name));
        command.stdin(Stdio::null());
        command
    }

    /// Returns a command that runs `plimsoll` in this folder.
    pub fn plimsoll(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command("plimsoll");
        command.args(arguments).current_dir(folder);
        command
    }
}

/// The exit status of a program, and its output.
#[derive(Debug)]
pub struct ProgramExit {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl ProgramExit {
    /// Returns the exit status; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Describes how the program ended and the last lines of its output, for a message.
    pub fn described(&self) -> String {
        let last = |text: &str| {
            text.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        };
        format!("{}; stdout: {}; stderr: {}", self.status, last(&self.stdout), last(&self.stderr))
    }
}

/// A running program, which is killed when dropped.
#[derive(Debug)]
pub struct RunningProgram {
    child: Child,
    what: String,
    folder: tempfile::TempDir,
}

impl RunningProgram {
    /// Starts a command with its output in files, so that it never blocks on a reader.
    pub fn start(command: &mut Command) -> Result<RunningProgram, Broken> {
        let folder = tempfile::tempdir()?;
        command.stdout(fs::File::create(folder.path().join("stdout"))?);
        command.stderr(fs::File::create(folder.path().join("stderr"))?);
        let what = format!("{command:?}");
        Ok(RunningProgram { child: command.spawn()?, what, folder })
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Counts the descriptors that are sockets; threads open other kinds only when they need them.
    pub fn sockets(&self) -> Result<usize, Broken> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.id()))?;
        let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        Ok(links.filter(|link| link.to_string_lossy().starts_with("socket:")).count())
    }

    /// Returns the resident memory of the process.
    pub fn resident_bytes(&self) -> Result<u64, Broken> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.id()))?;
        let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
        Ok(pages.unwrap_or(u64::MAX / 4096).saturating_mul(4096))
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // A process that has ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills the process after this time unless it ends before; returns whether it was killed.
    pub fn kill_after(&mut self, wait: Duration) -> bool {
        let moment = Instant::now() + wait;
        while Instant::now() < moment && self.is_running() {
            thread::sleep(REST);
        }
        let is_running = self.is_running();
        if is_running {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        is_running
    }

    /// Waits until the process ends.
    pub fn ended(mut self) -> Result<ProgramExit, Broken> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                return Err(Broken::Lost(format!(
                    "does not end within {} s: {}",
                    PATIENCE.as_secs(),
                    self.what
                )));
            }
            thread::sleep(REST);
        };
        let read = |name: &str| -> io::Result<String> {
            Ok(String::from_utf8_lossy(&fs::read(self.folder.path().join(name))?).into_owned())
        };
        Ok(ProgramExit { status, stdout: read("stdout")?, stderr: read("stderr")? })
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command until it ends.
pub fn run(command: &mut Command) -> Result<ProgramExit, Broken> {
    RunningProgram::start(command)?.ended()
}

/// Waits until `ready` returns true; after [`PATIENCE`], returns an error that names `what`.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) -> Result<(), Broken> {
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        if Instant::now() > deadline {
            return Err(Broken::Lost(format!("no {what} within {} s", PATIENCE.as_secs())));
        }
        thread::sleep(REST);
    }
    Ok(())
}

/// Runs a command; returns how long it took and how it ended.
pub fn timed(command: &mut Command) -> Result<(Duration, ProgramExit), Broken> {
    let begun = Instant::now();
    let ended = run(command)?;
    Ok((begun.elapsed(), ended))
}
