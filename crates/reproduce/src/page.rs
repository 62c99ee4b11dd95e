//! The page of a reproduction: Markdown and the figures it shows, all from the rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_report::chart::{Around, Axis, Body, Chart, Color, Format, Line, Lines, Read, Shape};
use plimsoll_report::figures::number;
use plimsoll_report::svg::{self, Size};

use crate::hull::explain::{EXPLANATIONS, Explanation, OPEN, explanation, open_question};
use crate::hull::figures;
use crate::hull::run::Reproduction;
use crate::row::Row;

/// File name to content, below `docs/reproductions`.
pub fn files(reproduction: &Reproduction) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    files.insert("hull.md".to_owned(), page(reproduction));
    for (name, chart) in charts(reproduction) {
        files.insert(format!("hull/{name}.svg"), svg::render(&chart, Size::default()));
    }
    let json = serde_json::to_string(reproduction).expect("rows are plain data");
    files.insert("hull/rows.json".to_owned(), json.replace("},{", "},\n{") + "\n");
    files
}

fn page(reproduction: &Reproduction) -> String {
    let mut page = String::from(HEAD);
    verdict(&mut page, reproduction);
    page.push_str(READING);
    for figure in figures() {
        section(&mut page, reproduction, &figure);
    }
    for (id, title) in EXTRA {
        let _ = writeln!(page, "\n## {title}\n");
        table(&mut page, &rows_of(reproduction, id));
    }
    explanations(&mut page, reproduction);
    page.push_str(DIFFERENCE);
    broken_orderings(&mut page, reproduction);
    page
}

/// Tables that are no figure of the study.
const EXTRA: &[(&str, &str)] = &[
    ("oracles", "Exact values"),
    ("association", "Whom the pacer paces"),
    ("summary", "The study's headline percentages"),
];

fn rows_of<'a>(reproduction: &'a Reproduction, figure: &str) -> Vec<&'a Row> {
    reproduction.rows.iter().filter(|row| row.figure == figure).collect()
}

fn verdict(page: &mut String, reproduction: &Reproduction) {
    let judged = || reproduction.rows.iter().filter(|row| row.within.is_some());
    let (held, all) = (judged().filter(|row| row.within == Some(true)).count(), judged().count());
    let decided = || reproduction.orderings.iter().filter(|ordering| ordering.holds.is_some());
    let in_order = decided().filter(|ordering| ordering.holds == Some(true)).count();
    let unexplained =
        reproduction.rows.iter().filter(|row| row.is_off() && explanation(row).is_none()).count();
    let _ = writeln!(
        page,
        "**{held} of {all}** numbers that are held to a tolerance are within it; {} of the others are \
         explained below by mechanism, {unexplained} are not. **{in_order} of {}** pairs of schemes whose \
         measured intervals are apart have the published order. {} packet-hops were simulated, seed {}.\n",
        all - held - unexplained,
        decided().count(),
        reproduction.packet_hops,
        reproduction.seed,
    );
    if reproduction.quick {
        page.push_str("> This page is of a quick look: the runs are short and their tails mean little.\n\n");
    }
}

fn section(page: &mut String, reproduction: &Reproduction, figure: &crate::hull::Figure) {
    let rows = rows_of(reproduction, figure.id);
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n## {}: {}\n", figure.id, figure.title);
    for metric in drawn(figure.id) {
        let _ = writeln!(page, "![{} {metric}](hull/{}-{metric}.svg)\n", figure.id, figure.id);
    }
    let _ = writeln!(page, "<details><summary>Every number</summary>\n");
    table(page, &rows);
    page.push_str("\n</details>\n");
}

/// The metrics of a figure that are worth a picture.
fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "fig2b" | "fig2c" => &["queue_us_mean", "goodput_mbps"],
        "table2" => &["queue_us_p99", "small_fct_us_p99", "bkg_fct_ms_mean"],
        "fig4" | "fig5" | "fig6" => &["query_ms_p99", "resp_ms_p99", "queue_us_p99"],
        _ => &[],
    }
}

