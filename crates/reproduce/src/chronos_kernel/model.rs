//! The model of a server (`plimsoll_models::server`) at the measured points, told of this machine only what the figure
//! `given` says.
//!
//! | parameter | from |
//! |---|---|
//! | time of a request on its thread | threads over the requests/s at saturation, of server or generator |
//! | delivery, log-normal | latency at low load less that time: mean, and median to 99th percentile |
//! | waking a thread | the wake-up between the two processors |
//! | rate at a share of the most | the share of the rate at saturation |
//! | under the lock | 1 us, assumed |

use plimsoll_models::server::{
    self, Arrivals, Costs, Dispatch, Keys, Locking, Numa, Popularity, ServerModel, ServerOutcome, Spacing,
    Steering,
};
use plimsoll_results::stats::{Estimate, Samples, Statistic};
use plimsoll_units::Span;

use super::plan::Beside;
use super::points::{CHAIN, groups};
use crate::chronos::{Gauge, P50, P99, constant, lognormal, number};
use crate::row::Row;
use crate::study::{Base, Measured};

/// Computes the model's numbers wherever this machine's are measured.
pub(super) fn rows(rows: &[Row]) -> Vec<Row> {
    let machine = Machine { rows };
    let mut simulated: Vec<Row> = Vec::new();
    for row in rows.iter().filter(|row| row.base == Base::Kernel.name()) {
        let is_done = |other: &&Row| same_point(row, other) && other.series == row.series;
        if simulated.iter().any(|other| is_done(&other)) {
            continue;
        }
        for measured in machine.at(row).unwrap_or_default() {
            let mut found = Row::new(
                &row.figure,
                Base::Simulated.name(),
                &row.series,
                &row.x,
                &measured.metric,
                &measured.unit,
            );
            found.set_measured(&measured.estimate);
            simulated.push(found);
        }
    }
    let ratios: Vec<Row> = rows.iter().filter_map(|row| ratio(row, &simulated)).collect();
    simulated.extend(ratios);
    simulated
}

fn same_point(row: &Row, other: &Row) -> bool {
    (&row.figure, &row.x) == (&other.figure, &other.x)
}

/// Computes the model's ratio beside a measured one to the first server.
fn ratio(row: &Row, simulated: &[Row]) -> Option<Row> {
    let group = groups(&row.figure).iter().find(|group| group.contains(&row.series.as_str()))?;
    let of = |series: &str| {
        simulated.iter().find(|other| {
            same_point(row, other)
                && other.series == series
                && Beside::FIRST.metric(&other.metric) == row.metric
        })
    };
    let (own, first) = (of(&row.series)?, of(group[0])?);
    let mut ratio =
        Row::new(&row.figure, Base::Simulated.name(), &row.series, &row.x, &row.metric, &row.unit);
    ratio.measured = own.measured / first.measured;
    Some(ratio)
}

/// The rows that were measured of this machine.
struct Machine<'a> {
    rows: &'a [Row],
}

/// A server as the model has it.
struct Server {
    /// The scheme whose numbers of `given` it has.
    given: &'static str,
    processes: u32,
    threads: u32,
    dispatch: Dispatch,
    locking: Locking,
}

