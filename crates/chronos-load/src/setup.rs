//! The requests to each server, as pure functions of the seed, and the phases of a run.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_units::{Span, Time};
use rand::Rng;
use smallvec::SmallVec;

use crate::arrivals::LoadArrivals;
use crate::draws::draws;
use crate::keys::{KeyChoice, unit};
use crate::placement::KeyPlacement;
use crate::protocol::{Protocol, RequestKind, Texts};

/// The configuration that all threads and phases share.
#[derive(Debug)]
pub struct Setup {
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// Whether requests travel as datagrams.
    pub datagrams: bool,
    /// The text of keys and values.
    pub texts: Texts,
    /// The distribution of requests over keys.
    pub choice: KeyChoice,
    /// The share of gets among the operations, 0 to 1.
    pub get_share: f64,
    /// The number of keys in a get.
    pub multi_get: u32,
    /// The requests of which an operation consists.
    pub shape: Shape,
    /// When the copies of a get after the first are sent; at once if `None`. Only with [`Shape::Replicas`].
    pub later: Option<LaterCopies>,
    /// The mapping of keys to servers.
    pub placement: KeyPlacement,
    /// The seed of all random draws.
    pub seed: u64,
    /// The time after which a datagram's request is lost; on a connection, the time to wait after the run.
    pub timeout: Span,
    /// How the values in replies are checked.
    pub check: ReplyCheck,
    /// The most operations of a thread that may be outstanding; those beyond are not sent.
    pub outstanding_max: usize,
}

/// The requests of which an operation consists, and the condition for its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One request, or one a server if a get's keys are on several; ends with the last reply.
    Single,
    /// A get to each of this many servers at once; ends with the last reply (partition/aggregate).
    FanOut(u32),
    /// This many requests, each sent after the reply to the one before (dependent/sequential).
    Chain(u32),
    /// A get to this many servers that have the key, which ends with the first value; a set to all, which ends with the
    /// last reply.
    Replicas(u32),
}

/// When copies of a get after the first are sent, one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaterCopies {
    /// The time without a value after which the next copy is sent.
    pub after: Span,
    /// Whether the copies before it are given up, so that their values no longer count.
    pub gives_up: bool,
}

/// The check of a value that was read.
#[derive(Debug)]
pub enum ReplyCheck {
    /// The value must have been stored under its key.
    Stored,
    /// The value must be the same each time, key by key, since the server computes it.
    SameEachTime(Vec<AtomicU64>),
    /// Values are not checked.
    Nothing,
}

/// One period of load with one pace, and the part of it that is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoadPhase {
    /// The index of the phase, 0 to 255; each index draws other requests.
    pub index: u8,
    /// The distribution of requests over time.
    pub pace: Pace,
    /// The start of the measured time, when servers and caches are warm.
    pub from: Time,
    /// The end of the measured time, and of sending.
    pub to: Time,
}

/// The distribution of requests over time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Requests are sent at their due times, whatever the server does; the rate is that of all threads, per second.
    Open(LoadArrivals, f64),
    /// This many requests are outstanding on each connection.
    Closed(u32),
    /// Every key is stored once, with this many outstanding on each connection.
    Load(u32),
}

impl Setup {
    /// Returns the kind of operation `number` of `client`.
    pub fn kind(&self, client: u32, number: u64) -> RequestKind {
        match self.get_share {
            1.0 => RequestKind::Get,
            share if unit(draws(self.seed, client, number, KIND).next_u64()) < share => RequestKind::Get,
            _ => RequestKind::Set,
        }
    }

    /// Returns the keys of part `part` of an operation that is due at `at`.
    pub fn keys(
        &self,
        kind: RequestKind,
        client: u32,
        number: u64,
        part: u32,
        at: Time,
    ) -> SmallVec<[u64; 2]> {
        let mut rng = draws(self.seed, client, number, part);
        let keys = if kind == RequestKind::Get { self.multi_get } else { 1 };
        (0..keys).map(|_| self.choice.draw(&mut rng, at)).collect()
    }

    /// Returns the servers that store `key`.
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
    /// Returns the reason why the value is wrong.
    pub fn check(&self, key: u64, value: &[u8]) -> Result<(), String> {
        match &self.check {
            ReplyCheck::Nothing => Ok(()),
            ReplyCheck::Stored => self.texts.values.check(key, value).map_err(|wrong| wrong.to_string()),
            ReplyCheck::SameEachTime(seen) => {
                // The hash 0 means a key that was not read yet.
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

/// The part of [`draws`] that selects the kind of an operation.
const KIND: u32 = u32::MAX - 1;
