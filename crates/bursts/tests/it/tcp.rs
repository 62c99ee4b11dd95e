//! Classification of TCP segments, by RFC 5681 (section 2) and RFC 9293, on conversations of many kinds, beside
//! tshark's classification of the same captures. Where the two differ, `docs/bursts.md` says why.

use std::process::Command;

use plimsoll_bursts::{Options, Report};

use crate::made::*;

/// Counts of a capture: retransmissions, duplicate ACKs, window updates, keep-alives with their answers.
type Counts = (u64, u64, u64, u64);

/// A conversation between host 1, which sends, and host 2.
#[derive(Default)]
struct Conversation {
    packets: Vec<Stamped>,
    us: u64,
    id: u16,
}

impl Conversation {
    /// Adds a segment this long after the one before it, with an identification of its own.
    fn after(&mut self, us: u64, segment: Tcp) -> &mut Conversation {
        self.us += us;
        self.id += 1;
        self.packets.push((self.us * 1_000, Tcp { id: self.id, ..segment }.frame()));
        self
    }

    /// Adds a segment of host 1: `payload` bytes from this sequence number on.
    fn data(&mut self, us: u64, sequence: u32, payload: usize) -> &mut Conversation {
        self.after(us, Tcp { sequence, payload, ..DATA })
    }

    /// Adds an acknowledgement of host 2 with this window.
    fn ack(&mut self, us: u64, ack: u32, window: u16) -> &mut Conversation {
        self.after(us, Tcp { source: 2, destination: 1, ack, window, payload: 0, ..DATA })
    }

    /// Adds the last packet once more, as a mirror of two ports brings it.
    fn again(&mut self, us: u64) -> &mut Conversation {
        self.us += us;
        let (_, frame) = self.packets.last().unwrap().clone();
        self.packets.push((self.us * 1_000, frame));
        self
    }
}

/// Builds the conversation of a kind.
fn of(build: impl FnOnce(&mut Conversation)) -> Vec<Stamped> {
    let mut conversation = Conversation::default();
    build(&mut conversation);
    conversation.packets
}

