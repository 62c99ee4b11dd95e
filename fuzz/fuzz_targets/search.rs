//! Any bytes from clients of the index: no panic, the same answers for any cut and on any thread, and partitions answer
//! as snapshots do.
//!
//! The first byte chooses the settings, the second where pieces are cut; `plimsoll_fuzz::turns` describes the rest.
//! `make fuzz TARGET=search`. crates/chronos-search/tests/it/hostile.rs does the same with mutations that know both
//! protocols.
//!
//! With an odd number for the cuts, the service also runs under the reader/writer lock of the baselines.

use plimsoll_chronos_locked::{Lock, Locked};
use plimsoll_chronos_search::{SearchService, SearchSettings, Sets};
use plimsoll_fuzz::{Answers, Way, play};

fn answers(choice: u8, input: &[u8], snapshots: bool, way: Way) -> Answers {
    let sets = if choice & 1 == 0 { Sets::Documents } else { Sets::Postings };
    let partitions = [3, 1, 16, 2][usize::from(choice >> 1 & 3)];
    let document_bytes_max = if choice & 8 == 0 { 64 } else { 1000 };
    let memory_max = has_little_memory(choice).then_some(2000);
    let settings =
        SearchSettings { sets, document_bytes_max, memory_max, snapshots, ..SearchSettings::default() };
    let search = SearchService::new(settings, partitions, 7);
    let mut answers = match way {
        Way::Crossed(cuts) if cuts % 2 == 1 => {
            play(Locked::new(search, Lock::ReaderWriter, partitions), 1, input, way).1
        }
        _ => play(search, partitions, input, way).1,
    };
    for reply in &mut answers.connections {
        drop_continues(reply);
    }
    answers
}

/// With little memory, the first thread to ask gets it, so answers may differ.
fn has_little_memory(choice: u8) -> bool {
    choice & 16 != 0
}

/// A client is asked to continue only if it has not.
fn drop_continues(reply: &mut Vec<u8>) {
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    while let Some(place) = reply.windows(CONTINUE.len()).position(|window| window == CONTINUE) {
        reply.drain(place..place + CONTINUE.len());
    }
}

/// Checks the replies to the requests of one input.
pub fn check(input: &[u8]) {
    let [choice, cuts, input @ ..] = input else { return };
    let whole = answers(*choice, input, false, Way::Whole);
    if has_little_memory(*choice) {
        answers(*choice, input, true, Way::Pieces(*cuts));
        answers(*choice, input, false, Way::Crossed(*cuts));
        return;
    }
    // Snapshots take longer to make than everything else together: one input of sixteen has them.
    if cuts % 16 == 0 {
        assert_eq!(answers(*choice, input, true, Way::Pieces(*cuts)), whole, "snapshots, in pieces");
    }
    assert_eq!(answers(*choice, input, false, Way::Pieces(*cuts)), whole, "in pieces");
    assert_eq!(answers(*choice, input, false, Way::Crossed(*cuts)), whole, "crossed");
}
