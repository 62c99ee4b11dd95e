use plimsoll_units::{Rate, Span, Streams, Time};

use super::{CircuitController, Instruction, share_out};
use crate::demand::Demand;
use crate::matching::Matching;
use crate::params::ControlParams;
use crate::schedule::{Configuration, Schedule};
use crate::scheduler::{Scheduler, Switching};

/// Returns the same configurations for every demand, without a residue.
#[derive(Debug)]
struct Fixed(Vec<Configuration>);

impl Scheduler for Fixed {
    fn schedule(&mut self, demand: &Demand, _: &Switching) -> Schedule {
        Schedule { configurations: self.0.clone(), residue: Demand::new(demand.ports()) }
    }
}

fn day(receivers: &[u32], us: u64) -> Configuration {
    let receivers = receivers.iter().map(|receiver| Some(*receiver)).collect();
    Configuration { matching: Matching::new(receivers), duration: Span::from_us(us) }
}

/// Weeks of 1,000 us, read 200 us ahead; a night of 30 us, of which 10 us drain.
fn controller(configurations: Vec<Configuration>) -> CircuitController {
    let params = ControlParams { lead: Span::from_us(200), ..ControlParams::default() };
    let switching = Switching {
        circuit_rate: Rate::from_gbps(10),
        packet_rate: Rate::from_gbps(1),
        night: Span::from_us(30),
        window: Span::from_us(1_000),
    };
    CircuitController::new(&params, switching, Span::from_us(10), Box::new(Fixed(configurations)), 3)
}

/// Returns the controller's instructions until `until`, each with its microsecond.
fn said(controller: &mut CircuitController, until_us: u64) -> Vec<(u64, Instruction)> {
    let mut said = Vec::new();
    while controller.next_due() < Time::ZERO + Span::from_us(until_us) {
        let now = controller.next_due();
        let Some(instruction) = controller.on_due(now) else { continue };
        if instruction == Instruction::ReadDemand {
            controller.on_demand(&Demand::from_rows(&[&[0, 9, 9], &[9, 0, 9], &[9, 9, 0]]));
        }
        said.push((now.as_ps() / 1_000_000, instruction));
    }
    said
}

#[test]
fn a_week_is_read_ahead_and_has_its_days_and_nights() {
    let (first, second) = (day(&[1, 2, 0], 400), day(&[2, 0, 1], 300));
    let mut controller = controller(vec![first.clone(), second.clone()]);
    use Instruction::{Begin, Darken, Light, Pause, ReadDemand};
    let expected = [
        (800, ReadDemand),
        (1_000, Begin),
        // It is dark already, so nothing drains.
        (1_000, Pause(0)),
        (1_000, Darken(0)),
        (1_020, Light(0, first.matching.clone())),
        (1_420, Pause(0)),
        (1_430, Darken(0)),
        (1_450, Light(0, second.matching)),
        (1_800, ReadDemand),
        // The last day of the week lasts until the next week.
        (2_000, Begin),
        (2_000, Pause(0)),
        (2_010, Darken(0)),
        (2_030, Light(0, first.matching)),
    ];
    assert_eq!(said(&mut controller, 2_100), expected);
    assert_eq!(controller.week(), 2);
}

#[test]
fn circuits_that_stand_already_need_no_night() {
    let mut controller = controller(vec![day(&[1, 2, 0], 970)]);
    let lit = |said: &(u64, Instruction)| matches!(said.1, Instruction::Light(..) | Instruction::Pause(_));
    assert_eq!(said(&mut controller, 9_900).iter().filter(|said| lit(said)).count(), 2);
}

#[test]
fn days_that_do_not_fit_a_week_become_shorter_in_proportion() {
    let mut controller = controller(vec![day(&[1, 2, 0], 3_000), day(&[2, 0, 1], 1_000)]);
    said(&mut controller, 1_001);
    let days: Vec<Span> = controller.plan().configurations.iter().map(|day| day.duration).collect();
    assert_eq!(days, [Span::from_us(705), Span::from_us(235)], "two nights of 30 us leave 940 us");
}

#[test]
fn nights_that_do_not_fit_a_week_cost_the_last_days() {
    let days = (0..50).map(|step| if step % 2 == 0 { day(&[1, 2, 0], 9) } else { day(&[2, 0, 1], 9) });
    let mut controller = controller(days.collect());
    said(&mut controller, 1_001);
    let plan = controller.plan();
    assert_eq!(plan.configurations.len(), 33, "33 nights of 30 us are 990 us");
    assert!(plan.total(Span::from_us(30)) <= Span::from_us(1_000));
}

