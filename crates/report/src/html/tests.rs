//! The page: whole, escaped, small; and drawn by a browser where one is installed.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use plimsoll_results::PointOutcome;
use plimsoll_results::curves::Detail;
use plimsoll_results::outcome::QueueObservation;
use plimsoll_results::run_dir::SIMULATOR;
use plimsoll_results::summary::Options;
use plimsoll_results::synthetic::{self, Shape};

use super::*;

fn report(variants: &[&str], loads: &[f64], replicates: u32, shape: &Shape) -> String {
    of_points(&synthetic::experiment(shape, variants, loads, replicates, 1))
}

fn of_points(points: &[PointOutcome]) -> String {
    carried(points, SIMULATOR)
}

fn carried(points: &[PointOutcome], carrier: &str) -> String {
    let summary = Summary::of(points, &Options::default());
    let curves = Curves::of(points, Detail::for_runs(points.len()));
    render(&Page {
        title: "Small requests <beside> large transfers",
        description: "900 B requests share a rack with 10 MB transfers: what does each mechanism do to both?",
        summary: &summary,
        curves: &curves,
        command: "plimsoll run scenarios/hull.toml --seed 1",
        carrier,
        seed: 1,
        version: "0.1.0",
        commit: Some("0123abc"),
        scenario: "version = 1\ntitle = \"</script><b>\"\n",
        warnings: &[],
    })
}

#[test]
fn texts_cannot_break_out() {
    let html = report(&["TCP", "</script><img src=x>"], &[], 1, &Shape::default());
    assert!(!html.contains("</script><"));
    assert!(!html.contains("<img"));
    assert!(html.contains("Small requests &lt;beside&gt; large transfers"));
}

#[test]
fn only_what_was_simulated_has_the_digests_of_every_machine() {
    let points = synthetic::experiment(&Shape::default(), &["TCP"], &[], 1, 1);
    let (simulated, live) = (carried(&points, SIMULATOR), carried(&points, "this kernel, --speed 2"));
    assert!(
        simulated.contains("Digests: the same on every machine") && simulated.contains(", on the simulator")
    );
    assert!(live.contains("Digests: of these runs alone") && live.contains(", on this kernel, --speed 2"));
}

/// A tier's ports have one name: the page shows the longest of their queues, and `figures` has each under its own id.
#[test]
fn of_a_tier_the_longest_queues_are_drawn_and_every_figure_has_an_id() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[0.2, 0.4], 1, 1);
    for point in &mut points {
        let first = point.outcome.queues[0].clone();
        for port in 0..40 {
            let mean_bytes = first.mean_bytes.iter().map(|bytes| bytes + f64::from(port)).collect();
            let (name, port) = ("edge".to_owned(), format!("switch {port}"));
            point.outcome.queues.push(QueueObservation { name, port, mean_bytes, ..first.clone() });
        }
    }
    let html = of_points(&points);
    assert_eq!(html.matches("id=\"queue-edge.").count(), 12);
    assert_eq!(html.matches("id=\"sweep-queue-edge.").count(), 24);
    assert!(html.contains("id=\"queue-client\"") && html.contains("id=\"queue-edge.40\""));
    assert!(!html.contains("id=\"queue-edge.28\"") && html.contains("Of the 40 queues edge, the 12"));
    let summary = Summary::of(&points, &Options::default());
    let all = figures(&summary, &Curves::of(&points, Detail::FULL));
    let ids: HashSet<&str> = all.iter().map(Figure::id).collect();
    assert_eq!(ids.len(), all.len());
    assert_eq!(ids.iter().filter(|id| id.starts_with("queue-edge.")).count(), 40);
}

