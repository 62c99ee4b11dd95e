//! The messages of a simulated run, written as the logs that exporters would make of them, come back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use plimsoll_import::flows::{FlowSettings, read};
use plimsoll_import::{ClassTraffic, ImportFound, Remark};
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::Scenario;
use plimsoll_units::Span;
use rand::{RngExt as _, SeedableRng as _};

/// Payload of a packet, and its headers: IPv4 and TCP with timestamps.
const SEGMENT: u64 = 1448;
const HEADERS: u64 = 52;

const MS: u64 = 1_000_000_000;

/// A message: its class, hosts, port, the first and last time in milliseconds, and its bytes.
#[derive(Clone, Copy, Debug)]
struct Message {
    class_port: u16,
    source: u32,
    destination: u32,
    port: u16,
    start_ms: u64,
    end_ms: u64,
    bytes: u64,
}

/// Runs large transfers beside small ones, and returns every message.
fn messages() -> Vec<Message> {
    let text = "version = 1\ntitle = 'oracle'\n[topology]\nkind = 'rack'\nhosts = 6\nrate = '1Gbps'\ndelay = '5us'\n\
                [run]\nduration = '1s'\n[workload.bulk]\nkind = 'transfer'\nsize = '2MB'\nload = 0.3\n\
                [workload.small]\nkind = 'all-to-all'\nsize = '20KB'\nload = 0.02\n";
    let scenario = Scenario::parse("inline", text, Path::new("."))
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    let outcome: Outcome = plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap();
    let all = (0..).zip(&outcome.messages).filter_map(|(number, message)| {
        Some(Message {
            class_port: 9000 + message.workload,
            source: message.source,
            destination: message.destination,
            port: 20_000 + number,
            start_ms: message.created.as_ps() / MS,
            end_ms: message.completed?.as_ps() / MS,
            bytes: message.bytes,
        })
    });
    let all: Vec<Message> = all.collect();
    assert!(all.len() > 300, "{} messages", all.len());
    all
}

fn packets(bytes: u64) -> u64 {
    bytes.div_ceil(SEGMENT)
}

/// A flow: the hosts as the log names them, its start in milliseconds, and its bytes.
type HostFlow = (String, String, u64, u64);

/// Returns the flows of a log by class.
fn imported(text: &str, settings: &FlowSettings) -> (BTreeMap<String, Vec<HostFlow>>, ImportFound) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    fs::write(&path, text).unwrap();
    let found = read(&[path], settings).unwrap();
    let mut classes = BTreeMap::new();
    for class in &found.classes {
        let ClassTraffic::Flows(flows) = &class.traffic else { panic!("flows") };
        let host = |host: u32| found.hosts[host as usize].clone();
        let mut flows: Vec<_> = (flows.iter())
            .map(|flow| (host(flow.source), host(flow.destination), flow.start.as_ps() / MS, flow.bytes))
            .collect();
        flows.sort();
        classes.insert(class.name.clone(), flows);
    }
    (classes, found)
}

