//! [`Server`]: a server that is run to be traced.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Error, Target};

/// A server that this process started. It ends with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    name: String,
}

impl Server {
    /// Starts the command, which has at least one word, with its output on stderr.
    ///
    /// # Errors
    /// Returns [`Error::Reading`] where it cannot be run.
    pub fn start(command: &[OsString]) -> Result<Server, Error> {
        let name = command[0].to_string_lossy().into_owned();
        // Results go to stdout, so the output of the server goes to stderr.
        let stderr =
            rustix::io::dup(std::io::stderr()).map_err(|error| Error::running(&name)(error.into()))?;
        let child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::from(stderr))
            .spawn()
            .map_err(Error::running(&name))?;
        Ok(Server { child, name })
    }

    /// Waits until the server listens, at `port` if that is named.
    ///
    /// # Errors
    /// Returns an error if it ends before, does not listen in time, or `is_stopped`.
    pub fn target(&mut self, port: Option<u16>, is_stopped: impl Fn() -> bool) -> Result<Target, Error> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().map_err(Error::running(&self.name))? {
                return Err(Error::EndedEarly { name: self.name.clone(), status });
            }
            let found = Target::of_process(self.child.id());
            let found = found.and_then(|target| match port {
                Some(port) => target.only(port),
                None => Ok(target),
            });
            match found {
                Ok(target) => return Ok(target),
                Err(error) if begin.elapsed() > START => return Err(error),
                Err(_) if is_stopped() => return Err(Error::Stopped),
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
pub(crate) const POLL: Duration = Duration::from_millis(10);
/// How long a server may take to listen, or to end.
const START: Duration = Duration::from_secs(10);
