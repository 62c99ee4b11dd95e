//! The programs that are attacked, and how they are started, watched and killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::trial::Broken;

/// How long a program may take to do anything before it counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How long to rest between two looks at something awaited.
const REST: Duration = Duration::from_millis(2);

/// The folder that holds the programs under attack.
#[derive(Debug)]
pub struct Programs(PathBuf);

impl Programs {
    /// The programs in this folder.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn find(folder: &Path) -> Result<Programs> {
        for name in ["plimsoll", "chronos-memcached", "chronos-search", "chronos-openflow"] {
            if !folder.join(name).is_file() {
                bail!(
                    "{} is missing in {}: build it, or name its folder by --programs",
                    name,
                    folder.display()
                );
            }
        }
        Ok(Programs(fs::canonicalize(folder)?))
    }

    /// A command of this program, without standard input.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.0.join(name));
        command.stdin(Stdio::null());
        command
    }

    /// A command of `plimsoll` that runs in this folder.
    pub fn plimsoll(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command("plimsoll");
        command.args(arguments).current_dir(folder);
        command
    }
}

/// How a program ended, and what it wrote.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The exit status; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// How it ended and the last of what it wrote, for a message.
    pub fn told(&self) -> String {
        let last = |text: &str| {
            text.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        };
        format!("{}; stdout: {}; stderr: {}", self.status, last(&self.stdout), last(&self.stderr))
    }
}

/// A program that is running; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    what: String,
    folder: tempfile::TempDir,
}

impl Running {
    /// Starts a command, whose output goes to files, so that it never waits for a reader.
    pub fn start(command: &mut Command) -> Result<Running, Broken> {
        let folder = tempfile::tempdir()?;
        command.stdout(fs::File::create(folder.path().join("stdout"))?);
        command.stderr(fs::File::create(folder.path().join("stderr"))?);
        let what = format!("{command:?}");
        Ok(Running { child: command.spawn()?, what, folder })
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // One that has ended already needs no signal.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills it after this long, unless it ends before. Returns whether it was killed.
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

    /// Waits until it ends.
    pub fn ended(mut self) -> Result<Ended, Broken> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                return Err(Broken::Lost(format!("hangs for {} s: {}", PATIENCE.as_secs(), self.what)));
            }
            thread::sleep(REST);
        };
        let read = |name: &str| -> io::Result<String> {
            Ok(String::from_utf8_lossy(&fs::read(self.folder.path().join(name))?).into_owned())
        };
        Ok(Ended { status, stdout: read("stdout")?, stderr: read("stderr")? })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Result<Ended, Broken> {
    Running::start(command)?.ended()
}

/// Waits until `ready`; an error with `what` if it does not come about.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) -> Result<(), Broken> {
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        if Instant::now() > deadline {
            return Err(Broken::Lost(format!("{what} did not come about within {} s", PATIENCE.as_secs())));
        }
        thread::sleep(REST);
    }
    Ok(())
}

/// The time that a command takes to its end, and how it ended.
pub fn timed(command: &mut Command) -> Result<(Duration, Ended), Broken> {
    let begun = Instant::now();
    let ended = run(command)?;
    Ok((begun.elapsed(), ended))
}
