//! The model of the servers of a machine (`plimsoll_models::server`) at the points where real servers were measured,
//! with the parameters that one figure measures of that machine.
//!
//! | parameter | from |
//! |---|---|
//! | time of a request on its thread | threads over the requests/s at saturation, of server or generator |
//! | delivery, log-normal | latency at low load less that time: mean, and median to 99th percentile |
//! | waking a thread | the wake-up between the two processors |
//! | rate at a share of the most | the share of the rate at saturation |
//! | under the lock | 1 us, assumed |

use plimsoll_models::server::{
    self, Costs, Dispatch, KeyPopularity, Keys, Locking, Neighbour, Numa, ServerArrivals, ServerModel,
    ServerOutcome,
};
use plimsoll_results::stats::{Samples, Statistic};
use plimsoll_scenario::distribution::TimeDistribution;
use plimsoll_servers::ratio_name;
use plimsoll_units::Span;
use serde::Deserialize;
use toml::Value;

use crate::models::ModelGauge;
use crate::row::StudyRow;
use crate::study::{Base, Measured, Study, StudyFigure};

/// The keys of a figure for the model of its servers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ModelKeys {
    /// Rates are shares of the rate of the group's first server at saturation.
    arrivals: ServerArrivals,
    #[serde(default = "uniform")]
    popularity: KeyPopularity,
    gauges: Vec<ModelGauge>,
    /// The number of requests, one after the other, that count as one.
    chain: Option<usize>,
}

fn uniform() -> KeyPopularity {
    KeyPopularity::Uniform
}

/// The table `model` of a server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ModelServer {
    /// The schemes whose measured numbers it has, and whose rate others are shares of.
    given: String,
    first: String,
    #[serde(default = "one")]
    processes: u32,
    threads: u32,
    /// The threads of the scheme `given`.
    #[serde(default = "one")]
    given_threads: u32,
    /// Wake-ups in both are the measured one.
    dispatch: Dispatch,
    locking: Locking,
    /// A job on the server's processors.
    neighbour: Option<Neighbour>,
}

fn one() -> u32 {
    1
}

/// Computes the model's numbers wherever this machine's are measured.
pub(crate) fn rows(study: &Study, rows: &[StudyRow]) -> Vec<StudyRow> {
    let machine = MeasuredMachine { study, rows };
    let mut simulated: Vec<StudyRow> = Vec::new();
    for row in rows.iter().filter(|row| row.base == Base::Kernel.name()) {
        let is_done = |other: &&StudyRow| same_point(row, other) && other.series == row.series;
        if simulated.iter().any(|other| is_done(&other)) {
            continue;
        }
        for measured in machine.at(row).unwrap_or_default() {
            let mut found = beside(row, &measured.metric, &measured.unit);
            found.set_measured(&measured.estimate);
            simulated.push(found);
        }
    }
    let ratios: Vec<StudyRow> = rows.iter().filter_map(|row| ratio(study, row, &simulated)).collect();
    simulated.extend(ratios);
    simulated
}

fn beside(row: &StudyRow, metric: &str, unit: &str) -> StudyRow {
    StudyRow::new(&row.figure, Base::Simulated.name(), &row.series, &row.x, metric, unit)
}

fn same_point(row: &StudyRow, other: &StudyRow) -> bool {
    (&row.figure, &row.x) == (&other.figure, &other.x)
}

/// Computes the model's ratio beside a measured one, to the first server, such as `p99_of_first`, or to one that the
/// server's table `beside` names.
fn ratio(study: &Study, row: &StudyRow, simulated: &[StudyRow]) -> Option<StudyRow> {
    let figure = study.figure(&row.figure)?;
    let named = figure.parameters.server(&row.series).ok()?.remove("beside");
    let named = named.as_ref().and_then(Value::as_table).into_iter().flatten();
    let named = named.filter_map(|(name, other)| Some((name.as_str(), other.as_str()?)));
    let first = figure.first_of(&row.series).map(|first| ("first", first));
    let measured = first.into_iter().chain(named).find_map(|(name, other)| {
        let of = |series: &str| {
            simulated.iter().find(|found| {
                let is_it = same_point(row, found) && found.series == series;
                is_it && ratio_name(&found.metric, name) == row.metric
            })
        };
        Some(of(&row.series)?.measured / of(other)?.measured)
    })?;
    Some(StudyRow { measured, ..beside(row, &row.metric, &row.unit) })
}

/// The rows that were measured of this machine.
struct MeasuredMachine<'a> {
    study: &'a Study,
    rows: &'a [StudyRow],
}