fn table(page: &mut String, rows: &[&Row]) {
    page.push_str(
        "| scheme | x | metric | source | 95 % | seeds | published | ratio | | standard | original |\n",
    );
    page.push_str("|---|---|---|--:|--:|--:|--:|--:|---|--:|--:|\n");
    for row in rows.iter().filter(|row| row.base == "source") {
        let same = |other: &&&Row| {
            other.base == "standard"
                && (&other.series, &other.x, &other.metric) == (&row.series, &row.x, &row.metric)
        };
        let standard = rows.iter().find(same).map_or_else(String::new, |row| number(row.measured));
        let optional = |value: Option<f64>| value.map_or_else(String::new, number);
        let range = |range: Option<(f64, f64)>| {
            range.map_or_else(String::new, |(low, high)| format!("{} .. {}", number(low), number(high)))
        };
        let mark = match (row.within, explanation(row)) {
            (Some(true), _) => "✓",
            (Some(false), Some(_)) => "explained",
            (Some(false), None) => "**off**",
            (None, _) => "",
        };
        let _ = writeln!(
            page,
            "| {} | {} | {} ({}) | {} | {} | {} | {} | {} | {mark} | {standard} | {} |",
            row.series,
            row.x,
            row.metric,
            row.unit,
            number(row.measured),
            range(row.ci),
            range(row.seeds),
            row.published.map_or_else(|| "none published".to_owned(), number),
            row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}")),
            optional(row.original),
        );
    }
}

fn explanations(page: &mut String, reproduction: &Reproduction) {
    page.push_str("\n## What is outside its tolerance, and why\n");
    for explained in EXPLANATIONS {
        let of = |row: &Row| explanation(row).is_some_and(|other| other.title == explained.title);
        explained_rows(page, reproduction, explained, of);
    }
    let is_open = |row: &Row| row.is_off() && explanation(row).is_none();
    if reproduction.rows.iter().any(is_open) {
        page.push_str("\n## What is outside its tolerance and not understood\n");
    }
    for open in OPEN {
        let of = |row: &Row| {
            explanation(row).is_none() && open_question(row).is_some_and(|other| other.title == open.title)
        };
        explained_rows(page, reproduction, open, of);
    }
}

fn explained_rows(
    page: &mut String,
    reproduction: &Reproduction,
    explained: &Explanation,
    of: impl Fn(&Row) -> bool,
) {
    let rows: Vec<&Row> = reproduction.rows.iter().filter(|row| row.is_off() && of(row)).collect();
    if !rows.is_empty() {
        let _ = writeln!(page, "\n### {}\n\n{}\n", explained.title, explained.text);
        table(page, &rows);
    }
}

fn broken_orderings(page: &mut String, reproduction: &Reproduction) {
    let broken: Vec<_> =
        reproduction.orderings.iter().filter(|ordering| ordering.holds == Some(false)).collect();
    if broken.is_empty() {
        return;
    }
    page.push_str(ORDERINGS);
    page.push_str("| figure | x | metric | published smaller | published larger |\n|---|---|---|---|---|\n");
    for ordering in broken {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            ordering.figure, ordering.x, ordering.metric, ordering.smaller, ordering.larger
        );
    }
}

fn charts(reproduction: &Reproduction) -> Vec<(String, Chart)> {
    let mut charts = Vec::new();
    for figure in figures() {
        for metric in drawn(figure.id) {
            let rows = rows_of(reproduction, figure.id);
            let rows: Vec<&Row> =
                rows.into_iter().filter(|row| row.metric == *metric && row.base == "source").collect();
            if !rows.is_empty() {
                charts.push((format!("{}-{metric}", figure.id), chart(&figure, metric, &rows)));
            }
        }
    }
    charts
}

/// Measured lines, and the published values in the same colour.
fn chart(figure: &crate::hull::Figure, metric: &str, rows: &[&Row]) -> Chart {
    let mut lines = Vec::new();
    for (index, series) in figure.series.iter().enumerate() {
        let of: Vec<(f64, &Row)> = rows
            .iter()
            .filter(|row| row.series == *series)
            .filter_map(|row| Some((row.x.parse().ok()?, *row)))
            .collect();
        let x = of.iter().map(|(x, _)| *x).collect();
        let y = of.iter().map(|(_, row)| row.measured).collect();
        let mut line = Line::new(series, Color::Series(index), x, y);
        line.around = Some(Around {
            shape: Shape::ErrorBars,
            low: of.iter().map(|(_, row)| row.ci.map(|(low, _)| low)).collect(),
            high: of.iter().map(|(_, row)| row.ci.map(|(_, high)| high)).collect(),
        });
        lines.push(line);
        let published: Vec<(f64, f64)> =
            of.iter().filter_map(|(x, row)| Some((*x, row.published?))).collect();
        if !published.is_empty() {
            let (x, y) = published.into_iter().unzip();
            let mut line = Line::new(&format!("{series}, published"), Color::Series(index), x, y);
            line.dashed = true;
            lines.push(line);
        }
    }
    let unit = rows.first().map_or("", |row| row.unit.as_str());
    let label = format!("{metric} ({unit})");
    let spread = rows
        .iter()
        .map(|row| row.measured)
        .fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let y = if spread.0 > 0.0 && spread.1 / spread.0 > 30.0 {
        Axis::log(&label, Format::Number)
    } else {
        Axis::from_zero(&label, Format::Number)
    };
    let x = Axis { label: figure.axis.to_owned(), ..Axis::default() };
    Chart {
        title: format!("{}: {metric}", figure.id),
        note: figure.title.to_owned(),
        body: Body::Lines(Lines { x, y, series: lines, read: Read::AtX, tail_view: false }),
    }
}

