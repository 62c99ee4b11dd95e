//! Made-up outcomes for tests: the shape of a rack with small requests beside large transfers,
//! with no simulator behind it. Seeded; arrivals depend on the seed and never on the variant.

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Rate, Span, Time};

use crate::outcome::{
    BlockedTraffic, CircuitUse, CircuitWeek, ConnectionRecord, Counters, Delivered, GoodputInterval,
    IterationRecord, LinkTotals, MessageRecord, OperationRecord, Outcome, PathWait, QueryRecord,
    QueueObservation, ScheduleTimes, SeriesPoint, Split, Supply, WorkloadInfo,
};
use crate::point::{PointKey, PointOutcome};

/// The numbers of records of a synthetic outcome, for tests and benchmarks.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The number of small requests.
    pub requests: u64,
    /// The number of large transfers.
    pub transfers: u64,
    /// The number of fan-out queries.
    pub queries: u64,
    /// The number of intervals of the watched queue.
    pub intervals: usize,
    /// Load of the link by transfers, 0..1.
    pub load: f64,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { requests: 1_200, transfers: 150, queries: 120, intervals: 200, load: 0.4 }
    }
}

/// Effect of a variant on the made-up network.
#[derive(Clone, Copy)]
struct Effect {
    switch_us: f64,
    nic_us: f64,
    pacer_us: f64,
    transfer_factor: f64,
    marks: u64,
    drops: u64,
}

impl Effect {
    fn of(variant: &str) -> Effect {
        let (switch_us, nic_us, pacer_us, transfer_factor, marks, drops) = match variant {
            "TCP" => (1800.0, 1300.0, 0.0, 1.0, 0, 311),
            "DCTCP" => (170.0, 620.0, 0.0, 1.05, 14_200, 0),
            "HULL" => (9.0, 25.0, 30.0, 1.72, 39_800, 0),
            _ => (600.0, 300.0, 0.0, 1.1, 900, 12),
        };
        Effect { switch_us, nic_us, pacer_us, transfer_factor, marks, drops }
    }
}

/// The random number generator SplitMix64.
struct Draw(u64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -libm::log1p(-self.uniform())
    }
}

fn us(value: f64) -> Span {
    Span::from_ps((value * 1e6).round() as u64)
}

const RUN: Span = Span::from_secs(2);

/// Makes up the outcome of one run.
pub fn outcome(shape: &Shape, seed: u64, variant: &str) -> Outcome {
    let effect = Effect::of(variant);
    let mut messages = requests(shape, seed, effect);
    messages.extend(transfers(shape, seed, effect));
    let queries = queries(shape, seed, effect);
    let workload = |name: &str, kind: &str, deadline| WorkloadInfo {
        name: name.to_owned(),
        kind: kind.to_owned(),
        deadline,
        observed: None,
        supply: Supply::Duration,
        groups: Vec::new(),
    };
    Outcome {
        workloads: vec![
            workload("small", "rpc", None),
            workload("background", "transfer", None),
            workload("search", "fan-out", Some(Span::from_ms(5))),
        ],
        tiers: vec!["tor".to_owned()],
        end: Time::ZERO + RUN + Span::from_ms(400),
        warmup: Span::from_ms(10),
        messages,
        queries,
        observations: Vec::new(),
        iterations: Vec::new(),
        ranks: Vec::new(),
        operations: Vec::new(),
        path_waits: Vec::new(),
        repeats: Vec::new(),
        extra: Vec::new(),
        circuits: Vec::new(),
        queues: vec![queue(shape, seed, effect)],
        links: links(effect),
        processors: Vec::new(),
        circuit_weeks: Vec::new(),
        connections: connections(effect),
        capture: crate::capture::Capture::default(),
        series: (0..50)
            .map(|i| SeriesPoint {
                time: Time::from_ps(i * 1_000_000_000),
                connection: 1,
                cwnd: 1_900 + 950 * (i % 7),
                ssthresh: if i == 0 { SeriesPoint::NO_SSTHRESH } else { 9_500 },
                alpha: (i % 10) as f64 / 16.0,
                rate: Rate::from_mbps(200 + i),
                retransmissions: i / 7,
                subflow: 0,
            })
            .collect(),
        goodput: goodput(shape, seed, effect),
        delivered: Delivered {
            observed: RUN - Span::from_ms(10),
            bytes: vec![3_600_000, 200_000_000, 90_000_000],
        },
        counters: Counters {
            packets_sent: 412_000,
            packets_delivered: 412_000 - effect.drops,
            nic_drops: effect.drops / 3,
            switch_drops: effect.drops - effect.drops / 3,
            marks: effect.marks,
            packet_hops: 823_000,
            events: 1_650_000,
            retransmissions: effect.drops + effect.drops / 10,
            timeouts: effect.drops / 40,
            ..Counters::default()
        },
        faults: Vec::new(),
        warnings: Vec::new(),
        mechanisms: Vec::new(),
        blocked: BlockedTraffic::default(),
        approximation: None,
    }
}

