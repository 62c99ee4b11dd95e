//! Looking ahead: requests that arrived together prefetch their data together, before the first of them runs.
//!
//! ```text
//! parse a ─ index of a │ parse b ─ index of b │ ... │ data of a, b │ run a ─ data of c │ run b ─ data of d │ ...
//! ```
//!
//! Data that is in no cache takes as long as hundreds of instructions, and memory answers many accesses in the time of
//! one. A request by itself can only look up where its data is, wait, fetch the data, and wait.

/// Requests of one input that are read before the first of them runs.
pub(crate) const BATCH: usize = 16;
/// Requests whose data is prefetched while an earlier one runs. The processor has about ten accesses in flight.
pub(crate) const DISTANCE: usize = 4;

/// The memory that a request will use soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ahead {
    /// The index entry of its data.
    Index,
    /// The data that the index entry names; the index is mostly in the cache by now.
    Data,
}

/// Requests that are read and not run yet, each with its partition.
pub(crate) struct ReadAhead<R> {
    requests: [Option<(u32, R)>; BATCH],
    count: usize,
}

impl<R> ReadAhead<R> {
    pub(crate) fn new() -> ReadAhead<R> {
        ReadAhead { requests: [const { None }; BATCH], count: 0 }
    }

    /// Adds a request; there must be room.
    #[inline]
    pub(crate) fn push(&mut self, partition: u32, request: R) {
        self.requests[self.count] = Some((partition, request));
        self.count += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// Calls `run` with all requests in their order, and `ahead` with the requests that follow.
    #[inline]
    pub(crate) fn run<C>(
        &mut self,
        context: &mut C,
        mut ahead: impl FnMut(&mut C, u32, &R),
        mut run: impl FnMut(&mut C, u32, &R),
    ) {
        let count = std::mem::take(&mut self.count);
        let mut next = 0;
        for index in 0..count {
            while next < count.min(index + 1 + DISTANCE) {
                if let Some((partition, request)) = &self.requests[next] {
                    ahead(context, *partition, request);
                }
                next += 1;
            }
            if let Some((partition, request)) = &self.requests[index] {
                run(context, *partition, request);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_run_in_order_and_each_is_seen_before_it_runs() {
        for count in 1..=BATCH {
            let mut batch = ReadAhead::new();
            (0..count).for_each(|number| batch.push(number as u32, ()));
            assert_eq!((batch.is_empty(), batch.is_full()), (false, count == BATCH));
            let mut seen = (Vec::new(), Vec::new());
            batch.run(
                &mut seen,
                |(ahead, _), number, ()| ahead.push(number),
                |(ahead, run), number, ()| {
                    assert!(ahead.contains(&number), "{number} of {count}");
                    run.push(number);
                },
            );
            assert_eq!(seen.1, (0..count as u32).collect::<Vec<_>>());
            assert!(seen.0.len() == count && batch.is_empty());
        }
    }
}
