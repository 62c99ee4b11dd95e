//! The quantities of captured packets, by the functions of [`super::bursts`].

use super::asked::Asked;
use super::bursts::{
    ack_ratio as ack_ratio_of, bursts, days_filled_percent, pair_bursts, path_cache_percent,
    path_changes_per_mb,
};

pub(super) fn burst(of: &Asked<'_>) -> Vec<f64> {
    bursts(of.outcome, of.queue_name(), of.warmup).map(|burst| of.us(burst.us)).collect()
}

pub(super) fn burst_packets(of: &Asked<'_>) -> Vec<f64> {
    bursts(of.outcome, of.queue_name(), of.warmup).map(|burst| burst.packets).collect()
}

pub(super) fn pair_burst(of: &Asked<'_>) -> Vec<f64> {
    pairs(of, false)
}

pub(super) fn pair_data_burst(of: &Asked<'_>) -> Vec<f64> {
    pairs(of, true)
}

fn pairs(of: &Asked<'_>, data_only: bool) -> Vec<f64> {
    let bursts = pair_bursts(of.outcome, of.queue_name(), of.warmup, data_only);
    bursts.into_iter().map(|packets| packets as f64).collect()
}

pub(super) fn ack_ratio(of: &Asked<'_>) -> Vec<f64> {
    ack_ratio_of(of.outcome, of.queue_name()).map(|bytes| bytes * 1e-3).into_iter().collect()
}

pub(super) fn path_cache(of: &Asked<'_>) -> Vec<f64> {
    path_cache_percent(of.outcome, of.queue_name(), of.count(0) as usize).into_iter().collect()
}

pub(super) fn path_changes(of: &Asked<'_>) -> Vec<f64> {
    path_changes_per_mb(of.outcome, of.queue_name(), of.span(0)).into_iter().collect()
}

pub(super) fn day_filled(of: &Asked<'_>) -> Vec<f64> {
    days_filled_percent(of.outcome, of.queue_name(), of.span(0))
}
