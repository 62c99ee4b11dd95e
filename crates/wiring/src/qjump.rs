//! QJump's levels of a host.

use plimsoll_mechanisms::qjump::{Levels, QjumpParams};
use plimsoll_scenario::model::Model;

use crate::{Unbuildable, error};

/// The levels of `host`, whose link has a rate of its own.
///
/// # Errors
/// The first key of `host.qjump` that is out of range.
pub fn qjump_levels(model: &Model, params: &QjumpParams, host: u32) -> Result<Levels, Unbuildable> {
    let levels = params.resolve(model.topology.host_count(), model.topology.host_rate(host));
    levels.map_err(|invalid| error(format!("host.qjump.{}", invalid.key), &invalid))
}
