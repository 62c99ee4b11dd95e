//! What counts as a message, and what its times are.

use plimsoll_import::capture::{CaptureClassBy, CaptureOptions, StartBy, read};
use plimsoll_import::{Remark, RequestStart};
use plimsoll_units::Span;

use crate::made::{ACK, End, FIN, RST, SYN, Tape, exchanges, flows, input, names, notes};

const C: End = (1, 40_000);
const S: End = (2, 11_211);
const TO: (End, End) = (C, S);
const BACK: (End, End) = (S, C);

/// A handshake of 30 us to the server and back, and 10 us to the client.
fn opened() -> Tape {
    let mut tape = Tape::new();
    tape.tcp(0, TO, SYN, (99, 0), 0).tcp(30, BACK, SYN | ACK, (499, 100), 0).tcp(40, TO, ACK, (100, 500), 0);
    tape
}

/// A request of 2,000 B at 100 us, whose response of 3,000 B begins 80 us later, and a second one of 100 B to 10 B.
fn two_requests() -> Tape {
    let mut tape = opened();
    tape.tcp(100, TO, ACK, (100, 500), 1_000)
        .tcp(101, TO, ACK, (1_100, 500), 1_000)
        .tcp(181, BACK, ACK, (500, 2_100), 1_400)
        .tcp(182, BACK, ACK, (1_900, 2_100), 1_400)
        .tcp(190, TO, ACK, (2_100, 3_300), 0)
        .tcp(195, BACK, ACK, (3_300, 2_100), 200)
        .tcp(205, TO, ACK, (2_100, 3_500), 0)
        .tcp(400, TO, ACK, (2_100, 3_500), 100)
        .tcp(430, BACK, ACK, (3_500, 2_200), 10)
        .tcp(440, TO, ACK | FIN, (2_200, 3_510), 0)
        .tcp(470, BACK, ACK | FIN, (3_510, 2_201), 0)
        .tcp(480, TO, ACK, (2_201, 3_511), 0);
    tape
}