impl MeasuredMachine<'_> {
    fn given(&self, series: &str, x: &str, metric: &str) -> Option<f64> {
        let is = |row: &&StudyRow| {
            (row.figure.as_str(), row.base.as_str()) == ("given", Base::Kernel.name())
                && (row.series.as_str(), row.x.as_str(), row.metric.as_str()) == (series, x, metric)
        };
        self.rows.iter().find(is).map(|row| row.measured)
    }

    /// Computes the model's numbers at the point and for the scheme of a measured row.
    fn at(&self, row: &StudyRow) -> Option<Vec<Measured>> {
        let StudyFigure { model, parameters, .. } = self.study.figure(&row.figure)?;
        let of_study = "a test reads the models of every study";
        let keys: ModelKeys = model.as_ref()?.read(&row.x, &row.series).expect(of_study);
        let server = parameters.server(&row.series).ok()?.remove("model")?;
        let server: ModelServer = server.try_into().expect(of_study);
        let most = self.given(&server.first, "saturation", "requests_per_s")?;
        let mut arrivals = keys.arrivals;
        if let ServerArrivals::Open { rate, .. } | ServerArrivals::Bursts { rate, .. } = &mut arrivals {
            *rate *= most;
        }
        let model = self.model(server, arrivals, keys.popularity)?;
        let outcome = server::run(&model, SEED).ok()?;
        if let Some(length) = keys.chain {
            return Some(in_chains(&outcome, length));
        }
        let latencies = Samples::new(vec![outcome.latencies_us()]);
        Some(keys.gauges.iter().flat_map(|gauge| gauge.read(&outcome, &latencies)).collect())
    }

    fn model(
        &self,
        of: ModelServer,
        arrivals: ServerArrivals,
        popularity: KeyPopularity,
    ) -> Option<ServerModel> {
        let wake = self.given("this machine", "wake-up", "latency_us_p50").map(us)?;
        let ModelServer { given, processes, threads, given_threads, neighbour, .. } = of;
        let ModelServer { mut dispatch, mut locking, .. } = of;
        if let Dispatch::Steered(steering) = &mut dispatch {
            steering.hand_over = wake;
        }
        locking.wake_up_in(wake);
        let busy_us = f64::from(given_threads) * 1e6 / self.given(&given, "saturation", "requests_per_s")?;
        let [mean, p50, p99] = ["latency_us_mean", "latency_us_p50", "latency_us_p99"]
            .map(|metric| Some((self.given(&given, "low load", metric)? - busy_us).max(1.0)));
        let (mean, p50, p99) = (mean?, p50?, p99?);
        // Of a log-normal distribution, the 99th percentile is 2.326 standard deviations from the median.
        let sigma = libm::log(p99 / p50).max(0.0) / 2.326_348;
        let sd = mean * libm::sqrt(libm::exp(sigma * sigma) - 1.0);
        let [mean, sd] = [mean, sd].map(|us| Span::from_ns((us * 1e3) as u64));
        let costs = Costs {
            network: Span::ZERO,
            delivery: TimeDistribution::Lognormal { mean, sd: Some(sd), sigma: None },
            system: TimeDistribution::Constant(us((busy_us - APPLICATION_US).max(0.0))),
            application: TimeDistribution::Constant(us(APPLICATION_US)),
            locked: 1.0,
            line: [Span::ZERO; 2],
        };
        Some(ServerModel {
            processes,
            threads,
            dispatch,
            locking,
            costs,
            numa: Numa::NONE,
            keys: Keys { partitions: 16 * threads, popularity },
            writes: 0.1,
            arrivals,
            queue_limit: None,
            requests: REQUESTS,
            warmup: REQUESTS / 10,
            neighbour,
        })
    }
}

/// Adds up chains of independent requests: latencies that are far apart in the run.
fn in_chains(outcome: &ServerOutcome, length: usize) -> Vec<Measured> {
    let latencies = outcome.latencies_us();
    let chains = latencies.len() / length;
    let sum = |chain: usize| (0..length).map(|place| latencies[place * chains + chain]).sum::<f64>();
    let sums = Samples::new(vec![(0..chains).map(sum).collect()]);
    let of = |metric: &str, statistic| Measured::own(metric, "us", sums.estimate(statistic));
    let all = [of("latency_us_mean", Statistic::Mean), of("latency_us_p99", Statistic::Percentile(0.99))];
    all.into_iter().flatten().collect()
}

fn us(us: f64) -> Span {
    Span::from_ns((us * 1e3).round() as u64)
}

/// The time of a request under a lock, in us: a look-up and a copy of 1 KB.
const APPLICATION_US: f64 = 1.0;
const REQUESTS: u64 = 60_000;
const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study;

    fn kernel(figure: &str, series: &str, x: &str, metric: &str, measured: f64) -> StudyRow {
        StudyRow { measured, ..StudyRow::new(figure, "kernel", series, x, metric, "") }
    }

    /// Returns a machine on which a request takes 10 us of the server, and 40 us in all where nothing waits.
    fn machine() -> Vec<StudyRow> {
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

    fn simulated(also: &[StudyRow]) -> impl Fn([&str; 4]) -> f64 + use<> {
        let simulated = rows(study("chronos-kernel"), &[machine().as_slice(), also].concat());
        move |[figure, series, x, metric]| {
            let is = |row: &&StudyRow| {
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

    /// A server beside a job is set beside itself alone: it waits for the job, and answers as many requests.
    #[test]
    fn a_job_beside_a_server_is_simulated() {
        let also: Vec<StudyRow> = ["MC", "MC beside a job", "CH", "CH beside a job"]
            .into_iter()
            .flat_map(|series| {
                ["mean_of_alone", "rate_of_alone"]
                    .map(|metric| kernel("neighbour", series, "30", metric, 1.0))
            })
            .collect();
        let of = simulated(&also);
        for series in ["MC", "CH"] {
            let beside = format!("{series} beside a job");
            let [alone, job] =
                [series, &beside].map(|series| of(["neighbour", series, "30", "latency_us_mean"]));
            let ratio = of(["neighbour", &beside, "30", "mean_of_alone"]);
            assert!(job > alone && (ratio - job / alone).abs() < 1e-9, "{series}: {alone} {job} {ratio}");
            let rate = of(["neighbour", &beside, "30", "rate_of_alone"]);
            assert!((rate - 1.0).abs() < 0.02, "{series}: {rate}");
        }
    }

    #[test]
    fn a_machine_that_nothing_is_known_of_is_not_simulated() {
        assert_eq!(rows(study("chronos-kernel"), &[kernel("fig6.4", "MC", "1", "requests_per_s", 1.0)]), []);
    }
}
