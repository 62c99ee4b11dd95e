//! [`Rounds`]: collective operations as sends and receives of their members.
//!
//! ```text
//! last operation of each member ──> round: send to a member, receive from one ──> last operation of each member
//! ```
//!
//! A member sends in a round once it has received in the one before it: no member waits for others that it does not
//! hear from. Sizes are those of nccl-tests: the array of a member, of which a reduce-scatter leaves it a part, an
//! all-gather brings it the parts of all, and an all-to-all has a block for each.

use plimsoll_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::graph::{GraphBuilder, OperationNumber};

/// A collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CollectiveOperation {
    /// All members have the sum of all arrays.
    AllReduce,
    /// Each member has the sum of its part.
    ReduceScatter,
    /// All members have the parts of all.
    AllGather,
    /// Each member has a block of each.
    AllToAll,
    /// All members have the array of the first.
    Broadcast,
    /// The first member has the sum of all arrays.
    Reduce,
    /// All members know that all have come.
    Barrier,
}

/// The schedule of a collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Each member sends to the next, round after round. A broadcast goes from member to member.
    Ring,
    /// Recursive halving, then doubling: all-reduce, reduce-scatter and all-gather of a power of two members.
    HalvingDoubling,
    /// Recursive doubling: an all-reduce in which partners exchange whole arrays; a power of two members.
    RecursiveDoubling,
    /// A binary tree, up and down. Broadcast and reduce take a binomial tree.
    Tree,
    /// Two binary trees with half of the array each; a member has children in one of them.
    DoubleTree,
    /// An all-reduce of servers: reduce-scatter inside, all-reduce between ranks with the same place, all-gather
    /// inside.
    Hierarchical,
    /// An all-to-all in rounds: in round t to the member t further on.
    Shift,
    /// An all-to-all in rounds: in round t with the member whose number differs in the bits of t; a power of two.
    Xor,
    /// An all-to-all whose messages are all sent at once.
    Direct,
    /// A barrier in which members hear from twice as many with each round.
    Dissemination,
}

use Algorithm::{
    Direct, Dissemination, DoubleTree, HalvingDoubling, Hierarchical, RecursiveDoubling, Ring, Shift, Tree,
    Xor,
};
use CollectiveOperation::{AllGather, AllReduce, AllToAll, Barrier, Broadcast, Reduce, ReduceScatter};

impl Algorithm {
    /// Returns its name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            Ring => "ring",
            HalvingDoubling => "halving-doubling",
            RecursiveDoubling => "recursive-doubling",
            Tree => "tree",
            DoubleTree => "double-tree",
            Hierarchical => "hierarchical",
            Shift => "shift",
            Xor => "xor",
            Direct => "direct",
            Dissemination => "dissemination",
        }
    }
}

impl CollectiveOperation {
    /// Returns the algorithms that carry it out; the first is the default.
    pub fn algorithms(self) -> &'static [Algorithm] {
        match self {
            AllReduce => &[Ring, HalvingDoubling, RecursiveDoubling, Tree, DoubleTree, Hierarchical],
            ReduceScatter | AllGather => &[Ring, HalvingDoubling],
            AllToAll => &[Shift, Xor, Direct],
            Broadcast => &[Tree, Ring],
            Reduce => &[Tree],
            Barrier => &[Dissemination],
        }
    }

    /// Returns the bytes that a member's link carries at least, for each byte of the size, with `members` of them
    /// (nccl-tests, `PERFORMANCE.md`): the factor from the rate of the algorithm to that of the bus.
    pub fn bus_factor(self, members: u32) -> f64 {
        let n = f64::from(members);
        match self {
            AllReduce => 2.0 * (n - 1.0) / n,
            ReduceScatter | AllGather | AllToAll => (n - 1.0) / n,
            Broadcast | Reduce => 1.0,
            Barrier => 0.0,
        }
    }
}

impl Algorithm {
    /// Returns whether the members have to be a power of two.
    pub fn needs_power_of_two(self) -> bool {
        matches!(self, HalvingDoubling | RecursiveDoubling | Xor)
    }
}

