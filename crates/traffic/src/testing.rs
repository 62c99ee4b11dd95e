//! Workloads of tests: parsed without a scenario, on a rack of links of 1 Gb/s, with sources that run until they have
//! sent everything.

use std::io;

use plimsoll_units::{Bytes, Rate, Span, Streams, Time};

use crate::check::{FileReader, JobFile, WorkloadCheck};
use crate::facts::{NetworkFacts, TopologyCut};
use crate::record::Records;
use crate::{Actions, Opened, Traffic, TrafficSpec, Workload, WorkloadSpec};

/// A rack of this many hosts.
struct TestRack(u32);

impl NetworkFacts for TestRack {
    fn host_count(&self) -> u32 {
        self.0
    }

    fn host(&self, name: &str) -> Option<u32> {
        let number = if name == "client" { 0 } else { name.strip_prefix('h')?.parse().ok()? };
        (number < self.0).then_some(number)
    }

    fn host_name(&self, host: u32) -> String {
        format!("h{host}")
    }

    fn host_rate(&self, _: u32) -> Rate {
        Rate::from_gbps(1)
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        Vec::new()
    }
}

/// A file reader without any files.
struct NoFiles;

impl FileReader for NoFiles {
    fn read(&self, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn read_flow_list(&self, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn open_job(&self, _: &str) -> io::Result<JobFile<'_>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A message that a source has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WrittenMessage {
    pub(crate) at: Time,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) bytes: u64,
}

/// Returns the workload of a table, whose distributions are tables as well: `{ constant = '1KB' }`.
pub(crate) fn parsed(text: &str) -> Workload {
    let mut table: toml::Table = toml::from_str(text).expect("TOML");
    let kind = table.remove("kind").and_then(|kind| kind.as_str().map(str::to_owned)).expect("a kind");
    let tagged = toml::Table::from_iter([(kind, toml::Value::Table(table))]);
    toml::Value::Table(tagged).try_into().expect("a workload")
}

/// Returns the keys that are invalid on a rack of `hosts`.
pub(crate) fn errors(hosts: u32, workload: &Workload) -> Vec<String> {
    let rack = TestRack(hosts);
    let mut check = WorkloadCheck::new(&rack, &NoFiles);
    workload.clone().params_mut().check(&mut check);
    check.errors.into_iter().map(|error| error.key).collect()
}

/// Returns the traffic of one workload on a rack of `hosts`.
pub(crate) fn traffic_of(hosts: u32, workload: &Workload, seed: u64, keeps_connections: bool) -> Traffic {
    let spec = TrafficSpec {
        workloads: vec![WorkloadSpec { name: "w", workload, header: Bytes::new(40), keeps_connections }],
        facts: &TestRack(hosts),
        duration: None,
        warmup: Span::ZERO,
        drain: Span::ZERO,
    };
    Traffic::new(&spec, &Streams::new(seed)).expect("a source")
}

/// Returns the connections that the only source of `traffic` opens, and all messages that it writes unasked.
pub(crate) fn drive(traffic: &mut Traffic) -> (Vec<Opened>, Vec<WrittenMessage>) {
    let source = &mut traffic.sources[0];
    let (mut connections, mut sent) = (Vec::new(), Vec::new());
    while source.next_due() < Time::MAX {
        let at = source.next_due();
        let mut actions = Actions { next_connection: connections.len() as u32, ..Actions::default() };
        source.on_due(at, &mut actions);
        connections.append(&mut actions.opened);
        sent.extend(actions.writes.iter().map(|write| {
            let Opened { client, server } = connections[write.connection as usize];
            WrittenMessage { at, source: client.0, destination: server.0, bytes: write.bytes }
        }));
    }
    (connections, sent)
}

/// Returns all messages of a workload whose messages get no answer, on a rack of `hosts`.
pub(crate) fn flows_of(hosts: u32, workload: &Workload, seed: u64) -> Vec<WrittenMessage> {
    drive(&mut traffic_of(hosts, workload, seed, true)).1
}

/// Returns a workload with what its check adds to it, on a rack of `hosts`.
pub(crate) fn checked(hosts: u32, text: &str) -> Workload {
    let (rack, mut workload) = (TestRack(hosts), parsed(text));
    let mut check = WorkloadCheck::new(&rack, &NoFiles);
    workload.params_mut().check(&mut check);
    assert_eq!(check.errors, [], "{text}");
    workload
}

/// Returns the records of a job whose messages need no network of packets, on a rack of `hosts`.
pub(crate) fn records_of(hosts: u32, workload: &Workload) -> Records {
    let mut traffic = traffic_of(hosts, workload, 1, true);
    let (source, mut actions) = (&mut traffic.sources[0], Actions::default());
    while source.next_due() < Time::MAX {
        source.on_due(source.next_due(), &mut actions);
    }
    assert!(source.is_finished() && actions.writes.is_empty());
    actions.records
}
