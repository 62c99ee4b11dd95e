//! The cost of computing a schedule of circuits, on the demand of Solstice's paper: `make bench` runs it.
//!
//! The paper has 2.9 ms for Solstice, 13 ms for iSLIP and 27 ms for BvN at 64 ports, on a Xeon E5-2680 v2.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use plimsoll_circuits::{Demand, SchedulerKind, Switching, Workload};
use plimsoll_units::{Rate, Span};
use rand::SeedableRng as _;
use rand_pcg::Pcg64;

const SWITCHING: Switching = Switching {
    circuit_rate: Rate::from_gbps(100),
    packet_rate: Rate::from_gbps(10),
    night: Span::from_us(20),
    window: Span::from_ms(3),
};

/// Demands that take turns, so that no branch predictor learns one by heart.
const DEMANDS: u64 = 16;

/// A scheduler, and the most ports at which it takes less than some milliseconds.
const MOST: [(SchedulerKind, usize); 6] = [
    (SchedulerKind::Solstice, 512),
    (SchedulerKind::Bvn, 64),
    (SchedulerKind::Islip, 64),
    (SchedulerKind::Tms, 64),
    (SchedulerKind::Eclipse, 32),
    (SchedulerKind::Rotor, 512),
];

fn schedulers(criterion: &mut Criterion) {
    for (kind, most) in MOST {
        let mut group = criterion.benchmark_group(kind.name());
        for ports in [8, 64, 512].into_iter().filter(|ports| *ports <= most) {
            let draw = |seed| Workload::paper(ports).draw(&SWITCHING, &mut Pcg64::seed_from_u64(seed));
            let demands: Vec<Demand> = (0..DEMANDS).map(draw).collect();
            let mut scheduler = kind.make();
            let mut turn = demands.iter().cycle();
            group.bench_function(BenchmarkId::from_parameter(ports), |bencher| {
                bencher.iter(|| scheduler.schedule(turn.next().expect("they go round"), &SWITCHING));
            });
        }
        group.finish();
    }
}

criterion_group!(circuits, schedulers);
criterion_main!(circuits);
