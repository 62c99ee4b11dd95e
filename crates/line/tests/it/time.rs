//! Searches that have little time: early results, messages at its end, and smaller networks.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_line::{
    AskedLine, LineQuestion, Lines, Room, SearchNews, SearchStop, SearchWatch, Smaller, SoFar,
};
use plimsoll_line::{affordable, draw};
use plimsoll_results::run_dir::Existing;
use plimsoll_scenario::Scenario;

const ROOM: Room = Room { threads: 2, memory_max: u64::MAX };

/// A clock on which everything takes a second, an end after some runs, and a list of the reports.
struct Watch {
    runs: usize,
    done: AtomicUsize,
    seconds: AtomicU32,
    told: Mutex<Vec<String>>,
}

impl Watch {
    fn ending_after(runs: usize) -> Watch {
        Watch { runs, done: AtomicUsize::new(0), seconds: AtomicU32::new(0), told: Mutex::new(Vec::new()) }
    }
}

impl SearchWatch for Watch {
    fn on_news(&self, news: &SearchNews<'_>, so_far: &SoFar) {
        let word = match news {
            SearchNews::Cost { run, .. } => format!("a run takes {} s", run.as_secs()),
            SearchNews::Judged(judged) => format!("{} after {} runs", judged.verdict, so_far.done()),
            SearchNews::FirstLook => "first look".to_owned(),
            _ => return,
        };
        self.told.lock().unwrap().push(word);
    }

    fn on_progress(&self, so_far: &SoFar) {
        self.done.store(so_far.done(), Ordering::Relaxed);
    }

    fn is_out_of_time(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.runs
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds.fetch_add(1, Ordering::Relaxed)))
    }
}

fn parse(text: &str) -> Scenario {
    Scenario::parse("test.toml", text, Path::new(".")).unwrap()
}

/// A queue whose packets of 1000 B come at half of the rate of a link of 1 Gb/s, 625 in 10 ms.
fn queue() -> Scenario {
    parse(
        "version = 1\ntitle = 'a queue'\n[run]\nduration = '12ms'\nwarmup = '2ms'\n\
         [topology]\nkind = 'dumbbell'\nleft = 1\nright = 1\nrate = '1000Gbps'\ndelay = '0s'\n\
         bottleneck_rate = '1Gbps'\n\
         [workload.w]\nkind = 'packets'\nfrom = 'h0'\nto = 'h1'\nsize = '1000B'\nload = '500Mbps'\n",
    )
}

fn question(messages: Option<u64>) -> LineQuestion {
    LineQuestion {
        slo: vec!["p99(w) < 60us".to_owned()],
        within: Some("100Mbps..950Mbps".to_owned()),
        precision: 0.1,
        replicates_max: 16,
        messages,
        ..LineQuestion::default()
    }
}

fn search(runs: usize, messages: Option<u64>) -> (Result<Lines, SearchStop>, Vec<String>) {
    let scenario = queue();
    let asked = question(messages).ask(&scenario).unwrap();
    let watch = Watch::ending_after(runs);
    let lines = draw(&asked, None, Existing::Resume, ROOM, &watch);
    (lines, watch.told.into_inner().unwrap())
}

#[test]
fn a_search_whose_time_ends_has_the_interval_that_is_known() {
    let (whole, _) = search(usize::MAX, None);
    let whole = whole.unwrap();
    assert_eq!(whole.variants[0].unfinished, None);
    let (part, _) = search(14, None);
    let part = part.unwrap();
    let (whole, part_line) = (&whole.variants[0].line, &part.variants[0].line);
    let unfinished = part.variants[0].unfinished.as_deref().unwrap();
    assert!(unfinished.starts_with("the time ended before the interval"), "{unfinished}");
    assert!(part.sentences()[0].ends_with(unfinished), "{:?}", part.sentences());
    assert!(part_line.low() <= whole.low(), "{part_line:?} {whole:?}");
    assert!(part_line.high().is_none_or(|high| whole.high().is_some_and(|known| known <= high)));
    let (none, _) = search(0, None);
    assert!(matches!(none, Err(SearchStop::OutOfTime)), "{none:?}");
}

#[test]
fn long_runs_have_a_first_look_by_short_ones() {
    let (_, told) = search(usize::MAX, Some(8_000));
    let look = told.iter().position(|word| word == "first look").unwrap();
    assert!(told[..look].iter().any(|word| word.starts_with("met by a first run")), "{told:?}");
    assert!(told[look..].iter().any(|word| word.starts_with("met after")), "{told:?}");
    // The clock adds a second to the probe of 12 ms: a run of 8,000 messages and its warm-up has 130 ms.
    assert!(told[0].starts_with("a run takes 1"), "{told:?}");
}

#[test]
fn a_search_of_given_messages_begins_where_its_first_look_ends() {
    let scenario = queue();
    for messages in [50, 8_000] {
        let question = LineQuestion { at: Some("200Mbps".to_owned()), ..question(Some(messages)) };
        let asked = question.ask(&scenario).unwrap();
        let lines = draw(&asked, None, Existing::Resume, ROOM, &Watch::ending_after(usize::MAX)).unwrap();
        let loads: Vec<f64> = lines.variants[0].loads.iter().map(|at| at.load).collect();
        // 200 Mb/s is far below the line, which the first look has found out.
        assert!(!loads.contains(&2e8) && loads.len() >= 3, "{messages}: {loads:?}");
    }
}

