//! Implements `plimsoll circuits schedule`, which schedules one demand.

use std::path::PathBuf;

use anyhow::Result;
use plimsoll_circuits::{Demand, SchedulerKind};
use serde_json::{Value, json};

use super::common::{Switches, compute_us, read_demand, scheduler, write_figure};
use super::figure;
use super::grid::Grid;
use crate::output::Format;

/// Compute the circuits that serve a demand, and what they leave to the packet switch.
///
/// DEMAND.csv has bytes, without a header: a row for each sender, a value for each receiver. A configuration gives each
/// sender its receiver; between two configurations the circuit switch is dark for a night. `compute_us` is the median
/// time of computing this schedule again and again in this process, and `phi` the most bytes that a port sends or
/// receives.
#[derive(clap::Args)]
pub(super) struct Schedule {
    /// Demand to schedule; `-` reads stdin.
    #[arg(value_name = "DEMAND.csv")]
    demand: PathBuf,
    /// Scheduler: solstice, bvn, islip, tms, eclipse or rotor.
    #[arg(long, value_name = "NAME", default_value = "solstice", value_parser = scheduler)]
    scheduler: SchedulerKind,
    #[command(flatten)]
    switches: Switches,
    /// Form of the printed schedule; JSON has all of it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Draw the schedule into this SVG: who sends to whom, when.
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
}

impl Schedule {
    pub(super) fn printed(&self) -> Result<String> {
        let switching = self.switches.switching();
        let demand = read_demand(&self.demand)?;
        switching.check(&demand)?;
        let schedule = self.scheduler.make().schedule(&demand, &switching);
        if let Some(file) = &self.figure {
            write_figure(file, &figure::of_schedule(self.scheduler, &schedule, &switching))?;
        }
        let total = schedule.total(switching.night);
        if self.format == Format::Json {
            let configurations: Vec<Value> = schedule
                .configurations
                .iter()
                .map(|each| {
                    json!({"duration_ps": each.duration.as_ps(), "matching": each.matching.receivers()})
                })
                .collect();
            let whole = json!({
                "configurations": configurations,
                "residue": schedule.residue.rows().collect::<Vec<_>>(),
                "total_ps": total.as_ps(),
                "compute_us": compute_us(self.scheduler, &demand, &switching),
                "phi": demand.diameter(),
            });
            return Ok(format!("{whole}\n"));
        }
        let each = schedule.configurations.iter().enumerate();
        let rows = |machine: bool| {
            each.map(|(number, each)| {
                let duration =
                    if machine { each.duration.as_ps().to_string() } else { each.duration.to_string() };
                vec![(number + 1).to_string(), duration, each.matching.to_string()]
            })
            .collect()
        };
        let is_csv = self.format == Format::Csv;
        let duration = if is_csv { "duration_ps" } else { "day" };
        let head = ["configuration", duration, "circuits"].map(str::to_owned).to_vec();
        let grid = Grid { head, rows: rows(is_csv) }.printed(self.format);
        if self.format != Format::Table {
            return Ok(grid);
        }
        let carried = demand.total() - schedule.residue.total();
        Ok(format!(
            "{grid}\n{} ports, {}: {} B by circuits, {} B by packets, {total} with nights, computed in {:.1} us\n",
            demand.ports(),
            self.scheduler,
            carried,
            schedule.residue.total(),
            compute_us(self.scheduler, &demand, &switching),
        ))
    }
}

/// Names a demand in a title.
pub(super) fn ports(demand: &Demand) -> String {
    format!("{} ports", demand.ports())
}
