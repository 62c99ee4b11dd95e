//! The owners of partitions: the classification of requests, and its change each epoch.

use plimsoll_mechanisms::partition_balancer::{Balance, GreedyBalance, SplitBalance};
use plimsoll_units::{Span, Streams};

use super::keys::below;
use super::model::{Dispatch, ServerModel, Steering};
use super::outcome::ServerOutcome;

/// The owners of partitions, and the state of each.
pub(super) struct Owners {
    threads: u32,
    owner: Vec<u32>,
    /// Requests since the epoch began.
    load: Vec<u64>,
    steering: Option<Steering>,
    balance: Box<dyn Balance>,
    partitions: Vec<Partition>,
    /// Number of times that a partition changed its owner.
    moves: u64,
    before: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Partition {
    /// Requests that are in a queue or with a thread.
    open: u32,
    /// True until its new owner has served it.
    is_new: bool,
    /// True while its old owner still has requests for it, for which others must wait.
    drains: bool,
    /// Requests that wait until the old owner has finished.
    parked: Vec<usize>,
}

impl Owners {
    /// `None` where requests do not go by partition.
    pub(super) fn new(model: &ServerModel, streams: &Streams) -> Option<Owners> {
        let steering = match &model.dispatch {
            Dispatch::Shared | Dispatch::ByConnection => return None,
            Dispatch::Static => None,
            Dispatch::Steered(steering) => Some(steering.clone()),
        };
        let (count, threads) = (model.keys.partitions, model.threads);
        // As printed, so that the figures are the results of the paper's algorithm.
        let balance: Box<dyn Balance> = match steering.as_ref().and_then(|steering| steering.split) {
            None => Box::new(GreedyBalance::default()),
            Some(ways) => Box::new(SplitBalance::new(ways, 0)),
        };
        let owner = match steering {
            Some(_) => {
                let mut stream = streams.stream("server/owners");
                let groups = count.div_ceil(balance.ways());
                let first: Vec<u32> = (0..groups).map(|_| below(&mut stream, threads)).collect();
                (0..count).map(|partition| first[(partition / balance.ways()) as usize]).collect()
            }
            None => balance.first_owners(count, threads),
        };
        Some(Owners {
            threads,
            before: Vec::clone(&owner),
            owner,
            load: vec![0; count as usize],
            steering,
            balance,
            partitions: vec![Partition::default(); count as usize],
            moves: 0,
        })
    }

    /// Returns the time between two balancings, if there are any.
    pub(super) fn epoch(&self) -> Option<Span> {
        self.steering.as_ref().map(|steering| steering.epoch)
    }

    /// The owner of a partition.
    pub(super) fn of(&self, partition: u32) -> u32 {
        self.owner[partition as usize]
    }

    /// A request has come. Its thread, or `None` if it is kept here until the partition is free.
    pub(super) fn admit(&mut self, partition: u32, request: usize) -> Option<u32> {
        let at = partition as usize;
        self.load[at] += 1;
        let state = &mut self.partitions[at];
        if state.drains {
            state.parked.push(request);
            return None;
        }
        state.open += 1;
        Some(self.owner[at])
    }

    /// Returns the extra cost for `thread` to begin a request for `partition`.
    pub(super) fn begin(&mut self, partition: u32, thread: u32) -> Span {
        let at = partition as usize;
        if self.owner[at] != thread || !std::mem::take(&mut self.partitions[at].is_new) {
            return Span::ZERO;
        }
        self.steering.as_ref().map_or(Span::ZERO, |steering| steering.hand_over)
    }

    /// Records that a request is done; the requests that it kept waiting are added to `freed`, and their thread is
    /// returned.
    pub(super) fn finish(&mut self, partition: u32, freed: &mut Vec<usize>) -> u32 {
        let at = partition as usize;
        let state = &mut self.partitions[at];
        state.open -= 1;
        if state.open == 0 && std::mem::take(&mut state.drains) {
            freed.append(&mut state.parked);
            state.open = freed.len() as u32;
        }
        self.owner[at]
    }

    /// Adds the changes of owners to the outcome.
    pub(super) fn report(&self, outcome: &mut ServerOutcome) {
        let counts = self.balance.counts();
        (outcome.moves, outcome.splits, outcome.joins) = (self.moves, counts.splits, counts.joins);
    }

    /// Shares the partitions out by the load of the epoch that ends.
    pub(super) fn balance(&mut self) {
        self.before.copy_from_slice(&self.owner);
        self.balance.balance(&self.load, self.load.iter().sum(), self.threads, &mut self.owner);
        self.load.fill(0);
        let drains = self.steering.as_ref().is_some_and(|steering| steering.drains);
        for (at, state) in self.partitions.iter_mut().enumerate() {
            if self.owner[at] != self.before[at] {
                self.moves += 1;
                state.is_new = true;
                state.drains |= drains && state.open > 0;
            }
        }
    }
}
