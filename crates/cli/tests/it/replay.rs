//! `plimsoll replay`: a page that plays without a server, of the packets of the run.
#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::common::{Place, SWEEP};

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
    place.plimsoll(&["replay", "run", "--variant", "TCP", "--whole"]).ends_with(0).says("has not finished");
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
