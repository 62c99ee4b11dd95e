use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::*;

fn rng() -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(1)
}

fn cdf(name: &str, interpolate: Option<Interpolate>) -> SizeDistribution {
    let mut distribution = Distribution::Cdf {
        cdf: name.to_owned(),
        tag: None,
        interpolate,
        in_multiples_of: None,
        table: None,
    };
    distribution.load(&|name| std::fs::read_to_string(name)).unwrap();
    distribution
}

/// Mean and standard deviation of many draws, in the smallest unit.
fn moments<Q: DrawnQuantity>(distribution: &Distribution<Q>, draws: u32) -> (f64, f64) {
    let (sampler, mut rng) = (distribution.sampler(), rng());
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..draws {
        let x = sampler.sample(&mut rng).to_f64();
        sum += x;
        squares += x * x;
    }
    let mean = sum / f64::from(draws);
    (mean, (squares / f64::from(draws) - mean * mean).sqrt())
}

#[test]
fn draws_have_the_mean_that_is_promised() {
    let us = Span::from_us;
    let times = [
        Distribution::Exponential { mean: us(100) },
        Distribution::Gamma { shape: 0.7, scale: us(100), offset: Some(us(10)) },
        Distribution::Gamma { shape: 3.0, scale: us(100), offset: None },
        Distribution::Lognormal { mean: us(100), sd: Some(us(50)), sigma: None },
        Distribution::Lognormal { mean: us(100), sd: None, sigma: Some(0.5) },
        Distribution::Uniform { min: us(10), max: us(30) },
        Distribution::Pareto { min: us(10), shape: 3.0, max: None },
        Distribution::Pareto { min: us(10), shape: 1.0, max: Some(us(1000)) },
        Distribution::Pareto { min: us(10), shape: 0.5, max: Some(us(1000)) },
    ];
    for distribution in times {
        distribution.validate().unwrap();
        let (mean, sd) = moments(&distribution, 200_000);
        let promised = distribution.sampler().mean();
        let error = sd / 200_000f64.sqrt();
        assert!((mean - promised).abs() < 4.0 * error, "{distribution:?}: {mean} for {promised} +- {error}");
    }
}

#[test]
fn widths_are_those_asked_for() {
    let us = Span::from_us;
    let cases = [
        (Distribution::Exponential { mean: us(100) }, 1e8),
        (Distribution::Lognormal { mean: us(100), sd: Some(us(50)), sigma: None }, 5e7),
        (Distribution::Gamma { shape: 4.0, scale: us(10), offset: None }, 2e7),
    ];
    for (distribution, promised) in cases {
        let (_, sd) = moments(&distribution, 200_000);
        assert!((sd / promised - 1.0).abs() < 0.02, "{distribution:?}: {sd} for {promised}");
    }
}

/// HULL's search workload: 180 x Gamma(0.7, 20000) + 10000 ns has a mean of 2.53 ms and a standard
/// deviation of 3 ms.
#[test]
fn the_service_time_of_hull() {
    let service =
        Distribution::Gamma { shape: 0.7, scale: Span::from_us(3600), offset: Some(Span::from_us(10)) };
    assert!((service.sampler().mean() - 2.53e9).abs() < 1.0);
    let (_, sd) = moments(&service, 200_000);
    assert!((sd / 3.012e9 - 1.0).abs() < 0.02, "{sd}");
}

/// The largest distance between the drawn and the exact distribution (Kolmogorov, Smirnov).
#[test]
fn exponential_draws_are_exponential() {
    let (sampler, mut rng) = (Distribution::Exponential { mean: Span::from_us(1) }.sampler(), rng());
    let mut draws: Vec<f64> = (0..100_000).map(|_| sampler.sample(&mut rng).to_f64() / 1e6).collect();
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let distance = draws
        .iter()
        .enumerate()
        .map(|(index, x)| (1.0 - libm::exp(-x) - index as f64 / n).abs())
        .fold(0.0, f64::max);
    assert!(distance * n.sqrt() < 1.63, "{distance}");
}

/// Means computed independently from the same tables.
#[test]
fn bundled_means() {
    let cases = [
        ("websearch", 1_711_250.0, 2_434_900.0),
        ("websearch-pfabric", 1_665_831.0, 2_369_492.0),
        ("datamining", 12_658_199.0, 23_199_799.0),
        ("datamining-pfabric", 7_470_236.0, 13_821_966.0),
        ("facebook-hadoop", 120_421.0, 183_897.0),
        ("homa-w1", 185.0, 188.0),
        ("homa-w2", 423.0, 441.0),
        ("homa-w3", 2_890.0, 2_927.0),
        ("homa-w4", 121_849.0, 127_797.0),
        ("homa-w5", 2_510_778.0, 2_547_268.0),
    ];
    for (name, linear, step) in cases {
        let mean = |interpolate| cdf(name, Some(interpolate)).sampler().mean();
        assert!((mean(Interpolate::Linear) - linear).abs() < 1.0, "{name}: {}", mean(Interpolate::Linear));
        assert!((mean(Interpolate::Step) - step).abs() < 1.0, "{name}: {}", mean(Interpolate::Step));
        let (drawn, sd) = moments(&cdf(name, None), 200_000);
        let promised = cdf(name, None).sampler().mean();
        assert!(
            (drawn - promised).abs() < 4.0 * sd / 200_000f64.sqrt() + 0.5,
            "{name}: {drawn} for {promised}"
        );
    }
}

