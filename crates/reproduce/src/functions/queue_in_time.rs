//! The queue at the receiver in time.

use crate::row::StudyRow;
use crate::study::{FinishedRun, Study};

/// Computes the queue in time, of one point: means over tenths of a second, in packets.
pub(crate) fn occupancy(_: &Study, run: &FinishedRun<'_>) -> Vec<StudyRow> {
    let FinishedRun { figure, case, series, base, outcome } = *run;
    if (figure.id.as_str(), case.x.as_str()) != ("all", "6") {
        return Vec::new();
    }
    let queue = outcome.queues.iter().find(|queue| queue.name == "receiver");
    let row = |(place, means): (usize, &[f64])| {
        let queue = queue?;
        let begins = queue.from.as_secs_f64() + (place * MEANS) as f64 * queue.every.as_secs_f64();
        let mut row = StudyRow::new(
            "occupancy",
            base.name(),
            series,
            &format!("{begins:.1}"),
            "queue_packets",
            "packets",
        );
        row.measured = means.iter().sum::<f64>() / means.len() as f64 / FRAME_BYTES as f64;
        Some(row)
    };
    let means = queue.map_or(&[][..], |queue| &queue.mean_bytes);
    means.chunks_exact(MEANS).enumerate().filter_map(row).collect()
}

/// Intervals of 10 ms in a mean of the queue in time.
const MEANS: usize = 10;
/// A full frame on the wire, as the scenario has it: 1448 B of payload, 52 B of TCP and IP, 14 B of Ethernet.
const FRAME_BYTES: u64 = 1_514;