impl Machine<'_> {
    fn given(&self, series: &str, x: &str, metric: &str) -> Option<f64> {
        let is = |row: &&Row| {
            (row.figure.as_str(), row.base.as_str()) == ("given", Base::Kernel.name())
                && (row.series.as_str(), row.x.as_str(), row.metric.as_str()) == (series, x, metric)
        };
        self.rows.iter().find(is).map(|row| row.measured)
    }

    /// Computes the model's numbers at the point and for the scheme of a measured row.
    fn at(&self, row: &Row) -> Option<Vec<Measured>> {
        let server = self.server(&row.series)?;
        // What the first server of a figure carries says how much is asked.
        let first = if server.given.ends_with("2T") { "MC 2T" } else { "MC" };
        let most = self.given(first, "saturation", "requests_per_s")?;
        let open =
            |share: f64, clients| Arrivals::Open { rate: share * most, spacing: Spacing::Poisson, clients };
        let closed = |clients| Arrivals::Closed { clients, think: constant(Span::ZERO), rate: None };
        let in_percent = || number(&row.x) / 100.0;
        let mut popularity = Popularity::Uniform;
        let mut gauges = vec![Gauge::Mean, P50, P99, Gauge::Rate];
        let arrivals = match (row.figure.as_str(), row.x.as_str()) {
            ("given", "saturation") => closed(32),
            ("given", _) => open(0.05, 32),
            ("fig4.2", servers) => {
                gauges = vec![Gauge::LastOf(number(servers) as u32)];
                open(0.05, 8)
            }
            ("fig4.4", _) => {
                gauges = vec![P99, Gauge::Calls(10_000.0)];
                open(in_percent(), 32)
            }
            ("chain", _) => {
                gauges = Vec::new();
                open(in_percent(), 32)
            }
            ("fig5.1", clients) => open(0.3, number(clients) as u32),
            ("fig5.2", clients) => open(0.7, number(clients) as u32),
            ("fig5.3" | "fig6.2" | "fig6.4", clients) => closed(number(clients) as u32),
            ("fig6.3", _) => {
                Arrivals::Open { rate: in_percent() * most, spacing: Spacing::Uniform, clients: 10 }
            }
            ("fig6.5" | "fig6.6", _) => Arrivals::Bursts {
                rate: in_percent() * most,
                ratio: 10.0,
                length: Span::from_ms(1),
                share: 0.1,
                clients: 10,
            },
            ("fig6.7", stay) => {
                let stay = Span::from_secs_f64(number(stay) * 1e-3);
                popularity = Popularity::Hot { keys: 3, share: 0.99, epoch: Some(stay) };
                open(0.6, 32)
            }
            ("neighbour", _) => open(in_percent(), 21),
            _ => return None,
        };
        let model = self.model(&server, arrivals, popularity)?;
        let outcome = server::run(&model, SEED).ok()?;
        if row.figure == "chain" {
            return Some(in_chains(&outcome));
        }
        let latencies = Samples::new(vec![outcome.latencies_us()]);
        Some(gauges.iter().flat_map(|gauge| gauge.read(&outcome, &latencies)).collect())
    }

    /// Returns the server of a scheme, if the model has one.
    fn server(&self, series: &str) -> Option<Server> {
        let wake = self.given("this machine", "wake-up", "latency_us_p50").map(us)?;
        let steered =
            |epoch| Dispatch::Steered(Steering { epoch, hand_over: wake, drains: true, split: None });
        let two = |dispatch, locking| Server { given: "CH 2T", processes: 1, threads: 2, dispatch, locking };
        let locked = |locking| Some(two(Dispatch::ByConnection, locking));
        let memcached = |given, processes, threads| {
            let (dispatch, locking) = (Dispatch::ByConnection, Locking::None);
            Some(Server { given, processes, threads, dispatch, locking })
        };
        match series {
            "MC" => memcached("MC", 1, 1),
            "MC 2T" | "1P 2T" => memcached("MC 2T", 1, 2),
            "1P 1T" => memcached("MC 2T", 1, 1),
            "2P 1T" => memcached("MC 2T", 2, 1),
            "CH" => Some(Server { given: "CH", threads: 1, ..two(steered(EPOCH), Locking::None) }),
            "CH 2T" | "steering" => Some(two(steered(EPOCH), Locking::None)),
            "100 us" => Some(two(steered(Span::from_us(100)), Locking::None)),
            "10 us" => Some(two(steered(Span::from_us(10)), Locking::None)),
            "static" => Some(two(Dispatch::Static, Locking::None)),
            "global lock" => locked(Locking::Global { wake }),
            "reader/writer lock" => locked(Locking::ReadWrite { wake, count: COUNT }),
            "partition locks" => locked(Locking::PerPartition { wake }),
            _ => None,
        }
    }

    fn model(&self, server: &Server, arrivals: Arrivals, popularity: Popularity) -> Option<ServerModel> {
        let Server { given, processes, threads, ref dispatch, locking } = *server;
        let of_given = if given.ends_with("2T") { 2.0 } else { 1.0 };
        let busy_us = of_given * 1e6 / self.given(given, "saturation", "requests_per_s")?;
        let [mean, p50, p99] = ["latency_us_mean", "latency_us_p50", "latency_us_p99"]
            .map(|metric| Some((self.given(given, "low load", metric)? - busy_us).max(1.0)));
        let (mean, p50, p99) = (mean?, p50?, p99?);
        // Of a log-normal distribution, the 99th percentile is so many standard deviations from the median.
        let sigma = libm::log(p99 / p50).max(0.0) / 2.326_348;
        let sd = mean * libm::sqrt(libm::exp(sigma * sigma) - 1.0);
        let costs = Costs {
            network: Span::ZERO,
            delivery: lognormal((mean * 1e3) as u64, (sd * 1e3) as u64),
            system: constant(us((busy_us - APPLICATION_US).max(0.0))),
            application: constant(us(APPLICATION_US)),
            locked: 1.0,
            line: [Span::ZERO; 2],
        };
        Some(ServerModel {
            processes,
            threads,
            dispatch: dispatch.clone(),
            locking,
            costs,
            numa: Numa::NONE,
            keys: Keys { partitions: 16 * threads, popularity },
            writes: 0.1,
            arrivals,
            queue_limit: None,
            requests: REQUESTS,
            warmup: REQUESTS / 10,
        })
    }
}

