//! A neighbour compared with queues whose solution is known: a server that is taken away for slices of time.

use super::*;

/// Slices at equal gaps.
fn slices(slice_us: u64, share: f64) -> ProcessorShare {
    ProcessorShare { share, slice: Span::from_us(slice_us), gaps: Spacing::Constant, cores: None }
}

fn beside(processors: ProcessorShare, model: ServerModel) -> ServerModel {
    let neighbour = Neighbour { processors: Some(processors), ..Neighbour::default() };
    ServerModel { neighbour: Some(neighbour), ..model }
}

fn sorted_us(outcome: &ServerOutcome) -> Vec<f64> {
    let mut latencies = outcome.latencies_us();
    latencies.sort_by(f64::total_cmp);
    latencies
}

/// Nothing is drawn, and nothing takes longer, beside a neighbour that takes nothing.
#[test]
fn a_neighbour_without_shares_changes_nothing() {
    let alone = ServerModel { requests: 20_000, ..steered(50, true) };
    let idle = Neighbour { processors: Some(slices(10, 0.0)), cache: None, line: 0.0 };
    let beside = ServerModel { neighbour: Some(idle), ..alone.clone() };
    assert_eq!(served(&beside), served(&alone));
    assert!(!format!("{alone:?}").contains("neighbour"));
    assert!(format!("{beside:?}").contains("warmup: 1000, neighbour: Neighbour"));
}

/// A request that no other delays comes at any phase. It waits for the rest of a slice, or is interrupted by one: the
/// slice is the floor of the tail, however short the service time.
#[test]
fn the_tail_of_an_idle_server_is_the_slice() {
    let (service, slice, period) = (2.0, 200.0, 1_000.0);
    let model = ServerModel { requests: 400_000, ..queue(constant(2), 1, 100.0) };
    let outcome = served(&beside(slices(200, 0.2), model));
    let mean = service + service * slice / period + slice * slice / (2.0 * period);
    is_near(mean_us(&outcome), mean, 0.01);
    let latencies = sorted_us(&outcome);
    // The wait is longer than w with the chance (slice + service - w) / period.
    for share in [0.9, 0.99] {
        let wait = slice + service - (1.0 - share) * period;
        is_near(latencies[(latencies.len() as f64 * share) as usize], service + wait, 0.01);
    }
    // Two in the same slice are rare.
    is_near(latencies[latencies.len() * 9_999 / 10_000], service + slice, 0.03);
    let preempted: f64 = outcome.served.iter().map(|served| served.preempted.as_us_f64()).sum();
    is_near(preempted / outcome.served.len() as f64, mean - service, 0.01);
}

/// A queue whose server breaks down after exponential gaps and is repaired in a constant time, by the moments of its
/// unfinished work: below, `work` is its mean while the server is up.
#[test]
fn m_d_1_with_slices_after_exponential_gaps() {
    let (service, slice, gap) = (10.0, 50.0, 200.0);
    for load in [0.1, 0.3, 0.6] {
        let processors = ProcessorShare { gaps: Spacing::Poisson, ..slices(50, 0.2) };
        let outcome = served(&beside(processors, queue(constant(10), 1, load / service * US)));
        let held = slice / (slice + gap);
        let work = load * (service + load * held * slice) / (2.0 * (1.0 - held - load));
        let stretch = 1.0 + slice / gap;
        let wait = (work + held * load * slice / 2.0) * stretch + held * slice / 2.0;
        is_near(mean_us(&outcome), service * stretch + wait, 0.01);
    }
}

/// Slices that are much shorter than a request are a slower processor.
#[test]
fn short_slices_are_a_slower_processor() {
    let load = 0.6;
    let processors = ProcessorShare { slice: Span::from_ns(250), ..slices(0, 0.2) };
    let outcome = served(&beside(processors, queue(constant(10), 1, load / 12.5 * US)));
    is_near(mean_us(&outcome), 12.5 + 12.5 * load / (2.0 * (1.0 - load)), 0.01);
}