/// The log has a record for each active timeout, from two exporters, the second of which lost some of the packets; and
/// the acknowledgements. It is ordered by the ends of records, as a collector has them.
#[test]
fn flows_cut_by_an_active_timeout_come_back_exactly() {
    const TIMEOUT_MS: u64 = 4;
    let all = messages();
    let first = all.iter().map(|message| message.start_ms).min().unwrap();
    let mut records: Vec<(u64, String)> = Vec::new();
    let mut cuts = 0;
    for message in &all {
        let Message { class_port, source, destination, port, start_ms, end_ms, bytes } = *message;
        let parts = 1 + (end_ms - start_ms) / TIMEOUT_MS;
        cuts += parts - 1;
        let (mut bytes_left, mut packets_left) = (bytes, packets(bytes));
        for part in 0..parts {
            let from = start_ms + part * TIMEOUT_MS;
            let to = (from + TIMEOUT_MS - 1).min(end_ms);
            let here = if part + 1 == parts { packets_left } else { packets(bytes) / parts };
            let payload = if part + 1 == parts { bytes_left } else { (here * SEGMENT).min(bytes_left) };
            (bytes_left, packets_left) = (bytes_left - payload, packets_left - here);
            let mut record = |router: u32,
                              source,
                              destination,
                              ports: (u16, u16),
                              packets: u64,
                              size: u64| {
                let line = format!(
                    "{from},{to},10.0.0.{source},10.0.0.{destination},{},{},TCP,{packets},{size},10.9.9.{router}",
                    ports.0, ports.1
                );
                records.push((to, line));
            };
            record(1, source, destination, (port, class_port), here, payload + here * HEADERS);
            record(1, destination, source, (class_port, port), here / 2, here / 2 * HEADERS);
            let lost = u64::from(payload > SEGMENT);
            record(
                2,
                source,
                destination,
                (port, class_port),
                here - lost,
                payload + here * HEADERS - lost * 1500,
            );
        }
    }
    assert!(cuts > 50, "{cuts} cuts");
    records.sort();
    let lines: Vec<String> = records.into_iter().map(|(_, line)| line).collect();
    let log = format!("ts,te,sa,da,sp,dp,pr,ipkt,ibyt,ra\n{}\n", lines.join("\n"));
    let ms = "start=ts:ms,end=te:ms,source=sa,destination=da,source_port=sp,destination_port=dp,protocol=pr,\
              packets=ipkt,bytes=ibyt,exporter=ra";
    let settings =
        FlowSettings { map: Some(ms.to_owned()), join: Some(Span::from_ms(2)), ..FlowSettings::default() };
    let (classes, found) = imported(&log, &settings);
    let mut expected: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for message in &all {
        let host = |host: u32| format!("10.0.0.{host}");
        let flow = (host(message.source), host(message.destination), message.start_ms - first, message.bytes);
        expected.entry(format!("port-{}", message.class_port)).or_default().push(flow);
    }
    expected.values_mut().for_each(|flows| flows.sort());
    assert_eq!(classes, expected);
    // Of the larger flows the second exporter lost packets; all of them count once.
    let repeated = format!("{} flows that several exporters saw", all.len());
    assert!(found.notes.iter().any(|note| note.text.starts_with(&repeated)), "{:?}", found.notes);
}

/// Of a hundred samples of the packets of a run, one packet in 100 each, at least nine tenths have the load of each
/// class within the interval that the import states, which is that of 95 %.
#[test]
fn a_sampled_load_is_within_its_interval() {
    let all = messages();
    let mut loads: BTreeMap<String, u64> = BTreeMap::new();
    for message in &all {
        *loads.entry(format!("port-{}", message.class_port)).or_default() += message.bytes;
    }
    let settings = FlowSettings { duration: Some(Span::from_secs(1)), ..FlowSettings::default() };
    let mut within: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..100 {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let mut log = String::new();
        for Message { class_port, source, destination, port, bytes, .. } in &all {
            for packet in 0..packets(*bytes) {
                let payload = SEGMENT.min(bytes - packet * SEGMENT);
                if random.random_range(0..100) == 0 {
                    let _ = writeln!(
                        log,
                        "FLOW,10.9.9.1,1,2,00902773db08,001083265e00,0x0800,0,0,10.0.0.{source},10.0.0.{destination},6,\
                         0x00,64,{port},{class_port},0x10,{},{},100",
                        payload + HEADERS + 18,
                        payload + HEADERS
                    );
                }
                // The acknowledgements are sampled, too, and have no payload.
                if random.random_range(0..200) == 0 {
                    let _ = writeln!(
                        log,
                        "FLOW,10.9.9.1,2,1,001083265e00,00902773db08,0x0800,0,0,10.0.0.{destination},10.0.0.{source},6,\
                         0x00,64,{class_port},{port},0x10,70,52,100"
                    );
                }
            }
        }
        let (classes, found) = imported(&log, &settings);
        for (class, flows) in classes {
            let load: u64 = flows.iter().map(|(.., bytes)| bytes).sum();
            let share = stated_interval(&found, &class);
            let truth = loads[&class] as f64;
            *within.entry(class).or_default() += u32::from((load as f64 - truth).abs() <= share * truth);
        }
    }
    assert_eq!(within.len(), loads.len());
    assert!(within.values().all(|count| *count >= 90), "{within:?} of 100");
}

/// Returns the half width of the interval in a class's note, as a share.
fn stated_interval(found: &ImportFound, class: &str) -> f64 {
    let start = format!("class {class}: ");
    let note =
        found.notes.iter().find(|note| note.remark == Remark::Assumed && note.text.starts_with(&start));
    let text = &note.unwrap().text;
    let (_, percent) = text.rsplit_once("within ").unwrap();
    percent.trim_end_matches(" %").parse::<f64>().unwrap() / 100.0
}
