//! `plimsoll replay`: a page that plays without a server, of the packets of the run.
#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::common::{Place, SWEEP, names};

/// Three senders that fill a port at all times.
const BUSY: &str = r#"
version = 1
title = "A port to be looked at"
[run]
duration = "20ms"
[topology]
kind = "rack"
hosts = 4
rate = "1Gbps"
delay = "5us"
[port.switch]
buffer = "100 packets"
ecn = { threshold = "30KB" }
[transport]
kind = "dctcp"
[workload.bulk]
kind = "flows"
from = "h1..h3"
to = "h0"
"#;

/// Returns a folder with the page of a tenth of a millisecond of it.
fn replayed(more: &[&str]) -> Place {
    let place = Place::new();
    place.write("busy.toml", BUSY);
    let args = [&["replay", "busy.toml", "--from", "10ms", "--for", "100us"], more].concat();
    place.plimsoll(&args).ends_with(0).says("packets on");
    place
}

/// Returns the recording in a page.
fn recording(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"recording\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_page_has_the_packets_of_the_window_and_loads_nothing() {
    let place = replayed(&[]);
    let page = place.read("replay.html");
    let recording = recording(&page);
    assert_eq!((&recording["from"], &recording["length"]), (&json!(10_000_000_000u64), &json!(100_000_000)));
    assert_eq!(recording["workloads"], json!(["bulk"]));
    let packets = recording["packets"]["size"].as_array().unwrap().len();
    assert!(packets > 20, "{packets} packets");
    // DCTCP's queue is at its threshold.
    let marked =
        recording["hops"]["fate"].as_array().unwrap().iter().filter(|fate| **fate == json!(1)).count();
    assert!(marked > 0 && marked < packets, "{marked} of {packets}");
    assert!(page.contains("default-src 'none'"));
    // The name of SVG's elements is an address that nothing is loaded from.
    let text = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!text.contains(outside), "{outside}");
    }
    assert_eq!(replayed(&[]).read("replay.html"), page);
}

#[test]
fn a_run_directory_is_replayed_and_its_digest_checked() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    let cut = ["--set", "run.duration=50ms", "--variant", "DCTCP"];
    place.plimsoll(&[&["run", "sweep.toml", "--out", "run", "-q"], &cut[..]].concat()).ends_with(0);
    let whole = ["replay", "run", "--whole", "--variant", "DCTCP", "--at", "workload.transfers.load=0.7"];
    let ran = place.plimsoll(&whole).ends_with(0).says("as in run");
    let digest = ran.stderr.lines().find_map(|line| line.strip_prefix("digest ")).unwrap().to_owned();
    assert!(place.read("run/summary.json").contains(&digest) && place.read("replay.html").contains(&digest));
    let other = ["replay", "run", "--variant", "TCP", "--whole", "--out", "tcp.html"];
    place.plimsoll(&other).ends_with(0).says("has not finished");
}

/// Without `--from` the page has the message that was delayed most, from its creation to its end, and no file is
/// overwritten.
#[test]
fn the_message_that_was_delayed_most_is_drawn_by_default() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    let cut = ["--set", "run.duration=50ms", "--variant", "DCTCP", "--at", "workload.transfers.load=0.7"];
    place.plimsoll(&[&["replay", "sweep.toml"], &cut[..]].concat()).ends_with(0).says("packets on");
    let recording = recording(&place.read("replay.html"));
    let [from, length] = ["from", "length"].map(|key| recording[key].as_u64().unwrap());
    place.plimsoll(&[&["run", "sweep.toml", "--out", "run", "-q"], &cut[..4]].concat()).ends_with(0);
    let point = names(&place.path("run/points")).into_iter().find(|name| name.contains("0.7")).unwrap();
    let messages = place.read(&format!("run/points/{point}/messages.csv"));
    let mut rows = messages.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|known| *known == name).unwrap();
    let [created, completed, ideal] = ["created_ps", "completed_ps", "ideal_ps"].map(column);
    let number = |row: &[&str], at: usize| row[at].parse::<u64>().ok();
    let worst = rows
        .filter_map(|row| Some((number(&row, created)?, number(&row, completed)?, number(&row, ideal)?)))
        .max_by(|a, b| ((a.1 - a.0) as f64 / a.2 as f64).total_cmp(&((b.1 - b.0) as f64 / b.2 as f64)))
        .unwrap();
    assert!(from <= worst.0 && worst.1 <= from + length, "{from} {length} {worst:?}");
    let again = place.plimsoll(&["replay", "sweep.toml"]).ends_with(2);
    again.says("replay.html is there already; choose another file with `--out`");
}

#[test]
fn errors_name_what_is_allowed() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    for (flags, words) in [
        (&["--variant", "DCTPC"][..], "expected one of TCP, DCTCP; did you mean `DCTCP`?"),
        (&["--at", "workload.transfers.load=0.55"], "expected one of 0.5, 0.6, 0.7, 0.8"),
        (&["--at", "workload.transfer.load=0.5"], "did you mean `workload.transfers.load`?"),
        (&["--at", "0.5"], "write KEY=VALUE"),
        (&["--replicate", "3"], "expected one from 0 to 0"),
        (&["--for", "0s"], "expected a length above zero"),
        (&["--for", "7s"], "has more than 100000 packet-hops"),
        (&["--from", "1h"], "choose an earlier `--from`"),
    ] {
        place.plimsoll(&[&["replay", "sweep.toml"], flags].concat()).ends_with(2).says(words);
    }
    assert!(!place.path("replay.html").exists());
}

#[test]
fn a_browser_steps_and_plays() {
    let place = replayed(&[]);
    let url = format!("file://{}", place.path("replay.html").display());
    let Some(mut browser) = Browser::open(&place, &url, (390, 800)) else {
        plimsoll_testing::missing("no chromium (apt-get install chromium)");
        return;
    };
    browser.wait_for("document.documentElement.dataset.replayed");
    let text = |browser: &mut Browser, id: &str| {
        let value = browser.value(&format!("document.getElementById('{id}').textContent"));
        value.as_str().unwrap().to_owned()
    };
    let first = text(&mut browser, "event-number");
    browser.press("ArrowRight");
    browser.wait_for(&format!("document.getElementById('event-number').textContent !== '{first}'"));
    let sentence = text(&mut browser, "event");
    assert!(sentence.contains("bulk"), "{sentence}");
    browser.value("document.getElementById('us-on').click()");
    browser.wait_for("Number(document.documentElement.dataset.replayed.split(' ')[0]) >= 1000000");
    // Something is drawn, in colours of the page, and no wider than a phone.
    let drawn = "(() => { const canvas = document.getElementById('network'); const { data } = \
         canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height); \
         return new Set(new Uint32Array(data.buffer)).size; })()";
    assert!(browser.value(drawn).as_u64().unwrap() > 10);
    assert_eq!(browser.value("document.documentElement.scrollWidth <= innerWidth"), json!(true));
    browser.press(" ");
    browser.wait_for("document.getElementById('play').textContent === 'Pause'");
    browser.wait_for("Number(document.documentElement.dataset.replayed.split(' ')[0]) > 2000000");
}
