//! Compares the programs in the kernel with their implementations in Rust. The tests need clang at build time and root,
//! and are skipped elsewhere with the reason.
#![allow(clippy::unwrap_used, reason = "tests")]

mod circuit_gate;
mod dctcp;
mod frames;
mod levels;
mod limiter;
mod live;
mod namespace;
mod pacer;
mod phantom_queue;
mod processors;
mod queue_length;
mod redirect;
mod send_calls;
mod sizes;
mod sockets;

use plimsoll_bpf::{Error, Packet, Program};

/// Returns the loaded program; prints the reason and returns none if this machine cannot load it.
fn loaded<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Err(Error::Unsupported(reason)) => {
            plimsoll_testing::skipped!("{reason}");
            None
        }
        result => Some(result.unwrap()),
    }
}

/// A generator of numbers from a seed: each sequence is repeatable by its number.
struct Draw(rand_pcg::Pcg64);

impl Draw {
    fn new(seed: u64) -> Draw {
        Draw(rand::SeedableRng::seed_from_u64(seed))
    }

    /// Draws a number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        rand::Rng::next_u64(&mut self.0) % limit
    }

    /// Draws a number of any magnitude below 2^`bits`, each magnitude with the same probability.
    fn magnitude(&mut self, bits: u64) -> u64 {
        let shift = 64 - self.below(bits) - 1;
        rand::Rng::next_u64(&mut self.0) >> shift
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[test]
fn the_empty_program_passes_a_frame_as_it_is() {
    let Some(program) = loaded(Program::empty()) else { return };
    let frame = frames::ipv4(0b10, 0, 100);
    let run = program.test_run(&Packet { priority: 3, ..Packet::new(&frame) }).unwrap();
    assert_eq!(run.action, plimsoll_bpf::shared::ACTION_PASS);
    assert_eq!((run.frame, run.priority), (frame, 3));
}

#[test]
fn the_clock_program_runs() {
    let Some(program) = loaded(Program::clock()) else { return };
    program.test_run(&Packet::new(&frames::ipv4(0, 0, 0))).unwrap();
}