#[test]
fn a_job_has_its_ranks_with_the_critical_path_and_the_places_of_waiting() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[], 1, 1);
    points.iter_mut().for_each(|point| synthetic::with_job(&mut point.outcome, 70));
    let html = of_points(&points);
    for found in [
        "id=\"ranks-train-HULL\"",
        "Iteration 0 of train, TCP",
        "Without 6 other ranks",
        "waits for dp",
        "leaf0 -&gt; spine0 60 %",
        "1 place 10 %",
    ] {
        assert!(html.contains(found), "{found}");
    }
    // The path leads through the rows of its figure, wide and narrow.
    let paths = html.matches("stroke-width=\"1.6\" stroke-linejoin=\"round\"").count();
    assert_eq!(paths, 2 * points.len());
}

#[test]
fn the_page_loads_nothing() {
    let html = report(&["TCP", "HULL"], &[0.2, 0.4], 1, &Shape::default());
    for outside in ["<link", "src=", "@import", "url(", "fetch("] {
        assert!(!html.contains(outside), "{outside}");
    }
    let without_namespace = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!without_namespace.contains("http://") && !without_namespace.contains("https://"));
}

#[test]
fn the_page_is_small_whatever_the_run() {
    let small = report(&["TCP"], &[], 1, &Shape::default());
    assert!(small.len() < 160_000, "{}", small.len());
    let large = Shape { requests: 40_000, transfers: 5_000, queries: 5_000, intervals: 20_000, load: 0.5 };
    let html = report(&["TCP", "DCTCP", "HULL"], &[], 1, &large);
    assert!(html.len() < 500_000, "{}", html.len());
}

#[test]
fn nothing_observed_is_still_a_page_and_a_table() {
    let html = report(&[], &[], 1, &Shape::default());
    assert!(html.ends_with("</html>\n"));
    let summary = Summary::of(&[], &Options::default());
    for format in [crate::Format::Table, crate::Format::Json, crate::Format::Csv, crate::Format::Md] {
        assert!(!table::render(&summary, format, &crate::TableStyle::default()).is_empty());
    }
}

#[test]
fn every_figure_has_a_place_a_caption_and_a_table() {
    let html = report(&["TCP", "DCTCP", "HULL"], &[], 1, &Shape::default());
    let figures = html.matches("<figure ").count();
    // One breakdown, two figures of times, three distributions, one over time, one queue.
    assert_eq!(figures, 8);
    assert_eq!(html.matches("<figcaption>").count(), figures);
    assert_eq!(html.matches("<summary>As a table</summary>").count(), figures);
}

#[test]
fn the_footer_explains_what_the_page_has() {
    let explained = |html: &str| (html.contains("</main></footer>"), html.contains("Bold: "));
    let several = report(&["TCP", "HULL"], &[], 3, &Shape::default());
    assert_eq!(explained(&several), (true, several.contains(page::BEST_VALUE)));
    assert!(several.contains(page::BEST_VALUE), "no value is bold");
    assert_eq!(explained(&report(&["TCP"], &[], 3, &Shape::default())), (true, false));
    assert_eq!(explained(&report(&[], &[], 1, &Shape::default())), (false, false));
}

fn hybrid(variants: &[&str]) -> Vec<PointOutcome> {
    let shape = Shape { requests: 200, ..Shape::default() };
    let mut points = synthetic::experiment(&shape, variants, &[], 1, 1);
    points.iter_mut().for_each(|point| synthetic::with_circuits(&mut point.outcome, 8, 40));
    points
}

#[test]
fn circuits_have_a_timetable_and_their_bytes_for_every_variant() {
    let html = of_points(&hybrid(&["TCP", "HULL"]));
    for id in ["timetable-TCP", "circuit-bytes-TCP", "timetable-HULL", "circuit-bytes-HULL"] {
        assert!(html.contains(&format!("<figure class=\"card\" id=\"{id}\">")), "{id}");
    }
    assert!(html.contains("<a href=\"#circuits\">Circuits</a>"));
    assert!(html.contains("<caption>Circuits</caption>"));
    assert!(!report(&["TCP"], &[], 1, &Shape::default()).contains("id=\"circuits\""));
    assert!(html.len() < 700_000, "{}", html.len());
}

