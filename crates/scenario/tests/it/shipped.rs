//! The scenarios of the repository load without warnings. Those without a workload are there to be
//! included; here they get a flow. Graphs load with the scenarios that name them.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};

use plimsoll_scenario::{Overrides, Scenario};

fn scenarios(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            scenarios(&path, found);
        } else if name.ends_with(".toml") {
            found.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Scenarios whose messages do not end within the run on purpose, and why.
const ENDLESS: &[(&str, &str)] =
    &[("dcqcn/flows.toml", "a fixed number of queue pairs to each host, which have data all the time")];

/// Scenarios that offer more than a link carries on purpose, and why. All others load without a warning.
const OVERLOADED: &[(&str, &str)] = &[
    ("timely/thresholds.toml", "packets without repair fill the buffer up to its dynamic threshold"),
    (
        "reactor/shares.toml",
        "each flow has data to send at all times, as the shares are of a busy host's circuits",
    ),
    (
        "qjump/fig11-guests.toml",
        "six guests of a host offer a link's rate each, and the limiter drops what is above their level",
    ),
    (
        "qjump/fig11-phases.toml",
        "six guests of a host offer a link's rate each, and the limiter drops what is above their level",
    ),
];

#[test]
fn all_load() {
    let mut files = Vec::new();
    scenarios(&root(), &mut files);
    assert!(!files.is_empty());
    for file in files {
        let mut text = std::fs::read_to_string(&file).unwrap();
        if text.contains("\n[[link]]") {
            // A graph, which the scenarios beside it name.
            continue;
        }
        if !text.contains("[workload") {
            text.push_str(
                "[workload.any]\nkind = \"flows\"\nfrom = \"h1\"\nto = \"client\"\nsize = \"1MB\"\n",
            );
        }
        match Scenario::parse(&file.display().to_string(), &text, file.parent().unwrap()) {
            Err(errors) => {
                panic!("{}", errors.iter().map(|error| format!("{error}\n\n")).collect::<String>())
            }
            Ok(scenario) => {
                let mut warnings: Vec<String> =
                    scenario.warnings().iter().map(|warning| warning.to_string()).collect();
                if OVERLOADED.iter().any(|(name, _)| file.ends_with(name)) {
                    let all = warnings.len();
                    warnings.retain(|warning| !warning.contains("queues grow as long as the run lasts"));
                    assert!(warnings.len() < all, "{}: it overloads no link", file.display());
                }
                if ENDLESS.iter().any(|(name, _)| file.ends_with(name)) {
                    let all = warnings.len();
                    warnings.retain(|warning| !warning.contains(", and the run has "));
                    assert!(warnings.len() < all, "{}: its messages end", file.display());
                }
                assert!(warnings.is_empty(), "{}", warnings.join("\n\n"));
                let shown = scenario.points()[0].show();
                assert!(Scenario::parse("shown", &shown, file.parent().unwrap()).is_ok(), "{shown}");
            }
        }
    }
}

#[test]
fn quickstart_compares_three_variants() {
    let overrides = Overrides { replicates: 2, ..Overrides::default() };
    let scenario = Scenario::load_with(root().join("quickstart.toml"), &overrides).unwrap();
    let variants: Vec<&str> = scenario
        .points()
        .iter()
        .filter(|point| point.replicate == 0)
        .map(|point| point.variant.as_str())
        .collect();
    assert_eq!(variants, ["TCP", "DCTCP", "HULL"]);
    let hull = &scenario.points().last().unwrap().model;
    assert!(hull.host.pacer().is_some() && hull.port.of_tier("tor").phantom_queue().is_some());
}
