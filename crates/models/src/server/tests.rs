//! The model compared with queues whose solution is known, and its parts one by one.

use plimsoll_traffic::distribution::TimeDistribution;
use plimsoll_units::Span;

use super::*;

mod neighbour;

/// One thread, only a service time, Poisson arrivals of `rate` per second.
fn queue(service: TimeDistribution, threads: u32, rate: f64) -> ServerModel {
    ServerModel {
        processes: 1,
        threads,
        dispatch: Dispatch::Shared,
        locking: Locking::None,
        costs: Costs {
            network: Span::ZERO,
            delivery: TimeDistribution::default(),
            system: TimeDistribution::default(),
            application: service,
            locked: 1.0,
            line: [Span::ZERO; 2],
        },
        numa: Numa::NONE,
        keys: Keys { partitions: 64, popularity: KeyPopularity::Uniform },
        writes: 0.0,
        arrivals: ServerArrivals::Open { rate, spacing: Spacing::Poisson, clients: 1 },
        queue_limit: None,
        requests: 1_000_000,
        warmup: 1_000,
        neighbour: None,
    }
}

const US: f64 = 1e6;

fn exponential(us: u64) -> TimeDistribution {
    TimeDistribution::Exponential { mean: Span::from_us(us) }
}

fn constant(us: u64) -> TimeDistribution {
    TimeDistribution::Constant(Span::from_us(us))
}

fn served(model: &ServerModel) -> ServerOutcome {
    run(model, 1).expect("the model fits")
}

fn mean_us(outcome: &ServerOutcome) -> f64 {
    let latencies = outcome.latencies_us();
    latencies.iter().sum::<f64>() / latencies.len() as f64
}

#[track_caller]
fn is_near(measured: f64, exact: f64, within: f64) {
    assert!((measured / exact - 1.0).abs() <= within, "{measured} beside {exact}");
}

/// Pollaczek and Khinchine: half as much waiting as with exponential times.
#[test]
fn m_d_1() {
    for load in [0.3, 0.6, 0.8] {
        let outcome = served(&queue(constant(10), 1, load / 10.0 * US));
        is_near(mean_us(&outcome), 10.0 + 10.0 * load / (2.0 * (1.0 - load)), 0.01);
    }
}

/// Latencies are exponential with mean 1 / (mu - lambda), so that their percentiles are known too.
#[test]
fn m_m_1() {
    for load in [0.3, 0.5] {
        let model = queue(exponential(10), 1, load / 10.0 * US);
        let outcome = served(&ServerModel { requests: 2_000_000, ..model });
        let mean = 10.0 / (1.0 - load);
        is_near(mean_us(&outcome), mean, 0.01);
        let mut latencies = outcome.latencies_us();
        latencies.sort_by(f64::total_cmp);
        let p99 = latencies[latencies.len() * 99 / 100];
        is_near(p99, mean * 100f64.ln(), 0.02);
    }
}

/// Erlang C: the chance to wait times the mean wait of the requests that wait.
#[test]
fn m_m_c() {
    for (threads, load) in [(2, 0.7), (4, 0.8), (16, 0.9)] {
        let offered = f64::from(threads) * load;
        let mut term = 1.0;
        let mut sum = 1.0;
        for k in 1..threads {
            term *= offered / f64::from(k);
            sum += term;
        }
        let all = term * offered / f64::from(threads) / (1.0 - load);
        let waits = all / (sum + all);
        let exact = 10.0 + waits * 10.0 / (f64::from(threads) * (1.0 - load));
        let outcome = served(&queue(exponential(10), threads, offered / 10.0 * US));
        is_near(mean_us(&outcome), exact, 0.01);
    }
}

/// Threads that compute for an exponential time and then take one lock for another: the machine-repairman queue.
#[test]
fn one_lock_is_a_closed_queue() {
    let mut model = queue(exponential(5), 4, 1.0);
    model.locking = Locking::Global { wake: Span::ZERO };
    model.costs.system = exponential(20);
    model.arrivals = ServerArrivals::Closed { clients: 64, think: constant(0), rate: None };
    // Mean value analysis, thread by thread.
    let (mut queue, mut rate) = (0.0, 0.0);
    for threads in 1..=4 {
        let stay = 5.0 * (1.0 + queue);
        rate = f64::from(threads) / (20.0 + stay);
        queue = rate * stay;
    }
    let outcome = served(&model);
    is_near(outcome.throughput() / US, rate, 0.01);
    let waiting = (queue - 5.0 * rate) / 4.0;
    is_near(outcome.waiting(), waiting, 0.02);
}

/// A woken waiter keeps the lock from all others while it wakes.
#[test]
fn a_contended_lock_is_slower_by_its_wake_up() {
    let mut model = queue(constant(2), 4, 1.0);
    model.locking = Locking::Global { wake: Span::from_us(3) };
    model.arrivals = ServerArrivals::Closed { clients: 8, think: constant(0), rate: None };
    let outcome = served(&ServerModel { requests: 10_000, ..model.clone() });
    is_near(outcome.throughput(), US / 5.0, 0.001);
    is_near(outcome.contended(), 1.0, 0.001);
    // Where each partition has a lock, the threads seldom need the same.
    model.locking = Locking::PerPartition { wake: Span::from_us(3) };
    model.requests = 100_000;
    let outcome = served(&model);
    assert!(outcome.contended() < 4.0 / 64.0, "{}", outcome.contended());
    assert!(outcome.throughput() > 1.8 * US, "{}", outcome.throughput());
}

