use clap::Parser;

use super::*;

#[derive(Parser)]
struct ModelLine {
    #[command(flatten)]
    args: Args,
}

/// Prints what `plimsoll model` prints for these words.
fn of(words: &[&str]) -> anyhow::Result<String> {
    let line = ModelLine::try_parse_from(["model"].iter().chain(words));
    printed(&line.expect("the arguments are known").args)
}

fn said(words: &str) -> String {
    of(&words.split_whitespace().collect::<Vec<_>>()).expect("it prints")
}

fn json(words: &str) -> serde_json::Value {
    serde_json::from_str(&said(&format!("{words} --format json"))).expect("it is JSON")
}

/// Returns the values of a column of CSV, counted from 0.
fn csv(words: &[&str], column: usize) -> Vec<String> {
    let csv = of(&[words, &["--format", "csv"]].concat()).expect("it prints");
    csv.lines().skip(1).filter_map(|line| line.split(',').nth(column).map(str::to_owned)).collect()
}

/// Writes a file of measured latencies into a folder, and returns its name.
fn measured(folder: &tempfile::TempDir, text: &str) -> String {
    let file = folder.path().join("latencies.csv");
    std::fs::write(&file, text).expect("it can be written");
    file.to_str().expect("its name is text").to_owned()
}

#[test]
fn bad_input_says_what_is_allowed() {
    for (words, part) in [
        ("fanout --servers 0", "--servers 0: expected 1 or more"),
        ("fanout --sd 0us", "allowed: more than 0"),
        ("fanout --repetitions 0", "expected 1 or more"),
        ("fanout --file nowhere.csv", "cannot read nowhere.csv"),
        ("page --retrievals 0", "--retrievals 0: expected 1 to 10000"),
        ("page --width 0", "--width 0: expected 1 or more"),
        ("page --replicas 65", "--copies 65: expected 1 to 64"),
        ("page --timeout 0us", "--timeout 0: expected more than 0 us"),
        ("qjump --hosts 0", "1 or more"),
        ("qjump --hosts 10 --assume 0.5", "1 (the worst case) or more"),
        ("qjump --hosts 10 --packet 0B", "1B to 65KB"),
        ("replicas --copies 0", "--copies 0: expected 1 to 64"),
        ("hedge --servers 0", "--servers 0: expected 1 or more"),
        ("retry --timeout 0us", "--timeout 0: expected more than 0 us"),
        ("retry --retries 65", "--retries 65: expected 0 to 64"),
        ("sequential --load 1", "0 or more and less than 1"),
        ("sequential --service 0us", "more than 0us"),
        ("sequential --from nowhere.csv", "cannot read nowhere.csv"),
        ("stragglers --servers 0", "--servers 0: expected 1 or more"),
        ("stragglers --copies 0", "--copies 0: expected 1 or more"),
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let error = of(&words).expect_err("it cannot be").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_dissertations_fan_out() {
    let json = json("fanout");
    let expected = |row: usize| json[row]["expected_us"].as_f64().expect("a number");
    assert!((expected(0) - 90.0).abs() < 0.01 && (expected(6) - 215.4).abs() < 0.1, "{json}");
    let text = said("fanout");
    assert!(text.starts_with("one request   p50 90.00 us, p99 206.32 us, p99.95 254.53 us"), "{text}");
}

#[test]
fn a_file_of_latencies_is_a_law() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = measured(&folder, "us\n1\n2\n3\n4\n5\n6\n");
    assert_eq!(csv(&["fanout", "--from", &file, "--servers", "1,2"], 1), ["3.5", "4.472"]);
}

#[test]
fn the_talks_page_takes_200_ms_and_copies_shorten_it() {
    let p999 = |words: &str| {
        let json = json(&format!("page --retrievals 150 {words}"));
        json[0]["p999_ms"].as_f64().expect("a number")
    };
    let once = p999("");
    assert!((once / 200.0 - 1.0).abs() < 0.05, "{once}");
    assert_eq!(p999("--replicas 1"), once);
    assert!(p999("--replicas 2") < 0.6 * once);
    assert!(p999("--hedge-at 95%") < 0.9 * once);
    assert!(p999("--width 10") > once);
}

/// The example of QJump's paper: with 1000 hosts, 256 B and 10 Gb/s, 409.6 us and less than 5 Mb/s a host.
#[test]
fn the_papers_example_of_qjump() {
    let text = said("qjump --hosts 1000");
    assert!(text.contains("409.6us") && text.contains("204.8us"), "{text}");
    assert_eq!(json("qjump --hosts 1000")["levels"][0]["rate_bps"], 5_000_000);
    assert_eq!(said("qjump --hosts 1000 --format md").lines().nth(1), Some("|---|---|---|---|"));
}

#[test]
fn assumptions_divide_the_hosts() {
    // Of four hosts, 4:1 is the worst case, 2:1 allows twice the rate, 1:1 four times.
    let rate = |assume: &str| {
        let json = json(&format!("qjump --hosts 4 --assume {assume}"));
        json["levels"][0]["rate_bps"].as_u64().expect("a rate")
    };
    assert_eq!([rate("1"), rate("2"), rate("4")].map(|bps| bps / rate("1")), [1, 2, 4]);
}

/// Of exponential latencies, the formulas are short.
#[test]
fn exponential_latencies() {
    let rows = |words: &str| json(&format!("{words} --law exponential --mean 100us"));
    let near = |value: &serde_json::Value, to: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value / to - 1.0).abs() < 1e-4, "{value} {to}");
    };
    let json = rows("replicas --copies 1,4");
    near(&json[0]["mean_us"], 100.0);
    near(&json[1]["mean_us"], 25.0);
    near(&json[1]["load"], 4.0);
    let json = rows("hedge --at 95%");
    near(&json[0]["load"], 1.05);
    near(&json[0]["after_us"], 100.0 * 20f64.ln());
    let json = rows("retry --timeout 100us --retries 1");
    near(&json[0]["timed_out_percent"], 100.0 * (-2f64).exp());
    near(&json[0]["load"], 1.0 + (-1f64).exp());
    // The last of two: 1.5 times the mean.
    near(&rows("replicas --copies 1 --servers 2")[0]["mean_us"], 150.0);
}

#[test]
fn variance_shortens_the_chain() {
    let rooms = |sd: &str| csv(&["sequential", "--service", "1us", "--sd", sd, "--budget", "100us"], 4);
    // The latency of M/M/1 is 1 / (1 - load).
    assert_eq!(rooms("1us"), ["90", "70", "50", "30", "10"]);
    assert_eq!(rooms("2us"), ["78", "48", "28", "14", "4"]);
}

/// Half of the times are 1 us and half are 3 us: M/G/1 at half load waits 1.25 us.
#[test]
fn measured_service_times_have_their_moments() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = measured(&folder, "1\n3\n");
    let csv = said(&format!("sequential --from {file} --load 0.5 --format csv"));
    assert_eq!(csv.lines().nth(1), Some("0.5,250000,1.25,3.25,3076"));
}

/// QJump's authors quote this figure: 18 %.
#[test]
fn one_in_ten_thousand_hits_18_percent_of_2000_way_requests() {
    let csv = said("stragglers --servers 2000 --format csv");
    assert_eq!(csv, "servers,slow_percent\n2000,18.128\n");
    let csv = said("stragglers --servers 2000 --copies 2 --format csv");
    assert_eq!(csv, "servers,slow_percent\n2000,0.002\n");
}
