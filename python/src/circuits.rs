//! Schedules of circuits for a demand matrix.

use std::str::FromStr;

use plimsoll_circuits::{Demand, PORTS_MAX, SchedulerKind, Switching};
use pyo3::prelude::*;

use crate::errors::ModelError;

/// A schedule as Python sees it: the length of each day in ps and the receiver of each sender in it, the bytes that are
/// left to the packet switch, the length of all with their nights in ps, and the length of a night in ps.
type Schedule = (Vec<(u64, Vec<Option<u32>>)>, Vec<Vec<u64>>, u64, u64);

/// Computes the circuits that serve a demand, a row of bytes for each sender.
#[pyfunction]
pub(crate) fn schedule(
    py: Python<'_>,
    demand: Vec<Vec<u64>>,
    scheduler: &str,
    circuit_rate: &str,
    packet_rate: &str,
    night: &str,
    window: &str,
) -> PyResult<Schedule> {
    let ports = demand.len();
    if ports == 0 || ports > PORTS_MAX {
        let message = format!("a demand of {ports} ports; allowed: 1 to {PORTS_MAX}");
        return Err(ModelError::new_err(message));
    }
    if let Some((row, values)) = demand.iter().enumerate().find(|(_, row)| row.len() != ports) {
        let message = format!(
            "row {row} of the demand has {} values; a matrix of {ports} rows needs {ports}",
            values.len()
        );
        return Err(ModelError::new_err(message));
    }
    let kind = SchedulerKind::from_str(scheduler).map_err(|error| ModelError::new_err(error.to_string()))?;
    let switching = Switching {
        circuit_rate: quantity("circuit_rate", circuit_rate)?,
        packet_rate: quantity("packet_rate", packet_rate)?,
        night: quantity("night", night)?,
        window: quantity("window", window)?,
    };
    let demand = Demand::from_bytes(ports, demand.concat());
    switching.check(&demand).map_err(|error| ModelError::new_err(error.to_string()))?;
    Ok(py.detach(|| {
        let schedule = kind.make().schedule(&demand, &switching);
        let total = schedule.total(switching.night);
        let days = schedule.configurations.iter();
        let days = days.map(|each| (each.duration.as_ps(), each.matching.receivers().to_vec())).collect();
        let residue = schedule.residue.rows().map(<[u64]>::to_vec).collect();
        (days, residue, total.as_ps(), switching.night.as_ps())
    }))
}

fn quantity<T: FromStr>(name: &str, text: &str) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| ModelError::new_err(format!("{name}: {error}")))
}
