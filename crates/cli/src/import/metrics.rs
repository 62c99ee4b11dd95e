//! Implements `plimsoll import metrics`.

use std::path::PathBuf;

use clap::ValueEnum;
use plimsoll_experiment::question::quoted;
use plimsoll_import::metrics::{self, MetricSettings};

use super::shared::{Shared, file_names};
use crate::output::Done;

/// Turn rates of hosts from Prometheus into a scenario.
///
/// The file is the answer to a range query, such as that for `node_network_transmit_bytes_total`. Counters become
/// rates, with restarts recognised; interfaces that see the traffic of others, such as bonds and bridges, are left out.
/// Metrics have no messages, so their workloads have a mean load and an assumed size.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// JSON of `/api/v1/query_range`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    shared: Shared,
    /// Label that names the host; a port after it is left out.
    #[arg(long, value_name = "LABEL", default_value = "instance")]
    host_label: String,
    /// Label by which traffic is divided into classes, each of which is a workload.
    #[arg(long, value_name = "LABEL")]
    class_label: Option<String>,
    /// Direction of series whose name has neither transmit nor receive.
    #[arg(long, value_enum, value_name = "WAY")]
    direction: Option<DirectionOption>,
    /// The values are bits; bytes otherwise.
    #[arg(long)]
    bits: bool,
}

/// The direction of a host's traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DirectionOption {
    /// From the host into the network.
    Transmit,
    /// From the network to the host.
    Receive,
}

impl Args {
    fn settings(&self) -> MetricSettings {
        MetricSettings {
            host_label: self.host_label.clone(),
            class_label: self.class_label.clone(),
            direction: self.direction.map(|direction| match direction {
                DirectionOption::Transmit => metrics::RateDirection::Transmit,
                DirectionOption::Receive => metrics::RateDirection::Receive,
            }),
            bits: self.bits,
        }
    }

    /// Returns the command without the options that all imports have.
    fn command(&self) -> String {
        let mut words = vec![format!("plimsoll import metrics {}", quoted(&self.file.to_string_lossy()))];
        words.push(format!("--host-label {}", quoted(&self.host_label)));
        words.extend(self.class_label.as_ref().map(|label| format!("--class-label {}", quoted(label))));
        let direction = self.direction.and_then(|direction| direction.to_possible_value());
        words.extend(direction.map(|direction| format!("--direction {}", direction.get_name())));
        words.extend(self.bits.then(|| "--bits".to_owned()));
        words.join(" ")
    }
}

pub fn run(args: &Args) -> Done {
    let found = metrics::read(&args.file, &args.settings())?;
    args.shared.write(found, &[], &file_names(std::slice::from_ref(&args.file)), &args.command())
}
