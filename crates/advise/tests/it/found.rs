//! Networks whose best mechanism is known.
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

use plimsoll_advise::{BASE, Have};
use plimsoll_report::{Format, TableStyle};

use super::*;

/// The quickstart in short: transfers of 1 MB, so that a run of a fifth of a second has many.
const SMALL: &[&str] = &["workload.background.size=1MB", "run.duration=2s", "run.warmup=20ms"];

fn shown(advice: &Advice) -> String {
    advice.render(Format::Table, &TableStyle { width: 200, ..TableStyle::default() })
}

#[test]
fn hull_or_dctcp_on_the_quickstart() {
    let scenario = shipped("quickstart", SMALL);
    let (_, advice) = ask(&scenario, &question("p99(small) < 1ms", 200), &Calls::default());
    eprintln!("{}", shown(&advice));
    let best = advice.best().unwrap();
    assert!(
        ["hull", "dctcp", "DCTCP, phantom queues"].iter().any(|name| best.name.starts_with(name)),
        "{}",
        best.name
    );
}

/// QJump's testbed with requests of one packet beside transfers between all hosts.
const QJUMP: &str = r#"
[workload.requests]
kind = "rpc"
client = "h0"
servers = ["h5", "h10"]
request = "100B"
response = "100B"
load = "80Mbps"
[workload.background]
kind = "all-to-all"
size = "200KB"
load = 0.3
"#;

#[test]
fn qjump_on_its_testbed() {
    let text = plimsoll_shipped::text("qjump/testbed").unwrap();
    let scenario = load(&format!("{text}{QJUMP}"), &["run.duration=8ms", "run.warmup=1ms"]);
    // Its switches have the features of 2015: no queues of pFabric.
    let mut question = question("p99(requests) < 120us", 300);
    question.have = Have::parse(Some("ecn, 8 queues, pfc, buffers, linux hosts")).unwrap();
    let (_, advice) = ask(&scenario, &question, &Calls::default());
    eprintln!("{}", shown(&advice));
    assert!(advice.best().unwrap().name.starts_with("qjump"), "{}", advice.best().unwrap().name);
}

/// DeTail's pages in a smaller network of the same kind: 16 hosts, paths to choose from, oversubscribed.
const DETAIL: &str = r#"
version = 1
title = "pages beside transfers"
[run]
duration = "80ms"
warmup = "10ms"
drain = "500ms"
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
rate = "1Gbps"
fabric_rate = "1Gbps"
delay = "10us"
[port.switch]
buffer = "128KB"
[transport]
min_window = 1
recovery = "newreno"
min_rto = "10ms"
initial_rto = "10ms"
rto_granularity = "1ms"
ack_every = 1
initial_window = 10
handshake = false
[workload.pages]
kind = "pages"
size = "8KB"
pages_per_second = 300
order = "sequential"
retrievals = 10
front_ends = ["h0", "h2", "h4", "h6", "h8", "h10", "h12", "h14"]
[workload.background]
kind = "all-to-all"
size = "200KB"
load = 0.2
"#;

#[test]
fn detail_on_its_pages() {
    let scenario = load(DETAIL, &[]);
    // What DeTail asks of switches, and no queues of pFabric.
    let mut question = question("p99(pages) < 10ms", 100);
    let have = "ecn, 8 queues, pfc, adaptive paths, spraying, buffers, linux hosts";
    question.have = Have::parse(Some(have)).unwrap();
    let (_, advice) = ask(&scenario, &question, &Calls::default());
    eprintln!("{}", shown(&advice));
    assert!(advice.best().unwrap().name.starts_with("detail"), "{}", advice.best().unwrap().name);
}

#[test]
fn nothing_where_the_load_is_far_below_the_line() {
    let scenario = shipped("quickstart", &["workload.background.load=0.02"]);
    let (prepared, advice) = ask(&scenario, &question("p99(small) < 50ms", 400), &Calls::default());
    assert!(!advice.is_needed && advice.is_met && advice.ranking.is_empty(), "{}", shown(&advice));
    assert!((advice.tried_at / advice.over.start() - 2.0).abs() < 1e-9);
    assert!(advice.sentences()[0].starts_with("nothing is needed: TCP meets p99(small) < 50ms at 0.04"));
    assert_eq!(plimsoll_advise::CandidateFiles::of(&prepared, &advice), None);
}

#[test]
fn a_fabric_without_anything_has_few_candidates() {
    let scenario = shipped("quickstart", SMALL);
    let mut question = question("p99(small) < 1ms", 200);
    question.have = Have::parse(Some("linux hosts")).unwrap();
    let (_, advice) = ask(&scenario, &question, &Calls::default());
    let names: Vec<&str> = advice.ranking.iter().map(|one| one.name.as_str()).collect();
    assert!(names.contains(&BASE) && names.contains(&"linux") && !names.contains(&"dctcp"), "{names:?}");
    assert!(advice.untried.contains(&("dctcp".to_owned(), "needs ecn".to_owned())));
    // Its hosts have a queue for each flow already.
    let nics = advice.ranking.iter().find(|one| one.name == "per-flow NICs").unwrap();
    assert_eq!(nics.state, plimsoll_advise::State::WithoutEffect);
}