/// A collective operation, and how it is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collective {
    /// The operation to carry out.
    pub operation: CollectiveOperation,
    /// Its schedule, which the operation has to have.
    pub algorithm: Algorithm,
    /// The size, as nccl-tests counts it.
    pub bytes: u64,
    /// The parts that run the schedule beside each other: 1 or more.
    pub chunks: u32,
    /// The members of a server, which have consecutive places (`hierarchical`); they divide all members.
    pub per_server: u32,
    /// The time to add a byte that was received to one's own.
    pub reduce_per_byte: Span,
}

/// The last operation of each member; `None` before the first.
pub type LastOperations = Vec<Option<OperationNumber>>;

impl Collective {
    /// Adds the operations of `members`, ranks by their place, to a job: each begins after its member's `last`
    /// operation. Returns each member's last one now. `tag` is a number that no message has, and one again afterwards.
    pub fn add(
        &self,
        builder: &mut GraphBuilder,
        members: &[u32],
        last: &LastOperations,
        tag: &mut u32,
    ) -> LastOperations {
        self.add_chunks(builder, members, last, tag, |rounds, share| rounds.run(self, share(self.bytes)))
    }

    /// Adds an all-to-all like [`Collective::add`], in which `block` gives the bytes that a place has for another
    /// (all-to-all-v). Blocks without bytes are no messages.
    pub fn add_blocks(
        &self,
        builder: &mut GraphBuilder,
        members: &[u32],
        last: &LastOperations,
        tag: &mut u32,
        block: impl Fn(usize, usize) -> u64,
    ) -> LastOperations {
        self.add_chunks(builder, members, last, tag, |rounds, share| {
            let sizes = |from, to| Some(share(block(from, to))).filter(|bytes| *bytes > 0);
            rounds.all_to_all(self.algorithm, sizes);
        })
    }

    /// Adds each chunk by `run`, which is given the share of a number of bytes that the chunk has.
    fn add_chunks(
        &self,
        builder: &mut GraphBuilder,
        members: &[u32],
        last: &LastOperations,
        tag: &mut u32,
        run: impl Fn(&mut Rounds<'_>, &dyn Fn(u64) -> u64),
    ) -> LastOperations {
        if members.len() < 2 {
            return last.clone();
        }
        let mut ends: Vec<LastOperations> = Vec::new();
        for chunk in 0..self.chunks {
            let share = |bytes: u64| part(bytes, chunk.into(), self.chunks.into());
            let mut schedule =
                Rounds { builder, members, reduce_per_byte: self.reduce_per_byte, tag, last: last.clone() };
            run(&mut schedule, &share);
            ends.push(schedule.last);
        }
        join(builder, members, &ends)
    }
}

/// Returns the size of part `index` of `bytes` in `parts`.
fn part(bytes: u64, index: u64, parts: u64) -> u64 {
    let until = |index: u64| (u128::from(bytes) * u128::from(index) / u128::from(parts)) as u64;
    until(index + 1) - until(index)
}

/// Returns for each member an operation that ends after its last one of each list.
fn join(builder: &mut GraphBuilder, members: &[u32], lists: &[LastOperations]) -> LastOperations {
    let one = |(member, &rank): (usize, &u32)| {
        let mut last: Vec<OperationNumber> = lists.iter().filter_map(|list| list[member]).collect();
        last.sort_unstable();
        last.dedup();
        match last[..] {
            [] => None,
            [only] => Some(only),
            _ => {
                let all = builder.compute(rank, Span::ZERO);
                builder.after_all(all, &last);
                Some(all)
            }
        }
    };
    members.iter().enumerate().map(one).collect()
}

/// A collective operation of some members in the making.
struct Rounds<'a> {
    builder: &'a mut GraphBuilder,
    members: &'a [u32],
    reduce_per_byte: Span,
    tag: &'a mut u32,
    last: LastOperations,
}

