//! The tests of `plimsoll-advise`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod apply;
mod found;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_advise::{Advice, AdviseQuestion, AdviseWatch, PreparedAdvice, advise, prepare};
use plimsoll_line::Room;
use plimsoll_scenario::{Overrides, Registry, Scenario};

/// One run at a time, so that a budget counted in calls ends at the same run everywhere.
const ROOM: Room = Room { threads: 1, memory_max: u64::MAX };

/// A watch whose budget is a number of calls.
#[derive(Default)]
struct Calls {
    most: Option<usize>,
    calls: AtomicUsize,
    first: Mutex<Vec<Advice>>,
}

impl AdviseWatch for Calls {
    fn spent(&self) -> f64 {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        self.most.map_or(0.0, |most| calls as f64 / most as f64)
    }

    fn on_first(&self, advice: &Advice) {
        self.first.lock().unwrap().push(advice.clone());
    }
}

fn load(text: &str, set: &[&str]) -> Scenario {
    let set = set.iter().map(|&set| set.to_owned()).collect();
    let overrides = Overrides { set, replicates: 1, ..Overrides::default() };
    Scenario::parse_with("test.toml", text, Path::new("."), &overrides).unwrap()
}

fn shipped(name: &str, set: &[&str]) -> Scenario {
    load(&plimsoll_shipped::text(name).unwrap(), set)
}

/// A question with coarse lines.
fn question(slo: &str, messages: u64) -> AdviseQuestion {
    AdviseQuestion {
        slo: vec![slo.to_owned()],
        messages: Some(messages),
        precision: Some(0.3),
        replicates_max: Some(8),
        ..AdviseQuestion::default()
    }
}

fn ask(scenario: &Scenario, question: &AdviseQuestion, watch: &Calls) -> (PreparedAdvice, Advice) {
    let prepared = prepare(&Registry::default(), scenario, question, watch).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let advice = advise(&prepared, dir.path(), ROOM, watch).unwrap();
    (prepared, advice)
}
