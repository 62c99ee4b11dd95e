use proptest::prelude::*;

use super::super::{GreedyBalance, SplitBalance};
use super::*;

fn balance(policy: &mut dyn Balance, load: &[u64], threads: u32, owner: &mut [u32]) {
    policy.balance(load, load.iter().sum(), threads, owner);
}

fn within(node_of: &[u32], across: Option<u32>) -> NodeBalance<GreedyBalance> {
    NodeBalance::new(node_of, across, GreedyBalance::default)
}

#[test]
fn a_thread_is_relieved_by_its_own_node() {
    // Thread 0 has 9 of its node's 12; thread 2, of another node, has room too and has no precedence.
    let mut owner = [0, 0, 0, 1, 2, 3];
    balance(&mut within(&[0, 0, 1, 1], Some(0)), &[8, 1, 1, 2, 6, 6], 4, &mut owner);
    assert_eq!(owner, [0, 1, 1, 1, 2, 3]);
    // Nodes need not be of neighbours.
    let mut owner = [0, 0, 0, 2, 1, 3];
    balance(&mut within(&[0, 1, 0, 1], Some(0)), &[8, 1, 1, 2, 6, 6], 4, &mut owner);
    assert_eq!(owner, [0, 2, 2, 2, 1, 3]);
}

#[test]
fn only_a_whole_node_with_too_much_gives_partitions_to_another() {
    // Node 0 has 20 of 24, its fair share is 12: after 15 of it the last partition moves to the least loaded thread of
    // node 1, which the other thread relieves of its own.
    let (load, begin) = ([5, 5, 5, 5, 3, 1], [0, 1, 0, 1, 2, 3]);
    let mut policy = within(&[0, 0, 1, 1], Some(0));
    let mut owner = begin;
    balance(&mut policy, &load, 4, &mut owner);
    assert_eq!(owner, [0, 1, 0, 3, 2, 2]);
    assert_eq!(policy.counts().crossings, 1);
    // With `None`, never.
    let mut never = within(&[0, 0, 1, 1], None);
    let mut owner = begin;
    balance(&mut never, &load, 4, &mut owner);
    assert_eq!((owner, never.counts().crossings), (begin, 0));
}

#[test]
fn chance_takes_nothing_across() {
    // Of 200 requests a node of two of four threads has 100 give or take 10.
    let crossings = |excess: u64, deviations| {
        let load = [50, 50 + excess, 0, 50, 50 - excess, 0];
        let mut policy = within(&[0, 0, 1, 1], Some(deviations));
        balance(&mut policy, &load, 4, &mut [0, 1, 0, 2, 3, 3]);
        policy.counts().crossings
    };
    assert_eq!((crossings(30, 3), crossings(31, 3)), (0, 1));
    assert_eq!((crossings(40, 4), crossings(41, 4)), (0, 1));
}

#[test]
fn a_node_is_due_its_part_of_the_threads() {
    // Three threads and one: 30 of 40 are due to the first node.
    let mut policy = within(&[0, 0, 0, 1], Some(0));
    let mut owner = [0, 1, 2, 3];
    balance(&mut policy, &[10, 10, 10, 10], 4, &mut owner);
    assert_eq!((owner, policy.counts().crossings), ([0, 1, 2, 3], 0));
}

#[test]
fn groups_cross_whole() {
    let mut policy = NodeBalance::new(&[0, 1], Some(0), || SplitBalance::new(2, 0));
    assert_eq!((policy.ways(), policy.first_owners(6, 2)), (2, vec![0, 0, 1, 1, 0, 0]));
    let mut owner = [0, 0, 0, 0, 1, 1];
    balance(&mut policy, &[6, 6, 2, 2, 1, 1], 2, &mut owner);
    assert_eq!(owner, [0, 0, 1, 1, 1, 1]);
    assert_eq!(policy.counts().crossings, 2);
    // Parts that begin apart come together where the first is.
    let mut policy = NodeBalance::new(&[0, 1], None, || SplitBalance::new(2, 0));
    let mut owner = [0, 1, 1, 1, 0, 0];
    balance(&mut policy, &[0; 6], 2, &mut owner);
    assert_eq!(owner, [0, 0, 1, 1, 0, 0]);
}

#[test]
#[should_panic(expected = "every node has a thread")]
fn nodes_are_numbered_without_gaps() {
    within(&[0, 2], None);
}

fn loads() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(0_u64..500, 24), 1..20)
}

proptest! {
    /// On a machine with one node it is the same as the policy within a node.
    #[test]
    fn one_node_is_the_plain_policy(
        epochs in loads(), threads in 1_u32..6, ways in 1_u32..4, deviations in 0_u32..5, crosses in any::<bool>(),
    ) {
        let across = crosses.then_some(deviations);
        let mut policy = NodeBalance::new(
            &vec![0; threads as usize], across, || SplitBalance::new(ways, deviations),
        );
        let mut plain = SplitBalance::new(ways, deviations);
        let mut owner = policy.first_owners(24, threads);
        let mut other = plain.first_owners(24, threads);
        for load in &epochs {
            balance(&mut policy, load, threads, &mut owner);
            balance(&mut plain, load, threads, &mut other);
            prop_assert_eq!(&owner, &other);
        }
        prop_assert_eq!(policy.counts(), plain.counts());
    }

    /// With a node for each thread, nodes are threads.
    #[test]
    fn a_node_for_each_thread_is_algorithm_1(
        epochs in loads(), threads in 1_u32..6, deviations in 0_u32..5,
    ) {
        let node_of: Vec<u32> = (0..threads).collect();
        let mut policy =
            NodeBalance::new(&node_of, Some(deviations), || GreedyBalance::beyond_noise(deviations));
        let mut plain = GreedyBalance::beyond_noise(deviations);
        let mut owner = policy.first_owners(24, threads);
        let mut other = owner.clone();
        for load in &epochs {
            balance(&mut policy, load, threads, &mut owner);
            balance(&mut plain, load, threads, &mut other);
            prop_assert_eq!(&owner, &other);
        }
    }

    /// Never means never, and owners are threads.
    #[test]
    fn what_may_not_cross_stays_in_its_node(
        epochs in loads(), node_of in prop::collection::vec(0_u32..2, 0..5), ways in 1_u32..4, crosses in any::<bool>(),
    ) {
        let node_of: Vec<u32> = [0, 1].into_iter().chain(node_of).collect();
        let threads = node_of.len() as u32;
        let mut policy = NodeBalance::new(&node_of, crosses.then_some(0), || SplitBalance::new(ways, 0));
        let begin = policy.first_owners(24, threads);
        let mut owner = begin.clone();
        for load in &epochs {
            balance(&mut policy, load, threads, &mut owner);
            prop_assert!(owner.iter().all(|&owner| owner < threads));
            for (begin, owner) in begin.iter().zip(&owner).filter(|_| !crosses) {
                prop_assert_eq!(node_of[*begin as usize], node_of[*owner as usize]);
            }
        }
        prop_assert!(crosses || policy.counts().crossings == 0);
    }
}
