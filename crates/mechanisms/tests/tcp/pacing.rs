//! Controllers that set the window themselves: their inputs, windows below one segment, and the pacer.

use std::sync::{Arc, Mutex};

use plimsoll_mechanisms::tcp::{
    Ack, Cause, CongestionControl, Cut, EcnMode, Endpoint, Limits, MakeController, Recovery, TransportParams,
    Window,
};
use plimsoll_units::{Rate, Span, Time};

use crate::script::{MSS, Script, params, us};

/// The orders of a test to its controller, and the controller's inputs.
#[derive(Default, Debug)]
struct Orders {
    /// The value to which the next ACK, or the next cut, sets cwnd.
    cwnd: u64,
    rate: Option<Rate>,
    acks: Vec<Ack>,
    cuts: Vec<Cut>,
    switches: u32,
}

#[derive(Debug)]
struct Obedient(Arc<Mutex<Orders>>);

impl CongestionControl for Obedient {
    fn sets_window(&self) -> bool {
        true
    }
    fn on_path(&mut self, switches: u32) {
        self.0.lock().unwrap().switches = switches;
    }
    fn on_ack(&mut self, _: &Limits, window: &mut Window, ack: &Ack) {
        let mut orders = self.0.lock().unwrap();
        orders.acks.push(*ack);
        window.cwnd = orders.cwnd;
    }
    fn cut(&mut self, _: &Limits, _: &Window, cut: &Cut) -> u64 {
        let mut orders = self.0.lock().unwrap();
        orders.cuts.push(*cut);
        orders.cwnd
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.0.lock().unwrap().rate
    }
}

/// Returns a script whose controller follows the orders.
fn obedient(params: TransportParams, cwnd: u64) -> (Script, Arc<Mutex<Orders>>) {
    let orders = Arc::new(Mutex::new(Orders { cwnd, ..Orders::default() }));
    let mut script = Script::new(params);
    let held = Arc::clone(&orders);
    script.config.custom = Some(MakeController::new(move || Box::new(Obedient(Arc::clone(&held)))));
    script.end = Endpoint::new(&script.config);
    (script, orders)
}

#[test]
fn a_controller_sees_raw_samples_the_echo_and_the_time() {
    let (mut s, orders) = obedient(TransportParams { ecn: EcnMode::On, ..params() }, 10 * MSS);
    s.end.set_path(5);
    s.write(100 * MSS).sends(0, 10).at(100).ack(1000).sends(10_000, 1).at(180).ack_ece(3000);
    let orders = orders.lock().unwrap();
    let [first, second] = orders.acks[..] else { panic!("{orders:?}") };
    assert_eq!((first.now, first.acked, first.ece), (us(100), 1000, false));
    assert_eq!((first.rtt, first.srtt), (Some(Span::from_us(100)), Span::from_us(100)));
    assert!(first.window_limited);
    // The sample is raw, the other smoothed: 100 + (180 - 100) / 8.
    assert_eq!((second.now, second.acked, second.ece), (us(180), 2000, true));
    assert_eq!((second.rtt, second.srtt), (Some(Span::from_us(180)), Span::from_us(110)));
    assert!(orders.cuts.is_empty(), "a mark is the controller's to see, not the sender's to cut for");
    assert_eq!(orders.switches, 5);
}

#[test]
fn a_window_below_one_segment_spaces_segments_by_round_trips() {
    let (mut s, orders) = obedient(params(), 250);
    // The tenth ACK arrives at 100 us; the first leaves a quarter of a segment.
    s.write(100 * MSS).sends(0, 10).at(100).ack(10_000).cwnd(250);
    // A segment every 4 round trips of 100 us, counted from the last departure, at 0.
    s.silent().deadline(400).expire().sends(10_000, 1).silent();
    // One is outstanding: the window holds the next one back, and the deadline is the retransmission timer's.
    assert!(s.end.deadline() > us(1_000_000));
    // It is acknowledged early, and the pacer waits for 800.
    s.at(500).ack(11_000).silent().deadline(800).at(799).silent().expire().sends(11_000, 1);
    // A window that opens shortens the wait: half a segment, 2 round trips.
    orders.lock().unwrap().cwnd = 500;
    s.at(900).ack(12_000).silent().deadline(1000).expire().sends(12_000, 1);
    // A whole segment is not paced.
    orders.lock().unwrap().cwnd = MSS;
    s.at(1100).ack(13_000).sends(13_000, 1).silent();
}

