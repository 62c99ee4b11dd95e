//! Any bytes as a packet capture: no panic, bounded memory, an error has a place, every frame is in one burst, and a
//! slow pipe gives the same report as a file. `make fuzz TARGET=bursts`.

use std::io::{self, Read};

use plimsoll_bursts::{Analyser, Options, ReadError, Report, Stamp, analyse};
use plimsoll_units::Span;

/// Hands over bytes in pieces of the given size.
struct Pieces<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let some = self.bytes.len().min(into.len()).min(self.size);
        into[..some].copy_from_slice(&self.bytes[..some]);
        self.bytes = &self.bytes[some..];
        Ok(some)
    }
}

fn report(bytes: &[u8], size: usize, options: Options) -> (Report, Option<String>) {
    let mut analyser = Analyser::new(options);
    let error = analyse(Pieces { bytes, size }, &mut analyser).err();
    if let Some(error) = &error {
        let has_place = error.to_string().contains("byte offset ");
        assert!(has_place || matches!(error, ReadError::NotACapture { .. } | ReadError::Empty), "{error}");
    }
    (analyser.finish(), error.map(|error| error.to_string()))
}

/// Checks the analysis of one input, whose first byte chooses the options.
pub fn check(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else { return };
    let options = Options {
        stamp: if choice & 1 == 0 { Stamp::Start } else { Stamp::End },
        gap: (choice & 2 != 0).then(|| Span::from_us(u64::from(choice >> 4))),
        pairs_max: if choice & 4 == 0 { 1 } else { 65_536 },
        decapsulate: choice & 8 != 0,
        ..Options::default()
    };
    let (whole, error) = report(bytes, usize::MAX, options);
    let sum: u64 = whole.lengths_packets.iter().map(|(length, bursts)| length * bursts).sum();
    let others = whole.unresolved.frames + whole.left_out_frames + whole.unknown_frames;
    assert_eq!(sum + others, whole.frames);
    assert_eq!(whole.lengths_bytes.values().sum::<u64>(), whole.bursts);
    let size = 1 + usize::from(choice >> 5);
    assert_eq!((whole, error), report(bytes, size, options));
}