const HEAD: &str = "<!-- Generated by `plimsoll reproduce hull --out docs/reproductions`. -->\n
# HULL, reproduced\n
HULL gives up a little bandwidth to keep switch queues empty: phantom queues that mark before a real
queue forms, DCTCP that reacts in proportion, and host pacing that takes the bursts out. A semester
project evaluated it in ns-2; here is every experiment of that evaluation, run again.\n\n";

const READING: &str = "\n*Source* sets what the study's ns-2 scripts set, experiment by experiment, and is
held to the published values: means within a factor of 1.35 and 99th percentiles within 1.5 in Table II and
Figs. 4 to 6, 5 % and 15 % for the static flows. *Standard* is the same experiment by the RFCs and the paper,
without a tolerance. *Original* is the HULL paper's own testbed where the study repeats one of its
experiments. Queueing delays are means over intervals (1 ms static, 10 ms elsewhere), as the study's scripts
took them. Every parameter is in `scenarios/hull`; no constant is tuned to a row.\n
Two things had to be found out before the numbers came out:\n
* **Every message begins with a window of two segments.** The scripts turn slow-start restart off, yet in the
  study's raw results each write brings the window back to two, while ssthresh stays. A lone 10 MB transfer on
  a warm connection takes 83.42 to 83.44 ms, of which the line rate needs 83.40. In Fig. 4 without background
  the scripts' random numbers give every arrival and service time again, and what is left of a response time
  is its path. The servers have their 3500 B requests one after another every 13.44 us, as ten connections
  share the client's NIC that send two segments each and then the rest; the 2800 B response takes 61.52 us,
  two segments and then one, where three in a row take 41.28. That needs no idle time: the same holds 75 us
  after the response before, and a response 40 us after another, with a segment still unacknowledged, takes
  57.2 us where a window that had grown would give 45.3. So with TCP a query crosses the client's queue three
  times: once with an ACK that the end of the request waits for, and twice with the response. When the window
  fell back only after an idle RTO, TCP's fastest response in Fig. 4 came a third too early (0.87 and 1.26 ms
  against 1.20 and 1.94 at 200 and 400 Mb/s). When it never did, Table II's DCTCP queue overflowed (mean 35 us
  instead of 13).
* **Ties must be fair.** Packets that are clocked by one bottleneck arrive on one time lattice, so two of
  them often arrive in the same picosecond. Served in port order, two DCTCP flows settle at 4 : 1 and with
  drop-tail the lowest port locks the others out. Plimsoll resolves each tie by a permutation that changes
  with the instant (`crates/fabric/src/engine/queue.rs`); DCTCP-30K's static queue then comes out within 2 %.\n
The small requests' tail in Table II is the sender's own NIC, not the switch: a server that sends a 10 MB file
has the whole window in its NIC queue, nothing marks there, and a small response waits behind it. That is why
DCTCP's 99th percentile (about 0.85 ms) is several times its queue at the switch (0.24 ms), and why HULL, whose
window is two or three packets, takes it away.\n";

const DIFFERENCE: &str = "\n## What the standard base teaches\n
* **DCTCP that marks every packet above K** instead of every second one cuts in time: Table II's 99th
  percentile of the queue is a fifth lower at 40 and 60 % load, at the same completion times.
* **HULL's floor is one packet, not two.** The study's ns-2 opens the window on every ECE ACK but the first of a
  run, so a sender that is always marked keeps two packets in flight; by RFC 3168 no ECE ACK opens it, and one
  remains. Eight static flows then queue for 8 us instead of 51, and Table II's 99th percentile of the queue is
  three to six times lower, for transfers that take at most 7 % longer on average.
* **The paper's pacer** stands in front of the NIC queue and lets other flows pass; the study's stands behind it
  and blocks them. Small requests gain from that as well: their 99th percentile is a third to a half lower.
* **SACK** repairs in a round trip what the study's Reno repaired by a timeout, so drop-tail TCP hardly stalls:
  1 % more goodput from four flows on, and a queue that is 5 to 15 % longer for it.\n";

const ORDERINGS: &str = "\n## Pairs in the other order\n
Where the measured intervals are apart and the order is not the published one. In Fig. 2b at two flows the
phase of the starts decides who is locked out (`fig2b-phase`, with starts 50 us apart, has the published
order); elsewhere the published values are close and each was run once.\n\n";