/// Adds the circuits of `hosts` hosts in `weeks` weeks to an outcome: 10 Gb/s, two configurations a week of 1.5 ms with
/// a night of 30 us before each. Host h sends by the first to h + 1 and by the second to h + 2, which is filled by
/// half; h0 fills its first circuit to a share that falls from week to week.
pub fn with_circuits(outcome: &mut Outcome, hosts: u32, weeks: u64) {
    let (week, night, rate) = (us(1_500.0), us(30.0), Rate::from_gbps(10));
    let day = us(720.0);
    let tiers = ["tor", "eps", "ocs"];
    outcome.tiers = tiers.map(str::to_owned).to_vec();
    for number in 0..=weeks {
        let begins = Time::ZERO + week * number;
        let read = Time::ZERO + (week * number).saturating_sub(us(400.0));
        let made = ScheduleTimes { read, gathered: read + us(5.4), ready: read + us(105.4) };
        outcome.circuit_weeks.push(CircuitWeek {
            week: number,
            made: (number > 0).then_some(made),
            begins,
            ends: begins + week,
            configurations: 2 * number.min(1),
            packet_packets: 100,
            packet_bytes: 150_000,
            ..CircuitWeek::default()
        });
        for turn in (0..2).filter(|_| number > 0) {
            let from = begins + night + (day + night) * turn;
            for sender in 0..hosts {
                let filled = match (sender, turn) {
                    (0, 0) => 1.0 - number as f64 / (2 * weeks) as f64,
                    (_, 0) => 0.98,
                    _ => 0.5,
                };
                let bytes = (900_000.0 * filled) as u64 / 1_500 * 1_500;
                outcome.circuits.push(CircuitUse {
                    week: number,
                    configuration: 2 * (number - 1) + turn,
                    from,
                    until: from + day,
                    sender: HostId(sender),
                    receiver: HostId((sender + 1 + turn as u32) % hosts),
                    first: Some(from),
                    onset: None,
                    packets: bytes / 1_500,
                    bytes,
                    rate,
                });
            }
        }
    }
}

/// Every variant at every load and replicate, as `plimsoll run` would hand them over.
pub fn experiment(
    shape: &Shape,
    variants: &[&str],
    loads: &[f64],
    replicates: u32,
    seed: u64,
) -> Vec<PointOutcome> {
    let mut points = Vec::new();
    let swept: Vec<Option<f64>> =
        if loads.is_empty() { vec![None] } else { loads.iter().copied().map(Some).collect() };
    for load in swept {
        for variant in variants {
            for replicate in 0..replicates {
                let shape = Shape { load: load.unwrap_or(shape.load), ..shape.clone() };
                let sweep = load.map(|l| ("workload.background.load".to_owned(), l.to_string()));
                let key = PointKey {
                    variant: (*variant).to_owned(),
                    sweep: sweep.into_iter().collect(),
                    replicate,
                };
                let seed = seed + u64::from(replicate);
                points.push(PointOutcome::new(key, seed, outcome(&shape, seed, variant)));
            }
        }
    }
    points
}

fn requests(shape: &Shape, seed: u64, effect: Effect) -> Vec<MessageRecord> {
    let mut draw = Draw(seed ^ 0x0511);
    // The network is busy or idle in stretches, so that neighbours share their fate.
    let (mut busy, mut created) = (false, Time::ZERO);
    let gap = RUN.as_us_f64() / shape.requests.max(1) as f64;
    (0..shape.requests)
        .map(|index| {
            created += us(gap * draw.exponential());
            if draw.uniform() < 0.15 {
                busy = draw.uniform() < shape.load;
            }
            let (a, b, same_server) = (draw.exponential(), draw.exponential(), draw.uniform() < 0.11);
            let held = if busy { 0.25 * a.min(4.0) } else { 0.0 };
            let split = Split {
                nic: us(if busy && same_server { effect.nic_us * (0.4 + b.min(3.0)) } else { 0.0 }),
                pacer: us(if busy && b > 2.0 { effect.pacer_us * a } else { 0.0 }),
                tier: [us(effect.switch_us * held), Span::ZERO, Span::ZERO],
                recovery: us(if effect.drops > 0 && busy && b > 6.0 { 10_000.0 } else { 0.0 }),
                serialisation: us(17.6),
                propagation: us(20.0),
                ..Split::default()
            };
            let unfinished = index + 1 == shape.requests;
            MessageRecord {
                workload: 0,
                index,
                query: None,
                source: 0,
                destination: 1 + (index % 9) as u32,
                bytes: 900,
                created,
                completed: (!unfinished).then(|| created + split.total()),
                ideal: us(37.6),
                split,
            }
        })
        .collect()
}

