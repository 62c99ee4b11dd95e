//! [`Shell`]: an interactive shell in a host.

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};

use plimsoll_fabric::net::HostId;

use crate::edge::frame;

/// A shell with this process's terminal, in a host's namespace; killed when dropped.
#[derive(Debug)]
pub struct Shell(Child);

impl Shell {
    /// Opens the user's shell (`SHELL`, else `/bin/sh`) in a namespace.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn open(namespace: &str) -> io::Result<Shell> {
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let child = Command::new("ip").args(["netns", "exec", namespace]).arg(shell).spawn()?;
        Ok(Shell(child))
    }

    /// Returns whether the user has left it.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

/// Returns the address of a host.
pub fn address(host: u32) -> Ipv4Addr {
    frame::ipv4(HostId(host))
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