#[test]
fn a_budget_chooses_the_length_of_runs() {
    let scenario = queue();
    let asked: AskedLine<'_> = question(None).ask(&scenario).unwrap();
    let watch = || Watch::ending_after(usize::MAX);
    let messages =
        |seconds| affordable(&asked, Duration::from_secs(seconds), ROOM, &watch()).unwrap().unwrap();
    assert!(messages(10) < messages(10_000), "{} {}", messages(10), messages(10_000));
    assert_eq!(messages(10_000_000), 20_000);
}

fn large(topology: &str, workload: &str) -> Option<Smaller> {
    Smaller::of(&parse(&format!(
        "version = 1\ntitle = 'large'\n[run]\nduration = '5ms'\n{topology}delay = '1us'\nrate = '1Gbps'\n\
         [workload.w]\n{workload}"
    )))
}

const LEAVES: &str = "[topology]\nkind = 'leaf-spine'\nleaves = 40\nspines = 2\nhosts_per_leaf = 10\n";
const ALL: &str = "kind = 'all-to-all'\nsize = '10KB'\nload = 0.3\n";

#[test]
fn a_smaller_network_keeps_what_a_message_meets() {
    let smaller = large(LEAVES, ALL).unwrap();
    // Of the traffic 390 in 399 leave their leaf in the whole network: 70 of 79 are nine tenths of that, 60 of 69 less.
    assert_eq!(smaller.words, "8 leaves of 40, 80 hosts of 400");
    assert_eq!(smaller.scenario.points()[0].model.topology.params().hosts(), 80);
    let tree = large("[topology]\nkind = 'fat-tree'\nk = 12\n", ALL).unwrap();
    assert_eq!(tree.words, "6 pods of 12, 216 hosts of 432");
    let query =
        "kind = 'fan-out'\nclient = 'h0'\nrequest = '100B'\nresponse = '2KB'\nqueries_per_second = 500\n";
    let named = format!("{query}servers = 'h1..h45'\n");
    assert_eq!(large(LEAVES, &named).unwrap().words, "8 leaves of 40, 80 hosts of 400");
}

#[test]
fn no_smaller_network_is_proposed_where_it_would_differ() {
    let query =
        "kind = 'fan-out'\nclient = 'h0'\nrequest = '100B'\nresponse = '2KB'\nqueries_per_second = 500\n";
    for (workload, why) in [
        (query.to_owned(), "a query asks all other hosts"),
        (format!("{query}servers = 'h1..h399'\n"), "hosts are named that it would not have"),
        ("kind = 'stride'\nstride = 200\n".to_owned(), "a stride is as long as the network"),
    ] {
        let Ok(scenario) = Scenario::parse(
            "test.toml",
            &format!(
                "version = 1\ntitle = 'large'\n[run]\nduration = '5ms'\n{LEAVES}delay = '1us'\nrate = '1Gbps'\n\
                 [workload.w]\n{workload}"
            ),
            Path::new("."),
        ) else {
            panic!("{why}");
        };
        assert!(Smaller::of(&scenario).is_none(), "{why}");
    }
    let few = LEAVES.replace("leaves = 40", "leaves = 20");
    assert!(large(&few, ALL).is_none(), "200 hosts are few");
}

#[test]
fn a_search_begins_with_the_lines_of_the_smaller_network() {
    let whole = parse(&format!(
        "version = 1\ntitle = 'large'\n[run]\nduration = '5ms'\nwarmup = '1ms'\n{LEAVES}delay = '1us'\n\
         rate = '1Gbps'\n[transport]\nkind = 'dctcp'\n[workload.w]\n{ALL}"
    ));
    let question = LineQuestion {
        slo: vec!["p90(w) < 400us".to_owned()],
        precision: 0.5,
        replicates_max: 8,
        ..LineQuestion::default()
    };
    let smaller = Smaller::of(&whole).unwrap();
    let watch = || Watch::ending_after(usize::MAX);
    let asked = question.clone().ask(&smaller.scenario).unwrap();
    let small = draw(&asked, None, Existing::Resume, ROOM, &watch()).unwrap();
    let asked = AskedLine { expected: small.expected(), ..question.ask(&whole).unwrap() };
    let confirmed = draw(&asked, None, Existing::Resume, ROOM, &watch()).unwrap();
    let (small, large) = (&small.variants[0].line, &confirmed.variants[0].line);
    assert!(small.low() <= large.high() && large.low() <= small.high(), "{small:?} {large:?}");
    let loads: Vec<f64> = confirmed.variants[0].loads.iter().map(|at| at.load).collect();
    assert!(loads.contains(&small.low().unwrap()) && loads.contains(&small.high().unwrap()), "{loads:?}");
    assert!(loads.len() <= 4, "the ends, the lowest load, and one more at the most: {loads:?}");
}