impl Rounds<'_> {
    fn run(&mut self, collective: &Collective, bytes: u64) {
        match (collective.operation, collective.algorithm) {
            (AllReduce, HalvingDoubling) => {
                self.halve(bytes);
                self.double(bytes);
            }
            (AllReduce, RecursiveDoubling) => self.exchange_whole(bytes),
            (AllReduce, Tree) => self.tree(bytes, false),
            (AllReduce, DoubleTree) => {
                let begin = self.last.clone();
                self.tree(part(bytes, 0, 2), false);
                let first = std::mem::replace(&mut self.last, begin);
                self.tree(part(bytes, 1, 2), true);
                self.last = join(self.builder, self.members, &[first, self.last.clone()]);
            }
            (AllReduce, Hierarchical) => self.hierarchical(bytes, collective.per_server.max(1) as usize),
            (AllReduce, _) => {
                self.ring(bytes, true);
                self.ring(bytes, false);
            }
            (ReduceScatter, HalvingDoubling) => self.halve(bytes),
            (ReduceScatter, _) => self.ring(bytes, true),
            (AllGather, HalvingDoubling) => self.double(bytes),
            (AllGather, _) => self.ring(bytes, false),
            (AllToAll, algorithm) => {
                let count = self.count() as u64;
                self.all_to_all(algorithm, |_, to| Some(part(bytes, to as u64, count)));
            }
            (Broadcast, Ring) => self.chain(bytes),
            (Broadcast, _) => self.broadcast(bytes),
            (Reduce, _) => self.reduce(bytes),
            (Barrier, _) => self.disseminate(),
        }
    }

    fn count(&self) -> usize {
        self.members.len()
    }

    /// One round: `sends` gives the place to which a member sends, and how much. A member receives from one at most.
    fn round(&mut self, reduces: bool, sends: impl Fn(usize) -> Option<(usize, u64)>) {
        let mut last = self.last.clone();
        for from in 0..self.count() {
            if let Some((to, bytes)) = sends(from) {
                last[to] = Some(self.message(from, to, bytes, reduces));
            }
        }
        self.last = last;
        *self.tag += 1;
    }

    /// A message between two places, after their last operations. Returns the operation with which it is there.
    fn message(&mut self, from: usize, to: usize, bytes: u64, reduces: bool) -> OperationNumber {
        let [sender, receiver] = [from, to].map(|place| self.members[place]);
        let send = self.builder.send(sender, receiver, bytes, *self.tag);
        let receive = self.builder.receive(receiver, sender, bytes, *self.tag);
        for (operation, place) in [(send, from), (receive, to)] {
            if let Some(last) = self.last[place] {
                self.builder.after(operation, last);
            }
        }
        if !reduces || self.reduce_per_byte.is_zero() {
            return receive;
        }
        let sum = self.builder.compute(receiver, self.reduce_per_byte * bytes);
        self.builder.after(sum, receive);
        sum
    }

    /// A reduce-scatter if it `reduces`, otherwise an all-gather: parts go from each member to the next.
    fn ring(&mut self, bytes: u64, reduces: bool) {
        let count = self.count();
        // After the reduce-scatter a member has the whole of the part after its own.
        let first = usize::from(!reduces);
        for round in 0..count - 1 {
            let which = |place: usize| (place + first + count - round) % count;
            self.round(reduces, |place| {
                Some(((place + 1) % count, part(bytes, which(place) as u64, count as u64)))
            });
        }
    }

    /// A reduce-scatter: halves of halves with partners that come nearer.
    fn halve(&mut self, bytes: u64) {
        let rounds = self.count().ilog2();
        for round in 0..rounds {
            let distance = self.count() >> (round + 1);
            self.round(true, |place| Some((place ^ distance, (bytes >> (round + 1)).max(1))));
        }
    }

    /// An all-gather: twice as much with partners that are farther away.
    fn double(&mut self, bytes: u64) {
        let rounds = self.count().ilog2();
        for round in (0..rounds).rev() {
            let distance = self.count() >> (round + 1);
            self.round(false, |place| Some((place ^ distance, (bytes >> (round + 1)).max(1))));
        }
    }

    fn exchange_whole(&mut self, bytes: u64) {
        for round in 0..self.count().ilog2() {
            self.round(true, |place| Some((place ^ 1 << round, bytes)));
        }
    }

    /// Sums go up a binary tree and the whole comes down; `mirrored`, the last place is its root.
    fn tree(&mut self, bytes: u64, mirrored: bool) {
        let count = self.count();
        let place = |node: usize| if mirrored { count - 1 - node } else { node };
        // A node sends to its parent when both children have sent to it.
        for node in (1..count).rev() {
            let (child, parent) = (place(node), place((node - 1) / 2));
            self.last[parent] = Some(self.message(child, parent, bytes, true));
        }
        *self.tag += 1;
        for node in 1..count {
            let (child, parent) = (place(node), place((node - 1) / 2));
            self.last[child] = Some(self.message(parent, child, bytes, false));
        }
        *self.tag += 1;
    }

    fn hierarchical(&mut self, bytes: u64, per_server: usize) {
        let servers = self.count() / per_server;
        self.in_groups(
            servers,
            |server, inner| server * per_server + inner,
            per_server,
            |inside, _| inside.ring(bytes, true),
        );
        self.in_groups(
            per_server,
            |rail, server| server * per_server + rail,
            servers,
            |between, rail| {
                // After the reduce-scatter a rank has the whole of the part after its own.
                let share = part(bytes, ((rail + 1) % per_server) as u64, per_server as u64);
                between.ring(share, true);
                between.ring(share, false);
            },
        );
        self.in_groups(
            servers,
            |server, inner| server * per_server + inner,
            per_server,
            |inside, _| inside.ring(bytes, false),
        );
    }

    /// Runs a part of the schedule among the members of each of some groups, whose places `place` gives by the numbers
    /// of group and member.
    fn in_groups(
        &mut self,
        groups: usize,
        place: impl Fn(usize, usize) -> usize,
        size: usize,
        run: impl Fn(&mut Rounds<'_>, usize),
    ) {
        if size < 2 {
            return;
        }
        let tag = *self.tag;
        for group in 0..groups {
            let places: Vec<usize> = (0..size).map(|member| place(group, member)).collect();
            let members: Vec<u32> = places.iter().map(|&place| self.members[place]).collect();
            let last = places.iter().map(|&place| self.last[place]).collect();
            *self.tag = tag;
            let mut inner = Rounds {
                builder: self.builder,
                members: &members,
                reduce_per_byte: self.reduce_per_byte,
                tag: self.tag,
                last,
            };
            run(&mut inner, group);
            let ends = inner.last;
            places.iter().zip(ends).for_each(|(&place, last)| self.last[place] = last);
        }
    }

    /// A member has a block for each, of which it keeps its own; `block` gives its bytes by the places of both.
    fn all_to_all(&mut self, algorithm: Algorithm, block: impl Fn(usize, usize) -> Option<u64>) {
        let count = self.count();
        let begin = self.last.clone();
        let mut ends = Vec::new();
        for round in 1..count {
            let partner = |place: usize| match algorithm {
                Xor => place ^ round,
                _ => (place + round) % count,
            };
            self.round(false, |place| Some((partner(place), block(place, partner(place))?)));
            if algorithm == Direct {
                ends.push(std::mem::replace(&mut self.last, begin.clone()));
            }
        }
        if algorithm == Direct {
            self.last = join(self.builder, self.members, &ends);
        }
    }

    fn chain(&mut self, bytes: u64) {
        for place in 1..self.count() {
            self.last[place] = Some(self.message(place - 1, place, bytes, false));
        }
        *self.tag += 1;
    }

    /// Members with the array send it to as many others, from round to round.
    fn broadcast(&mut self, bytes: u64) {
        let count = self.count();
        for round in 0..count.next_power_of_two().ilog2() {
            let have = 1 << round;
            self.round(false, |place| {
                (place < have && place + have < count).then_some((place + have, bytes))
            });
        }
    }

    fn reduce(&mut self, bytes: u64) {
        let count = self.count();
        for round in (0..count.next_power_of_two().ilog2()).rev() {
            let left = 1 << round;
            self.round(true, |place| (place >= left && place < 2 * left).then(|| (place - left, bytes)));
        }
    }

    fn disseminate(&mut self) {
        let count = self.count();
        for round in 0..count.next_power_of_two().ilog2() {
            self.round(false, |place| Some(((place + (1 << round)) % count, 1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::{JobGraph, OperationAction};
    use super::*;

    fn graph(operation: CollectiveOperation, algorithm: Algorithm, members: u32, bytes: u64) -> JobGraph {
        let collective =
            Collective { operation, algorithm, bytes, chunks: 1, per_server: 4, reduce_per_byte: Span::ZERO };
        let mut builder = GraphBuilder::new(members);
        let ranks: Vec<u32> = (0..members).collect();
        collective.add(&mut builder, &ranks, &vec![None; members as usize], &mut 0);
        builder.finish().unwrap()
    }

    /// Bytes that each rank sends.
    fn sent(graph: &JobGraph) -> Vec<u64> {
        let mut sent = vec![0; graph.ranks() as usize];
        for operation in graph.operations() {
            if let OperationAction::Send { bytes, .. } = operation.action {
                sent[operation.rank as usize] += bytes;
            }
        }
        sent
    }

    #[test]
    fn members_send_what_the_schedules_have_them_send() {
        for (operation, algorithm, bytes, each) in [
            (AllReduce, Ring, 800, vec![1_400; 8]),
            (AllReduce, HalvingDoubling, 800, vec![1_400; 8]),
            (AllReduce, RecursiveDoubling, 800, vec![2_400; 8]),
            (AllReduce, Hierarchical, 800, vec![600 + 200 + 600; 8]),
            (ReduceScatter, Ring, 800, vec![700; 8]),
            (AllGather, HalvingDoubling, 800, vec![700; 8]),
            (AllToAll, Shift, 800, vec![700; 8]),
            (AllToAll, Xor, 800, vec![700; 8]),
            (AllToAll, Direct, 800, vec![700; 8]),
            (Broadcast, Ring, 800, vec![800, 800, 800, 800, 800, 800, 800, 0]),
            (Broadcast, Tree, 800, vec![2_400, 1_600, 800, 800, 0, 0, 0, 0]),
            (Reduce, Tree, 800, vec![0, 800, 800, 800, 800, 800, 800, 800]),
            (Barrier, Dissemination, 0, vec![3; 8]),
        ] {
            assert_eq!(sent(&graph(operation, algorithm, 8, bytes)), each, "{operation:?} {algorithm:?}");
        }
        // Two children down and one parent up, of half of the array in each tree.
        let tree = sent(&graph(AllReduce, Tree, 7, 800));
        assert_eq!(tree, [1_600, 2_400, 2_400, 800, 800, 800, 800]);
        let double = sent(&graph(AllReduce, DoubleTree, 8, 800));
        assert!(double.iter().all(|bytes| *bytes <= 1_600), "{double:?}");
        // Of 803 B in parts of 200, 201, 201 and 201 a rank sends twice all but one inside its server, and between
        // servers what it has summed; the part that it does not send is the one two after its own.
        let rails = sent(&graph(AllReduce, Hierarchical, 8, 803));
        assert_eq!(rails, [1_405, 1_405, 1_406, 1_405, 1_405, 1_405, 1_406, 1_405]);
        // Parts of sizes that do not divide sum to the whole.
        let odd = graph(AllReduce, Ring, 7, 1_000);
        assert_eq!(odd.bytes(), 12 * 1_000);
        assert_eq!(odd.messages(), 2 * 6 * 7);
    }

    #[test]
    fn chunks_run_beside_each_other() {
        let collective = Collective {
            operation: AllReduce,
            algorithm: Ring,
            bytes: 1_001,
            chunks: 4,
            per_server: 1,
            reduce_per_byte: Span::from_ns(1),
        };
        let mut builder = GraphBuilder::new(3);
        let mut tag = 5;
        let last = collective.add(&mut builder, &[2, 0, 1], &vec![None; 3], &mut tag);
        assert!(last.iter().all(Option::is_some) && tag == 5 + 4 * 4);
        let graph = builder.finish().unwrap();
        assert_eq!((graph.messages(), graph.bytes()), (4 * 4 * 3, 4 * 1_001));
    }
}