#[test]
fn readers_share_and_writers_do_not() {
    let rate = |locking, writes| {
        let model = ServerModel {
            locking,
            writes,
            requests: 20_000,
            arrivals: ServerArrivals::Closed { clients: 64, think: constant(0), rate: None },
            ..queue(constant(10), 8, 1.0)
        };
        served(&model).throughput() / US
    };
    let free = Locking::ReadWrite { wake: Span::ZERO, count: Span::ZERO };
    is_near(rate(free, 0.0), 0.8, 0.005);
    is_near(rate(free, 1.0), 0.1, 0.005);
    // The count's cache line is one resource: two changes of 1 us a request.
    let counted = Locking::ReadWrite { wake: Span::ZERO, count: Span::from_us(1) };
    is_near(rate(counted, 0.0), 0.5, 0.005);
    // Grace periods of writers follow each other.
    let rcu = Locking::Rcu { wake: Span::ZERO, grace: Span::from_us(30) };
    is_near(rate(rcu, 0.0), 0.8, 0.005);
    is_near(rate(rcu, 1.0), 1.0 / 40.0, 0.005);
}

#[test]
fn the_line_is_the_last_queue() {
    let mut model = queue(constant(1), 4, 1.0);
    model.costs.line = [Span::from_us(2), Span::from_us(1)];
    model.writes = 0.5;
    model.requests = 100_000;
    model.arrivals = ServerArrivals::Closed { clients: 32, think: constant(0), rate: None };
    is_near(served(&model).throughput(), US / 1.5, 0.01);
}

fn steered(epoch_us: u64, drains: bool) -> ServerModel {
    let steering =
        Steering { epoch: Span::from_us(epoch_us), hand_over: Span::from_ns(500), drains, split: None };
    ServerModel {
        dispatch: Dispatch::Steered(steering),
        keys: Keys {
            partitions: 64,
            popularity: KeyPopularity::Hot { keys: 3, share: 0.99, epoch: Some(Span::from_ms(1)) },
        },
        requests: 200_000,
        ..queue(constant(2), 4, 1e6)
    }
}

/// Three hot keys on four threads: a mapping that follows them keeps every thread below its capacity.
#[test]
fn steering_follows_hot_keys_and_a_static_mapping_does_not() {
    let followed = mean_us(&served(&steered(50, true)));
    let fixed = mean_us(&served(&ServerModel { dispatch: Dispatch::Static, ..steered(50, true) }));
    assert!(followed < 20.0 && fixed > 5.0 * followed, "{followed} {fixed}");
}

/// Whether a moved partition drains or has a lock, every request is served, and none twice.
#[test]
fn nothing_is_lost_when_partitions_move() {
    for (drains, locking) in [(true, Locking::None), (false, Locking::PerPartition { wake: Span::ZERO })] {
        let outcome = served(&ServerModel { locking, ..steered(10, drains) });
        assert!(outcome.moves > 1_000, "{}", outcome.moves);
        assert_eq!((outcome.served.len(), outcome.lost), (199_000, 0));
    }
}

/// One key is one thread's: beyond its capacity no mapping helps.
#[test]
fn one_hot_key_cannot_be_shared() {
    let mut model = steered(50, true);
    model.keys.popularity = KeyPopularity::Hot { keys: 1, share: 1.0, epoch: None };
    is_near(served(&model).throughput(), US / 2.0, 0.01);
}

/// Four partitions on four threads, all of one group: as a whole the group is on one thread, as one partition is;
/// split, it is divided among all. It stays split while it is hot. A group of one partition is not split.
#[test]
fn a_hot_group_is_split() {
    let throughput = |partitions, split| {
        let mut model = steered(50, true);
        let Dispatch::Steered(steering) = &mut model.dispatch else { unreachable!("it is steered") };
        steering.split = split;
        model.keys = Keys { partitions, popularity: KeyPopularity::Uniform };
        model.arrivals = ServerArrivals::Closed { clients: 64, think: constant(0), rate: None };
        let outcome = served(&model);
        (outcome.throughput() / US, outcome.splits, outcome.joins)
    };
    let (whole, splits, _) = throughput(1, None);
    is_near(whole, 0.5, 0.001);
    assert_eq!(splits, 0);
    let (split, splits, joins) = throughput(4, Some(4));
    assert_eq!((splits, joins), (1, 0));
    assert!(split > 1.5, "{split}");
    let (one, splits, _) = throughput(1, Some(4));
    is_near(one, 0.5, 0.001);
    assert_eq!(splits, 0);
}

