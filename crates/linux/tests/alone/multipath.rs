//! MPTCP: subflows with paths of their own.

use plimsoll_linux::{Emulated, Options, Program, check};
use plimsoll_units::Span;

use crate::world::{RACK, lacks, model, options, run, run_with};

/// Four paths of 20 Mb/s between leaves: a TCP connection has one of them, eight subflows of MPTCP most likely have
/// several.
const FOUR_PATHS: &str = "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 1\n\
                          rate = '100Mbps'\nfabric_rate = '20Mbps'\ndelay = '100us'\n\
                          [transport]\nmin_rto = '200ms'\n";

#[test]
fn subflows_of_mptcp_have_paths_of_their_own() {
    let text = format!(
        "{FOUR_PATHS}[run]\nduration = '1s'\n[workload.bulk]\nkind = 'flows'\nfrom = ['h1']\nto = 'h0'\n"
    );
    let with = |mptcp| Options { mptcp, ..options() };
    if let Err(error) = check(&model(&text), &with(Some(8))) {
        return plimsoll_testing::skipped!("{error}");
    }
    let delivered = |emulated: &Emulated| emulated.outcome.connections[0].delivered;
    let tcp = run(&text, &[]).unwrap();
    let mptcp = run_with(&text, with(Some(8))).unwrap();
    let counts = mptcp.multipath.unwrap();
    assert_eq!((tcp.multipath, counts.connections, counts.fallbacks), (None, 1, 0));
    eprintln!(
        "{} B by TCP, {} B by MPTCP with {} further subflows",
        delivered(&tcp),
        delivered(&mptcp),
        counts.joined
    );
    assert!((1..=7).contains(&counts.joined), "{counts:?}");
    // 20 Mb/s for a second are 2.5 MB.
    assert!(delivered(&tcp) <= 2_500_000, "{} B by TCP", delivered(&tcp));
    assert!(delivered(&mptcp) > 3_000_000, "{} B by MPTCP", delivered(&mptcp));
    // Workloads of applications, too, whose connections are opened elsewhere.
    let text = format!(
        "{FOUR_PATHS}[workload.echo]\nkind = 'ping'\nto = 'h1'\ninterval = '5ms'\ncount = 5\nover = 'tcp'\n"
    );
    let echo = run_with(&text, with(Some(2))).unwrap();
    assert_eq!(echo.multipath.unwrap().connections, 1);
    assert!(echo.outcome.messages.iter().all(|message| message.completed.is_some()));
}

/// A transfer over two spines that asks for four subflows: subflows that did not join, or share one path with all
/// others, are reported.
#[test]
fn a_run_with_fewer_subflows_than_asked_for_says_so() {
    let text = "[run]\nduration = '3s'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n\
                rate = '40Mbps'\nfabric_rate = '10Mbps'\ndelay = '100us'\n\
                [workload.bulk]\nkind = 'flows'\nfrom = 'h0'\nto = 'h1'\nsize = '3MB'\n[transport]\nkind = 'cubic'\n";
    let four = |size: &str| {
        let options = Options { mptcp: Some(4), ..options() };
        let text = text.replace("3MB", size);
        if let Err(error) = check(&model(&text), &options) {
            plimsoll_testing::skipped!("{error}");
            return None;
        }
        run_with(&text, options)
    };
    let Some(emulated) = four("3MB") else { return };
    let says =
        |emulated: &Emulated, words: &str| emulated.outcome.warnings.iter().any(|said| said.contains(words));
    let counts = emulated.multipath.unwrap();
    assert_eq!(says(&emulated, "further subflows that"), counts.joined < 3, "{counts:?}");
    // 24 Mb take 1.2 s by both spines and 2.4 s by one.
    let bulk = &emulated.outcome.messages[0];
    let took = bulk.completed.map(|completed| completed.saturating_since(bulk.created));
    eprintln!("{took:?}, {counts:?}, {:?}", emulated.outcome.warnings);
    if says(&emulated, "took one path of several") {
        assert!(took.is_none_or(|took| took > Span::from_ms(2_300)), "{took:?} by one path");
    }
    // A segment has left before a further subflow can join.
    let short = four("1KB").unwrap();
    let counts = short.multipath.unwrap();
    assert_eq!(says(&short, "further subflows that"), counts.joined < 3, "{counts:?}");
}

/// Where the other end does not speak MPTCP a connection continues as TCP, and the run reports it: here a program's,
/// whose listener is of TCP.
#[test]
fn a_fall_back_from_mptcp_is_told() {
    let text = format!(
        "{FOUR_PATHS}[run]\nduration = '10s'\n\
         [workload.echo]\nkind = 'ping'\nto = 'h1'\ninterval = '5ms'\ncount = 5\nover = 'tcp'\n"
    );
    let connects = "python3 -c 'import socket; s = socket.create_server((\"10.0.0.1\", 0)); \
                    c = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); c.connect(s.getsockname())'";
    let program = Program {
        host: 0,
        level: None,
        command: connects.to_owned(),
        start: Span::ZERO,
        stop: None,
        log: None,
    };
    let options = Options { mptcp: Some(2), programs: vec![program], ..options() };
    if let Err(error) = check(&model(&text), &options) {
        return plimsoll_testing::skipped!("{error}");
    }
    let emulated = run_with(&text, options).unwrap();
    if emulated.programs.iter().any(|end| end.has_failed()) {
        return plimsoll_testing::skipped!("no python3 to open a connection of MPTCP");
    }
    let counts = emulated.multipath.unwrap();
    assert_eq!((counts.connections, counts.fallbacks), (1, 1), "{counts:?}");
    let said = emulated.outcome.warnings.iter().any(|warning| warning.contains("suspect: MPTCP fell back"));
    assert!(said, "{:?}", emulated.outcome.warnings);
}

#[test]
fn subflows_that_would_share_every_link_are_refused() {
    let text = format!(
        "{RACK}[workload.echo]\nkind = 'ping'\nto = 'h1'\ninterval = '5ms'\ncount = 5\nover = 'tcp'\n"
    );
    if let Some(missing) = lacks() {
        return plimsoll_testing::skipped!("this system lacks {missing}");
    }
    let with = |subflows| check(&model(&text), &Options { mptcp: Some(subflows), ..options() });
    let said = |subflows| with(subflows).unwrap_err().to_string();
    assert!(said(9).contains("--mptcp: 9 subflows; a connection has 1 to 8"), "{}", said(9));
    if said(2).contains("no MPTCP") {
        return plimsoll_testing::skipped!("{}", said(2));
    }
    assert!(said(2).contains("one path") && said(2).contains("--mptcp 1"), "{}", said(2));
    let one = run_with(&text, Options { mptcp: Some(1), ..options() }).unwrap();
    let counts = one.multipath.unwrap();
    assert_eq!((counts.connections, counts.joined, counts.fallbacks), (1, 0, 0));
}