#[test]
fn sizes_that_differ_have_a_figure_for_each_percentile_that_is_known() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[], 1, 1);
    let messages = points.iter_mut().flat_map(|point| &mut point.outcome.messages);
    for message in messages.filter(|message| message.workload == 1) {
        message.bytes = if message.index % 2 == 0 { 3_000 } else { 8_000_000 };
    }
    let html = of_points(&points);
    // 75 messages of each size are too few for a p99.
    assert!(
        html.contains("p95 slowdown of background by size") && html.contains("p50 slowdown of background")
    );
    assert!(!html.contains("p99 slowdown of background by size"));
    assert!(html.contains("TCP: up to 5 KB") && html.contains("HULL: up to 10 MB"));
}

#[test]
fn ranks_have_figures_and_a_table_that_counts_unfinished_flows() {
    let mut points = synthetic::experiment(&Shape::default(), &["TCP"], &[], 1, 1);
    let messages = points.iter_mut().flat_map(|point| &mut point.outcome.messages);
    for message in messages.filter(|message| message.workload == 1) {
        message.bytes = 1_000 * (message.index + 1);
        message.completed = message.completed.filter(|_| message.index != 1);
    }
    let html = of_points(&points);
    let of = |text: &str| html.matches(text).count();
    assert!(of("p50 slowdown of background by rank") > 0);
    assert_eq!(of("p95 slowdown of background by rank"), 0, "a bin has seven or eight flows");
    assert_eq!(of("TCP: 0 .. 5 %"), 1, "one table for all percentiles");
    assert!(
        of("1 of 150 flows did not finish and is not in these percentiles.") >= 2,
        "the figure and its table"
    );
    assert!(html.contains("The ideal time is that of the same message"));
}

#[test]
fn links_are_shaded_and_the_many_small_ones_are_one_row() {
    let html = report(&["TCP", "HULL"], &[], 2, &Shape::default());
    let row = |name: &str| {
        let start = html.find(&format!("<th scope=\"row\">{name}</th>")).unwrap();
        &html[start..start + html[start..].find("</tr>").unwrap()]
    };
    assert!(row("leaf -&gt; spine (1)").contains("<td style=\"--heat:70%\">70.0 % (most 70.0 %)</td>"));
    assert!(
        row("leaf0 -&gt; h0").contains("<td style=\"--heat:100%\">311</td><td>0</td>"),
        "{}",
        row("leaf0")
    );
    assert!(row("42 other links, their mean").contains("<td>"));
    assert!(
        !report(&["TCP"], &[0.2, 0.4], 1, &Shape::default()).contains("<details open><summary>load = 0.2")
    );
}

