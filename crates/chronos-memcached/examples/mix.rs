//! The cost of requests without a network: parse, execute and format of the paper's mix (64-byte keys, 1024-byte
//! values, 9 gets to 1 set, 100 000 keys) through `Direct`.
//!
//! `cargo run --release -p plimsoll-chronos-memcached --example mix [text|meta|binary] [operations] [partitions]
//! [together]`
//!
//! `together` is the number of requests that arrive at once, as a pipelining client sends them: 16, or 1 for calls one
//! by one.

#[path = "../tests/it/common/mix.rs"]
mod mix;

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mix::{requests, set};
use plimsoll_chronos::{Direct, Now, Service, SessionTransport};
use plimsoll_chronos_memcached::{Memcached, MemcachedSettings};
use plimsoll_process::outln;
use rustix::time::{ClockId, clock_gettime};

const KEYS: u64 = 100_000;
const NOW: Now = Now { since_start: Duration::ZERO, unix_seconds: 1_800_000_000 };

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let protocol = arguments.next().unwrap_or_else(|| "text".to_owned());
    let operations: u64 =
        arguments.next().map_or(Ok(4_000_000), |text| text.parse()).context("operations")?;
    let partitions: u32 = arguments.next().map_or(Ok(16), |text| text.parse()).context("partitions")?;
    let together: u64 = arguments.next().map_or(Ok(16), |text| text.parse()).context("together")?;
    if together == 0 || together > operations {
        bail!("together: {together} is not allowed; 1 to {operations} (the operations) are");
    }
    let settings = MemcachedSettings {
        memory_limit: 1 << 30,
        partitions,
        hash_secret: 7,
        ..MemcachedSettings::default()
    };
    let mut direct = Direct::new(Memcached::new(settings)?, partitions);
    let mut session = direct.service().open(SessionTransport::Tcp);
    let mut reply = Vec::with_capacity(64 << 10);
    let mut input = Vec::with_capacity(64 << 10);
    for key in 0..KEYS {
        input.clear();
        set(&protocol, key, &mut input)?;
        direct.serve(&mut session, NOW, &input, &mut reply);
        reply.clear();
    }
    // Repeating the same requests would keep them in the cache; the generator is part of the time, and is subtracted.
    let empty = timed(operations, together, |numbers| requests(&protocol, KEYS, numbers, &mut input))?;
    let mut answered = 0;
    let all = timed(operations, together, |numbers| {
        requests(&protocol, KEYS, numbers, &mut input)?;
        reply.clear();
        let served = direct.serve(&mut session, NOW, &input, &mut reply);
        answered += reply.len();
        if served.consumed != input.len() {
            bail!("a request was not understood");
        }
        Ok(())
    })?;
    let nanoseconds = (all - empty) * 1e9 / operations as f64;
    outln!(
        "{protocol}, {together} together: {nanoseconds:.0} ns an operation, {:.2} M operations/s, \
         {answered} bytes answered",
        1e3 / nanoseconds
    );
    Ok(())
}

fn timed(operations: u64, together: u64, mut batch: impl FnMut(Range<u64>) -> Result<()>) -> Result<f64> {
    // Processor time, which other programs on the processor do not lengthen.
    let seconds = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let start = seconds();
    for number in 0..operations / together {
        batch(number * together..(number + 1) * together)?;
    }
    Ok(seconds() - start)
}
