//! Stuffing: entries grow until every port sends and receives the same, so that the matrix is a sum of permutations.

use crate::bits::refill;
use crate::demand::Demand;

/// QuickStuff of Solstice: returns the diameter phi, after `stuffed` was filled with a matrix of at least the demand
/// whose rows and columns all sum to phi. Entries that are not zero grow first, since an existing flow needs no further
/// circuit; then entries that are zero. Each grows by `phi - max(row, column)`.
pub(crate) fn quick_stuff(demand: &Demand, stuffed: &mut Vec<u64>, sums: &mut MatrixSums) -> u64 {
    let ports = demand.ports();
    stuffed.clear();
    stuffed.extend_from_slice(demand.bytes());
    sums.of(demand);
    let phi = sums.largest();
    for pass in [Pass::NonZero, Pass::Zero] {
        for (sender, row) in stuffed.chunks_exact_mut(ports.max(1)).enumerate() {
            let mut room = phi - sums.rows[sender];
            // A full row can take nothing more, with any entries.
            if room == 0 {
                continue;
            }
            for (entry, column) in row.iter_mut().zip(&mut sums.columns) {
                // In the second pass, an entry that is not zero has no room: its row or its column is full.
                let more = room.min(phi - *column);
                if more == 0 || (pass == Pass::NonZero && *entry == 0) {
                    continue;
                }
                *entry += more;
                *column += more;
                room -= more;
                if room == 0 {
                    break;
                }
            }
            sums.rows[sender] = phi - room;
        }
    }
    debug_assert!(sums.rows.iter().chain(&sums.columns).all(|sum| *sum == phi), "a stuffed matrix is even");
    phi
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    NonZero,
    Zero,
}

/// The sums of a matrix's rows and columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct MatrixSums {
    pub(crate) rows: Vec<u64>,
    pub(crate) columns: Vec<u64>,
}

impl MatrixSums {
    /// Computes the sums of a demand.
    pub(crate) fn of(&mut self, demand: &Demand) {
        self.rows.clear();
        refill(&mut self.columns, demand.ports(), 0);
        for row in demand.rows() {
            self.rows.push(row.iter().sum());
            self.columns.iter_mut().zip(row).for_each(|(sum, bytes)| *sum += bytes);
        }
    }

    /// Returns the largest sum of all.
    pub(crate) fn largest(&self) -> u64 {
        self.rows.iter().chain(&self.columns).copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stuffed_rows_and_columns_sum_to_the_diameter(
            rows in (1usize..12).prop_flat_map(|n| {
                let entry = prop_oneof![2 => Just(0u64), 1 => 1u64..1_000_000];
                prop::collection::vec(prop::collection::vec(entry, n), n)
            }),
        ) {
            let slices: Vec<&[u64]> = rows.iter().map(Vec::as_slice).collect();
            let demand = Demand::from_rows(&slices);
            let mut stuffed = Vec::new();
            let phi = quick_stuff(&demand, &mut stuffed, &mut MatrixSums::default());
            prop_assert_eq!(phi, demand.diameter());
            prop_assert!(stuffed.iter().zip(demand.bytes()).all(|(stuffed, bytes)| stuffed >= bytes));
            let even: Vec<&[u64]> = stuffed.chunks_exact(rows.len()).collect();
            let even = Demand::from_rows(&even);
            for port in 0..rows.len() {
                prop_assert_eq!((even.sent_by(port), even.received_by(port)), (phi, phi));
            }
        }
    }
}