#[test]
fn a_message_ends_when_the_direction_changes() {
    let found = two_requests().read();
    assert_eq!(found.found.hosts, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(names(&found.found), ["port-11211"]);
    let all = exchanges(&found.found);
    let of = |place: usize| (all[place].client, all[place].server, all[place].request, all[place].response);
    assert_eq!((of(0), of(1), all.len()), ((0, 1, 2_000, 3_000), (0, 1, 100, 10), 2));
    // The handshake takes 30 us to the server and back, of 80 us and of 30 us.
    assert_eq!((all[0].service, all[1].service), (Span::from_us(50), Span::ZERO));
    assert_eq!((all[0].latency, all[1].latency), (Span::from_us(95), Span::from_us(30)));
    assert_eq!(
        (all[0].start, all[1].start),
        (RequestStart::At(Span::from_us(100)), RequestStart::At(Span::from_us(400)))
    );
    assert_eq!(all[0].connection, all[1].connection);
    let compared = &found.compared[0];
    assert_eq!((compared.connections, compared.data_packets, compared.handshake.count), (1, 7, 1));
    assert!((compared.handshake.p50_us / 40.0 - 1.0).abs() < 0.01, "{compared:?}");
    assert!((compared.to_server.p50_us / 30.0 - 1.0).abs() < 0.01, "{compared:?}");
}

/// 205 us from the response of 195 us to the next request, of which 10 us are on the way to the client.
#[test]
fn think_times_are_those_at_the_client() {
    let options = CaptureOptions { starts: StartBy::Response, ..CaptureOptions::default() };
    let all = exchanges(&two_requests().read_with(&options).found);
    assert_eq!(
        (all[0].start, all[1].start),
        (RequestStart::At(Span::from_us(100)), RequestStart::After(Span::from_us(197)))
    );
}

#[test]
fn bytes_that_are_sent_again_count_once() {
    let mut tape = opened();
    tape.tcp(100, TO, ACK, (100, 500), 1_000)
        .tcp(300, TO, ACK, (100, 500), 1_000)
        // The second half of the response is lost before the capture, and fills the gap after the third.
        .tcp(350, BACK, ACK, (500, 1_100), 1_000)
        .tcp(352, BACK, ACK, (2_500, 1_100), 1_000)
        .tcp(360, TO, ACK, (1_100, 1_500), 0)
        .tcp(600, BACK, ACK, (1_500, 1_100), 1_000)
        .tcp(610, TO, ACK, (1_100, 3_500), 0)
        // A segment that was already acknowledged does not move the end of the response.
        .tcp(900, BACK, ACK, (2_500, 1_100), 1_000);
    let found = tape.read();
    let all = exchanges(&found.found);
    assert_eq!((all.len(), all[0].request, all[0].response), (1, 1_000, 3_000));
    assert_eq!(all[0].latency, Span::from_us(500));
    assert_eq!((found.compared[0].retransmitted, found.compared[0].filled), (2, 1));
}

#[test]
fn a_capture_may_begin_in_the_middle() {
    let mut tape = Tape::new();
    // The rest of a response whose request was before, and a whole exchange.
    tape.tcp(0, BACK, ACK, (900, 50), 700)
        .tcp(10, TO, ACK, (50, 1_600), 0)
        .tcp(100, TO, ACK, (50, 1_600), 20)
        .tcp(120, BACK, ACK, (1_600, 70), 300)
        .tcp(130, TO, ACK, (70, 1_900), 0);
    let found = tape.read().found;
    assert_eq!(names(&found), ["port-11211", "port-11211-flows"]);
    let (all, pushed) = (exchanges(&found), flows(&found));
    assert_eq!((all.len(), all[0].client, all[0].request, all[0].response), (1, 0, 20, 300));
    assert_eq!((pushed.len(), pushed[0].source, pushed[0].bytes), (1, 1, 700));
}

#[test]
fn bytes_of_both_sides_at_once_are_flows_until_all_is_acknowledged() {
    let mut tape = opened();
    tape.tcp(100, TO, ACK, (100, 500), 100)
        .tcp(150, BACK, ACK, (500, 200), 1_000)
        // The second request does not acknowledge the response.
        .tcp(151, TO, ACK, (200, 500), 100)
        .tcp(200, BACK, ACK, (1_500, 300), 1_000)
        .tcp(210, TO, ACK, (300, 2_500), 0)
        // All is acknowledged: an exchange again.
        .tcp(500, TO, ACK, (300, 2_500), 60)
        .tcp(540, BACK, ACK, (2_500, 360), 70)
        .tcp(550, TO, ACK, (360, 2_570), 0);
    let found = tape.read();
    let (all, both) = (exchanges(&found.found), flows(&found.found));
    assert_eq!((all.len(), all[0].request, all[0].response), (1, 60, 70));
    let sizes: Vec<(u32, u64)> = both.iter().map(|flow| (flow.source, flow.bytes)).collect();
    assert_eq!(sizes, [(0, 200), (1, 2_000)]);
    assert_eq!(found.compared[0].overlaps, 1);
    assert!(notes(&found.found, Remark::Found, "those bytes are flows"), "{:?}", found.found.notes);
}

#[test]
fn one_direction_alone_is_a_flow_that_pauses_cut() {
    let mut tape = opened();
    tape.tcp(100, TO, ACK, (100, 500), 1_000)
        .tcp(200, TO, ACK, (1_100, 500), 500)
        .tcp(230, BACK, ACK, (500, 1_600), 0)
        .tcp(200_300, TO, ACK, (1_600, 500), 40)
        .tcp(200_400, TO, ACK | FIN, (1_640, 500), 0);
    let all = flows(&tape.read().found);
    let of = |place: usize| (all[place].bytes, all[place].start, all[place].end);
    assert_eq!(of(0), (1_500, Span::from_us(100), Span::from_us(200)));
    assert_eq!((of(1).0, all.len()), (40, 2));
    let options = CaptureOptions { idle: Span::from_secs(1), ..CaptureOptions::default() };
    assert_eq!(flows(&tape.read_with(&options).found).len(), 1);
}

/// A capture that lacks the server's packets, and one that lacks the client's.
#[test]
fn a_capture_of_one_direction_is_a_warning() {
    let warned = |tape: &Tape| notes(&tape.read().found, Remark::Warning, "of one direction alone");
    for (ends, numbers) in [(TO, (100, 500)), (BACK, (500, 100))] {
        let mut tape = Tape::new();
        for number in 0..5 {
            tape.tcp(number * 1_000, ends, ACK, (numbers.0 + number as u32 * 50, numbers.1), 50);
        }
        assert!(warned(&tape), "{:?}", tape.read().found.notes);
        // An acknowledgement shows that the other direction is there.
        let back = (ends.1, ends.0);
        tape.tcp(9_000, back, ACK, (numbers.1, numbers.0 + 250), 0);
        assert!(!warned(&tape));
    }
    assert!(!warned(&two_requests()));
}

#[test]
fn resets_and_requests_without_a_response_are_counted() {
    let mut tape = two_requests();
    let other = ((1, 40_001), S);
    tape.tcp(1_000, other, SYN, (9, 0), 0)
        .tcp(1_030, (S, other.0), SYN | ACK, (0, 10), 0)
        .tcp(1_040, other, ACK, (10, 1), 30)
        .tcp(1_100, (S, other.0), ACK, (1, 40), 5)
        .tcp(1_200, other, ACK, (40, 6), 30)
        .tcp(1_230, (S, other.0), RST | ACK, (6, 70), 0);
    let found = tape.read();
    assert_eq!((found.compared[0].resets, found.compared[0].unanswered), (1, 1));
    assert_eq!(exchanges(&found.found).len(), 3);
    assert!(notes(&found.found, Remark::Ignored, "1 request without a whole response"));
    // A connection from the same port is another one.
    tape.tcp(2_000, other, SYN, (7_000, 0), 0).tcp(2_030, (S, other.0), SYN | ACK, (0, 7_001), 0);
    tape.tcp(2_040, other, ACK, (7_001, 1), 30).tcp(2_100, (S, other.0), ACK, (1, 7_031), 5);
    tape.tcp(2_110, other, ACK, (7_031, 6), 0);
    let found = tape.read();
    assert_eq!((exchanges(&found.found).len(), found.compared[0].connections), (4, 3));
}

/// Two captures, of the client's and the server's host; the path takes 15 us each way.
#[test]
fn a_packet_at_two_places_counts_once_and_shows_both_ends() {
    let (mut client, mut server) = (Tape::new(), Tape::new());
    for (late, tape) in [(0, &mut client), (15, &mut server)] {
        let back = 15 - late;
        tape.tcp(late, TO, SYN, (99, 0), 0)
            .tcp(17 + back, BACK, SYN | ACK, (499, 100), 0)
            .tcp(34 + late, TO, ACK, (100, 500), 0)
            .tcp(100 + late, TO, ACK, (100, 500), 1_000)
            .tcp(167 + back, BACK, ACK, (500, 1_100), 300)
            .tcp(190 + late, TO, ACK, (1_100, 800), 0);
    }
    let both = vec![input("client", &client.file[..]), input("server", &server.file[..])];
    let found = read(both, &CaptureOptions::default()).unwrap();
    let all = exchanges(&found.found);
    assert_eq!((all.len(), all[0].request, all[0].response), (1, 1_000, 300));
    assert_eq!(all[0].latency, Span::from_us(82));
    // The server answers a SYN after 2 us, and the request after 52.
    assert_eq!(all[0].service, Span::from_us(50));
    assert_eq!((found.compared[0].copies, found.compared[0].data_packets), (6, 2));
    assert!(notes(&found.found, Remark::Found, "captured at more than one place"));
    // The client's alone has the same sizes.
    assert_eq!(exchanges(&client.read().found)[0].service, Span::from_us(50));
}

#[test]
fn datagrams_are_requests_where_something_comes_back() {
    let (to, back) = (((1, 50_000), (2, 53)), ((2, 53), (1, 50_000)));
    let log = ((3, 50_001), (2, 514));
    let mut tape = Tape::new();
    tape.udp(0, to, 40).udp(25, back, 200).udp(26, back, 100).udp(500, to, 41).udp(540, back, 90);
    tape.udp(700, log, 500).udp(900, log, 300);
    let found = tape.read();
    assert_eq!(names(&found.found), ["udp-53", "udp-514"]);
    let all = exchanges(&found.found);
    let of = |place: usize| (all[place].request, all[place].response, all[place].latency);
    assert_eq!((of(0), of(1)), ((40, 300, Span::from_us(26)), (41, 90, Span::from_us(40))));
    // Without acknowledgements the fastest response took no service time.
    assert_eq!((all[0].service, all[1].service), (Span::ZERO, Span::from_us(15)));
    assert!(notes(&found.found, Remark::Assumed, "fastest response"));
    let one_way = flows(&found.found);
    assert_eq!((one_way.len(), one_way[0].source, one_way[0].bytes), (1, 2, 800));
}

#[test]
fn classes_are_by_port_by_dscp_or_one() {
    let mut tape = two_requests();
    tape.tos = 0x28;
    let web = ((1, 40_005), (3, 80));
    tape.tcp(900, web, ACK, (100, 1), 10).tcp(950, (web.1, web.0), ACK, (1, 110), 20);
    tape.tcp(960, web, ACK, (110, 21), 0);
    let by = |class| tape.read_with(&CaptureOptions { class, ..CaptureOptions::default() }).found;
    assert_eq!(names(&by(None)), ["port-11211", "port-80"]);
    assert_eq!(names(&by(Some(CaptureClassBy::Dscp))), ["dscp-0", "dscp-10"]);
    assert_eq!(names(&by(Some(CaptureClassBy::One))), ["all"]);
}

#[test]
fn tls_is_said() {
    let mut tape = opened();
    tape.payload = vec![0x17, 3, 3, 0, 60, 0, 0, 0];
    tape.tcp(100, TO, ACK, (100, 500), 65).tcp(150, BACK, ACK, (500, 165), 90).tcp(
        160,
        TO,
        ACK,
        (165, 590),
        0,
    );
    let found = tape.read().found;
    assert_eq!(exchanges(&found)[0].request, 65);
    assert!(notes(&found, Remark::Found, "sizes are those of records"));
    assert!(!notes(&two_requests().read().found, Remark::Found, "TLS"));
}

/// Ten connections of which each sends a request `think` after a response that takes 200 us and more.
fn clients(think: u64, waits: bool) -> Tape {
    let mut tape = Tape::new();
    let mut packets = Vec::new();
    for port in 0..10u16 {
        let (to, back) = (((1, 40_000 + port), S), (S, (1, 40_000 + port)));
        let mut now = 7 * u64::from(port);
        packets.push((now, to, SYN, (0, 0), 0));
        packets.push((now + 30, back, SYN | ACK, (0, 1), 0));
        packets.push((now + 31, to, ACK, (1, 1), 0));
        now += 100;
        for number in 0..20u32 {
            let latency = 200 + u64::from(number * 37 % 11) * 10;
            let (sent, had) = (1 + number * 50, 1 + number * 80);
            packets.push((now, to, ACK, (sent, had), 50));
            packets.push((now + latency, back, ACK, (had, sent + 50), 80));
            packets.push((now + latency + 1, to, ACK, (sent + 50, had + 80), 0));
            now += if waits { latency + think } else { 310 + think };
        }
    }
    packets.sort_by_key(|packet| packet.0);
    for (us, ends, flags, numbers, payload) in packets {
        tape.tcp(us, ends, flags, numbers, payload);
    }
    tape
}

#[test]
fn a_closed_loop_keeps_its_think_times_and_an_open_one_its_times() {
    let found = clients(90, true).read().found;
    assert!(notes(&found, Remark::Found, "keep their think times"), "{:?}", found.notes);
    let all = exchanges(&found);
    let thinks: Vec<RequestStart> = all.iter().map(|exchange| exchange.start).collect();
    assert_eq!(thinks.iter().filter(|start| matches!(start, RequestStart::At(_))).count(), 10);
    // The client acknowledges the handshake and the responses within 1 us, which is the network's.
    assert!(thinks.iter().all(
        |start| matches!(start, RequestStart::At(_)) || *start == RequestStart::After(Span::from_us(89))
    ));
    // As busy, but requests come at their own times: a slow response delays none.
    let found = clients(0, false).read().found;
    assert!(notes(&found, Remark::Found, "keep their times"), "{:?}", found.notes);
    assert!(exchanges(&found).iter().all(|exchange| matches!(exchange.start, RequestStart::At(_))));
}
