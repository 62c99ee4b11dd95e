//! Sends without a receive and receives without a send, found before a job runs.
//!
//! The messages that a rank is sent and those that it receives are two bags of (sender, tag). Their sums of hashes are
//! equal where the bags are, which needs a number a rank; only ranks whose sums differ, and ranks that take a message
//! of any sender or tag, are counted pair by pair.

use std::collections::BTreeMap;

use super::graph::{BadGraph, Operation, OperationAction};

/// Messages by receiver, sender and tag: the number of sends, and of receives.
type Pairs = BTreeMap<(u32, u32, u32), [u64; 2]>;

/// Reports operations that cannot have a counterpart. Receives of any sender or tag may take all that is left.
///
/// # Errors
/// Counts them, and names the first one.
pub(super) fn check(operations: &[Operation], ranks: u32) -> Result<(), BadGraph> {
    let mut sums = vec![0_u64; ranks as usize];
    let mut takes_any = vec![false; ranks as usize];
    for operation in operations {
        match side(operation) {
            Some(((rank, from, tag), 0)) => add(&mut sums[rank as usize], hash(from, tag)),
            Some(((rank, from, tag), _)) => add(&mut sums[rank as usize], hash(from, tag).wrapping_neg()),
            None if matches!(operation.action, OperationAction::Receive { .. }) => {
                takes_any[operation.rank as usize] = true;
            }
            None => {}
        }
    }
    let is_counted = |rank: u32| takes_any[rank as usize] || sums[rank as usize] != 0;
    let counted = || {
        let sides = (0..).zip(operations).filter_map(|(number, operation)| Some((number, side(operation)?)));
        sides.filter(|(_, ((rank, ..), _))| is_counted(*rank))
    };
    let mut pairs = Pairs::new();
    counted().for_each(|(_, (pair, side))| pairs.entry(pair).or_default()[side] += 1);
    // The operations that are left without a counterpart are the last of a pair.
    let (mut alone, mut first) = ([0; 2], None);
    let mut seen = Pairs::new();
    for (number, (pair, side)) in counted() {
        let nth = &mut seen.entry(pair).or_default()[side];
        *nth += 1;
        let may_be_taken = side == SEND && takes_any[pair.0 as usize];
        if *nth > pairs[&pair][1 - side] && !may_be_taken {
            alone[side] += 1;
            first = first.or(Some(number));
        }
    }
    let Some(operation) = first else { return Ok(()) };
    let Operation { rank, action, .. } = operations[operation as usize];
    let [sends, receives] = alone;
    Err(BadGraph::WithoutCounterpart { sends, receives, operation, rank, action })
}

const SEND: usize = 0;
const RECEIVE: usize = 1;

/// Returns the receiver, sender and tag of an operation that names all three, and whether it sends or receives.
fn side(operation: &Operation) -> Option<((u32, u32, u32), usize)> {
    match operation.action {
        OperationAction::Send { to, tag, .. } => Some(((to, operation.rank, tag), SEND)),
        OperationAction::Receive { from: Some(from), tag: Some(tag), .. } => {
            Some(((operation.rank, from, tag), RECEIVE))
        }
        _ => None,
    }
}

fn add(sum: &mut u64, hash: u64) {
    *sum = sum.wrapping_add(hash);
}

/// The mixing steps of SplitMix64 (Steele et al., 2014).
fn hash(from: u32, tag: u32) -> u64 {
    let mut mixed = (u64::from(from) << 32 | u64::from(tag)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    /// Operations of some ranks: who, to or from whom, with which tag; a sender or tag of `None` is any.
    fn operations(sends: &[(u32, u32, u32)], receives: &[(u32, Option<u32>, Option<u32>)]) -> Vec<Operation> {
        let of = |rank, action| Operation { rank, action, stream: 0, nic: 0, group: 0 };
        let sends =
            sends.iter().map(|&(rank, to, tag)| of(rank, OperationAction::Send { to, bytes: 9, tag }));
        let receives = receives
            .iter()
            .map(|&(rank, from, tag)| of(rank, OperationAction::Receive { from, bytes: 9, tag }));
        sends.chain(receives).collect()
    }

    #[test]
    fn the_last_of_a_pair_are_alone_and_any_takes_what_is_left() {
        let one = [(0, 1, 3), (0, 1, 3), (2, 1, 4)];
        for (receives, found) in [
            (&[(1, Some(0), Some(3)), (1, Some(0), Some(3)), (1, Some(2), Some(4))][..], None),
            (&[(1, Some(0), Some(3)), (1, Some(2), Some(4))], Some((1, 0, 1))),
            (&[(1, Some(0), Some(3)), (1, Some(0), Some(7)), (1, Some(2), Some(5))], Some((2, 2, 1))),
            (&[(1, None, Some(3)), (1, Some(0), None), (1, Some(2), Some(4))], None),
            (&[(1, None, None), (1, Some(0), Some(3)), (1, Some(0), Some(5))], Some((0, 1, 5))),
        ] {
            let bad = check(&operations(&one, receives), 3);
            let shown = match bad {
                Err(BadGraph::WithoutCounterpart { sends, receives, operation, .. }) => {
                    Some((sends, receives, operation))
                }
                _ => None,
            };
            assert_eq!(shown, found, "{receives:?}");
        }
    }

    #[test]
    fn bags_are_equal_where_nothing_is_found() {
        let mut rng = rand_pcg::Pcg64::new(7, 1);
        let mut found = [0; 2];
        for _ in 0..2_000 {
            let count = rng.random_range(0..9);
            let mut pair = || (rng.random_range(0..3), rng.random_range(0..3), rng.random_range(0..2));
            let sends: Vec<(u32, u32, u32)> = (0..count).map(|_| pair()).collect();
            let mut received: Vec<_> = sends.iter().rev().map(|&(from, to, tag)| (to, from, tag)).collect();
            let (_, from, tag) = pair();
            if let Some(last) = received.last_mut() {
                *last = (last.0, from, tag);
            }
            let receives: Vec<_> =
                received.iter().map(|&(to, from, tag)| (to, Some(from), Some(tag))).collect();
            let mut sent: Vec<_> = sends.iter().map(|&(from, to, tag)| (to, from, tag)).collect();
            sent.sort_unstable();
            received.sort_unstable();
            let is_equal = sent == received;
            found[usize::from(is_equal)] += 1;
            assert_eq!(check(&operations(&sends, &receives), 3).is_ok(), is_equal, "{sends:?} {receives:?}");
        }
        assert!(found.iter().all(|count| *count > 100), "{found:?}");
    }
}