#[test]
fn an_idle_pacer_has_no_deadline() {
    let (mut s, _) = obedient(params(), 100);
    s.write(3 * MSS).sends(0, 3).at(100).ack(3000).silent().no_deadline();
    // A write long after need not wait: a segment every 10 round trips would have left by now.
    s.at(2000).write(500).sends_part(3000, 500).silent();
    // A write soon after waits, half a segment half as long, and sets the deadline.
    s.at(2100).ack(3500).silent().no_deadline().write(500).silent().deadline(2500);
    s.expire().sends_part(3500, 500);
}

#[test]
fn a_pacing_rate_spaces_segments() {
    // 1,040 B on the wire at 80 Mb/s: 104 us.
    let (mut s, orders) = obedient(params(), 10 * MSS);
    orders.lock().unwrap().rate = Some(Rate::from_mbps(80));
    s.write(100 * MSS).sends(0, 1).silent().deadline(104).expire().sends(1000, 1).silent().deadline(208);
    orders.lock().unwrap().rate = Some(Rate::from_mbps(160));
    s.at(150).silent().deadline(156).expire().sends(2000, 1).silent();
    // Without a rate only the window counts.
    orders.lock().unwrap().rate = None;
    s.at(160).sends(3000, 7).silent();
}

#[test]
fn a_configured_rate_spaces_segments_of_any_controller() {
    // 1,040 B on the wire at 80 Mb/s: 104 us.
    let mut s = Script::new(TransportParams { pacing_rate: Some(Rate::from_mbps(80)), ..params() });
    s.write(100 * MSS).sends(0, 1).silent().deadline(104).expire().sends(1000, 1).silent().deadline(208);
    // An acknowledgement opens the window and does not hasten the next segment.
    s.at(150).ack(1000).silent().deadline(208).expire().sends(2000, 1).silent();
}

#[test]
fn the_lower_of_two_rates_holds() {
    for (of_controller, configured) in [(80, 160), (160, 80)] {
        let pacing_rate = Some(Rate::from_mbps(configured));
        let (mut s, orders) = obedient(TransportParams { pacing_rate, ..params() }, 10 * MSS);
        orders.lock().unwrap().rate = Some(Rate::from_mbps(of_controller));
        s.write(100 * MSS).sends(0, 1).silent().deadline(104);
    }
}

#[test]
fn acknowledgements_are_not_paced() {
    let (mut s, orders) = obedient(params(), 10 * MSS);
    orders.lock().unwrap().rate = Some(Rate::from_mbps(8));
    s.write(100 * MSS).sends(0, 1).silent();
    s.at(1).data(0, 1000, plimsoll_mechanisms::tcp::EcnField::NotEct);
    s.acks(1000);
    s.silent();
}

#[test]
fn losses_leave_cwnd_to_the_controller() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let (mut s, orders) = obedient(TransportParams { recovery, ..params() }, 10 * MSS);
        s.write(100 * MSS).sends(0, 10).at(100).ack(1000).sends(10_000, 1);
        orders.lock().unwrap().cwnd = 700;
        for end in [3000, 4000, 5000] {
            s.sack(1000, &[(2000, end)]);
        }
        // Neither ssthresh and its floor of two segments, nor inflation.
        s.cwnd(700);
        let cut = orders.lock().unwrap().cuts[..].to_vec();
        assert!(matches!(cut[..], [Cut { cause: Cause::Loss, .. }]), "{recovery:?}: {cut:?}");
        assert_eq!(cut[0].now, us(100));
        // 10 / 7 round trips of 100 us after the last departure, at 100, rounded down: 242.857142 us.
        s.silent();
        assert_eq!(s.end.deadline(), Time::ZERO + Span::from_ps(242_857_142), "{recovery:?}");
        s.expire().resends(1000, 1000);
        // Repaired: still the controller's.
        s.at(400).ack(11_000).cwnd(700);
    }
}

#[test]
fn a_timeout_leaves_cwnd_to_the_controller_and_waits_for_the_pacer() {
    let (mut s, orders) = obedient(TransportParams { min_rto: Span::from_us(400), ..params() }, 10 * MSS);
    s.write(100 * MSS).sends(0, 10).at(100).ack(1000).sends(10_000, 1);
    orders.lock().unwrap().cwnd = 10;
    // 100 round trips of 100 us from the last departure, at 100 us.
    s.deadline(500).expire().cwnd(10).silent().deadline(10_100);
    // Data that waits for the pacer does not time out: the timer runs from its departure.
    s.expire().resends(1000, 1000).silent();
    assert_eq!(s.end.counters().timeouts, 1);
    s.deadline(10_900).expire();
    let causes: Vec<Cause> = orders.lock().unwrap().cuts.iter().map(|cut| cut.cause).collect();
    assert_eq!(causes, [Cause::Timeout, Cause::Timeout], "each is the controller's to count");
}
