//! Random scenarios: the outcome depends on the scenario and the seed, not on threads or on captured packets.

use std::fmt::Write as _;

use serde_json::Value;

use crate::program::{ProgramFolder, run};
use crate::trial::{Broken, Outcome, Trial, hold};

/// Four command lines that run one scenario.
const WAYS: [&[&str]; 4] =
    [&["--threads", "1"], &["--threads", "2"], &["--threads", "4"], &["--threads", "2", "--pcap"]];

/// Runs a random scenario with each command line, and expects the same digests from all.
pub fn equal(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let text = scenario(trial);
    trial.write("random.toml", &text)?;
    let mut first: Option<Vec<Value>> = None;
    for (number, way) in WAYS.iter().enumerate() {
        let out = format!("out{number}");
        let arguments = [&["run", "random.toml", "--quiet", "--out", &out], *way].concat();
        let ended = run(&mut programs.plimsoll(trial.folder(), &arguments))?;
        hold!(ended.code() == Some(0), "{way:?}: {}\n{text}", ended.described());
        let seen = digests(trial, &out)?;
        match &first {
            None => first = Some(seen),
            Some(first) => hold!(*first == seen, "{way:?} differs: {first:?}, then {seen:?}\n{text}"),
        }
    }
    Ok(())
}

/// Returns the digests of a run's points.
fn digests(trial: &Trial, out: &str) -> Result<Vec<Value>, Broken> {
    let text = std::fs::read_to_string(trial.path(out).join("manifest.json"))?;
    let manifest: Value = serde_json::from_str(&text).map_err(|error| Broken::Lost(error.to_string()))?;
    let points = manifest["points"].as_array().into_iter().flatten();
    let digests: Vec<Value> = points.map(|point| point["digest"].clone()).collect();
    hold!(!digests.is_empty() && digests.iter().all(Value::is_string), "no digests in {out}/manifest.json");
    Ok(digests)
}

/// Writes a random network with mechanisms and one to three workloads that lasts a few milliseconds.
fn scenario(trial: &mut Trial) -> String {
    let rate = trial.one_of(&["1Gbps", "10Gbps"]);
    let delay = trial.one_of(&["100ns", "1us", "5us"]);
    let rack = format!("kind = 'rack'\nhosts = {}", trial.number(3..9));
    let shape = *trial.one_of(&[
        rack.as_str(),
        "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 4",
        "kind = 'leaf-spine'\nleaves = 2\nspines = 3\nhosts_per_leaf = 3",
        "kind = 'fat-tree'\nk = 4",
        "kind = 'dumbbell'\nleft = 3\nright = 3\nbottleneck_rate = '1Gbps'",
    ]);
    let (duration, seed) = (trial.number(1..12), trial.number(0..1 << 40));
    let mut text = format!(
        "version = 1\ntitle = 'random'\n[run]\nduration = '{duration}ms'\ndrain = '200ms'\nseed = {seed}\n\
         [topology]\n{shape}\nrate = '{rate}'\ndelay = '{delay}'\n"
    );
    let kind = trial.one_of(&["tcp", "cubic", "dctcp"]);
    let rto = trial.one_of(&["1ms", "10ms"]);
    let detail = trial.one_of(&["", "recovery = 'reno'\n", "recovery = 'newreno'\n", "segment = '500B'\n"]);
    let _ = write!(text, "[transport]\nkind = '{kind}'\nmin_rto = '{rto}'\n{detail}");
    let buffer = trial.one_of(&["16KB", "64KB", "300KB"]);
    let _ = writeln!(text, "[port.host]\nbuffer = '1000 packets'\n[port.switch]\nbuffer = '{buffer}'");
    text += *trial.one_of(&[
        "",
        "ecn = { threshold = '10KB' }\n",
        "ecn = { threshold = '20KB', at = 'dequeue' }\n",
        "phantom_queue = { drain = 0.9, threshold = '3KB' }\n",
        "red = { min = '5KB', max = '15KB', probability = 0.1 }\n",
        "pfabric = {}\n",
    ]);
    text += *trial.one_of(&["", "", "[host]\npacer = {}\n", "[host]\nqjump = {}\n"]);
    text += *trial.one_of(&[
        "",
        "",
        "[paths]\nspray = {}\n",
        "[paths]\nflowlet = {}\n",
        "[paths]\nadaptive = {}\n",
        "[paths]\nsymmetric = true\n",
    ]);
    for number in 0..trial.number(1..4) {
        let _ = writeln!(text, "[workload.w{number}]\n{}", workload(trial));
    }
    text += *trial.one_of(&["", "", "[observe]\nlinks = true\nflow_series = '500us'\n"]);
    text
}

fn workload(trial: &mut Trial) -> String {
    let load = trial.one_of(&["0.1", "0.4", "0.8"]);
    let size = trial.one_of(&["1KB", "30KB", "300KB"]);
    let count = trial.number(1..200);
    match trial.number(0..11) {
        0 => format!("kind = 'rpc'\nrequest = '100B'\nresponse = '{size}'\nload = {load}"),
        1 => format!("kind = 'transfer'\nsize = '{size}'\nload = {load}\npick = 'random'"),
        2 => "kind = 'permutation'\nstart_within = '100us'".to_owned(),
        3 => format!("kind = 'all-to-all'\nsize = '{size}'\nload = {load}"),
        4 => format!("kind = 'incast'\nsize = '{size}'\nevery = '2ms'\nrounds = 3"),
        5 => "kind = 'ping'\nto = 'h1'\ninterval = '200us'".to_owned(),
        6 => format!("kind = 'fan-out'\nrequest = '100B'\nresponse = '{size}'\nqueries_per_second = 1000"),
        7 => format!("kind = 'closed-loop'\noutstanding = 4\nservice = '10us'\ncount = {count}"),
        8 => format!("kind = 'shuffle'\nsize = '{size}'\nwaves = 1"),
        9 => format!("kind = 'barrier'\npattern = 'all-to-all'\nrounds = {count}"),
        _ => format!("kind = 'commit'\ncount = {count}"),
    }
}