/// Each kind with its packets, its right counts, and tshark's counts.
fn kinds() -> Vec<(&'static str, Vec<Stamped>, Counts, Counts)> {
    let none = (0, 0, 0, 0);
    let syn = Tcp { flags: SYN, payload: 0, sequence: 0, ack: 0, ..DATA };
    let syn_ack =
        Tcp { source: 2, destination: 1, flags: SYN | ACK, payload: 0, sequence: 0, ack: 1, ..DATA };
    vec![
        (
            "nothing is lost",
            of(|c| _ = c.data(0, 1, 1_000).data(10, 1_001, 1_000).ack(50, 2_001, 900)),
            none,
            none,
        ),
        (
            "a range is sent again in part",
            of(|c| {
                _ = c
                    .data(0, 1, 1_400)
                    .data(100, 1_401, 100)
                    .data(300_000, 1_401, 1_400)
                    .data(100, 2_801, 1_400)
            }),
            (1, 0, 0, 0),
            (1, 0, 0, 0),
        ),
        (
            "window updates, keep-alives and their answers",
            of(|c| {
                c.data(0, 1, 100).ack(50, 101, 1_000);
                (2..5).for_each(|thousands| _ = c.ack(100, 101, thousands * 1_000));
                (0..3).for_each(|_| _ = c.data(1_000_000, 100, 0).ack(50, 101, 4_000));
            }),
            (0, 0, 3, 6),
            (0, 0, 3, 6),
        ),
        (
            "keep-alives with a byte",
            of(|c| {
                c.data(0, 1, 100).ack(50, 101, 1_000);
                (0..2).for_each(|_| _ = c.data(1_000_000, 100, 1).ack(50, 101, 1_000));
            }),
            (0, 0, 0, 2),
            // The probes, which have payload here, are no ACKs.
            (0, 0, 0, 4),
        ),
        (
            "fast retransmit after three duplicate ACKs",
            of(|c| {
                (0..5).for_each(|number| _ = c.data(10, 1 + 1_000 * number, 1_000));
                c.ack(50, 1_001, 900);
                (0..3).for_each(|_| _ = c.ack(10, 1_001, 900));
                c.data(10, 1_001, 1_000).ack(50, 5_001, 900);
            }),
            (1, 3, 0, 0),
            (1, 3, 0, 0),
        ),
        (
            "a timeout",
            of(|c| _ = c.data(0, 1, 1_000).data(250_000, 1, 1_000).ack(50, 1_001, 900)),
            (1, 0, 0, 0),
            (1, 0, 0, 0),
        ),
        (
            "probes of a zero window",
            of(|c| {
                c.data(0, 1, 1_000).ack(50, 1_001, 0);
                (0..2).for_each(|_| _ = c.data(300_000, 1_001, 1).ack(50, 1_001, 0));
                c.ack(1_000, 1_001, 900).data(50, 1_001, 1_000).ack(50, 2_001, 900);
            }),
            (0, 0, 1, 2),
            // Answers to probes have a class of their own there.
            (0, 0, 1, 0),
        ),
        (
            "a SYN with data, sent twice",
            of(|c| {
                let data = Tcp { payload: 100, ..syn };
                c.after(0, data).after(1_000_000, data).after(50, Tcp { ack: 101, ..syn_ack });
                c.data(50, 101, 1_000).ack(50, 1_101, 900);
            }),
            (1, 0, 0, 0),
            (1, 0, 0, 0),
        ),
        (
            "sequence numbers that wrap",
            of(|c| {
                (0..4).for_each(|number| {
                    _ = c.data(10, (u32::MAX - 1_499).wrapping_add(1_000 * number), 1_000)
                });
                c.data(200_000, u32::MAX - 499, 1_000).ack(50, 2_501, 900);
            }),
            (1, 0, 0, 0),
            (1, 0, 0, 0),
        ),
        (
            "ports that are used again",
            of(|c| {
                let at = |sequence: u32, segment: Tcp| Tcp { sequence, ..segment };
                c.after(0, at(5_000, syn)).after(50, Tcp { ack: 5_001, ..syn_ack }).data(50, 5_001, 1_000);
                c.after(9, Tcp { flags: FIN | ACK, payload: 0, ..at(6_001, DATA) }).ack(50, 6_002, 900);
                c.after(1_000, at(4_000, syn))
                    .after(50, Tcp { ack: 4_001, ..syn_ack })
                    .data(50, 4_001, 1_000);
                c.data(50, 5_001, 1_000);
            }),
            none,
            none,
        ),
        (
            "frames that were captured twice",
            of(|c| {
                c.data(0, 1, 1_000).again(3).data(10, 1_001, 1_000).again(3);
                c.ack(50, 2_001, 900).again(3);
            }),
            none,
            // It takes the copies for retransmissions and a duplicate ACK.
            (2, 1, 0, 0),
        ),
        (
            "one byte at a time, one of them sent again",
            of(|c| _ = c.data(0, 1, 1).ack(50, 2, 900).data(9_000, 2, 1).data(250_000, 2, 1).ack(50, 3, 900)),
            (1, 0, 0, 0),
            // It takes the retransmission for a keep-alive, although the byte has not been acknowledged.
            (0, 0, 0, 1),
        ),
        (
            "segments that overtake each other",
            of(|c| _ = c.data(0, 1, 1_000).data(1, 2_001, 1_000).data(1, 1_001, 1_000).ack(50, 3_001, 900)),
            none,
            none,
        ),
        (
            "an acknowledgement that was overtaken",
            of(|c| {
                c.data(0, 1, 1_000).data(10, 1_001, 1_000).data(10, 2_001, 1_000);
                c.ack(50, 2_001, 900).ack(10, 1_001, 900).ack(10, 3_001, 900);
            }),
            none,
            none,
        ),
    ]
}

fn ours(report: &Report) -> Counts {
    let acks = &report.acks;
    (report.losses.seen.retransmitted, acks.duplicate, acks.window_updates, acks.keep_alives)
}

#[test]
fn segments_are_what_the_standards_say() {
    for (name, packets, right, _) in kinds() {
        let found = report(&PCAP.file(&packets), Options::default());
        assert_eq!(ours(&found), right, "{name}");
    }
    let mirrored = kinds().into_iter().find(|kind| kind.0.contains("captured twice")).unwrap().1;
    let found = report(&PCAP.file(&mirrored), Options::default());
    assert_eq!((found.losses.seen.copies, found.losses.seen.segments, found.acks.pure), (3, 2, 1));
}

#[test]
fn tshark_finds_the_same_or_differs_as_documented() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return plimsoll_testing::missing("tshark");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kind.pcap");
    for (name, packets, _, theirs) in kinds() {
        std::fs::write(&file, PCAP.file(&packets)).unwrap();
        let fields = ["retransmission", "duplicate_ack", "window_update", "keep_alive", "keep_alive_ack"];
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&file).args(["-T", "fields", "-E", "separator=;"]);
        fields.iter().for_each(|field| _ = tshark.args(["-e", &format!("tcp.analysis.{field}")]));
        let output = tshark.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let count = |column: usize| {
            let is_set = |line: &&str| line.split(';').nth(column).is_some_and(|cell| !cell.is_empty());
            text.lines().filter(is_set).count() as u64
        };
        let found = (count(0), count(1), count(2), count(3) + count(4));
        assert_eq!(found, theirs, "{name}");
    }
}
