//! `chronos-openflow`: the controller's command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use plimsoll_chronos::Listen;
use plimsoll_chronos::options::{RuntimeOptions, Shown, end, parse_listen, secret, serve};
use plimsoll_chronos_openflow::{Limits, OpenFlow, OpenFlowSettings, Version, Versions};
use plimsoll_units::whole;

/// An OpenFlow learning-switch controller for OpenFlow 1.0 and 1.3.
///
/// Switches connect by TCP, TLS or a UNIX socket. `docs/chronos/openflow.md` describes it.
#[derive(Parser)]
#[command(name = "chronos-openflow", version, max_term_width = 110)]
struct Command {
    /// Where switches connect: an address and port, port 0 for any free one, or `unix:PATH`. May be given several
    /// times.
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:6653", value_parser = parse_listen)]
    listen: Vec<Listen>,
    /// Versions of OpenFlow that may be agreed upon.
    #[arg(long, value_enum, default_value_t = Protocol::Any)]
    protocol: Protocol,
    /// Seconds without a packet after which a switch drops a flow; 0 for never.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = OpenFlowSettings::default().flow_idle_seconds,
        value_parser = whole::<u16>(..)
    )]
    flow_idle: u16,
    /// Seconds after which a switch drops a flow; 0 for never.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = OpenFlowSettings::default().flow_hard_seconds,
        value_parser = whole::<u16>(..)
    )]
    flow_hard: u16,
    /// The priority of flows.
    #[arg(
        long,
        value_name = "N",
        default_value_t = OpenFlowSettings::default().flow_priority,
        value_parser = whole::<u16>(1..)
    )]
    flow_priority: u16,
    /// Bytes of a packet that a switch sends if it keeps the packet itself; 65535 for whole packets.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = OpenFlowSettings::default().miss_send_bytes,
        value_parser = whole::<u16>(..)
    )]
    miss_send: u16,
    /// Bytes of the longest message of a switch that is taken.
    #[arg(long, value_name = "BYTES", default_value_t = u16::MAX, value_parser = whole::<u16>(128..))]
    message_max: u16,
    /// Stations that are remembered of one switch.
    #[arg(
        long,
        value_name = "N",
        default_value_t = OpenFlowSettings::default().addresses.entries as u64,
        value_parser = whole::<u64>(1..=1 << 24)
    )]
    stations: u64,
    /// Seconds without a packet after which a station is forgotten.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = OpenFlowSettings::default().addresses.age_seconds,
        value_parser = whole::<u32>(1..)
    )]
    station_age: u32,
    /// Switches in one partition whose stations are remembered.
    #[arg(
        long,
        value_name = "N",
        default_value_t = OpenFlowSettings::default().datapaths_max as u64,
        value_parser = whole::<u64>(1..=1 << 20)
    )]
    switches: u64,
    /// Seconds that a connection has for its hello and its features reply before it is closed; 0 for any number.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = OpenFlowSettings::default().hello_seconds,
        value_parser = whole::<u16>(..)
    )]
    hello_timeout: u16,
    /// Seconds without a message after which a switch gets an echo request; after as many again without a message it is
    /// disconnected. 0 for never.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = OpenFlowSettings::default().echo_seconds,
        value_parser = whole::<u16>(..)
    )]
    echo_interval: u16,
    /// Connections by TCP from one source address (of IPv6: from one network of 64 bits); half of `--connections` if
    /// nothing is said.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    connections_per_address: Option<u64>,
    #[command(flatten)]
    runtime: RuntimeOptions,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// The controller offers 1.0 and 1.3.
    Any,
    /// The controller offers OpenFlow 1.0 only.
    #[value(name = "1.0")]
    V10,
    /// The controller offers OpenFlow 1.3 only.
    #[value(name = "1.3")]
    V13,
}

impl Command {
    fn settings(&self) -> OpenFlowSettings {
        OpenFlowSettings {
            versions: match self.protocol {
                Protocol::Any => Versions::ALL,
                Protocol::V10 => Versions::only(Version::V10),
                Protocol::V13 => Versions::only(Version::V13),
            },
            flow_idle_seconds: self.flow_idle,
            flow_hard_seconds: self.flow_hard,
            flow_priority: self.flow_priority,
            miss_send_bytes: self.miss_send,
            message_bytes_max: usize::from(self.message_max),
            addresses: Limits { entries: self.stations as usize, age_seconds: self.station_age },
            datapaths_max: self.switches as usize,
            hello_seconds: self.hello_timeout,
            echo_seconds: self.echo_interval,
        }
    }
}

fn main() -> ExitCode {
    end("chronos-openflow", run())
}

fn run() -> Result<()> {
    /// Longer than any message.
    const INPUT_BYTES: usize = 1 << 17;
    let command: Command = plimsoll_command_line::parse(std::env::args_os());
    let mut config = command.runtime.config(command.listen.clone(), INPUT_BYTES)?;
    let half = config.limits.connections.div_ceil(2);
    config.limits.connections_per_address =
        command.connections_per_address.map_or(half, |count| count as usize);
    let controller = OpenFlow::new(command.settings(), config.partitions(), secret());
    let shown =
        Shown { name: "chronos-openflow", version: env!("CARGO_PKG_VERSION"), more: Box::new(|_| ()) };
    serve(controller, &config, &command.runtime, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_page_is_up_to_date() {
        plimsoll_testing::manuals::are_up_to_date("chronos-openflow", |folder| {
            clap_mangen::generate_to(plimsoll_command_line::command::<Command>(), folder)
        });
    }
}