fn transfers(shape: &Shape, seed: u64, effect: Effect) -> Vec<MessageRecord> {
    let mut draw = Draw(seed ^ 0xB16);
    let gap = RUN.as_us_f64() / shape.transfers.max(1) as f64;
    let mut created = Time::ZERO;
    (0..shape.transfers)
        .map(|index| {
            created += us(gap * draw.exponential());
            let share = 1.0 + shape.load * 2.0 * draw.exponential();
            let split = Split {
                window: us(83_000.0 * share * effect.transfer_factor),
                nic: us(effect.nic_us * 1.5),
                tier: [us(effect.switch_us * draw.uniform()), Span::ZERO, Span::ZERO],
                serialisation: us(15.8),
                propagation: us(20.0),
                ..Split::default()
            };
            MessageRecord {
                workload: 1,
                index,
                query: None,
                source: 0,
                destination: 1 + (index % 9) as u32,
                bytes: 10_000_000,
                created,
                completed: Some(created + split.total()),
                ideal: us(83_420.0),
                split,
            }
        })
        .collect()
}

fn queries(shape: &Shape, seed: u64, effect: Effect) -> Vec<QueryRecord> {
    let mut draw = Draw(seed ^ 0x5EA2);
    let gap = RUN.as_us_f64() / shape.queries.max(1) as f64;
    let mut created = Time::ZERO;
    (0..shape.queries)
        .map(|index| {
            created += us(gap * draw.exponential());
            let slowest = 900.0 + 1_500.0 * draw.exponential() + effect.switch_us * draw.uniform();
            QueryRecord {
                workload: 2,
                index,
                created,
                completed: Some(created + us(slowest)),
                servers: 10,
                in_deadline: if slowest < 5_000.0 { 10 } else { 9 },
                response_mean: us(0.4 * slowest),
                response_min: us(60.0 + 40.0 * draw.uniform()),
            }
        })
        .collect()
}

fn queue(shape: &Shape, seed: u64, effect: Effect) -> QueueObservation {
    let mut draw = Draw(seed ^ 0x0EEE);
    let rate = Rate::from_gbps(1);
    let (mut busy, mut mean_bytes, mut max_bytes) = (false, Vec::new(), Vec::new());
    for interval in 0..shape.intervals {
        if draw.uniform() < 0.1 {
            busy = draw.uniform() < shape.load;
        }
        let edge = interval < 3 || interval + 5 > shape.intervals;
        let filled = draw.exponential().min(3.0);
        let mean = if busy && !edge { effect.switch_us * 125.0 * (0.3 + 0.25 * filled) } else { 0.0 };
        mean_bytes.push(mean);
        max_bytes.push((mean * (1.0 + draw.uniform())) as u64);
    }
    let mut time_at = vec![0; 500];
    for &mean in &mean_bytes {
        time_at[((mean / 1000.0) as usize).min(499)] += Span::from_ms(10).as_ps();
    }
    QueueObservation {
        name: "client".to_owned(),
        port: "tor -> h0".to_owned(),
        rate,
        every: Span::from_ms(10),
        from: Time::ZERO + Span::from_ms(10),
        mean_bytes,
        max_bytes,
        time_at,
        drops: effect.drops - effect.drops / 3,
        marks: effect.marks,
        packets: 205_000,
        bytes: (shape.load * 250e6) as u64,
    }
}

