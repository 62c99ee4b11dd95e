//! Implements `plimsoll circuits compare`, which runs the schedulers on the same demands.

use std::path::PathBuf;

use anyhow::Result;
use plimsoll_circuits::{Demand, LowerBounds, SchedulerKind, evaluate};
use plimsoll_units::whole;
use serde_json::{Value, json};

use super::common::{Switches, compute_us, read_demand, scheduler, stream, write_figure};
use super::demand::Keys;
use super::grid::Grid;
use super::{figure, schedule};
use crate::output::Format;

/// Compare schedulers on one demand, or on generated ones.
///
/// The time to serve ends with the first day at which the packet switch can have carried what no circuit did; a
/// scheduler that keeps to the window gets what it leaves again and again. Utilisation is the share of their capacity
/// that circuits, and links to the packet switch, use in that time, or in the window if that is longer. The bounds are
/// what no schedule of circuits alone (LB_c) and of both switches (LB_h) can beat; LB_f also counts the nights that
/// flows need which the packet switch cannot carry whole. Numbers are means over the demands.
///
/// Eclipse computes for seconds at 128 ports and for minutes at 512; `--scheduler` leaves it out.
#[derive(clap::Args)]
pub(super) struct Compare {
    /// Demand to schedule; `-` reads stdin. By default demands are generated.
    #[arg(value_name = "DEMAND.csv",
        conflicts_with_all = ["ports", "seed", "demands", "large", "small", "large_share", "load", "noise", "skew",
            "sparsity"])]
    demand: Option<PathBuf>,
    /// Number of generated demands.
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = whole::<u32>(1..=100_000))]
    demands: u32,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    switches: Switches,
    /// Schedulers to compare; all by default.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = scheduler)]
    scheduler: Vec<SchedulerKind>,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Draw the time to serve of each scheduler into this SVG, in days with and without use, and nights.
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
}

/// The means of one scheduler over the demands.
pub(super) struct Compared {
    pub(super) kind: SchedulerKind,
    /// The time to serve in ms, if all demands are served.
    pub(super) time_ms: Option<f64>,
    pub(super) configurations: f64,
    pub(super) circuit: f64,
    pub(super) packet: f64,
    compute_us: f64,
    /// How many times the bounds the time to serve is.
    over_circuits: Option<f64>,
    over_hybrid: Option<f64>,
    over_flows: Option<f64>,
}

impl Compare {
    pub(super) fn printed(&self) -> Result<String> {
        let switching = self.switches.switching();
        let demands: Vec<Demand> = match &self.demand {
            Some(path) => vec![read_demand(path)?],
            None => {
                switching.check(&Demand::new(self.keys.ports))?;
                let workload = self.keys.workload()?;
                let draw = |number| workload.draw(&switching, &mut stream(self.keys.seed, number));
                (0..self.demands).map(draw).collect()
            }
        };
        demands.iter().try_for_each(|demand| switching.check(demand))?;
        let bounds: Vec<LowerBounds> =
            demands.iter().map(|demand| LowerBounds::of(demand, &switching)).collect();
        let kinds =
            if self.scheduler.is_empty() { SchedulerKind::ALL.to_vec() } else { self.scheduler.clone() };
        let compared: Vec<Compared> = kinds
            .iter()
            .map(|kind| {
                let all = demands.iter().zip(&bounds).map(|(demand, bounds)| {
                    let evaluation = evaluate(kind.make().as_mut(), demand, &switching);
                    let time = evaluation.time_to_serve.map(|time| time.as_ms_f64());
                    let over = |bound: plimsoll_units::Span| match bound.as_ms_f64() {
                        0.0 => None,
                        bound => time.map(|time| time / bound),
                    };
                    Compared {
                        kind: *kind,
                        time_ms: time,
                        configurations: evaluation.configurations as f64,
                        circuit: evaluation.circuit_utilisation,
                        packet: evaluation.packet_utilisation,
                        compute_us: compute_us(*kind, demand, &switching),
                        over_circuits: over(bounds.circuits),
                        over_hybrid: over(bounds.hybrid),
                        over_flows: over(bounds.flows),
                    }
                });
                mean(*kind, &all.collect::<Vec<_>>())
            })
            .collect();
        let of_bounds = |bound: fn(&LowerBounds) -> plimsoll_units::Span| {
            bounds.iter().map(|bounds| bound(bounds).as_ms_f64()).sum::<f64>() / bounds.len() as f64
        };
        let lines = [
            ("LB_c", of_bounds(|bounds| bounds.circuits)),
            ("LB_h", of_bounds(|bounds| bounds.hybrid)),
            ("LB_f", of_bounds(|bounds| bounds.flows)),
        ];
        if let Some(file) = &self.figure {
            let title = format!("Time to serve, {}", schedule::ports(&demands[0]));
            write_figure(file, &figure::of_times(&title, &compared, &lines, &switching))?;
        }
        Ok(match self.format {
            Format::Json => self.json(&demands, &compared, &lines),
            format => grid(&compared, &lines, format),
        })
    }

