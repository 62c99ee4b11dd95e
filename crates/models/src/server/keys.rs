//! The partitions of requests.

use plimsoll_mechanisms::InvalidParam;
use plimsoll_traffic::distribution::uniform;
use plimsoll_units::{Span, Stream, Streams, Time};
use rand::Rng;
use serde::Deserialize;

use super::model::{is_share, unless};

/// The keys, and how they are shared out.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Keys {
    /// Partitions; 1 to 65536.
    pub partitions: u32,
    /// The distribution of requests over keys.
    pub popularity: KeyPopularity,
}

/// The distribution of requests over keys.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum KeyPopularity {
    /// Every partition is requested equally often.
    Uniform,
    /// The k-th of `keys` keys is requested `k^-exponent` times as often as the first; keys are strewn over partitions
    /// at random.
    Zipf {
        /// Keys; 1 to 10 million.
        keys: u32,
        /// The exponent of the distribution; 0 or more.
        exponent: f64,
    },
    /// A few keys, each in a partition of its own, get most requests; each `epoch` others, drawn at random.
    Hot {
        /// Keys that are hot; at least 1, and at most as many as partitions.
        keys: u32,
        /// The share of requests that they get together, 0 to 1.
        share: f64,
        /// Time for which they stay; `None` for ever.
        epoch: Option<Span>,
    },
}

impl Keys {
    pub(super) fn check(&self) -> Result<(), InvalidParam> {
        unless((1..=1 << 16).contains(&self.partitions), "partitions", self.partitions, "1 to 65536")?;
        match &self.popularity {
            KeyPopularity::Uniform => Ok(()),
            KeyPopularity::Zipf { keys, exponent } => {
                unless((1..=10_000_000).contains(keys), "keys", keys, "1 to 10000000")?;
                unless(*exponent >= 0.0 && exponent.is_finite(), "exponent", exponent, "0 or more")
            }
            KeyPopularity::Hot { keys, share, epoch } => {
                unless((1..=self.partitions).contains(keys), "keys", keys, "1 to the number of partitions")?;
                unless(is_share(*share), "share", share, "0 to 1")?;
                let epoch = epoch.unwrap_or(Span::MAX);
                unless(epoch > Span::ZERO, "epoch", epoch, "more than zero")
            }
        }
    }
}

/// Draws the partition of each request.
#[derive(Debug)]
pub(super) struct PartitionDraw {
    count: u32,
    kind: KeyKind,
}

#[derive(Debug)]
enum KeyKind {
    Uniform,
    /// The cumulative shares of the partitions.
    Weighted(Vec<f64>),
    Hot {
        word: u64,
        share: f64,
        epoch: Option<Span>,
        /// The number of the epoch that `hot` is of.
        current: u64,
        hot: Vec<u32>,
    },
}

impl PartitionDraw {
    pub(super) fn new(keys: &Keys, streams: &Streams) -> PartitionDraw {
        let count = keys.partitions;
        let kind = match &keys.popularity {
            KeyPopularity::Uniform => KeyKind::Uniform,
            KeyPopularity::Zipf { keys, exponent } => {
                let mut stream = streams.stream("server/keys/partitions");
                let mut weights = vec![0.0; count as usize];
                for rank in 1..=*keys {
                    weights[below(&mut stream, count) as usize] += libm::pow(f64::from(rank), -exponent);
                }
                let total: f64 = weights.iter().sum();
                let mut sum = 0.0;
                for weight in &mut weights {
                    sum += *weight;
                    *weight = sum / total;
                }
                KeyKind::Weighted(weights)
            }
            KeyPopularity::Hot { keys, share, epoch } => {
                let word = streams.word("server/keys/hot");
                let hot = drawn(word, 0, *keys, count);
                KeyKind::Hot { word, share: *share, epoch: *epoch, current: 0, hot }
            }
        };
        PartitionDraw { count, kind }
    }

    /// Returns the partition of a request that is sent at `at`; successive calls never go back in time.
    pub(super) fn draw(&mut self, at: Time, stream: &mut Stream) -> u32 {
        let count = self.count;
        match &mut self.kind {
            KeyKind::Uniform => below(stream, count),
            KeyKind::Weighted(shares) => {
                let at = uniform(stream);
                (shares.partition_point(|&share| share <= at) as u32).min(count - 1)
            }
            KeyKind::Hot { word, share, epoch, current, hot } => {
                let number = epoch.map_or(0, |epoch| at.as_ps() / epoch.as_ps());
                if number != *current {
                    *current = number;
                    *hot = drawn(*word, number, hot.len() as u32, count);
                }
                if uniform(stream) < *share {
                    return hot[below(stream, hot.len() as u32) as usize];
                }
                below(stream, count)
            }
        }
    }
}

/// `keys` different partitions of `count`, for an epoch.
fn drawn(word: u64, epoch: u64, keys: u32, count: u32) -> Vec<u32> {
    let mut stream = Streams::keyed(word, epoch);
    let mut all: Vec<u32> = (0..count).collect();
    for place in 0..keys {
        let other = place + below(&mut stream, count - place);
        all.swap(place as usize, other as usize);
    }
    all.truncate(keys as usize);
    all
}

/// A number below `count`, from the upper bits of one draw.
pub(super) fn below(stream: &mut Stream, count: u32) -> u32 {
    ((u128::from(stream.next_u64()) * u128::from(count)) >> 64) as u32
}
