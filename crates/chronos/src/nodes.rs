//! The NUMA nodes of threads, by the processors to which threads are pinned.

use std::fs;
use std::path::Path;

/// The folder in which the kernel lists the processors of each node.
pub(crate) const FOLDER: &str = "/sys/devices/system/node";

/// Returns the node of each of `threads` threads, numbered from 0 without gaps; `processors` as in [`crate::Config`],
/// `folder` as [`FOLDER`]. `None` where nodes make no difference: threads are not pinned, all are on one node, or the
/// kernel does not report the node of one.
pub(crate) fn of_threads(folder: &Path, processors: &[usize], threads: u32) -> Option<Vec<u32>> {
    let mut nodes: Vec<(u32, String)> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            Some((number, fs::read_to_string(entry.path().join("cpulist")).ok()?))
        })
        .collect();
    nodes.sort_unstable();
    let of = |processor: usize| nodes.iter().find(|(_, list)| is_listed(list, processor)).map(|node| node.0);
    let pinned = processors.iter().cycle().take(threads as usize);
    let numbers = pinned.map(|&processor| of(processor)).collect::<Option<Vec<u32>>>()?;
    let mut used = numbers.clone();
    used.sort_unstable();
    used.dedup();
    let place = |number| used.iter().position(|&other| other == number).map(|place| place as u32);
    (used.len() > 1).then(|| numbers.into_iter().filter_map(place).collect())
}

/// Reports whether the kernel's list (`0-3,8`) has a processor; a list that cannot be parsed has none.
fn is_listed(list: &str, processor: usize) -> bool {
    list.trim().split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&processor),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the folder of a machine with these nodes and lists of processors.
    fn machine(nodes: &[(u32, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (number, list) in nodes {
            let node = folder.path().join(format!("node{number}"));
            fs::create_dir(&node).unwrap();
            fs::write(node.join("cpulist"), format!("{list}\n")).unwrap();
        }
        fs::write(folder.path().join("online"), "0-9\n").unwrap();
        folder
    }

    #[test]
    fn a_thread_is_where_its_processor_is() {
        let two = machine(&[(0, "0-3,8-11"), (1, "4-7,12-15")]);
        let nodes = |processors: &[usize], threads| of_threads(two.path(), processors, threads);
        assert_eq!(nodes(&[0, 4, 11, 12], 4), Some(vec![0, 1, 0, 1]));
        assert_eq!(nodes(&[3, 7], 5), Some(vec![0, 1, 0, 1, 0]), "from the start again");
        // A node without processors, and numbers with gaps.
        let gaps = machine(&[(10, "2"), (2, "0,1"), (7, "")]);
        assert_eq!(of_threads(gaps.path(), &[2, 1], 2), Some(vec![1, 0]));
    }

    #[test]
    fn nodes_make_no_difference() {
        let two = machine(&[(0, "0-3"), (1, "4-7")]);
        let nodes = |processors: &[usize], threads| of_threads(two.path(), processors, threads);
        assert_eq!(nodes(&[], 4), None, "threads are not pinned");
        assert_eq!(nodes(&[4, 5], 4), None, "all are on one node");
        assert_eq!(nodes(&[0, 4], 1), None, "the only thread is");
        assert_eq!(nodes(&[0, 8], 2), None, "processor 8 is on no node");
        assert_eq!(of_threads(&two.path().join("none"), &[0, 4], 2), None, "a kernel without nodes");
        assert_eq!(of_threads(machine(&[(0, "0-1"), (1, "?")]).path(), &[0, 1], 2), None);
    }
}