/// Draws a page in headless Chromium; `None` where there is none.
fn browse(page: &Path, extra: &[&str]) -> Option<String> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()));
    let Some(browser) = found else {
        plimsoll_testing::skipped!("no chromium is installed");
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"])
        .args(["--virtual-time-budget=5000", "--window-size=1200,900"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(extra)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn a_browser_draws_every_figure() {
    let place = tempfile::tempdir().unwrap();
    for (name, loads, figures) in [("point.html", &[][..], 8), ("sweep.html", &[0.2, 0.4, 0.6][..], 21)] {
        let path = place.path().join(name);
        std::fs::write(&path, report(&["TCP", "DCTCP", "HULL"], loads, 2, &Shape::default())).unwrap();
        let Some(dom) = browse(&path, &["--dump-dom"]) else { return };
        assert!(dom.contains(&format!("data-drawn=\"{figures}\"")), "{name}: the script did not end");
        assert!(!dom.contains("class=\"chart-error\""), "{name}");
        // The drawn part, without the script itself.
        let drawn: Vec<&str> = dom.split("<figure ").skip(1).collect();
        assert_eq!(drawn.len(), figures, "{name}");
        for svg in drawn.iter().flat_map(|figure| figure.split("<svg role=\"img\"").skip(1)) {
            let svg = &svg[..svg.find("</svg>").unwrap()];
            assert!(!svg.contains("NaN") && !svg.contains("undefined") && !svg.contains("Infinity"), "{svg}");
            assert!(!svg.contains("inf\"") && !svg.contains("inf "), "{svg}");
            let marks = svg.matches("<path").count() + svg.matches("<rect").count();
            assert!(marks > 8, "{name}: only {marks} marks in {svg}");
        }
    }
}

/// Reports labels that a figure cuts, the effect of the arrow keys and of a pointer, and the file of a figure.
const PROBE: &str = "<script>(() => {
  const cut = [];
  for (const text of document.querySelectorAll('.plot text')) {
    const [box, figure] = [text.getBoundingClientRect(), text.closest('svg').getBoundingClientRect()];
    if (!box.width) continue;
    const inside = box.left >= figure.left - 1 && box.right <= figure.right + 1
      && box.top >= figure.top - 1 && box.bottom <= figure.bottom + 1;
    if (!inside) cut.push(text.textContent);
  }
  const figure = [...document.querySelectorAll('#who-pays svg')].find((svg) => svg.getBoundingClientRect().width);
  const tip = () => document.querySelector('.tip:not([hidden])')?.innerText ?? 'nothing';
  figure.focus();
  const press = (key) => figure.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  press('ArrowRight');
  const first = tip();
  press('ArrowDown');
  const second = tip();
  press('Escape');
  const after = tip();
  const at = { bubbles: true, clientX: 50, clientY: 50 };
  figure.querySelector('.target').dispatchEvent(new PointerEvent('pointerdown', at));
  const tapped = tip();
  const visible = (svg) => svg.getBoundingClientRect().width;
  const timetable = [...document.querySelectorAll('#timetable-TCP .plot svg')].find(visible);
  timetable.querySelector('.target').dispatchEvent(new PointerEvent('pointerdown', at));
  const circuit = tip();
  const kept = [];
  window.Blob = class { constructor(parts) { kept.push(parts[0]); } };
  URL.createObjectURL = () => '#';
  HTMLAnchorElement.prototype.click = () => {};
  document.querySelector('#time-small .keys input').click();
  document.querySelector('#time-small .save').click();
  const file = new DOMParser().parseFromString(kept[0], 'image/svg+xml');
  const texts = [...file.querySelectorAll('text')].map((text) => text.textContent);
  const report = { cut, circuit, first, second, after, tapped, width: innerWidth,
    wide: document.documentElement.scrollWidth, texts,
    saved: [...file.documentElement.querySelectorAll('g')].length, targets: file.querySelectorAll('.target').length,
    broken: file.querySelectorAll('parsererror').length, size: file.documentElement.getAttribute('viewBox') };
  parent.document.body.append(`PROBE${JSON.stringify(report)}PROBE`);
})();</script></body>";

#[test]
fn a_phone_shows_every_label_and_keys_and_taps_show_the_numbers() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("probe.html");
    let mut points = synthetic::experiment(&Shape::default(), &["TCP", "DCTCP", "HULL"], &[], 2, 1);
    synthetic::with_circuits(&mut points[0].outcome, 8, 40);
    let html = of_points(&points);
    assert!(html.contains("id=\"timetable-TCP\""));
    let probed = html.replace("</body>", PROBE);
    for width in [360u64, 800, 1200] {
        // No window of this browser is as narrow as a phone, but a frame is.
        let frame = format!(
            "<!DOCTYPE html><body><iframe style=\"border: 0\" width=\"{width}\" height=\"900\" srcdoc=\"{}\">\
             </iframe></body>",
            escape(&probed)
        );
        std::fs::write(&path, frame).unwrap();
        let Some(dom) = browse(&path, &["--dump-dom"]) else { return };
        let json = dom.rsplit("PROBE").nth(1).unwrap_or_else(|| panic!("{dom}"));
        let found: serde_json::Value =
            serde_json::from_str(&json.replace("&gt;", ">").replace("&lt;", "<")).unwrap();
        assert_eq!(found["width"], width);
        assert!(found["wide"].as_u64() <= Some(width), "{found}");
        assert_eq!(found["cut"], serde_json::json!([]), "{width}");
        assert!(found["first"].as_str().unwrap().contains("DCTCP mean"), "{found}");
        assert!(found["second"].as_str().unwrap().contains("DCTCP p99"), "{found}");
        assert_eq!(found["after"], "nothing");
        assert_eq!(found["tapped"], found["first"]);
        // The first week behind a warm-up of 10 ms.
        // The file of a figure has its title and its legend, without the component that was switched off.
        let texts: Vec<&str> =
            found["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        assert_eq!(texts[0], "Where the time of small went", "{found}");
        assert!(texts.contains(&"NIC queue") && !texts.contains(&"recovery"), "{found}");
        assert!(
            found["saved"].as_u64() > Some(3) && found["targets"] == 0 && found["broken"] == 0,
            "{found}"
        );
        let circuit = found["circuit"].as_str().unwrap();
        assert!(circuit.contains("h0, week 7") && circuit.contains("to h1"), "{found}");
        assert!(circuit.contains("50.0 % filled"), "{found}");
    }
}

/// Reports the width of the page, and the elements that stick out of it, except in a box that scrolls.
const WIDTHS: &str = "<script>(() => {
  document.querySelectorAll('details').forEach((details) => { details.open = true; });
  const sticks = [...document.querySelectorAll('body *')].filter((element) => !element.closest('.scroll, pre, svg')
    && element.getBoundingClientRect().right > innerWidth + 1);
  const wide = sticks.map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`);
  const report = { width: innerWidth, page: document.documentElement.scrollWidth, wide };
  parent.document.body.append(`PROBE${JSON.stringify(report)}PROBE`);
})();</script></body>";

#[test]
fn a_sweep_over_two_keys_fits_a_phone() {
    let variants = ["TCP", "DCTCP with a threshold of 65 packets", "HULL"];
    let mut points = synthetic::experiment(&Shape::default(), &variants, &[0.2, 0.4], 2, 1);
    let mut others = points.clone();
    for (points, threshold) in [(&mut points, "30 packets"), (&mut others, "65 packets")] {
        let key = "port.leaf-to-spine.ecn.threshold".to_owned();
        points.iter_mut().for_each(|point| point.key.sweep.push((key.clone(), threshold.to_owned())));
    }
    points.extend(others);
    let html = of_points(&points);
    assert_eq!(html.matches("<figure class=\"card\" id=\"sweep-small-p99-at-").count(), 2);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("phone.html");
    let probed = html.replace("</body>", WIDTHS);
    let frame = format!(
        "<!DOCTYPE html><body><iframe style=\"border: 0\" width=\"390\" height=\"900\" srcdoc=\"{}\"></iframe></body>",
        escape(&probed)
    );
    std::fs::write(&path, frame).unwrap();
    let Some(dom) = browse(&path, &["--dump-dom"]) else { return };
    let json = dom.rsplit("PROBE").nth(1).unwrap_or_else(|| panic!("{dom}"));
    let found: serde_json::Value =
        serde_json::from_str(&json.replace("&gt;", ">").replace("&lt;", "<")).unwrap();
    assert_eq!(found["width"], 390);
    assert!(found["page"].as_u64() <= Some(390) && found["wide"] == serde_json::json!([]), "{found}");
}

/// Writes reports to the folder named by `PLIMSOLL_FIGURES`, to be looked at.
#[test]
#[ignore = "nothing is tested: it draws what is to be looked at"]
fn reports_to_look_at() {
    let folder = std::env::var("PLIMSOLL_FIGURES").expect("PLIMSOLL_FIGURES names a folder");
    let shape = Shape { requests: 9_000, transfers: 1_800, queries: 2_000, intervals: 2_000, load: 0.5 };
    for (name, loads) in [("point", &[][..]), ("sweep", &[0.2, 0.4, 0.6, 0.8][..])] {
        let html = report(&["TCP", "DCTCP", "HULL"], loads, 3, &shape);
        eprintln!("{name}: {} bytes", html.len());
        std::fs::write(Path::new(&folder).join(format!("{name}.html")), html).unwrap();
    }
}