#[test]
fn steps_draw_only_what_is_listed() {
    let (sampler, mut rng) = (cdf("homa-w5", None).sampler(), rng());
    for _ in 0..1000 {
        assert_eq!(sampler.sample(&mut rng).get() % 1460, 0);
    }
}

/// These numbers must never change: results are quoted by seed.
#[test]
fn draws_of_seed_1() {
    fn first<Q: DrawnQuantity>(distribution: Distribution<Q>) -> Vec<String> {
        let (sampler, mut rng) = (distribution.sampler(), rng());
        (0..3).map(|_| sampler.sample(&mut rng).to_string()).collect()
    }
    let us = Span::from_us;
    let drawn = [
        first(Distribution::Exponential { mean: us(100) }),
        first(Distribution::Gamma { shape: 0.7, scale: us(100), offset: None }),
        first(Distribution::Gamma { shape: 2.5, scale: us(100), offset: None }),
        first(Distribution::Lognormal { mean: us(100), sd: Some(us(50)), sigma: None }),
        first(Distribution::Uniform { min: us(0), max: us(100) }),
        first(Distribution::Pareto { min: us(10), shape: 1.5, max: None }),
        first(cdf("websearch", None)),
        first(cdf("homa-w3", None)),
    ];
    let expected = [
        "194.293451us 14.79833us 63.574946us",
        "5.184561us 26.035599us 215.835252us",
        "464.89869us 91.673051us 207.012799us",
        "163.71263us 82.632711us 58.474182us",
        "85.671713us 13.755449us 47.046153us",
        "36.520537us 11.036861us 15.278064us",
        "3.701514MB 9.17KB 66.26KB",
        "956B 53B 228B",
    ];
    assert_eq!(drawn.map(|draws| draws.join(" ")), expected);
}

#[test]
fn a_constant_draws_no_random_number() {
    let mut rng = rng();
    let before = rng.clone();
    assert_eq!(Distribution::Constant(Bytes::new(900)).sampler().sample(&mut rng), Bytes::new(900));
    assert_eq!(rng, before);
}

#[test]
fn a_table_must_be_a_distribution() {
    let parse = |text: &str| {
        let mut distribution: SizeDistribution = Distribution::Cdf {
            cdf: "x.csv".to_owned(),
            tag: None,
            interpolate: None,
            in_multiples_of: None,
            table: None,
        };
        distribution.load(&|_| Ok(text.to_owned())).map_err(|error| error.to_string())
    };
    assert_eq!(parse("bytes,cdf\n0,0\n10,0.5\n20,1\n"), Ok(()));
    let bad = [
        ("", "line 1"),
        ("size,cdf\n1,1\n", "line 1"),
        ("bytes,cdf\n", "line 1: the last share"),
        ("bytes,cdf\n1,0.5\n", "line 2: the last share"),
        ("bytes,cdf\n1,0.5\n2,0.4\n3,1\n", "line 3"),
        ("bytes,cdf\n2,0.5\n1,1\n", "line 3"),
        ("bytes,cdf\n2,0.5\n3,1.5\n", "line 3"),
        ("bytes,cdf\n2,nan\n3,1\n", "line 2"),
        ("bytes,cdf\n2\n", "line 2"),
        ("bytes,cdf\n-2,0.5\n3,1\n", "line 2"),
    ];
    for (text, place) in bad {
        let error = parse(text).unwrap_err();
        assert!(error.contains(place), "{text:?}: {error}");
    }
}

#[test]
fn a_table_may_count_in_packets() {
    let packets = |multiple: Option<u64>| {
        let mut distribution = Distribution::Cdf {
            cdf: "websearch-pfabric".to_owned(),
            tag: None,
            interpolate: None,
            in_multiples_of: multiple.map(Bytes::new),
            table: None,
        };
        distribution.load(&|_| unreachable!("bundled")).unwrap();
        distribution.validate().unwrap();
        let sampler = distribution.sampler();
        let mut rng = rand_pcg::Pcg64::new(1, 1);
        (0..2000).map(|_| sampler.sample(&mut rng).get()).collect::<Vec<_>>()
    };
    let (plain, rounded) = (packets(None), packets(Some(1460)));
    for (plain, rounded) in plain.into_iter().zip(rounded) {
        assert!(
            rounded % 1460 == 0 && rounded + 1 > plain && rounded < plain + 1461,
            "{plain} became {rounded}"
        );
    }
    let mut zero: SizeDistribution = Distribution::Cdf {
        cdf: "websearch".to_owned(),
        tag: None,
        interpolate: None,
        in_multiples_of: Some(Bytes::ZERO),
        table: None,
    };
    zero.load(&|_| unreachable!("bundled")).unwrap();
    assert!(zero.validate().is_err());
}
