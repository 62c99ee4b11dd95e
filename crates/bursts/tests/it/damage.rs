//! Captures that break off or lie.

use plimsoll_bursts::{Analyser, Options, ReadError, analyse};

use proptest::prelude::*;

use crate::made::{DATA, Form, PCAP, PCAPNG, Tcp, tso};

fn small(form: Form) -> Vec<u8> {
    Form { snap: 64, ..form }.file(&tso(0.0, 1)[..3])
}

#[test]
fn a_file_cut_at_any_byte_has_what_was_read_and_an_error_with_its_place() {
    for form in [PCAP, PCAPNG, Form { is_big: true, ..PCAP }, Form { is_big: true, ..PCAPNG }] {
        let file = small(form);
        let head = form.head().len();
        let each = (file.len() - head) / 3;
        for cut in 0..file.len() {
            let mut analyser = Analyser::new(Options::default());
            let result = analyse(&file[..cut], &mut analyser);
            let whole = cut.checked_sub(head).map_or(0, |rest| rest / each) as u64;
            assert_eq!(analyser.frames(), whole, "{form:?} cut at {cut}");
            let report = analyser.finish();
            let frames: u64 = report.lengths_packets.iter().map(|(length, count)| length * count).sum();
            assert_eq!(frames, whole);
            let is_between = cut >= head && (cut - head).is_multiple_of(each);
            match result {
                // Sections, interfaces and packets are whole; a cut between them cannot be detected.
                Ok(()) => assert!(is_between || (form.is_pcapng && cut <= head), "{form:?} cut at {cut}"),
                Err(ReadError::Truncated { packet, offset, wanted, has, .. }) => {
                    assert_eq!((packet, offset + has), (whole + 1, cut as u64), "{form:?}");
                    assert!(has < wanted && !is_between);
                }
                Err(ReadError::Empty) => assert_eq!(cut, 0),
                Err(ReadError::NotACapture { .. }) => assert!(cut < 4),
                Err(other) => panic!("{form:?} cut at {cut}: {other}"),
            }
        }
    }
}

fn error_of(file: &[u8]) -> String {
    analyse(file, &mut Analyser::new(Options::default())).unwrap_err().to_string()
}

#[test]
fn errors_name_the_place_and_what_is_allowed() {
    assert!(
        error_of(b"GIF89a").contains("starts with the bytes 47 49 46 38; allowed: pcap"),
        "{}",
        error_of(b"GIF89a")
    );
    assert!(error_of(b"").contains("empty"));
    let unknown = error_of(&small(Form { link: 147, ..PCAP }));
    assert_eq!(
        unknown,
        "packet 1, byte offset 24: link type 147 is not supported; allowed: 1 (Ethernet), 101, 12, 14, 228, 229 (raw \
         IP), 113 and 276 (Linux cooked capture), 0 and 108 (BSD loopback), 9 (PPP), 104 (Cisco HDLC)"
    );
    assert!(error_of(&small(Form { link: 147, ..PCAPNG })).contains("link type 147"));
    // The second record claims 4 GB.
    let mut long = small(PCAP);
    long[24 + 80 + 8..24 + 80 + 12].fill(0xff);
    assert_eq!(
        error_of(&long),
        "packet 2, byte offset 104: a record claims 4294967295 captured bytes; allowed: at most 16777216"
    );
    let mut block = small(PCAPNG);
    let at = PCAPNG.head().len();
    block[at + 4] = 3;
    assert!(
        error_of(&block).starts_with(&format!("packet 1, byte offset {at}: a block claims")),
        "{}",
        error_of(&block)
    );
    let mut order = small(PCAPNG);
    order[8] = 0;
    assert!(error_of(&order).contains("byte-order magic"), "{}", error_of(&order));
    let mut interface = small(PCAPNG);
    interface[at + 8] = 5;
    assert!(error_of(&interface).contains("interface 5; its section has 1"), "{}", error_of(&interface));
    let mut resolution = small(PCAPNG);
    let at = resolution.windows(5).position(|bytes| bytes == [9, 0, 1, 0, 9]).unwrap() + 4;
    resolution[at] = 77;
    assert!(error_of(&resolution).contains("timestamp resolution 0x4d"), "{}", error_of(&resolution));
}

/// Hands over few bytes at a time, as a pipe does.
struct Drip<'a>(&'a [u8]);

impl std::io::Read for Drip<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let some = self.0.len().min(into.len()).min(7);
        into[..some].copy_from_slice(&self.0[..some]);
        self.0 = &self.0[some..];
        Ok(some)
    }
}

#[test]
fn a_slow_pipe_is_a_file() {
    for form in [PCAP, PCAPNG] {
        let file = form.file(&tso(0.0, 1));
        let mut analyser = Analyser::new(Options::default());
        analyse(Drip(&file), &mut analyser).unwrap();
        assert_eq!(analyser.finish().lengths_packets.into_iter().collect::<Vec<_>>(), [(44, 1)]);
    }
}

proptest! {
    /// fuzz/fuzz_targets/bursts.rs does the same with a fuzzer's bytes.
    #[test]
    fn changed_bytes_never_panic_and_lose_no_frame(
        is_pcapng: bool, is_big: bool, is_v6: bool, cut in 0usize..1_000,
        changes in prop::collection::vec(
            (0usize..1_000, prop::sample::select(vec![0u8, 1, 4, 6, 127, 128, 255])), 0..6),
    ) {
        let form = Form { is_pcapng, is_big, snap: 80, ..PCAP };
        let frame = |number: u32| Tcp { sequence: number * 100, payload: 100, ..DATA }.frame_with(&[0x8100], is_v6);
        let packets: Vec<_> = (0..6u32).map(|number| (u64::from(number) * 150, frame(number % 4))).collect();
        let mut file = form.file(&packets);
        let length = file.len();
        changes.iter().for_each(|(at, byte)| file[at % length] = *byte);
        file.truncate(if cut < length { cut } else { length });
        let mut analyser = Analyser::new(Options::default());
        let result = analyse(&file[..], &mut analyser);
        if let Err(error) = &result {
            let is_placed = error.to_string().contains("byte offset ");
            prop_assert!(is_placed || matches!(error, ReadError::NotACapture { .. } | ReadError::Empty), "{}", error);
        }
        let report = analyser.finish();
        let sum: u64 = report.lengths_packets.iter().map(|(length, count)| length * count).sum();
        prop_assert_eq!(sum + report.unresolved.frames + report.unknown_frames, report.frames);
    }
}