#[test]
fn what_loses_its_circuit_is_left_to_the_packet_switch() {
    let mut controller = controller(vec![day(&[1, 2, 0], 500)]);
    said(&mut controller, 1_001);
    let residue = &controller.plan().residue;
    assert_eq!((residue.get(0, 1), residue.get(0, 2)), (0, 9));
}

/// Two planes: 400 and 302 us with two nights of 30 us take 762 us in turn, and with a cut 792 us. So the first has 366
/// us, the second the other 34 us and then 302 us.
#[test]
fn planes_share_the_days_and_run_at_once() {
    let (first, second) = (day(&[1, 2, 0], 400), day(&[2, 0, 1], 302));
    let mut controller = controller(vec![first.clone(), second.clone()]).with_planes(2);
    use Instruction::{Begin, Darken, Light, Pause, ReadDemand};
    let (in_both, in_second) = (first.matching, second.matching);
    let expected = [
        (800, ReadDemand),
        (1_000, Begin),
        (1_000, Pause(0)),
        (1_000, Darken(0)),
        (1_000, Pause(1)),
        (1_000, Darken(1)),
        (1_020, Light(0, in_both.clone())),
        (1_020, Light(1, in_both)),
        (1_054, Pause(1)),
        (1_064, Darken(1)),
        (1_084, Light(1, in_second)),
    ];
    assert_eq!(said(&mut controller, 1_800), expected);
}

/// Returns random demands of `ports` ports, some of which are more than circuits carry in a week.
fn demands(ports: usize) -> impl Iterator<Item = Demand> {
    let mut state = Streams::new(7).word("demands");
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..60).map(move |round| {
        let mut demand = Demand::new(ports);
        for sender in 0..ports {
            for receiver in (0..ports).filter(|receiver| *receiver != sender) {
                let share = next();
                let is_there = share % 3 == 0;
                *demand.get_mut(sender, receiver) =
                    if is_there { next() % (60_000 * (1 + round)) } else { 0 };
            }
        }
        demand
    })
}

/// Returns the bytes of `demand` that the circuits of a week carry, and that they could carry at most.
fn served(controller: &CircuitController, demand: &Demand) -> u64 {
    let mut room = Demand::new(demand.ports());
    for day in &controller.plan().configurations {
        let bytes = controller.switching().circuit_bytes(day.duration);
        day.matching.circuits().for_each(|(sender, receiver)| *room.get_mut(sender, receiver) += bytes);
    }
    demand.bytes().iter().zip(room.bytes()).map(|(bytes, room)| bytes.min(room)).sum()
}

/// For every scheduler and many demands: each plane's week fits, what planes have is the schedule's days and no more,
/// and more planes serve at least as much.
#[test]
fn more_planes_serve_more_and_nothing_twice() {
    for kind in crate::SchedulerKind::ALL {
        for demand in demands(6) {
            let week = |planes: usize| {
                let mut controller = controller(Vec::new()).with_planes(planes);
                controller.scheduler = kind.make();
                controller.on_demand(&demand);
                let counts = controller.next_of_planes.clone();
                assert_eq!(counts.iter().sum::<usize>(), controller.next.configurations.len());
                let mut rest = &controller.next.configurations[..];
                for count in counts {
                    let (plane, others) = rest.split_at(count);
                    let night = controller.switching.night;
                    let taken = plane.iter().fold(Span::ZERO, |all, day| all + day.duration + night);
                    assert!(taken <= controller.switching.window, "{kind}: {taken} with {planes} planes");
                    rest = others;
                }
                controller.begin(controller.begins());
                served(&controller, &demand)
            };
            let (one, two, three) = (week(1), week(2), week(3));
            // The two parts of a day that was cut are rounded apart, for each of the circuits.
            let rounding = demand.ports() as u64;
            let is_more = one <= two + rounding && two <= three + rounding;
            assert!(is_more, "{kind}: {one}, {two}, {three} of {}", demand.total());
        }
    }
}

#[test]
fn shared_days_are_as_long_as_before() {
    let days: Vec<Configuration> = (1..12).map(|us| day(&[1, 2, 0], us * 7)).collect();
    let all: Span = days.iter().map(|day| day.duration).sum();
    for planes in 1..8 {
        let shared = share_out(days.clone(), planes, Span::from_us(5));
        assert_eq!(shared.len(), planes);
        assert_eq!(shared.iter().flatten().map(|day| day.duration).sum::<Span>(), all, "{planes} planes");
        let longest =
            shared.iter().map(|plane| plane.iter().map(|day| day.duration + Span::from_us(5)).sum());
        let longest: Span = longest.max().unwrap_or_default();
        let even = (all + Span::from_us(5) * 11).as_ps() / planes as u64;
        assert!(longest.as_ps() <= even + Span::from_us(5).as_ps(), "{planes} planes: {longest}");
    }
}