/// A burst of 1 ms at ten times the mean rate, and 10 % of all requests in it.
#[test]
fn bursts_have_their_share() {
    let arrivals =
        ServerArrivals::Bursts { rate: 1e5, ratio: 10.0, length: Span::from_ms(1), share: 0.1, clients: 7 };
    let outcome = served(&ServerModel { arrivals, ..queue(constant(2), 1, 1.0) });
    is_near(outcome.throughput(), 1e5, 0.01);
    // In a burst 500 of 1000 requests more than the thread can serve; at its end they wait 1 ms.
    let late = outcome.served.iter().filter(|served| served.queue > Span::from_us(100)).count();
    let share = late as f64 / outcome.served.len() as f64;
    assert!((0.08..0.16).contains(&share), "{share}");
}

/// A client has 10 requests due in 1 ms, and sends them at once: on one thread the last waits for 9.
#[test]
fn requests_of_a_tick_leave_together() {
    let due = Box::new(ServerArrivals::Open { rate: 1e4, spacing: Spacing::Constant, clients: 1 });
    let arrivals = ServerArrivals::Ticks { every: Span::from_ms(1), due };
    let outcome = served(&ServerModel { arrivals, requests: 50_000, ..queue(constant(2), 1, 1.0) });
    is_near(outcome.throughput(), 1e4, 0.001);
    is_near(mean_us(&outcome), 2.0 + 9.0, 0.001);
    let longest = outcome.served.iter().map(Served::latency).max().expect("some are served");
    assert_eq!(longest, Span::from_us(20));
}

#[test]
fn what_finds_its_queue_full_is_lost() {
    let model = ServerModel { queue_limit: Some(9), requests: 100_000, ..queue(constant(10), 1, 2e5) };
    let outcome = served(&model);
    is_near(outcome.lost as f64, 49_500.0, 0.02);
    let longest = outcome.served.iter().map(Served::latency).max().expect("some are served");
    assert!(longest <= Span::from_us(100), "{longest}");
}

/// Remote memory makes the application slower, on its first owner's node only where the owner has changed.
#[test]
fn memory_of_another_node_is_slower() {
    let at = |placement, dispatch| {
        let numa = Numa { nodes: 2, remote: 1.5, placement };
        mean_us(&served(&ServerModel { numa, dispatch, requests: 50_000, ..queue(constant(2), 4, 1e4) }))
    };
    is_near(at(MemoryPlacement::Local, Dispatch::Static), 2.0, 0.01);
    is_near(at(MemoryPlacement::Remote, Dispatch::Static), 3.0, 0.01);
    is_near(at(MemoryPlacement::FirstOwner, Dispatch::Static), 2.0, 0.01);
    is_near(at(MemoryPlacement::FirstOwner, Dispatch::Shared), 2.5, 0.02);
}

#[test]
fn paced_clients_keep_their_rate_and_late_ones_their_turn() {
    let arrivals = ServerArrivals::Closed { clients: 10, think: constant(1), rate: Some(5e4) };
    let outcome = served(&ServerModel { arrivals, requests: 50_000, ..queue(constant(10), 1, 1.0) });
    is_near(outcome.throughput(), 5e4, 0.001);
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_not() {
    let model = ServerModel { requests: 10_000, ..steered(50, true) };
    let digest = |seed| run(&model, seed).expect("the model fits");
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
    let histogram = digest(1).histogram();
    assert_eq!(histogram.iter().map(|bin| bin.1).sum::<u64>(), 9_000);
}

#[test]
fn a_popular_partition_has_its_share() {
    let mut model = queue(constant(1), 1, 1e3);
    model.keys = Keys { partitions: 1, popularity: KeyPopularity::Zipf { keys: 1000, exponent: 1.0 } };
    model.requests = 2_000;
    assert_eq!(served(&model).served.len(), 1_000);
}

#[test]
fn what_does_not_fit_is_named() {
    let fits = queue(constant(1), 1, 1.0);
    let error = |model: ServerModel| run(&model, 1).expect_err("it does not fit").to_string();
    let threads = ServerModel { threads: 65, ..fits.clone() };
    assert_eq!(error(threads), "`threads` cannot be 65; allowed: 1 to 64 in all processes together");
    let rate = ServerModel { writes: 1.5, ..fits.clone() };
    assert_eq!(error(rate), "`writes` cannot be 1.5; allowed: 0 to 1");
    let arrivals = ServerArrivals::Closed { clients: 1, think: constant(0), rate: None };
    let limit = ServerModel { arrivals, queue_limit: Some(1), ..fits.clone() };
    assert!(error(limit).contains("none where clients wait"));
    let due = Box::new(ServerArrivals::Closed { clients: 1, think: constant(0), rate: None });
    let ticks =
        ServerModel { arrivals: ServerArrivals::Ticks { every: Span::from_us(1), due }, ..fits.clone() };
    assert!(error(ticks).contains("an open loop, or bursts"));
    let keys = Keys { partitions: 2, popularity: KeyPopularity::Hot { keys: 3, share: 0.9, epoch: None } };
    assert!(error(ServerModel { keys, ..fits }).contains("1 to the number of partitions"));
    let mut model = steered(50, true);
    let Dispatch::Steered(steering) = &mut model.dispatch else { unreachable!("it is steered") };
    steering.split = Some(65);
    assert_eq!(error(model), "`split` cannot be 65; allowed: 2 to 64");
}