/// The share of the processor that is left is the share of the requests, on the cores that the neighbour has.
#[test]
fn what_is_left_is_the_gap_of_a_period() {
    let closed = ServerArrivals::Closed { clients: 64, think: constant(0), rate: None };
    let model = ServerModel { arrivals: closed, requests: 100_000, ..queue(constant(10), 4, 1.0) };
    let throughput = |cores| {
        let processors = ProcessorShare { cores, ..slices(300, 0.3) };
        served(&beside(processors, model.clone())).throughput() / US
    };
    is_near(throughput(None), 0.28, 0.01);
    is_near(throughput(Some(1)), 0.37, 0.01);
}

/// Where a request may go to any thread, it goes to one whose core is free; a connection's thread waits.
#[test]
fn an_idle_thread_on_a_free_core_is_preferred() {
    let shares_a_core = |dispatch| {
        let model = ServerModel { dispatch, requests: 100_000, ..queue(constant(2), 4, 1_000.0) };
        let processors = ProcessorShare { cores: Some(1), ..slices(200, 0.5) };
        let outcome = served(&beside(processors, model));
        let late = outcome.served.iter().filter(|served| served.preempted > Span::ZERO).count();
        late as f64 / outcome.served.len() as f64
    };
    is_near(shares_a_core(Dispatch::ByConnection), 0.25 * (0.5 + 2.0 / 400.0), 0.03);
    let shared = shares_a_core(Dispatch::Shared);
    assert!(shared < 0.01, "{shared}");
}

/// A slice that begins while a thread holds the lock delays the threads of all cores.
#[test]
fn a_holder_without_its_core_delays_the_others() {
    let closed = ServerArrivals::Closed { clients: 8, think: constant(0), rate: None };
    let model = ServerModel {
        arrivals: closed,
        locking: Locking::Global { wake: Span::ZERO },
        dispatch: Dispatch::ByConnection,
        requests: 20_000,
        ..queue(constant(10), 2, 1.0)
    };
    let processors = ProcessorShare { cores: Some(1), ..slices(300, 0.3) };
    let outcome = served(&beside(processors, model));
    let undisturbed = outcome.served.iter().filter(|served| served.preempted == Span::ZERO);
    let longest = undisturbed.map(|served| served.lock).max().expect("the other thread serves, too");
    assert!(longest >= Span::from_us(290), "{longest}");
}

#[test]
fn misses_lengthen_the_application_and_a_shared_line_the_responses() {
    let cache = EvictedLines { lines: 20, evicted: 0.5, miss: Span::from_ns(100) };
    let neighbour = Neighbour { cache: Some(cache), ..Neighbour::default() };
    let model = ServerModel { neighbour: Some(neighbour), requests: 20_000, ..queue(constant(2), 1, 100.0) };
    is_near(mean_us(&served(&model)), 3.0, 0.001);
    let neighbour = Neighbour { line: 0.6, ..Neighbour::default() };
    let mut model =
        ServerModel { neighbour: Some(neighbour), requests: 20_000, ..queue(constant(1), 4, 1.0) };
    model.costs.line = [Span::from_us(2); 2];
    model.arrivals = ServerArrivals::Closed { clients: 32, think: constant(0), rate: None };
    is_near(served(&model).throughput(), US / 5.0, 0.005);
}

#[test]
fn shares_that_do_not_fit_are_named() {
    let error = |neighbour: Neighbour| {
        let model = ServerModel { neighbour: Some(neighbour), ..queue(constant(1), 2, 1.0) };
        run(&model, 1).expect_err("it does not fit").to_string()
    };
    let of = |processors| Neighbour { processors: Some(processors), ..Neighbour::default() };
    let line = Neighbour { line: 1.0, ..Neighbour::default() };
    assert_eq!(error(line), "`line` cannot be 1; allowed: 0 to less than 1");
    let cache = Some(EvictedLines { lines: 1, evicted: 1.5, miss: Span::ZERO });
    assert_eq!(
        error(Neighbour { cache, ..Neighbour::default() }),
        "`evicted` cannot be 1.5; allowed: 0 to 1"
    );
    let cores = ProcessorShare { cores: Some(3), ..slices(1, 0.5) };
    assert_eq!(error(of(cores)), "`cores` cannot be 3; allowed: 1 to the number of threads");
    assert_eq!(error(of(slices(1, 1.0))), "`share` cannot be 1; allowed: 0 to 0.99");
    assert_eq!(error(of(slices(0, 0.5))), "`slice` cannot be 0s; allowed: 100ns to 1s");
}