/// Adds an iteration of a job whose ranks compute for a while, each a bit longer than the one before, and then receive
/// a message of the one before: the critical path leads through all of them.
pub fn with_job(outcome: &mut Outcome, ranks: u32) {
    let (workload, begun) = (outcome.workloads.len() as u16, Time::ZERO + Span::from_ms(20));
    outcome.workloads.push(WorkloadInfo {
        name: "train".to_owned(),
        kind: "training".to_owned(),
        deadline: None,
        observed: None,
        supply: Supply::Fixed,
        groups: vec![String::new(), "dp".to_owned()],
    });
    let chain = |rank: u32| Span::from_us(300 + 40 * u64::from(rank));
    for rank in 0..ranks {
        let computed = begun + Span::from_us(200 + 7 * u64::from(rank % 5));
        let compute = OperationRecord {
            workload,
            index: 0,
            operation: 2 * rank,
            rank,
            stream: 0,
            group: 0,
            action: 0,
            peer: None,
            bytes: 0,
            began: begun,
            ended: computed,
            path: (rank == 0).then_some(0),
        };
        let (peer, path) = (rank.checked_sub(1).or(Some(ranks - 1)), Some(rank + 1));
        let (began, ended, operation) = (computed, begun + chain(rank), 2 * rank + 1);
        let receive = OperationRecord { operation, group: 1, action: 2, peer, began, ended, path, ..compute };
        outcome.operations.extend([compute, receive]);
    }
    let (took, iteration) = (chain(ranks - 1), Split { service: chain(ranks - 1), ..Split::default() });
    outcome.queries.push(QueryRecord {
        workload,
        index: 0,
        created: begun,
        completed: Some(begun + took),
        servers: ranks,
        in_deadline: ranks,
        response_mean: took / 2,
        response_min: chain(0),
    });
    outcome.iterations.push(IterationRecord {
        workload,
        index: 0,
        took,
        ideal: took / 2,
        bytes: 1_000_000,
        bus_bytes: 1_000_000,
        split: iteration,
    });
    for (at, waited) in
        [("leaf0 -> spine0", 30), ("h1 -> leaf0", 10), ("spine0 -> leaf1", 5), ("h2 -> leaf0", 5)]
    {
        let waited = Span::from_us(waited);
        outcome.path_waits.push(PathWait { workload, index: 0, at: at.to_owned(), waited });
    }
}

/// Hosts below two leaves below one spine; the first host is the busy one.
fn links(effect: Effect) -> Vec<LinkTotals> {
    let link = |from: &str, to: &str, tier: &str, used: f64| LinkTotals {
        from: from.to_owned(),
        to: to.to_owned(),
        tier: tier.to_owned(),
        rate: Rate::from_bps(1_000_000_000),
        observed: RUN,
        packets: (used * 200_000.0) as u64,
        bytes: (used * 250_000_000.0) as u64,
        drops: if used > 0.5 { effect.drops } else { 0 },
        pauses: (used * 30.0) as u64,
        paused: us(used * 4e4),
    };
    let mut links = Vec::new();
    for host in 0..30 {
        let (name, used) = (format!("h{host}"), 0.9 / f64::from(host + 1));
        links.push(link(&name, "leaf0", "host -> leaf", used / 2.0));
        links.push(link("leaf0", &name, "leaf -> host", used));
    }
    links.push(link("leaf0", "spine0", "leaf -> spine", 0.7));
    links.push(link("spine0", "leaf0", "spine -> leaf", 0.6));
    links
}

fn connections(effect: Effect) -> Vec<ConnectionRecord> {
    (0..18)
        .map(|i| ConnectionRecord {
            workload: (i % 2) as u16,
            client: 0,
            server: 1 + i / 2,
            delivered: 11_000_000 + u64::from(i) * 40_000,
            active: Some((Time::ZERO + Span::from_ms(1), Time::ZERO + RUN)),
            segments: 21_000,
            retransmissions: effect.drops / 18,
            timeouts: effect.drops / 360,
            marked: effect.marks / 18,
            pacer_associations: if effect.pacer_us > 0.0 { 140 } else { 0 },
            pacer_renewals: if effect.pacer_us > 0.0 { 2_000 } else { 0 },
            pacer_dissociations: if effect.pacer_us > 0.0 { 120 } else { 0 },
        })
        .collect()
}

fn goodput(shape: &Shape, seed: u64, effect: Effect) -> Vec<GoodputInterval> {
    let mut draw = Draw(seed ^ 0x600D);
    (0..shape.intervals)
        .map(|i| {
            let sent = 1.25e6 * shape.load * (0.6 + 0.8 * draw.uniform()) / effect.transfer_factor.sqrt();
            GoodputInterval {
                time: Time::ZERO + Span::from_ms(10 * i as u64),
                length: Span::from_ms(10),
                workload: 1,
                sent: Bytes::new(sent as u64),
                delivered: Bytes::new(sent as u64 - 950),
            }
        })
        .collect()
}
