//! [`RankAccounts`]: what each rank did in an iteration, and how long its receives waited by communication group.

use plimsoll_units::{Span, Time};

use super::graph::JobGraph;

/// The accounts of all ranks in an iteration.
#[derive(Clone, Debug)]
pub(super) struct RankAccounts {
    ranks: Vec<RankAccount>,
    /// By rank, and in it by group.
    groups: Vec<GroupAccount>,
    groups_per_rank: usize,
    done: u32,
}

/// The account of a rank in an iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RankAccount {
    /// The operations that have not ended.
    left: u32,
    /// Computations that it has begun, or that wait for a stream.
    computing: u32,
    /// When it last began or ended something.
    since: Time,
    pub(super) computed: Span,
    pub(super) took: Span,
}

/// The receives of a rank that wait now, of all groups or of one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupAccount {
    waiting: u32,
    pub(super) waited: Span,
    pub(super) exposed: Span,
}

impl RankAccounts {
    pub(super) fn new(graph: &JobGraph) -> RankAccounts {
        let (ranks, groups_per_rank) = (graph.ranks() as usize, graph.groups().len());
        RankAccounts {
            ranks: vec![RankAccount::default(); ranks],
            groups: vec![GroupAccount::default(); ranks * groups_per_rank],
            groups_per_rank,
            done: 0,
        }
    }

    /// Begins an iteration with all accounts empty.
    pub(super) fn begin(&mut self, now: Time, graph: &JobGraph) {
        self.done = 0;
        self.ranks.fill(RankAccount { since: now, ..RankAccount::default() });
        self.groups.fill(GroupAccount::default());
        for operation in graph.operations() {
            self.ranks[operation.rank as usize].left += 1;
        }
    }

    /// Returns the number of ranks.
    pub(super) fn len(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Returns the number of ranks whose operations have all ended.
    pub(super) fn done(&self) -> u32 {
        self.done
    }

    /// Returns the times of the ranks whose operations have all ended.
    pub(super) fn times(&self) -> impl Iterator<Item = Span> + '_ {
        self.ranks.iter().filter(|rank| rank.left == 0).map(|rank| rank.took)
    }

    /// Returns the accounts by rank and group, each with the numbers of both.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, u8, RankAccount, GroupAccount)> + '_ {
        self.groups.iter().enumerate().map(|(place, of_group)| {
            let (rank, group) = (place / self.groups_per_rank, place % self.groups_per_rank);
            (rank as u32, group as u8, self.ranks[rank], *of_group)
        })
    }

    /// A computation of a rank begins, or waits for its stream.
    pub(super) fn compute_begins(&mut self, now: Time, rank: u32) {
        self.add_up(now, rank).computing += 1;
    }

    /// A computation of a rank has ended.
    pub(super) fn compute_ends(&mut self, now: Time, rank: u32) {
        self.add_up(now, rank).computing -= 1;
    }

    /// One receive more or less of a rank waits, which counts for its group and for all.
    pub(super) fn waits(&mut self, now: Time, rank: u32, group: u8, more: i32) {
        self.add_up(now, rank);
        let first = rank as usize * self.groups_per_rank;
        let own = [0, usize::from(group)];
        for group in &own[..if group == 0 { 1 } else { 2 }] {
            let waiting = &mut self.groups[first + group].waiting;
            *waiting = waiting.saturating_add_signed(more);
        }
    }

    /// An operation of a rank has ended, `took` after the iteration began.
    pub(super) fn ended(&mut self, rank: u32, took: Span) {
        let account = &mut self.ranks[rank as usize];
        account.left -= 1;
        if account.left == 0 {
            account.took = took;
            self.done += 1;
        }
    }

    /// Adds up the times of all ranks until now.
    pub(super) fn add_up_all(&mut self, now: Time) {
        (0..self.len()).for_each(|rank| _ = self.add_up(now, rank));
    }

    /// Adds what has come since `earlier` so many times more.
    pub(super) fn repeat(&mut self, earlier: &RankAccounts, times: u64) {
        for (now, before) in self.ranks.iter_mut().zip(&earlier.ranks) {
            now.computed += (now.computed - before.computed) * times;
        }
        for (now, before) in self.groups.iter_mut().zip(&earlier.groups) {
            now.waited += (now.waited - before.waited) * times;
            now.exposed += (now.exposed - before.exposed) * times;
        }
    }

    /// An operation of a rank is replayed, after which others come.
    pub(super) fn skip(&mut self, rank: u32) {
        self.ranks[rank as usize].left -= 1;
    }

    /// Adds up a rank's times until now, and returns its account to be changed.
    fn add_up(&mut self, now: Time, rank: u32) -> &mut RankAccount {
        let account = &mut self.ranks[rank as usize];
        let since = now - account.since;
        account.since = now;
        if !since.is_zero() {
            let is_exposed = account.computing == 0;
            if !is_exposed {
                account.computed += since;
            }
            let first = rank as usize * self.groups_per_rank;
            let of_rank = &mut self.groups[first..first + self.groups_per_rank];
            for group in of_rank.iter_mut().filter(|group| group.waiting > 0) {
                group.waited += since;
                if is_exposed {
                    group.exposed += since;
                }
            }
        }
        account
    }
}