#[test]
fn a_budget_ends_the_search_with_what_is_known_and_a_larger_one_resumes_it() {
    let scenario = shipped("quickstart", SMALL);
    let question = question("p99(small) < 1ms", 60);
    let dir = tempfile::tempdir().unwrap();
    let within = |most: Option<usize>| {
        let watch = Calls { most, ..Calls::default() };
        let prepared = prepare(&Registry::default(), &scenario, &question, &watch).unwrap();
        let advice = advise(&prepared, dir.path(), ROOM, &watch).unwrap();
        let first = watch.first.into_inner().unwrap();
        assert_eq!(first.len(), 1, "a first ranking stands, once");
        let runs = std::fs::read_to_string(dir.path().join("runs.jsonl")).unwrap().lines().count();
        (advice, first, runs)
    };
    let (short, first, few) = within(Some(100));
    assert!(first[0].ranking.iter().all(|one| one.line.is_none()));
    assert!(short.ranking.iter().any(|one| one.state != plimsoll_advise::State::Searched));
    let (whole, _, all) = within(None);
    assert!(few > 0 && few < all, "{few} {all}");
    assert!(whole.best().is_some());
    // A third search finds all its runs.
    let (again, _, same) = within(None);
    assert_eq!((again, same), (whole, all));
}

#[test]
fn an_objective_below_the_idle_latency_ends_the_search_at_once() {
    let scenario = shipped("quickstart", SMALL);
    // A frame alone takes longer on its links.
    let (prepared, advice) = ask(&scenario, &question("p99(small) < 2us", 100), &Calls::default());
    let said = advice.sentences();
    assert!(!advice.is_met && advice.ranking.is_empty() && said.len() == 1, "{said:?}");
    assert!(
        said[0].starts_with("no load and no mechanism at a queue can meet p99(small) < 2us: at "),
        "{said:?}"
    );
    assert!(
        said[0].contains("p99(small) is ")
            && said[0].ends_with("mostly propagation; no candidate was ranked"),
        "{said:?}"
    );
    assert_eq!(plimsoll_advise::CandidateFiles::of(&prepared, &advice), None);
}

/// Returns five switches in a ring, with two flows on each link between them and requests beside these. With a quarter
/// of the buffer, pauses stop all switches.
fn ring() -> String {
    let link = |from: &str, to: &str| {
        format!("[[link]]\nfrom = '{from}'\nto = '{to}'\nrate = '10Gbps'\ndelay = '1us'\n")
    };
    let hosts = ["a", "b", "c", "d", "e"];
    let (mut links, mut flows) = (String::new(), String::new());
    for (at, host) in hosts.iter().enumerate() {
        links += &link(host, &format!("s{at}"));
        links += &link(&format!("s{at}"), &format!("s{}", (at + 1) % 5));
        let to = hosts[(at + 2) % 5];
        flows += &format!("[workload.{host}]\nkind = 'flows'\nfrom = ['{host}']\nto = '{to}'\n");
    }
    format!(
        "version = 1\ntitle = 'a ring'\n[run]\nduration = '20ms'\nwarmup = '1ms'\n[topology]\nkind = 'file'\n\
         path = 'ring.toml'\n[transport]\ninitial_window = 200\nmax_window = 200\nhandshake = false\n\
         min_rto = '200ms'\nack_every = 1\n[port.switch]\nbuffer = '400KB'\npfc = {{}}\n{flows}\
         [workload.get]\nkind = 'rpc'\nclient = 'a'\nservers = ['c']\nrequest = '100B'\nresponse = '1KB'\n\
         load = '100Mbps'\n[files.'ring.toml']\ntext = \"\"\"\nhosts = ['a', 'b', 'c', 'd', 'e']\n\
         switches = ['s0', 's1', 's2', 's3', 's4']\n{links}\"\"\"\n"
    )
}

#[test]
fn a_candidate_that_cannot_be_run_is_a_row() {
    let scenario = load(&ring(), &[]);
    let mut question = question("p99(get) < 300us", 50);
    question.have = Have::parse(Some("buffers")).unwrap();
    let (_, advice) = ask(&scenario, &question, &Calls { most: Some(100), ..Calls::default() });
    let of = |name: &str| advice.ranking.iter().find(|one| one.name == name).unwrap();
    let (small, large) = (of("small buffers"), of("large buffers"));
    assert_eq!(small.state, plimsoll_advise::State::Failed, "{}", shown(&advice));
    let reason = small.failed.as_deref().unwrap();
    assert!(reason.starts_with("deadlock at "), "{reason}");
    assert!(advice.sentences().contains(&format!("small buffers could not be run: {reason}")));
    assert!(shown(&advice).contains("could not be run: deadlock at"), "{}", shown(&advice));
    assert!(large.runs > 0 && large.failed.is_none(), "{}", shown(&advice));
}

#[test]
fn the_best_preset_is_tried_with_the_best_mechanism_that_it_does_not_set() {
    let scenario = shipped("quickstart", SMALL);
    let (prepared, advice) = ask(&scenario, &question("p99(small) < 1ms", 100), &Calls::default());
    let pair = advice.ranking.iter().find(|one| one.name.contains(" + ")).unwrap();
    let (preset, other) = pair.name.split_once(" + ").unwrap();
    assert!(pair.runs > 0 && pair.costs.contains("; "), "{pair:?}");
    assert!(
        advice.ranking.iter().any(|one| one.name == preset)
            && advice.ranking.iter().any(|one| one.name == other)
    );
    // It has a scenario of its own, as the others have.
    let applied = plimsoll_advise::CandidateFiles::one(&prepared, &advice, pair).unwrap();
    let made = Scenario::parse("best.toml", &applied.scenario, Path::new(".")).unwrap();
    assert_eq!(made.points()[0].variant, pair.name);
}
