//! [`PartitionSteering`]: the thread of each request, while partitions move. It knows neither threads nor rings:
//! messages in, messages out.
//!
//! Every thread has its own route to each partition. The balancer publishes a new table of owners, a *generation*:
//!
//! ```text
//! old owner   sees it ── Adopt(p, state) ──> ring to the new owner; late requests follow it in the same ring
//! new owner   sees it ── keeps requests for p until Adopt is here
//! any other   sees it ── has no request for p under way? takes the new route
//!                        else holds further requests for p until those are answered, then takes it
//! ```
//!
//! A thread has *settled* on a generation when all its routes are the table's and it has the state of all partitions
//! that it owns. The next generation is published only when every thread has settled, so no request is under way on an
//! older route, and none can meet its partition coming back and overtake. Hence: requests of one thread for one
//! partition run in the order in which they were made, each once. The dissertation (section 5.2.2) keeps a mutex for
//! this window; here there is none.
//!
//! The caller has to keep one rule: it looks for a new generation *after* taking messages out of its rings and before
//! handling them, so that it never handles a request from a thread whose table is newer than its own.

use std::collections::VecDeque;
use std::mem;

/// One thread's routes, and the partitions that it owns. `P` is a partition's state, `R` a request.
#[derive(Debug)]
pub(crate) struct PartitionSteering<P, R> {
    me: u32,
    generation: u64,
    slots: Vec<Slot<P>>,
    moves: Vec<Move<R>>,
    /// Partitions that this thread has not settled yet.
    unsettled: Vec<u32>,
}

/// The fields that every request reads.
#[derive(Debug)]
struct Slot<P> {
    state: Option<P>,
    /// The destination of own requests.
    route: u32,
}

/// The fields that only requests to other threads and moves read.
#[derive(Debug)]
struct Move<R> {
    /// The owner in the newest table.
    owner: u32,
    /// Own requests under way on the present route.
    under_way: u32,
    /// Own requests that wait for a new route.
    held: VecDeque<R>,
    /// Requests that came before the state.
    early: VecDeque<R>,
}

/// The placement of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestPlacement<R> {
    /// Run it now, on [`PartitionSteering::own`].
    Run(R),
    /// Send it to this thread.
    Send(u32, R),
    /// It is returned by [`PartitionSteering::on_reply`] or [`PartitionSteering::adopt`] later.
    Kept,
}

impl<P, R> PartitionSteering<P, R> {
    /// Creates the routes of thread `me`, where partition p is first owned by `owners[p]`; `state` makes the partitions
    /// of this thread.
    pub(crate) fn new(me: u32, owners: &[u32], mut state: impl FnMut(u32) -> P) -> PartitionSteering<P, R> {
        let slot = |(partition, &route): (usize, &u32)| Slot {
            state: (route == me).then(|| state(partition as u32)),
            route,
        };
        let slots = owners.iter().enumerate().map(slot).collect();
        let quiet =
            |&owner: &u32| Move { owner, under_way: 0, held: VecDeque::new(), early: VecDeque::new() };
        PartitionSteering {
            me,
            generation: 0,
            slots,
            moves: owners.iter().map(quiet).collect(),
            unsettled: Vec::new(),
        }
    }

    /// Returns the partition, if own requests for it run here and now.
    #[inline]
    pub(crate) fn own(&mut self, partition: u32) -> Option<&mut P> {
        let slot = &mut self.slots[partition as usize];
        if slot.route == self.me { slot.state.as_mut() } else { None }
    }

    /// Returns the partition, if it is here.
    pub(crate) fn here(&mut self, partition: u32) -> Option<&mut P> {
        self.slots[partition as usize].state.as_mut()
    }

    /// Returns the partitions that are here, with their numbers.
    pub(crate) fn into_states(self) -> impl Iterator<Item = (u32, P)> {
        (0..).zip(self.slots).filter_map(|(partition, slot)| Some((partition, slot.state?)))
    }

    /// Places a request of one of this thread's connections.
    pub(crate) fn place_own(&mut self, partition: u32, request: R) -> RequestPlacement<R> {
        let slot = &self.slots[partition as usize];
        let moving = &mut self.moves[partition as usize];
        if slot.route != moving.owner {
            moving.held.push_back(request);
            return RequestPlacement::Kept;
        }
        if slot.route != self.me {
            moving.under_way += 1;
            return RequestPlacement::Send(slot.route, request);
        }
        if slot.state.is_some() {
            return RequestPlacement::Run(request);
        }
        moving.early.push_back(request);
        RequestPlacement::Kept
    }

    /// Places a request that came from another thread, its own or forwarded.
    pub(crate) fn place_foreign(&mut self, partition: u32, request: R) -> RequestPlacement<R> {
        let moving = &mut self.moves[partition as usize];
        if self.slots[partition as usize].state.is_some() {
            RequestPlacement::Run(request)
        } else if moving.owner == self.me {
            moving.early.push_back(request);
            RequestPlacement::Kept
        } else {
            RequestPlacement::Send(moving.owner, request)
        }
    }

    /// Handles a reply to one of this thread's requests. Returns requests to be placed again
    /// ([`PartitionSteering::place_own`]).
    pub(crate) fn on_reply(&mut self, partition: u32) -> VecDeque<R> {
        let moving = &mut self.moves[partition as usize];
        moving.under_way -= 1;
        if moving.under_way > 0 || self.slots[partition as usize].route == moving.owner {
            return VecDeque::new();
        }
        self.slots[partition as usize].route = moving.owner;
        let held = mem::take(&mut moving.held);
        self.forget_settled();
        held
    }

    /// Takes over a partition. Returns requests to be run on it now, in this order.
    pub(crate) fn adopt(&mut self, partition: u32, state: P) -> VecDeque<R> {
        debug_assert_eq!(self.moves[partition as usize].owner, self.me, "it comes to its owner");
        self.slots[partition as usize].state = Some(state);
        self.forget_settled();
        mem::take(&mut self.moves[partition as usize].early)
    }

    /// Returns the generation of this thread's table.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Follows the table of a new generation. `hand_over` is given each partition that moves, its state and its new
    /// owner.
    pub(crate) fn refresh(
        &mut self,
        generation: u64,
        owner: impl Fn(u32) -> u32,
        mut hand_over: impl FnMut(u32, P, u32),
    ) {
        debug_assert!(self.unsettled.is_empty(), "a generation follows when all have settled");
        self.generation = generation;
        for (partition, (slot, moving)) in self.slots.iter_mut().zip(&mut self.moves).enumerate() {
            let partition = partition as u32;
            let new = owner(partition);
            if new == moving.owner {
                continue;
            }
            moving.owner = new;
            if moving.under_way == 0 {
                slot.route = new;
            }
            if let Some(state) = slot.state.take() {
                hand_over(partition, state, new);
            }
            self.unsettled.push(partition);
        }
        self.forget_settled();
    }

    /// Reports whether this thread has settled on [`PartitionSteering::generation`].
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    fn forget_settled(&mut self) {
        let (me, slots, moves) = (self.me, &self.slots, &self.moves);
        self.unsettled.retain(|&partition| {
            let (slot, moving) = (&slots[partition as usize], &moves[partition as usize]);
            slot.route != moving.owner || (moving.owner == me && slot.state.is_none())
        });
    }
}
