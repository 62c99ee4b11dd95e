//! Implements `plimsoll circuits serve` and `plimsoll circuits agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use plimsoll_circuits_live::CircuitsConfig;
use plimsoll_http::Listener;
use plimsoll_process::note;

use crate::output::Done;
use crate::signals::Interrupt;

/// Run the controller of a circuit switch between real hosts, until interrupted.
///
/// Agents report the demand of their hosts by UDP, authenticated by a shared key; an OpenFlow 1.3 switch connects by
/// TCP, and gets a rule for each circuit. A circuit that is not renewed ends by itself, so that hosts return to the
/// packet switch. docs/circuits-live.md describes the file, and how hosts and switch are set up.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// File of the control loop, which the agents have too.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    #[command(flatten)]
    metrics: MetricsKeys,
}

/// Run the agent of this host, which sends packets by the circuit that the host has been given, until interrupted.
///
/// Needs root and Linux 6.6 or later: a program at the packet device moves packets to the circuit device while their
/// receiver has a circuit. It ends with this process, whatever ends it.
#[derive(clap::Args)]
pub struct AgentArgs {
    /// File of the control loop.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Name of this host in the file; the system's host name by default.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    #[command(flatten)]
    metrics: MetricsKeys,
}

#[derive(clap::Args)]
struct MetricsKeys {
    /// Serve metrics for Prometheus at /metrics of this address: unix:/PATH, 127.0.0.1:PORT or [::1]:PORT.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
}

impl MetricsKeys {
    fn listener(&self) -> Result<Option<Listener>> {
        let listener = self.metrics.as_deref().map(plimsoll_host::bind).transpose()?;
        if let Some(listener) = &listener {
            note!("metrics at {}, path /metrics", listener.address());
        }
        Ok(listener)
    }
}

impl ServeArgs {
    pub fn run(&self) -> Done {
        let config = CircuitsConfig::read(&self.file)?;
        let interrupt = Interrupt::watch()?;
        let ready = || {
            let (agents, switch) = (config.controller, config.openflow);
            note!(
                "listening for agents at {agents} (UDP), and for the circuit switch at {switch} (OpenFlow 1.3)"
            );
        };
        plimsoll_circuits_live::serve(&config, self.metrics.listener()?, ready, || {
            interrupt.signal().is_some()
        })?;
        Ok(ended_by(&interrupt))
    }
}

impl AgentArgs {
    #[cfg(feature = "kernel")]
    pub fn run(&self) -> Done {
        let (config, number) = self.read()?;
        let interrupt = Interrupt::watch()?;
        let name = &config.host[number].name;
        let ready =
            || note!("host {name} sends by circuits, as the controller at {} grants them", config.controller);
        let is_over = || interrupt.signal().is_some();
        plimsoll_circuits_live::run_agent(&config, number, self.metrics.listener()?, ready, is_over)?;
        Ok(ended_by(&interrupt))
    }

    /// Checks the arguments, and reports that this build has no gate.
    #[cfg(not(feature = "kernel"))]
    pub fn run(&self) -> Done {
        self.read()?;
        self.metrics.listener()?;
        Err(anyhow::anyhow!(crate::output::NO_PROGRAMS))
    }

    fn read(&self) -> Result<(CircuitsConfig, usize)> {
        let config = CircuitsConfig::read(&self.file)?;
        let named =
            || std::fs::read_to_string("/proc/sys/kernel/hostname").context("reading this host's name");
        let name = self.host.clone().map_or_else(named, Ok)?;
        let number = config.host_number(name.trim())?;
        Ok((config, number))
    }
}

fn ended_by(interrupt: &Interrupt) -> ExitCode {
    interrupt.signal().map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal))
}
