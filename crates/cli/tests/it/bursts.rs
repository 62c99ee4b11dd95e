//! Tests `plimsoll bursts` on captures that are made here; crates/bursts tests the formats and the numbers.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::json;

use crate::common::{Place, names};

/// A capture in nanoseconds of `segments` 64 KB segments at 10 Gb/s, each 44 packets back to back, 200 us apart.
pub fn capture(segments: u32) -> Vec<u8> {
    let mut file = Vec::new();
    [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32].iter().for_each(|word| file.extend(word.to_le_bytes()));
    for number in 0..segments * 44 {
        let ns = number / 44 * 200_000 + (f64::from(number % 44) * 1_230.4) as u32;
        let mut frame =
            vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 6, 0, 0];
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 90]);
        frame.extend((number * 1_460).to_be_bytes());
        frame.extend([0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        [1_700_000_000, ns, frame.len() as u32, 1_514]
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(frame);
    }
    file
}

#[test]
fn a_capture_of_a_64_kb_segment_has_one_burst_of_44() {
    let place = Place::new();
    fs::write(place.path("one.pcap"), capture(1)).unwrap();
    let found = place.plimsoll(&["bursts", "one.pcap", "--format", "json"]).ends_with(0).json();
    assert_eq!(found["lengths_packets"], json!({"44": 1}));
    assert_eq!(found["lengths_bytes"], json!({"66616": 1}));
    assert_eq!((&found["ended"], &found["timestamps"]["too_coarse"]), (&json!(null), &json!(false)));
    place
        .plimsoll(&["bursts", "one.pcap", "--format", "csv"])
        .ends_with(0)
        .prints("interface,source,destination,packets,bursts\n,,,44,1\n0,10.0.0.1,10.0.0.2,44,1\n");
    place.plimsoll(&["bursts", "one.pcap"]).ends_with(0).prints("44 frames").prints("10.0.0.1 to 10.0.0.2");
    place.plimsoll(&["bursts", "one.pcap", "--format", "md"]).ends_with(0).prints("| 32 to 63 |");
}

/// The first signal ends a wait: for the writer of a named pipe, for its data, and for the data of stdin.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_wait_for_data() {
    use crate::common::{Ran, signal};
    use std::io::Write;

    let place = Place::new();
    let fifo = place.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let whole = capture(1);
    for (name, data) in
        [("fifo", None), ("fifo", Some(&whole[..])), ("-", Some(&whole[..])), ("-", Some(&[][..]))]
    {
        let args = ["bursts", name, "--format", "json"];
        let mut command = place.command(&args);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        plimsoll_testing::eventually("a handler of SIGINT", || {
            let status = fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (signal_hook::consts::SIGINT - 1) != 0
        });
        // The writers stay, so that only the signal ends the input.
        let mut stdin = child.stdin.take();
        let mut writer = match (name, data) {
            ("fifo", Some(_)) => Some(fs::File::options().write(true).open(&fifo).unwrap()),
            _ => None,
        };
        let writes = writer.as_mut().map(|file| file as &mut dyn Write);
        let writes = writes.or(stdin.as_mut().map(|pipe| pipe as &mut dyn Write));
        writes.unwrap().write_all(data.unwrap_or_default()).unwrap();
        signal(&child, signal_hook::consts::SIGINT);
        let ran = Ran::of(&args, child.wait_with_output().unwrap()).ends_with(130);
        drop((stdin, writer));
        if data.is_none_or(<[u8]>::is_empty) {
            ran.says("stopped by a signal, without a packet").prints_nothing();
        }
    }
}

/// A frame stamped hours later than its neighbours makes the numbers doubtful, which every form says.
#[test]
fn warnings_are_part_of_every_form() {
    let place = Place::new();
    let mut jumped = capture(1);
    // The second record, behind the file's header and a record of 54 bytes.
    let second = &mut jumped[24 + 16 + 54..][..4];
    assert_eq!(*second, 1_700_000_000u32.to_le_bytes());
    second.copy_from_slice(&1_900_000_000u32.to_le_bytes());
    fs::write(place.path("jumped.pcap"), jumped).unwrap();
    let with = |format| place.plimsoll(&["bursts", "jumped.pcap", "--format", format]).ends_with(0);
    let said = "more than 213 days after it";
    with("csv").says(said);
    with("table").prints(said);
    with("md").prints(said);
    assert!(with("json").json()["warnings"][0].as_str().is_some_and(|text| text.contains(said)));
}

#[test]
fn stdin_is_a_capture() {
    let place = Place::new();
    fs::write(place.path("two.pcap"), capture(2)).unwrap();
    let mut command = place.command(&["bursts", "-", "--format", "json"]);
    command.stdin(Stdio::from(fs::File::open(place.path("two.pcap")).unwrap()));
    let out = command.output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&found["lengths_packets"], &found["captures"]), (&json!({"44": 2}), &json!(["stdin"])));
}

