//! Implements `plimsoll circuits demand`, which generates a demand.

use anyhow::{Result, anyhow};
use plimsoll_circuits::{Demand, FlowPlacement, PORTS_MAX, Switching, Workload};
use plimsoll_units::{Streams, whole};

use super::SwitchPair;

/// Print a generated demand as CSV, in bytes: the workload of Solstice's paper, or one by its keys.
#[derive(clap::Args)]
pub(super) struct Generate {
    #[command(flatten)]
    keys: DemandKeys,
    #[command(flatten)]
    switches: SwitchPair,
}

impl Generate {
    pub(super) fn printed(&self) -> Result<String> {
        Ok(self.keys.demands(&self.switches.switching(), 1)?[0].to_csv())
    }
}

/// The parameters of a generated demand.
#[derive(clap::Args, Clone)]
pub(super) struct DemandKeys {
    /// Ports of a generated demand.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<usize>(2..=PORTS_MAX))]
    ports: usize,
    /// Seed of a generated demand.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(..))]
    pub(super) seed: u64,
    /// Large flows of a port; by default a sixteenth of the ports, at least 1.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(..))]
    large: Option<usize>,
    /// Small flows of a port; by default three sixteenths of the ports.
    #[arg(long, value_name = "N", value_parser = whole::<usize>(..))]
    small: Option<usize>,
    /// Share of a port's bytes that its large flows have.
    #[arg(long, value_name = "SHARE", default_value = "70%", value_parser = share)]
    large_share: f64,
    /// Bytes of a port, as a share of what a circuit carries in the window.
    #[arg(long, value_name = "SHARE", default_value = "96%", value_parser = share)]
    load: f64,
    /// Most by which a flow differs from its mean, as a share of what a circuit carries in the window.
    #[arg(long, value_name = "SHARE", default_value = "0.3%", value_parser = share)]
    noise: f64,
    /// Choose receivers at random, the k-th most popular in proportion to k to the power of -SKEW; without it, every
    /// port receives as many flows as it sends.
    #[arg(long, value_name = "SKEW", value_parser = skew)]
    skew: Option<f64>,
    /// Share of the flows that are missing.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    sparsity: f64,
}

impl DemandKeys {
    /// Draws this number of demands. Each has a stream of its own, so that more of them leave the others as they are.
    pub(super) fn demands(&self, switching: &Switching, number: u32) -> Result<Vec<Demand>> {
        switching.check(&Demand::new(self.ports))?;
        let workload = self.workload()?;
        let stream = |number| Streams::new(self.seed).stream(&format!("circuits/demand/{number}"));
        Ok((0..number).map(|number| workload.draw(switching, &mut stream(number))).collect())
    }

    fn workload(&self) -> Result<Workload> {
        let paper = Workload::paper(self.ports);
        let workload = Workload {
            large: self.large.unwrap_or(paper.large),
            small: self.small.unwrap_or(paper.small),
            large_share: self.large_share,
            load: self.load,
            noise: self.noise,
            placement: self.skew.map_or(FlowPlacement::Equal, FlowPlacement::Skewed),
            sparsity: self.sparsity,
            ..paper
        };
        let flows = workload.large.saturating_add(workload.small);
        if flows >= self.ports {
            let most = self.ports - 1;
            return Err(anyhow!(
                "--large {} and --small {} are {flows} flows a port; allowed: at most {most}, one to each other port",
                workload.large,
                workload.small
            ));
        }
        Ok(workload)
    }
}

/// Parses a share of one: `4%`, or `0.04`.
fn share(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0% to 100%".to_owned())
}

/// Parses a skew, the exponent of popularity.
fn skew(text: &str) -> Result<f64, String> {
    let skew = text.parse().ok().filter(|skew| (0.0..=8.0).contains(skew));
    skew.ok_or_else(|| "write a number from 0 (uniform) to 8".to_owned())
}
