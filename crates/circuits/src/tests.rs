//! Properties of every scheduler, on any demand.

use plimsoll_units::{Rate, Span};
use proptest::prelude::*;

use crate::*;

fn demands() -> impl Strategy<Value = Demand> {
    let entry = prop_oneof![3 => Just(0u64), 2 => 1u64..100_000, 1 => 1u64..10_000_000];
    (1usize..10).prop_flat_map(move |ports| {
        let bytes = prop::collection::vec(entry.clone(), ports * ports);
        bytes.prop_map(move |bytes| Demand::from_bytes(ports, bytes))
    })
}

fn switches() -> impl Strategy<Value = Switching> {
    let rates = prop_oneof![Just((100, 10)), Just((10, 10)), Just((100, 0)), Just((1, 7))];
    (rates, 0u64..100, 1u64..5_000).prop_map(|((circuit, packet), night, day)| Switching {
        circuit_rate: Rate::from_gbps(circuit),
        packet_rate: Rate::from_gbps(packet),
        night: Span::from_us(night),
        window: Span::from_us(night + day),
    })
}

proptest! {
    /// Checks of the schedulers that serve all: the residue fits the packet switch. The others keep to the window.
    #[test]
    fn schedules_hold(demand in demands(), switching in switches()) {
        for kind in SchedulerKind::ALL {
            let schedule = kind.make().schedule(&demand, &switching);
            let mut residue = demand.clone();
            let mut total = Span::ZERO;
            for configuration in &schedule.configurations {
                prop_assert_eq!(configuration.matching.ports(), demand.ports());
                // It panics where a receiver has two senders.
                Matching::new(configuration.matching.receivers().to_vec());
                for (from, to) in configuration.matching.circuits() {
                    let left = residue.get_mut(from, to);
                    *left = left.saturating_sub(switching.circuit_bytes(configuration.duration));
                }
                total = total + switching.night + configuration.duration;
            }
            prop_assert_eq!(&schedule.residue, &residue, "{}", kind);
            prop_assert_eq!(schedule.total(switching.night), total, "{}", kind);
            match kind {
                SchedulerKind::Solstice | SchedulerKind::Bvn | SchedulerKind::Islip => {
                    let room = switching.packet_bytes(total);
                    prop_assert!(residue.diameter() <= room, "{}: {} over {}", kind, residue.diameter(), room);
                }
                SchedulerKind::Tms | SchedulerKind::Eclipse => {
                    prop_assert!(total <= switching.window, "{}: {}", kind, total);
                }
                // A window may be too short for a night before each configuration.
                SchedulerKind::Rotor => {}
            }
        }
    }

    /// A scheduler keeps memory between calls, but not earlier demands.
    #[test]
    fn the_same_demand_has_the_same_schedule(first in demands(), second in demands(), switching in switches()) {
        for kind in SchedulerKind::ALL {
            let alone = kind.make().schedule(&second, &switching);
            let mut scheduler = kind.make();
            scheduler.schedule(&first, &switching);
            prop_assert_eq!(scheduler.schedule(&second, &switching), alone, "{}", kind);
        }
    }
}

#[test]
fn an_unknown_scheduler_has_a_nearest_spelling() {
    let error = "solstise".parse::<SchedulerKind>().expect_err("there is none").to_string();
    assert_eq!(
        error,
        "there is no scheduler `solstise`; allowed: solstice, bvn, islip, tms, eclipse, rotor; did you mean `solstice`?"
    );
    for kind in SchedulerKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        assert_eq!(format!("\"{kind}\""), serde_json::to_string(&kind).expect("a name"));
    }
}
