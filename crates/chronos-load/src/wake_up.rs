//! Measures the wake-up of a thread on another processor: the least delay that a sleeping server adds to a request, and
//! that a message to a sleeping thread has.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use plimsoll_units::Span;

use crate::book::Book;
use crate::phase::{PhaseError, pin};
use crate::report::Distribution;

/// Measures, `rounds` times, half of the round-trip time of a byte to a sleeping thread on another processor: the
/// wake-up, and a system call on each side.
///
/// # Errors
/// Returns an error if a processor does not exist, or the system has no sockets left.
pub fn wake_up(cpus: [usize; 2], rounds: u32) -> Result<Distribution, PhaseError> {
    let (mut asks, mut answers) = UnixStream::pair()?;
    let [here, there] = cpus;
    thread::scope(|scope| {
        let start_error = |source| PhaseError::Thread { source };
        let own = move || {
            pin(&[here])?;
            let mut book = Book::default();
            for _ in 0..rounds {
                let began = Instant::now();
                asks.write_all(&[0])?;
                asks.read_exact(&mut [0])?;
                let round_trip = Span::from_ns(began.elapsed().as_nanos() as u64);
                Book::record(&mut book.latency, round_trip / 2);
            }
            Ok(Distribution::of(&book.latency))
        };
        let own = thread::Builder::new().spawn_scoped(scope, own).map_err(start_error)?;
        let other = move || -> Result<(), PhaseError> {
            pin(&[there])?;
            let mut byte = [0];
            while let Ok(()) = answers.read_exact(&mut byte) {
                answers.write_all(&byte)?;
            }
            Ok(())
        };
        // If it is not started, its end of the pair is closed, which ends the first.
        let other = thread::Builder::new().spawn_scoped(scope, other).map_err(start_error)?;
        let panicked = "a thread that panics has said why";
        let own: Result<Distribution, PhaseError> = own.join().expect(panicked);
        match (own, other.join().expect(panicked)) {
            // If the other end failed, that is why this one got no answer.
            (Ok(_) | Err(PhaseError::Poll(_)), Err(why)) => Err(why),
            (own, _) => own,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted_and_a_missing_processor_is_told() {
        let cpu = crate::phase::allowed_cpus().unwrap()[0];
        let found = wake_up([cpu, cpu], 20).unwrap();
        assert_eq!(found.samples, 20);
        assert!(found.p50 > 0.0 && found.p50 <= found.max, "{found:?}");
        for pair in [[cpu, 100_000], [100_000, cpu]] {
            let error = wake_up(pair, 1).unwrap_err().to_string();
            assert!(error.contains("processor 100000"), "{error}");
        }
    }
}
