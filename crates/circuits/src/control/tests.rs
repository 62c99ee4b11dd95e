use plimsoll_units::{Rate, Span, Time};

use super::{CircuitController, Instruction};
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
        (1_000, Pause),
        (1_000, Darken),
        (1_020, Light(first.matching.clone())),
        (1_420, Pause),
        (1_430, Darken),
        (1_450, Light(second.matching)),
        (1_800, ReadDemand),
        // The last day of the week lasts until the next week.
        (2_000, Begin),
        (2_000, Pause),
        (2_010, Darken),
        (2_030, Light(first.matching)),
    ];
    assert_eq!(said(&mut controller, 2_100), expected);
    assert_eq!(controller.week(), 2);
}

#[test]
fn circuits_that_stand_already_need_no_night() {
    let mut controller = controller(vec![day(&[1, 2, 0], 970)]);
    let lit = |said: &(u64, Instruction)| matches!(said.1, Instruction::Light(_) | Instruction::Pause);
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