/// Adds up chains of independent requests: latencies that are far apart in the run.
fn in_chains(outcome: &ServerOutcome) -> Vec<Measured> {
    let latencies = outcome.latencies_us();
    let chains = latencies.len() / CHAIN;
    let sum = |chain: usize| (0..CHAIN).map(|place| latencies[place * chains + chain]).sum::<f64>();
    let sums = Samples::new(vec![(0..chains).map(sum).collect()]);
    let of = |metric: &str, statistic| {
        let estimate: Option<Estimate> = sums.estimate(statistic);
        let unit = "us".to_owned();
        estimate.map(|estimate| Measured {
            series: None,
            metric: metric.to_owned(),
            unit,
            estimate,
            suspect: false,
        })
    };
    let all = [of("latency_us_mean", Statistic::Mean), of("latency_us_p99", Statistic::Percentile(0.99))];
    all.into_iter().flatten().collect()
}

fn us(us: f64) -> Span {
    Span::from_ns((us * 1e3).round() as u64)
}

/// The time of a request under a lock, in us: a look-up and a copy of 1 KB.
const APPLICATION_US: f64 = 1.0;
/// A change of the count of a reader/writer lock: a cache line from another core.
const COUNT: Span = Span::from_ns(100);
/// The balancer's epoch where threads sleep, by default.
const EPOCH: Span = Span::from_ms(1);
const REQUESTS: u64 = 60_000;
const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(figure: &str, series: &str, x: &str, metric: &str, measured: f64) -> Row {
        Row { measured, ..Row::new(figure, "kernel", series, x, metric, "") }
    }

    /// Returns a machine on which a request takes 10 us of the server, and 40 us in all where nothing waits.
    fn machine() -> Vec<Row> {
        let mut rows = vec![kernel("given", "this machine", "wake-up", "latency_us_p50", 30.0)];
        for (series, most) in [("MC", 100_000.0), ("CH", 125_000.0)] {
            rows.push(kernel("given", series, "saturation", "requests_per_s", most));
            for (metric, us) in
                [("latency_us_mean", 41.0), ("latency_us_p50", 40.0), ("latency_us_p99", 70.0)]
            {
                rows.push(kernel("given", series, "low load", metric, us));
            }
        }
        rows
    }

    fn simulated(also: &[Row]) -> impl Fn([&str; 4]) -> f64 + use<> {
        let simulated = rows(&[machine().as_slice(), also].concat());
        move |[figure, series, x, metric]| {
            let is = |row: &&Row| {
                row.base == "simulated"
                    && (row.figure.as_str(), row.series.as_str()) == (figure, series)
                    && (row.x.as_str(), row.metric.as_str()) == (x, metric)
            };
            simulated
                .iter()
                .find(is)
                .unwrap_or_else(|| panic!("no {metric} of {series}: {simulated:?}"))
                .measured
        }
    }

    #[test]
    fn the_model_has_what_it_was_told() {
        let of = simulated(&[]);
        for (series, most) in [("MC", 100_000.0), ("CH", 125_000.0)] {
            let rate = of(["given", series, "saturation", "requests_per_s"]);
            assert!((rate / most - 1.0).abs() < 0.02, "{series}: {rate}");
            for (metric, us) in
                [("latency_us_mean", 41.0), ("latency_us_p50", 40.0), ("latency_us_p99", 70.0)]
            {
                let found = of(["given", series, "low load", metric]);
                assert!((found / us - 1.0).abs() < 0.1, "{series} {metric}: {found}");
            }
        }
    }

    /// One client that waits for each answer: a request in 41 us.
    #[test]
    fn a_closed_loop_and_a_ratio_come_out() {
        let also = [
            kernel("fig6.4", "MC", "1", "requests_per_s", 1.0),
            kernel("fig6.4", "CH", "1", "requests_per_s", 1.0),
            kernel("fig6.4", "CH", "1", "rate_of_first", 1.0),
        ];
        let of = simulated(&also);
        let rate = of(["fig6.4", "MC", "1", "requests_per_s"]);
        assert!((rate * 41e-6 - 1.0).abs() < 0.05, "{rate}");
        let ratio = of(["fig6.4", "CH", "1", "rate_of_first"]);
        assert!((ratio - of(["fig6.4", "CH", "1", "requests_per_s"]) / rate).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn a_machine_that_nothing_is_known_of_is_not_simulated() {
        assert_eq!(rows(&[kernel("fig6.4", "MC", "1", "requests_per_s", 1.0)]), []);
    }
}
