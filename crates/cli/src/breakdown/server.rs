//! [`Server`] is a server that `plimsoll breakdown -- COMMAND` runs itself.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use plimsoll_breakdown::Target;

use crate::signals::Interrupt;

/// A server that this command started. It ends with this value.
pub(super) struct Server {
    child: Child,
    name: String,
}

impl Server {
    /// Starts the command with its output on stderr.
    pub(super) fn start(command: &[OsString]) -> anyhow::Result<Server> {
        let name = command[0].to_string_lossy().into_owned();
        // Results go to stdout, so what the server prints goes to stderr.
        let stderr = rustix::io::dup(std::io::stderr()).context("cannot share stderr")?;
        let child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::from(stderr))
            .spawn()
            .with_context(|| format!("cannot run {name}"))?;
        Ok(Server { child, name })
    }

    /// Waits until the server listens.
    pub(super) fn target(&mut self, port: Option<u16>, interrupt: &Interrupt) -> anyhow::Result<Target> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().context("cannot wait for the server")? {
                return Err(anyhow!("{} ended before it listened on a port: {status}", self.name));
            }
            let found = Target::of_process(self.child.id());
            let found = found.and_then(|target| match port {
                Some(port) => target.only(port),
                None => Ok(target),
            });
            match found {
                Ok(target) => return Ok(target),
                Err(error) if begin.elapsed() > START => return Err(error.into()),
                Err(_) if interrupt.signal().is_some() => return Err(anyhow!("stopped by a signal")),
                Err(_) => std::thread::sleep(POLL),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(process) = i32::try_from(self.child.id())
            && let Some(process) = rustix::process::Pid::from_raw(process)
            && matches!(self.child.try_wait(), Ok(None))
        {
            // The child has not been waited for, so the number is still its own.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > START {
                let _ = self.child.kill();
            }
            std::thread::sleep(POLL);
        }
    }
}

/// How often records are read and processes looked at. The ring buffer holds half a second of 400,000 records a second.
pub(super) const POLL: Duration = Duration::from_millis(10);
/// How long a server may take to listen, or to end.
const START: Duration = Duration::from_secs(10);