#[test]
fn a_capture_that_breaks_off_is_reported_up_to_there() {
    let place = Place::new();
    let mut file = capture(3);
    file.truncate(24 + 100 * 70 + 5);
    fs::write(place.path("cut.pcap"), &file).unwrap();
    let ran = place.plimsoll(&["bursts", "cut.pcap", "--format", "json"]).ends_with(2);
    let found = ran.json();
    assert_eq!(found["lengths_packets"], json!({"12": 1, "44": 2}));
    let place_of_end =
        "packet 101, byte offset 7024: the capture ends within a record header of 16 bytes (5 are there)";
    assert!(found["ended"].as_str().unwrap().contains(place_of_end), "{}", found["ended"]);
    ran.says("error: only the first 100 packets were analysed: cut.pcap: packet 101").says(place_of_end);
}

#[test]
fn what_is_no_capture_is_an_error_that_says_what_is() {
    let place = Place::new();
    fs::write(place.path("none.pcap"), &capture(1)[..24]).unwrap();
    let mut wifi = capture(1);
    wifi[20] = 105;
    fs::write(place.path("wifi.pcap"), wifi).unwrap();
    fs::write(place.path("zip.pcap"), b"PK\x03\x04 and so on").unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    for (name, words) in [
        ("none.pcap", "no packets in none.pcap"),
        ("wifi.pcap", "packet 1, byte offset 24: link type 105 is not supported; allowed: 1 (Ethernet)"),
        ("zip.pcap", "it starts with the bytes 50 4b 03 04; allowed: pcap"),
        ("missing.pcap", "cannot open missing.pcap"),
        ("empty", "`plimsoll run SCENARIO --pcap`"),
    ] {
        place.plimsoll(&["bursts", name]).ends_with(2).says(words).prints_nothing();
    }
    place.plimsoll(&["bursts", "none.pcap", "--figure", "x.png"]).ends_with(2).says("ends in .svg");
    place.plimsoll(&["bursts", "none.pcap", "--gap", "40"]).ends_with(2).says("--gap");
}

#[test]
fn figures_and_pages_are_written() {
    let place = Place::new();
    fs::write(place.path("two.pcap"), capture(2)).unwrap();
    place
        .plimsoll(&["bursts", "two.pcap", "--figure", "two.svg", "--out", "two.html"])
        .ends_with(0)
        .says("two.html");
    assert!(
        place.read("two.svg").starts_with("<svg")
            && place.read("two.svg").contains("Burst length in packets")
    );
    let page = place.read("two.html");
    for words in ["Bursts of two.pcap", "On and off periods", "plimsoll bursts two.pcap --rate 10Gbps"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("<dt>Seed</dt>"));
}

#[test]
fn a_run_has_the_bytes_and_the_clock_of_its_links() {
    let place = Place::new();
    place.write("offload.toml", OFFLOAD);
    place.plimsoll(&["run", "offload.toml", "--pcap", "--out", "out", "-q"]).ends_with(0);
    let captures = names(&place.path("out/pcap"));
    assert_eq!(captures.len(), 1);
    let of_run = place.plimsoll(&["bursts", "out", "--format", "json"]).ends_with(0).json();
    let file = format!("out/pcap/{}", captures[0]);
    let of_file = place.plimsoll(&["bursts", &file, "--format", "json"]).ends_with(0).json();
    assert_eq!(of_run, of_file);
    assert_eq!(of_run["timestamps"]["too_coarse"], json!(false));
    // Segmentation offload hands over pieces of 64 KB, of which the link makes packets back to back.
    let lengths = of_run["lengths_packets"].as_object().unwrap();
    let longest = lengths.keys().filter_map(|length| length.parse::<u64>().ok()).max();
    assert!(longest >= Some(40), "{lengths:?}");
}

/// A host that sends to one other and acknowledges packets from a third has bursts of single acknowledgements, which
/// `--data` leaves out.
#[test]
fn bursts_of_data_are_segments_where_acknowledgements_are_most_bursts() {
    let place = Place::new();
    place.write(
        "both.toml",
        &OFFLOAD.replace("hosts = 2", "hosts = 3").replace(
            "[observe]\nqueue.client = { port = \"client\", every = \"100us\" }",
            "[workload.back]\nkind = \"flows\"\nfrom = \"h2\"\nto = \"h1\"\n\
         [observe]\nqueue.nic = { port = \"nic:h1\", every = \"100us\" }",
        ),
    );
    place.plimsoll(&["run", "both.toml", "--pcap", "--out", "out", "-q"]).ends_with(0);
    let bursts = |args: &[&str]| {
        let args = [&["bursts", "out", "--format", "json"][..], args].concat();
        let found = place.plimsoll(&args).ends_with(0).json();
        let lengths: BTreeMap<u64, u64> = serde_json::from_value(found["lengths_packets"].clone()).unwrap();
        (plimsoll_bursts::quantile(&lengths, 0.5), found["frames_without_payload"].as_u64().unwrap())
    };
    let (all, data) = (bursts(&[]), bursts(&["--data"]));
    assert_eq!(all, (Some(1), 0));
    assert!(data.0 >= Some(20) && data.1 > 100, "{data:?}");
    place
        .plimsoll(&["bursts", "out", "--data"])
        .ends_with(0)
        .prints("Bursts and trains are of packets with data");
}

