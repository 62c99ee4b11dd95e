//! The watched queues of a summary by name, and the selection that a page shows: all of a few, the longest of many.

use std::collections::{BTreeMap, HashSet};

use plimsoll_results::Summary;
use plimsoll_results::summary::{Cell, QueueSummary};

use crate::figures;

/// Identity of a watched queue. A scenario gives one name to the queues of all ports of a tier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueName<'a> {
    /// The name of the queue in the scenario.
    pub name: &'a str,
    /// The port of the queue, in words.
    pub port: &'a str,
}

impl<'a> QueueName<'a> {
    fn of(queue: &'a QueueSummary) -> QueueName<'a> {
        QueueName { name: &queue.name, port: &queue.port }
    }

    /// Returns this queue's summary in a cell.
    pub(crate) fn within(self, cell: &Cell) -> Option<&QueueSummary> {
        cell.queues.iter().find(|queue| QueueName::of(queue) == self)
    }

    /// Returns the heading of its columns.
    pub(crate) fn title(self) -> String {
        let QueueName { name, port } = self;
        if name == port { format!("queue {name}") } else { format!("queue {name} ({port})") }
    }
}

/// Returns all watched queues, each once, in the order of the cells.
pub(crate) fn all<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<QueueName<'a>> {
    let mut seen = HashSet::new();
    cells.flat_map(|cell| &cell.queues).map(QueueName::of).filter(|queue| seen.insert(*queue)).collect()
}

/// The most queues of one name that a page shows.
const SHOWN_MAX: usize = 12;

/// Returns the queues that a page shows, in the order of the cells: of each name at most [`SHOWN_MAX`], the ones with
/// the greatest 99th percentile of their delay in any variant and sweep point.
pub(crate) fn shown(summary: &Summary) -> Vec<QueueName<'_>> {
    let mut delays: BTreeMap<&str, BTreeMap<&str, [f64; 2]>> = BTreeMap::new();
    for queue in summary.cells.iter().flat_map(|cell| &cell.queues) {
        let [p99, most] = delays.entry(&queue.name).or_default().entry(&queue.port).or_default();
        *p99 = p99.max(queue.p99_us.map_or(0.0, |estimate| estimate.value));
        *most = most.max(queue.max_us);
    }
    let mut longest = HashSet::new();
    for (name, ports) in &delays {
        let mut ports: Vec<(&str, [f64; 2])> = ports.iter().map(|(port, delay)| (*port, *delay)).collect();
        ports.sort_by(|(_, a), (_, b)| b[0].total_cmp(&a[0]).then(b[1].total_cmp(&a[1])));
        longest.extend(ports.iter().take(SHOWN_MAX).map(|(port, _)| QueueName { name, port }));
    }
    let mut shown = all(summary.cells.iter());
    shown.retain(|queue| longest.contains(queue));
    shown
}

/// Returns a sentence for each name of which not all queues are shown.
pub(crate) fn not_shown(summary: &Summary) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all(summary.cells.iter()).iter().for_each(|queue| *counts.entry(queue.name).or_default() += 1);
    let many = counts.into_iter().filter(|(_, count)| *count > SHOWN_MAX);
    many.map(|(name, count)| {
        format!(
            "Of the {} queues {name}, the {SHOWN_MAX} with the greatest p99 delay are shown; summary.json has all, and \
             plimsoll figure draws any.",
            figures::count(count as u64)
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_results::summary::Options;
    use plimsoll_results::synthetic::{self, Shape};

    use super::*;

    /// A summary of one variant, whose queue is copied to `count` ports; port i has a p99 of `delay(i)` us.
    fn with_queues(count: usize, delay: impl Fn(usize) -> f64) -> Summary {
        let points = synthetic::experiment(&Shape::default(), &["TCP"], &[], 1, 1);
        let mut summary = Summary::of(&points, &Options::default());
        let queues = &mut summary.cells[0].queues;
        let first = queues[0].clone();
        *queues = (0..count)
            .map(|port| {
                let mut queue = QueueSummary { port: format!("port {port}"), ..first.clone() };
                if let Some(p99) = &mut queue.p99_us {
                    p99.value = delay(port);
                }
                queue
            })
            .collect();
        summary
    }

    #[test]
    fn a_few_queues_are_all_shown() {
        let summary = with_queues(SHOWN_MAX, |port| port as f64);
        assert_eq!(shown(&summary), all(summary.cells.iter()));
        assert!(not_shown(&summary).is_empty());
    }

    #[test]
    fn of_many_queues_the_longest_are_shown_in_their_order() {
        // The delays of ports 0 to 99 are 0, 37, 74, 11, ...: all differ.
        let summary = with_queues(100, |port| (port * 37 % 100) as f64);
        let shown = shown(&summary);
        assert_eq!(shown.len(), SHOWN_MAX);
        for queue in &shown {
            let delay = queue.within(&summary.cells[0]).unwrap().p99_us.unwrap().value;
            assert!(delay >= (100 - SHOWN_MAX) as f64, "{}: {delay}", queue.port);
        }
        let places: Vec<usize> = shown.iter().map(|queue| queue.port[5..].parse().unwrap()).collect();
        assert!(places.is_sorted());
        let sentences = not_shown(&summary);
        assert!(sentences.len() == 1 && sentences[0].starts_with("Of the 100 queues"), "{sentences:?}");
    }

    #[test]
    fn a_name_with_many_queues_hides_no_other() {
        let mut summary = with_queues(100, |port| 1e3 + port as f64);
        let short = QueueSummary { name: "core".to_owned(), ..summary.cells[0].queues[0].clone() };
        summary.cells[0].queues.push(QueueSummary { p99_us: None, max_us: 0.0, ..short });
        assert!(shown(&summary).contains(&QueueName { name: "core", port: "port 0" }));
    }
}
