//! Loads that no network makes for long: how bad can it get?
//!
//! Each is a hold model, every popped owner comes back after a wait. None touches packets, so the
//! time is that of the queue alone.

use std::time::Instant;

use plimsoll_units::{Span, Time};

use crate::candidates::EventQueue;

/// One pattern of waits.
pub struct Stress {
    /// As printed.
    pub name: &'static str,
    owners: u32,
    /// From the number of the pop, the owner and a drawn number.
    wait: fn(u64, u32, u64) -> Span,
}

/// What is measured.
pub const STRESSES: [Stress; 5] = [
    Stress {
        name: "8,192 at one instant, every 1.2 us",
        owners: 8_192,
        wait: |_, _, _| Span::from_ns(1_200),
    },
    Stress { name: "8,192 at one instant, every 10 ms", owners: 8_192, wait: |_, _, _| Span::from_ms(10) },
    Stress {
        name: "20 hops of 1 us each, then 10 ms of silence",
        owners: 2_000,
        wait: |pop, _, draw| match pop / 2_000 % 21 {
            20 => Span::from_ms(10),
            _ => Span::from_ps(1_000_000 + draw % 200_000),
        },
    },
    Stress {
        name: "waits from 1 us to 17 s, every octave alike",
        owners: 20_000,
        wait: |_, _, draw| Span::from_ps((1 << (20 + draw % 24)) + (draw >> 44)),
    },
    Stress {
        name: "half at 1 us, half at 1 ms",
        owners: 20_000,
        wait: |_, owner, draw| {
            Span::from_ps(if owner % 2 == 0 { 1_000_000 } else { 1_000_000_000 } + draw % 100_000)
        },
    },
];

const POPS: u64 = 1_000_000;

/// Nanoseconds a pop and push, and a digest of the sequence.
pub fn nanoseconds<Q: EventQueue>(stress: &Stress) -> (f64, u64) {
    let mut queue = Q::new(stress.owners);
    (0..stress.owners).for_each(|owner| queue.push(Time::ZERO, owner));
    let mut draw = 1u64;
    let mut digest = 0u64;
    let start = Instant::now();
    for pop in 0..POPS {
        let (at, owner) = queue.pop().expect("every owner comes back");
        digest = (digest.rotate_left(5) ^ at.as_ps() ^ u64::from(owner)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        queue.push(at + (stress.wait)(pop, owner, draw >> 13), owner);
    }
    (start.elapsed().as_secs_f64() * 1e9 / POPS as f64, digest)
}
