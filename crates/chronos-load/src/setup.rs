//! What is asked of which servers, as pure functions of the seed, and over which phases.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_units::{Span, Time};
use rand::Rng;
use smallvec::SmallVec;

use crate::arrivals::Arrivals;
use crate::draws::draws;
use crate::keys::{KeyChoice, unit};
use crate::placement::Placement;
use crate::protocol::{Kind, Protocol, Texts};

/// Everything that all threads and phases share.
#[derive(Debug)]
pub struct Setup {
    /// What is spoken.
    pub protocol: Protocol,
    /// Requests travel as datagrams.
    pub datagrams: bool,
    /// How keys and values are written.
    pub texts: Texts,
    /// Which keys are asked for.
    pub choice: KeyChoice,
    /// Share of gets among the operations, 0 to 1.
    pub get_share: f64,
    /// Keys of a get.
    pub multi_get: u32,
    /// What an operation is made of.
    pub shape: Shape,
    /// Which server has which key.
    pub placement: Placement,
    /// What all draws follow from.
    pub seed: u64,
    /// After this long without an answer a datagram's request is lost; on a connection, only after the run.
    pub timeout: Span,
    /// How values are checked.
    pub check: Check,
    /// Operations of a thread that may be outstanding; those beyond are not sent.
    pub outstanding_max: usize,
}

/// What an operation is made of, and when it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One request, or one a server if a get's keys are on several; over with the last reply.
    Single,
    /// A get to each of so many servers at once, over with the last reply (partition/aggregate).
    FanOut(u32),
    /// So many requests, each sent after the reply to the one before (dependent/sequential).
    Chain(u32),
    /// A get to so many servers that have the key, over with the first value; a set to all, over with the last reply.
    Replicas(u32),
}

/// How a value that was read is checked.
#[derive(Debug)]
pub enum Check {
    /// It must be one that was stored under its key.
    Stored,
    /// It must be the same each time, key by key: what a server has built itself.
    SameEachTime(Vec<AtomicU64>),
    /// Not at all.
    Nothing,
}

/// One stretch of load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Phase {
    /// Which one, 0 to 255: other phases draw other requests.
    pub index: u8,
    /// How requests follow each other.
    pub pace: Pace,
    /// Measured from here, so that servers and caches are warm.
    pub from: Time,
    /// Measured, and sent, up to here.
    pub to: Time,
}

/// How requests follow each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// At their times, whatever the server does. Requests a second, of all threads.
    Open(Arrivals, f64),
    /// So many outstanding on each connection.
    Closed(u32),
    /// Stores every key once, with so many outstanding on each connection.
    Load(u32),
}

impl Setup {
    /// What operation `number` of `client` does.
    pub fn kind(&self, client: u32, number: u64) -> Kind {
        match self.get_share {
            1.0 => Kind::Get,
            share if unit(draws(self.seed, client, number, KIND).next_u64()) < share => Kind::Get,
            _ => Kind::Set,
        }
    }

    /// Keys of part `part` of an operation that is due at `at`.
    pub fn keys(&self, kind: Kind, client: u32, number: u64, part: u32, at: Time) -> SmallVec<[u64; 2]> {
        let mut rng = draws(self.seed, client, number, part);
        let keys = if kind == Kind::Get { self.multi_get } else { 1 };
        (0..keys).map(|_| self.choice.draw(&mut rng, at)).collect()
    }

    /// Servers that `key` is stored on.
    pub fn homes(&self, key: u64) -> impl Iterator<Item = u32> {
        let servers = self.placement.servers();
        let count = match self.shape {
            Shape::Single | Shape::Chain(_) => 1,
            Shape::FanOut(_) => servers,
            Shape::Replicas(copies) => copies,
        };
        let owner = self.placement.owner(key);
        (0..count).map(move |copy| (owner + copy) % servers)
    }

    /// Checks the value of `key`.
    ///
    /// # Errors
    /// Why it is wrong.
    pub fn check(&self, key: u64, value: &[u8]) -> Result<(), String> {
        match &self.check {
            Check::Nothing => Ok(()),
            Check::Stored => self.texts.values.check(key, value).map_err(|wrong| wrong.to_string()),
            Check::SameEachTime(seen) => {
                // 0 says that the key was not seen yet.
                let hash = twox_hash::XxHash3_64::oneshot(value) | 1;
                let first = &seen[key as usize];
                match first.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
                    Err(earlier) if earlier != hash => Err("it differs from the first value read".to_owned()),
                    Ok(_) | Err(_) => Ok(()),
                }
            }
        }
    }
}

/// The part of [`draws`] that says what an operation does.
const KIND: u32 = u32::MAX - 1;
