//! The express port engine foresees departures, the general one waits for them. Wherever both apply a run
//! must not tell which it was: everything observed has the same digest.

use plimsoll_results::outcome::Queue;
use proptest::prelude::*;

use crate::arbitrary::{Scope, config, scenario};
use crate::lab::run;

proptest! {
    #![proptest_config(config(200))]
    #[test]
    fn both_engines_see_the_same(text in scenario(Scope::Express)) {
        let express = run(&text.replace("ENGINE", "engine = 'express'"));
        let general = run(&text.replace("ENGINE", "engine = 'general'"));
        if express.digest() != general.digest() {
            // Say what differs first, before the digests.
            prop_assert_eq!(express.counters, plimsoll_results::outcome::Counters { events: express.counters.events, ..general.counters });
            for (one, other) in express.messages.iter().zip(&general.messages) {
                prop_assert_eq!(one, other);
            }
            for (one, other) in express.queues.iter().zip(&general.queues) {
                let counts = |queue: &Queue| (queue.drops, queue.marks, queue.packets, queue.bytes);
                prop_assert_eq!(counts(one), counts(other), "drops, marks, packets, bytes of {}", one.port);
                let interval = |queue: &Queue, index: usize| (queue.mean_bytes[index], queue.max_bytes[index]);
                let same = |index: &usize| interval(one, *index) == interval(other, *index);
                let different = (0..one.mean_bytes.len().min(other.mean_bytes.len())).find(|index| !same(index));
                if let Some(index) = different {
                    prop_assert_eq!(interval(one, index), interval(other, index), "interval {} of {}", index, one.port);
                }
                prop_assert!(one == other, "{} differs, as a histogram or in length", one.port);
            }
            prop_assert_eq!(&express.connections, &general.connections);
            prop_assert_eq!(&express.series, &general.series);
            prop_assert_eq!(&express.goodput, &general.goodput);
            prop_assert_eq!(express.digest(), general.digest());
        }
    }
}
