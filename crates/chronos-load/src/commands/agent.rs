//! Implements `chronos-load agent`, which sends load for callers on other machines.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::{CommandResult, print};
use crate::agent::{Token, serve};

/// Send load for a caller on another machine (--agents of the other commands), one caller at a time
#[derive(Debug, Args)]
#[command(after_help = "\
Who holds the token has this machine send any load to any address that it reaches. Nothing is encrypted, the token
included: listen on a private network, or on the loopback behind a tunnel (docs/chronos/load.md).")]
pub struct AgentArguments {
    /// Address to listen on, such as 10.0.0.2:7000; port 0 for any free one
    #[arg(help_heading = "Agents", long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// File whose first line is the token that callers must have; only its owner may read it
    #[arg(help_heading = "Agents", long, value_name = "FILE")]
    token_file: PathBuf,
}

impl AgentArguments {
    /// Serves callers until a signal ends the process.
    ///
    /// # Errors
    /// Returns an error if the token cannot be read, or the address cannot be listened on.
    pub fn execute(&self) -> CommandResult {
        let token = Token::read(&self.token_file)?;
        let doing = || format!("--listen {}", self.listen);
        let listener = TcpListener::bind(self.listen).with_context(doing)?;
        print(&format!("listening on {}\n", listener.local_addr().with_context(doing)?))?;
        serve(&listener, token).with_context(doing)?;
        Ok(ExitCode::SUCCESS)
    }
}