/// One long flow with segmentation offload, whose link is watched.
const OFFLOAD: &str = r#"
version = 1
title = "Bursts of one sender"
[run]
duration = "5ms"
[topology]
kind = "rack"
hosts = 2
rate = "10Gbps"
delay = "5us"
[host]
bursts = {}
[transport]
kind = "dctcp"
segment = "1460B"
[workload.bulk]
kind = "flows"
from = "h1"
to = "client"
[observe]
queue.client = { port = "client", every = "100us" }
"#;

/// Datagrams on the loopback device, one after the other until this is dropped.
pub struct Traffic {
    ends: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Traffic {
    pub fn start() -> Traffic {
        let ends = Arc::new(AtomicBool::new(false));
        let end = ends.clone();
        let sender = std::thread::spawn(move || {
            let to = UdpSocket::bind("127.66.6.6:0").unwrap();
            let from = UdpSocket::bind("127.66.6.7:0").unwrap();
            let mut into = [0; 200];
            while !end.load(Ordering::Relaxed) {
                from.send_to(&[7; 100], to.local_addr().unwrap()).unwrap();
                to.recv(&mut into).unwrap();
            }
        });
        Traffic { ends, sender: Some(sender) }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
    }
}

#[test]
fn a_device_is_captured_until_enough_packets() {
    let place = Place::new();
    if !place.may_capture() {
        plimsoll_testing::skipped!("a capture from a device needs CAP_NET_RAW");
        return;
    }
    let _traffic = Traffic::start();
    let ran = place.plimsoll(&["bursts", "-i", "lo", "--packets", "500", "--format", "json"]).ends_with(0);
    let found = ran.says("lo: the kernel took the timestamps of all 500 packets").json();
    assert_eq!((&found["frames"], &found["captures"]), (&json!(500), &json!(["lo"])));
    let pairs = found["pairs"].as_array().unwrap();
    let is_ours = |pair: &&serde_json::Value| pair["destination"] == "127.66.6.6";
    let ours = pairs.iter().find(is_ours).unwrap_or_else(|| panic!("{pairs:?}"));
    // 14 bytes of Ethernet, 20 of IP, 8 of UDP.
    let [frames, bytes] = ["frames", "bytes"].map(|key| ours[key].as_u64().unwrap());
    assert_eq!(bytes, 142 * frames);
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_those_that_are() {
    let place = Place::new();
    place
        .plimsoll(&["bursts", "-i", "nowhere0"])
        .ends_with(2)
        .says("no network device `nowhere0`; allowed: ");
    place.plimsoll(&["bursts", "-i", "lo", "one.pcap"]).ends_with(2).says("cannot be used with");
    place.plimsoll(&["bursts", "one.pcap", "--time", "1s"]).ends_with(2).says("name one by -i DEV");
}

#[test]
fn each_capture_of_a_run_has_a_report() {
    let place = Place::new();
    let quick = [
        "--set",
        "run.duration=0.02s",
        "--set",
        "run.warmup=0s",
        "--replicates",
        "1",
        "--out",
        "run",
        "-q",
        "--pcap",
    ];
    place.plimsoll(&[&["run", crate::common::QUICKSTART], &quick[..]].concat()).ends_with(0);
    let files = names(&place.path("run/pcap"));
    assert_eq!(files.len(), 3);
    let text = place.plimsoll(&["bursts", "run"]).ends_with(0);
    files
        .iter()
        .for_each(|file| assert!(text.stdout.contains(&format!("run/pcap/{file}\n")), "{}", text.stdout));
    let all = place.plimsoll(&["bursts", "run", "--format", "json"]).ends_with(0).json();
    assert_eq!(all.as_array().unwrap().len(), 3);
    let first = format!("run/pcap/{}", files[0]);
    let alone = place.plimsoll(&["bursts", &first, "--format", "json"]).ends_with(0).json();
    assert_eq!(all[0], alone);
    let csv = place.plimsoll(&["bursts", "run", "--format", "csv"]).ends_with(0).stdout;
    assert_eq!(csv.matches("capture,interface,source,destination,packets,bursts").count(), 1);
    assert!(files.iter().all(|file| csv.contains(&format!("\nrun/pcap/{file},"))), "{csv}");
    place.plimsoll(&["bursts", "run", "--figure", "a.svg"]).ends_with(2).says("--figure is of one capture");
    place.plimsoll(&["bursts", "run", &first]).ends_with(2).says("give it alone, or name one of them");
}
