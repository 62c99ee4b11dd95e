use proptest::prelude::*;

use super::super::GreedyBalance;
use super::*;

/// Makes the policy as printed, so that numbers are exact.
fn printed(ways: u32) -> SplitBalance {
    SplitBalance::new(ways, 0)
}

fn balance(policy: &mut dyn Balance, load: &[u64], threads: u32, owner: &mut [u32]) {
    policy.balance(load, load.iter().sum(), threads, owner);
}

#[test]
fn a_hot_group_is_split_and_its_parts_move_alone() {
    let (mut policy, mut owner) = (printed(4), [0, 0, 0, 0, 1, 1, 1, 1]);
    // With an ideal of 7 the first group has a load of 12: its last part finds 9 at its thread.
    balance(&mut policy, &[3, 3, 3, 3, 1, 1, 0, 0], 2, &mut owner);
    assert_eq!(owner, [0, 0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(policy.counts(), BalanceCounts { splits: 1, ..BalanceCounts::default() });
    // Algorithm 1 over groups does nothing: the first group on each thread has none before it.
    let mut coarse = [0, 1];
    balance(&mut GreedyBalance::default(), &[12, 2], 2, &mut coarse);
    assert_eq!(coarse, [0, 1]);
}

#[test]
fn a_group_that_fits_nowhere_is_split_though_it_is_less_than_a_fair_share() {
    // Five groups of 8 on two threads: 24 and 16, and moving one would only swap these.
    let (mut policy, load) = (printed(4), [2; 20]);
    let mut owner: Vec<u32> = policy.first_owners(20, 2);
    assert_eq!(owner[..10], [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]);
    balance(&mut policy, &load, 2, &mut owner);
    let first = owner.iter().filter(|&&owner| owner == 0).count();
    assert!((10..=11).contains(&first), "{owner:?}");
    assert_eq!(policy.counts().splits, 1);
}

/// Splits the first two groups of four, then leaves them `share` requests each of 32 for `epochs` epochs.
fn cooled(share: u64, epochs: u32) -> (SplitBalance, Vec<u32>) {
    let mut policy = printed(4);
    let mut owner = policy.first_owners(16, 2);
    balance(&mut policy, &[8, 8, 8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0], 2, &mut owner);
    balance(&mut policy, &[8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 2, &mut owner);
    balance(&mut policy, &[0, 0, 0, 0, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0], 2, &mut owner);
    balance(&mut policy, &[4, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0], 2, &mut owner);
    assert_eq!(policy.counts().splits, 2);
    let rest = 16 - share;
    let half = share / 2;
    for _ in 0..epochs {
        let load = [half, 0, 0, half, half, 0, 0, half, rest, 0, 0, 0, rest, 0, 0, 0];
        balance(&mut policy, &load, 2, &mut owner);
    }
    (policy, owner)
}

#[test]
fn a_group_is_joined_when_it_was_cool_for_long_enough() {
    // An eighth of the fair share of 16 is cool.
    let (policy, owner) = cooled(2, COOL_EPOCHS - 1);
    assert_eq!(policy.counts().joins, 0);
    assert!(owner[..4].iter().any(|&other| other != owner[0]), "{owner:?}");
    // One group an epoch.
    assert_eq!(cooled(2, COOL_EPOCHS).0.counts().joins, 1);
    let (policy, owner) = cooled(2, COOL_EPOCHS + 1);
    assert_eq!(policy.counts().joins, 2);
    for group in owner.chunks(4).take(2) {
        assert!(group.iter().all(|&other| other == group[0]), "{owner:?}");
    }
    assert_eq!(cooled(4, 3 * COOL_EPOCHS).0.counts().joins, 0);
}

#[test]
fn joining_goes_where_most_of_the_load_is_and_room_for_the_rest() {
    let share = Share::of(100, 100, 1, 2, 0);
    let at = |assigned: [u64; 2], load: [u64; 4], owner: [u32; 4]| home(&load, &owner, &assigned, &share);
    assert_eq!(at([40, 60], [1, 1, 1, 3], [0, 0, 0, 1]), Some(0), "thread 1 is above the ideal of 50");
    assert_eq!(at([45, 40], [1, 1, 1, 3], [0, 0, 1, 1]), Some(1));
    assert_eq!(at([45, 40], [1, 1, 1, 1], [1, 0, 0, 0]), Some(0), "most of its load");
    assert_eq!(at([45, 40], [0, 0, 0, 0], [1, 0, 1, 1]), Some(1), "most parts");
    assert_eq!(at([45, 40], [0, 0, 0, 0], [1, 0, 0, 1]), Some(0), "the first");
    assert_eq!(at([49, 60], [1, 1, 3, 3], [0, 0, 1, 1]), None, "neither has room for the rest");
}

/// The limit of splitting: a single key is in one partition, and a partition in one thread. Its group is split once,
/// the other partitions of the group move away, and it stays, with more than a thread's share.
#[test]
fn a_single_hot_key_is_split_down_to_its_part_and_stays_whole() {
    let mut policy = SplitBalance::new(8, 4);
    let mut owner = policy.first_owners(64, 4);
    let mut load = [100; 64];
    load[19] = 10_000;
    let hot = owner[19];
    for _ in 0..1_000 {
        balance(&mut policy, &load, 4, &mut owner);
        assert_eq!(owner[19], hot);
    }
    assert_eq!(policy.counts(), BalanceCounts { splits: 1, ..BalanceCounts::default() });
    let at =
        |thread| load.iter().zip(&owner).filter(|part| *part.1 == thread).map(|part| part.0).sum::<u64>();
    let ideal = load.iter().sum::<u64>() / 4;
    assert!(at(hot) > 2 * ideal && at(hot) <= 10_000 + ideal, "{}", at(hot));
    let parts: Vec<u32> = (16..24).filter(|&part| owner[part] != hot).map(|part| part as u32).collect();
    assert!(!parts.is_empty(), "{owner:?}");
}

#[test]
fn groups_that_are_away_are_left_alone_and_forgotten() {
    let (mut policy, mut owner) = (printed(2), [0, 1, AWAY, AWAY, 0, 0]);
    balance(&mut policy, &[5, 5, 0, 0, 0, 0], 2, &mut owner);
    assert_eq!(owner, [0, 1, AWAY, AWAY, 0, 0]);
    assert!(policy.groups[0].is_split && !policy.groups[1].is_split);
    owner[..2].fill(AWAY);
    balance(&mut policy, &[0, 0, 0, 0, 1, 1], 2, &mut owner);
    assert!(!policy.groups[0].is_split);
}

fn most(load: &[u64], threads: u32, owner: &[u32]) -> u64 {
    let at = |thread| load.iter().zip(owner).filter(|part| *part.1 == thread).map(|part| part.0).sum();
    (0..threads).map(at).max().unwrap_or(0)
}

proptest! {
    /// In all cases owners are threads, a joined group has one owner, and the same input gives the same output.
    #[test]
    fn every_partition_has_one_owner_and_joined_groups_one_thread(
        epochs in prop::collection::vec(prop::collection::vec(0_u64..500, 40), 1..20),
        repeat in 1_usize..20, ways in 1_u32..=9, threads in 1_u32..6, deviations in 0_u32..5, dealt in any::<bool>(),
    ) {
        let mut policy = SplitBalance::new(ways, deviations);
        let mut owner = if dealt {
            policy.first_owners(40, threads)
        } else {
            (0..40).map(|partition| partition % threads).collect()
        };
        let (mut other, mut same) = (policy.clone(), owner.clone());
        // The third power: few partitions are hot.
        for load in &epochs {
            let load: Vec<u64> = load.iter().map(|load| load.pow(3) / 100_000).collect();
            for _ in 0..repeat {
                balance(&mut policy, &load, threads, &mut owner);
                balance(&mut other, &load, threads, &mut same);
                prop_assert_eq!(&owner, &same);
                prop_assert!(owner.iter().all(|&owner| owner < threads));
                for (group, owner) in policy.groups.iter().zip(owner.chunks(ways as usize)) {
                    prop_assert!(group.is_split || owner.iter().all(|&other| other == owner[0]));
                }
            }
        }
    }

    /// With a constant load, the most loaded thread ends at most a quarter of the ideal, or one partition, above it.
    #[test]
    fn loads_end_near_the_ideal(
        load in prop::collection::vec(0_u64..500, 64), ways in 1_u32..=9, threads in 1_u32..6,
    ) {
        let mut policy = printed(ways);
        let load: Vec<u64> = load.iter().map(|load| load.pow(3) / 100_000).collect();
        let mut owner = policy.first_owners(64, threads);
        for _ in 0..=64_u32.div_ceil(ways).min(COOL_EPOCHS - 1) {
            balance(&mut policy, &load, threads, &mut owner);
        }
        let ideal = load.iter().sum::<u64>() as f64 / f64::from(threads);
        let beyond = load.iter().max().map_or(0.0, |&most| most as f64).max(ideal / f64::from(HOT));
        let most = most(&load, threads, &owner) as f64;
        prop_assert!(most <= ideal + beyond + 1.0, "{} of an ideal of {}", most, ideal);
    }

    /// Groups of one partition are Algorithm 1 over partitions.
    #[test]
    fn groups_of_one_are_algorithm_1(
        epochs in prop::collection::vec(prop::collection::vec(0_u64..500, 24), 1..20),
        threads in 1_u32..6, deviations in 0_u32..5,
    ) {
        let (mut policy, mut plain) = (SplitBalance::new(1, deviations), GreedyBalance::beyond_noise(deviations));
        let mut owner = policy.first_owners(24, threads);
        let mut other = plain.first_owners(24, threads);
        for load in &epochs {
            balance(&mut policy, load, threads, &mut owner);
            balance(&mut plain, load, threads, &mut other);
            prop_assert_eq!(&owner, &other);
        }
        prop_assert_eq!(policy.counts(), BalanceCounts::default());
    }
}

/// Numbers that look random, by Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(count)) >> 64) as u64
    }
}

const FINE: usize = 512;
const WAYS: u32 = 8;
const THREADS: u32 = 4;

/// Draws the partition of a request in an epoch.
type Requests = fn(u64, &mut Random) -> usize;

fn uniform(_epoch: u64, random: &mut Random) -> usize {
    random.below(FINE as u64) as usize
}

/// Half of the requests are for the eight partitions of one group, as often for each.
fn group(epoch: u64, random: &mut Random) -> usize {
    if random.below(2) == 0 { 40 + random.below(8) as usize } else { uniform(epoch, random) }
}

/// Half are for eight partitions that a thread has at the start, in groups of eight as in groups of one.
fn strewn(epoch: u64, random: &mut Random) -> usize {
    if random.below(2) == 0 { 9 + 64 * random.below(8) as usize } else { uniform(epoch, random) }
}

/// As `group`, but for another group every 200 epochs.
fn wandering(epoch: u64, random: &mut Random) -> usize {
    let first = (epoch / 200 * 136) as usize % FINE;
    if random.below(2) == 0 { first + random.below(8) as usize } else { uniform(epoch, random) }
}

/// One partition gets 40 % of the requests.
fn key(epoch: u64, random: &mut Random) -> usize {
    if random.below(10) < 4 { 43 } else { uniform(epoch, random) }
}

/// Each of nine octaves is drawn equally often, so that the r-th partition has about 1 / r times as many requests as
/// the first; they are strewn.
fn skewed(_epoch: u64, random: &mut Random) -> usize {
    let octave = 1 << random.below(9);
    (octave + random.below(octave) - 1) as usize * 197 % FINE
}

/// The results of 2000 epochs.
#[derive(Debug)]
struct Run {
    /// The number of fine partitions that moved.
    moves: usize,
    /// The most loaded thread's load of each epoch to the ideal, in the mean.
    imbalance: f64,
    counts: BalanceCounts,
}

/// Runs the runtime's rule of epochs that count as one over the drawn requests; the policy sees `ways` partitions as
/// one.
fn run(policy: &mut dyn Balance, ways: usize, requests: Requests, an_epoch: u64, epochs: u64) -> Run {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut owner = policy.first_owners((FINE / ways) as u32, THREADS);
    let (mut seen, mut counted) = (vec![0; FINE / ways], 0);
    let (mut moves, mut imbalance) = (0, 0.0);
    for epoch in 0..epochs {
        let mut load = vec![0; FINE / ways];
        (0..an_epoch).for_each(|_| load[requests(epoch, &mut random) / ways] += 1);
        imbalance += (most(&load, THREADS, &owner) * u64::from(THREADS)) as f64 / an_epoch as f64;
        seen.iter_mut().zip(&load).for_each(|(seen, load)| *seen += load);
        counted += 1;
        let before = owner.clone();
        balance(policy, &seen, THREADS, &mut owner);
        let changed = before.iter().zip(&owner).filter(|(before, after)| before != after).count();
        moves += changed * ways;
        if changed > 0 || counted == policy.epochs_max() {
            seen.fill(0);
            counted = 0;
        }
    }
    Run { moves, imbalance: imbalance / epochs as f64, counts: policy.counts() }
}

/// `cargo test -p plimsoll-mechanisms splitting_beside -- --nocapture` prints what `docs/internals/chronos.md` has.
#[test]
fn splitting_beside_algorithm_1() {
    let patterns: [(&str, Requests); 6] = [
        ("uniform", uniform),
        ("one group", group),
        ("one group, wandering", wandering),
        ("eight keys, strewn", strewn),
        ("one key", key),
        ("1 / rank", skewed),
    ];
    for (name, requests) in patterns {
        for an_epoch in [200, 5000] {
            let coarse = run(&mut GreedyBalance::beyond_noise(4), WAYS as usize, requests, an_epoch, 2000);
            let fine = run(&mut GreedyBalance::beyond_noise(4), 1, requests, an_epoch, 2000);
            let split = run(&mut SplitBalance::new(WAYS, 4), 1, requests, an_epoch, 2000);
            for (policy, run) in [("coarse", &coarse), ("fine", &fine), ("split", &split)] {
                println!(
                    "| {name} | {an_epoch} | {policy} | {} | {:.3} | {} | {} |",
                    run.moves, run.imbalance, run.counts.splits, run.counts.joins
                );
            }
            if name == "one group" {
                // Half of the load of four threads is twice a thread's: one group does not go below.
                assert!(coarse.imbalance > 2.0, "{coarse:?}");
                assert!(split.imbalance < 1.4 && fine.imbalance < 1.4, "{split:?} {fine:?}");
            }
        }
    }
}

#[test]
fn uniform_load_neither_splits_nor_moves() {
    for an_epoch in [50, 500, 5000] {
        let run = run(&mut SplitBalance::new(WAYS, 4), 1, uniform, an_epoch, 10_000);
        println!("{an_epoch} requests an epoch: {run:?}");
        assert_eq!((run.moves, run.counts), (0, BalanceCounts::default()), "{an_epoch} requests an epoch");
    }
}