    fn json(&self, demands: &[Demand], compared: &[Compared], lines: &[(&str, f64); 3]) -> String {
        let schedulers: Vec<Value> = compared
            .iter()
            .map(|each| {
                json!({
                    "scheduler": each.kind.name(),
                    "circuit_utilisation": each.circuit,
                    "packet_utilisation": each.packet,
                    "time_to_serve_ms": each.time_ms,
                    "configurations": each.configurations,
                    "compute_us": each.compute_us,
                    "times_lb_c": each.over_circuits,
                    "times_lb_h": each.over_hybrid,
                    "times_lb_f": each.over_flows,
                })
            })
            .collect();
        let whole = json!({
            "ports": demands[0].ports(),
            "demands": demands.len(),
            "seed": self.demand.is_none().then_some(self.keys.seed),
            "lb_c_ms": lines[0].1,
            "lb_h_ms": lines[1].1,
            "lb_f_ms": lines[2].1,
            "schedulers": schedulers,
        });
        format!("{whole:#}\n")
    }
}

fn mean(kind: SchedulerKind, all: &[Compared]) -> Compared {
    let of = |value: fn(&Compared) -> f64| all.iter().map(value).sum::<f64>() / all.len() as f64;
    let of_some = |value: fn(&Compared) -> Option<f64>| {
        let sum: Option<f64> = all.iter().map(value).sum();
        sum.map(|sum| sum / all.len() as f64)
    };
    Compared {
        kind,
        time_ms: of_some(|each| each.time_ms),
        configurations: of(|each| each.configurations),
        circuit: of(|each| each.circuit),
        packet: of(|each| each.packet),
        compute_us: of(|each| each.compute_us),
        over_circuits: of_some(|each| each.over_circuits),
        over_hybrid: of_some(|each| each.over_hybrid),
        over_flows: of_some(|each| each.over_flows),
    }
}

fn grid(compared: &[Compared], lines: &[(&str, f64); 3], format: Format) -> String {
    let is_csv = format == Format::Csv;
    let head = [
        "scheduler",
        "circuit_utilisation",
        "packet_utilisation",
        "time_to_serve_ms",
        "configurations",
        "compute_us",
        "times_lb_c",
        "times_lb_h",
        "times_lb_f",
    ];
    let words = [
        "scheduler",
        "circuits used",
        "packets used",
        "time to serve",
        "configurations",
        "computed in",
        "/ LB_c",
        "/ LB_h",
        "/ LB_f",
    ];
    let share = |share: f64| if is_csv { format!("{share:.4}") } else { format!("{:.1} %", share * 100.0) };
    let ms = |ms: Option<f64>| match ms {
        Some(ms) if is_csv => format!("{ms:.6}"),
        Some(ms) => format!("{ms:.3} ms"),
        None if is_csv => String::new(),
        None => "never".to_owned(),
    };
    let us = |us: f64| if is_csv { format!("{us:.2}") } else { format!("{us:.1} us") };
    let times = |times: Option<f64>| match times {
        Some(times) => format!("{times:.3}"),
        None if is_csv => String::new(),
        None => "-".to_owned(),
    };
    let mut rows: Vec<Vec<String>> = compared
        .iter()
        .map(|each| {
            vec![
                each.kind.to_string(),
                share(each.circuit),
                share(each.packet),
                ms(each.time_ms),
                format!("{:.1}", each.configurations),
                us(each.compute_us),
                times(each.over_circuits),
                times(each.over_hybrid),
                times(each.over_flows),
            ]
        })
        .collect();
    for (name, bound) in lines {
        let none = if is_csv { "" } else { "-" };
        let mut row = vec![none.to_owned(); head.len()];
        row[0] = (*name).to_owned();
        row[3] = ms(Some(*bound));
        rows.push(row);
    }
    let head = if is_csv { head } else { words };
    Grid { head: head.map(str::to_owned).to_vec(), rows }.printed(format)
}
