//! All candidates pop the same sequence as an ordered set, under loads made to hurt.

use std::collections::BTreeSet;

use plimsoll_units::Time;
use proptest::prelude::*;

use crate::candidates::EventQueue;
use crate::candidates::binary_heap::StdHeap;
use crate::candidates::delay_fifos::DelayFifos;
use crate::candidates::fixed_calendar::FixedCalendar;
use crate::candidates::hierarchical_wheel::HierarchicalWheel;
use crate::candidates::linked_wheel::EventQueue as LinkedWheel;
use crate::candidates::quad_heap::QuadHeap;
use crate::candidates::radix_heap::RadixHeap;
use crate::candidates::winner_tree::WinnerTree;
use crate::chosen;

const OWNERS: u32 = 300;

/// A push of an owner (skipped where it has an entry), or a pop.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push { ahead_ps: u64, owner: u32 },
    Pop,
}

/// Ties, link delays, think times, timers, silences.
fn step() -> impl Strategy<Value = Step> {
    let ahead = prop_oneof![
        Just(0u64),
        0u64..4,
        Just(1_200_000u64),
        1_000_000u64..20_000_000,
        0u64..5_000_000_000,
        0u64..10_000_000_000_000,
    ];
    prop_oneof![
        (ahead, 0..OWNERS).prop_map(|(ahead_ps, owner)| Step::Push { ahead_ps, owner }),
        Just(Step::Pop),
    ]
}

/// Expected and popped entries, drained at the end. Which pushes are legal follows from the ordered set,
/// so that a wrong queue cannot lead its own load astray.
fn pops<Q: EventQueue>(steps: &[Step]) -> [Vec<(Time, u32)>; 2] {
    let mut queue = Q::new(OWNERS);
    let mut model = BTreeSet::new();
    let mut armed = [false; OWNERS as usize];
    let mut now = 0u64;
    let (mut expected, mut popped) = (Vec::new(), Vec::new());
    let drain = std::iter::repeat_n(Step::Pop, OWNERS as usize + 1);
    for step in steps.iter().copied().chain(drain) {
        match step {
            Step::Push { ahead_ps, owner } if !std::mem::replace(&mut armed[owner as usize], true) => {
                let at = Time::from_ps(now + ahead_ps);
                model.insert((at, owner));
                queue.push(at, owner);
            }
            Step::Push { .. } => {}
            Step::Pop => {
                let first = model.pop_first();
                popped.extend(queue.pop());
                expected.extend(first);
                if let Some((at, owner)) = first {
                    now = at.as_ps();
                    armed[owner as usize] = false;
                }
            }
        }
    }
    [expected, popped]
}

macro_rules! same_as_an_ordered_set {
    ($($name:ident: $queue:ty),* $(,)?) => {
        proptest! {
            $(#[test]
            fn $name(steps in prop::collection::vec(step(), 0..3_000)) {
                let [expected, popped] = pops::<$queue>(&steps);
                prop_assert_eq!(expected, popped);
            })*
        }
    };
}

same_as_an_ordered_set! {
    std_heap: StdHeap,
    quad_heap_packed: QuadHeap<u128>,
    quad_heap_pair: QuadHeap<(u64, u32)>,
    winner_tree: WinnerTree,
    radix_heap: RadixHeap,
    delay_fifos: DelayFifos,
    hierarchical_wheel: HierarchicalWheel,
    fixed_calendar: FixedCalendar,
    linked_wheel: LinkedWheel,
    adaptive_wheel: chosen::Calendar,
}
