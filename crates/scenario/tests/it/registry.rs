//! Mechanisms from outside: how a scenario names them, errors, and the digest.

use std::collections::VecDeque;
use std::path::Path;

use plimsoll_fabric::net::port::{QueueDiscipline, Queued};
use plimsoll_fabric::net::{Packet, SelectPath};
use plimsoll_mechanisms::InvalidParam;
use plimsoll_mechanisms::pfc::PauseState;
use plimsoll_mechanisms::tcp::{CongestionControl, Cut, Limits, Window};
use plimsoll_scenario::{Overrides, Parameters, Point, Registry, Scenario};
use plimsoll_units::{Span, Time};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    target: Span,
    gain: f64,
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), InvalidParam> {
        InvalidParam::unless(self.gain >= 0.0, "gain", self.gain, "0 or more")
    }
}

#[derive(Debug)]
struct Fixed;

impl CongestionControl for Fixed {
    fn cut(&mut self, _: &Limits, window: &Window, _: &Cut) -> u64 {
        window.cwnd
    }
}

#[derive(Debug, Default)]
struct Plain(VecDeque<Queued>);

impl QueueDiscipline for Plain {
    fn push(&mut self, queued: Queued, _: &mut dyn FnMut(Queued)) {
        self.0.push_back(queued);
    }
    fn pop(&mut self, _: Time, _: PauseState, _: &mut dyn FnMut(Queued)) -> Option<Queued> {
        self.0.pop_front()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

#[derive(Debug)]
struct First;

impl SelectPath for First {
    fn choose(
        &mut self,
        _: Time,
        _: u32,
        _: &Packet,
        _: u32,
        _: &dyn Fn(u32) -> u64,
        _: &mut dyn FnMut() -> u64,
    ) -> u32 {
        0
    }
}

fn registry(version: &str) -> Registry {
    Registry::new()
        .congestion_controller("fixed-window", version, |_: &Params| Box::new(Fixed))
        .queue_discipline("plain", version, |_: &Params, _| Box::new(Plain::default()))
        .queue_discipline("plainer", version, |_: &Params, _| Box::new(Plain::default()))
        .path_selector("first", version, |_: &Params| Box::new(First))
        .path_selector("second", version, |_: &Params| Box::new(First))
}

const BASE: &str = r#"version = 1
title = "t"
[run]
duration = "1s"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
rate = "1Gbps"
delay = "5us"
[workload.small]
kind = "rpc"
request = "100B"
response = "900B"
load = 0.1
"#;

fn read(registry: &Registry, more: &str, set: &[&str]) -> Result<Vec<Point>, String> {
    let overrides =
        Overrides { set: set.iter().map(|text| (*text).to_owned()).collect(), ..Overrides::default() };
    let text = format!("{BASE}{more}");
    Scenario::parse_from(registry, "test.toml", &text, Path::new("."), &overrides)
        .map(|scenario| scenario.points().to_vec())
        .map_err(|errors| errors.iter().map(|error| format!("{error}\n")).collect())
}

fn points(more: &str) -> Vec<Point> {
    read(&registry("1"), more, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

const ALL: &str = r#"[transport]
kind = "fixed-window"
[transport.fixed-window]
gain = 0.5
[port.switch]
discipline.plain = { target = "3us" }
[port.host]
discipline.plainer = {}
[paths]
first = { gain = 2.0 }
"#;

#[test]
fn a_scenario_names_what_is_registered() {
    let model = &points(ALL)[0].model;
    let outside = &model.outside;
    let named: Vec<String> =
        outside.named().iter().map(|(at, name, version)| format!("{at} {name} {version}")).collect();
    let expected =
        ["transport fixed-window 1", "port.host plainer 1", "port.leaf plain 1", "port.spine plain 1"];
    assert_eq!(named, expected.into_iter().chain(["paths first 1"]).collect::<Vec<_>>());
    assert_eq!(outside.controller.as_ref().unwrap().params["gain"], 0.5);
    assert_eq!(outside.disciplines["spine"].params["target"], "3us");
    // A key that the scenario leaves away has its default in the parameters.
    assert_eq!(outside.disciplines["host"].params["gain"], 0.0);
    let spec = model.fabric_spec().unwrap();
    assert!(spec.path_selector.is_some() && spec.nic.discipline.is_some());
    assert!(spec.tiers.iter().all(|tier| tier.discipline.is_some()));
    assert!(model.transport_config("small").unwrap().custom.is_some());
}

#[test]
fn what_is_shown_parses_back() {
    let point = &points(ALL)[0];
    for text in [point.show(), point.canonical()] {
        let again =
            Scenario::parse_from(&registry("1"), "shown", &text, Path::new("."), &Overrides::default());
        let again = again.unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
        assert_eq!(again.points()[0].model, point.model);
        assert_eq!(again.points()[0].digest, point.digest);
        assert_eq!(again.points()[0].canonical(), point.canonical());
    }
}

#[test]
fn name_version_and_parameters_enter_the_digest_of_their_runs_only() {
    let digest = |version: &str, more: &str| read(&registry(version), more, &[]).unwrap()[0].digest;
    let without = Scenario::parse("test.toml", BASE, Path::new(".")).unwrap().points()[0].digest;
    assert_eq!(digest("1", ""), without);
    assert_eq!(digest("2", ""), without);
    assert_ne!(digest("1", ALL), digest("2", ALL));
    assert_ne!(digest("1", "[paths]\nfirst = {}\n"), digest("1", "[paths]\nsecond = {}\n"));
    assert_ne!(digest("1", "[paths]\nfirst = {}\n"), digest("1", "[paths]\nfirst = { gain = 1.0 }\n"));
    let settings = |version: &str| read(&registry(version), ALL, &[]).unwrap()[0].settings_digest();
    assert_ne!(settings("1"), settings("2"));
}

#[test]
fn variants_replace_a_table_whole_and_off_removes_it() {
    let variants = r#"[variant.Replaced]
transport.fixed-window = { target = "1us" }
port.switch.discipline.plainer = {}
paths.first = { target = "4us" }
[variant.Off]
transport.kind = "dctcp"
port.switch.discipline = "off"
port.host.discipline.plainer = "off"
paths.first = "off"
[variant.Other]
paths = { first = "off", second = {} }
"#;
    let points = points(&format!("{ALL}{variants}"));
    let replaced = &points[0].model.outside;
    assert_eq!(replaced.controller.as_ref().unwrap().params["gain"], 0.0);
    assert_eq!(replaced.disciplines["leaf"].name, "plainer");
    assert_eq!(replaced.selector.as_ref().unwrap().params["gain"], 0.0);
    let off = &points[1].model;
    assert_eq!(off.outside, Default::default());
    assert_eq!(off.transport.kind.name(), "dctcp");
    assert_eq!(points[2].model.outside.selector.as_ref().unwrap().name, "second");
}

#[test]
fn a_workload_may_have_a_controller_from_outside() {
    let more =
        "[transport]\nkind = 'dctcp'\nfixed-window = { gain = 2.0 }\nworkload.small = 'fixed-window'\n";
    let point = &points(more)[0];
    let outside = &point.model.outside;
    assert!(outside.controller.is_none());
    assert_eq!(outside.workload_controllers["small"].params["gain"], 2.0);
    assert!(point.model.transport_config("small").unwrap().custom.is_some());
    assert!(point.model.transport_config("other").unwrap().custom.is_none());
    let again =
        Scenario::parse_from(&registry("1"), "t", &point.canonical(), Path::new("."), &Overrides::default());
    assert_eq!(again.unwrap().points()[0].digest, point.digest);
    // Names of workloads merge key by key.
    let merged = points(&format!("{more}[variant.V]\ntransport.workload.small = 'cubic'\n"));
    assert_eq!(merged[0].model.outside, Default::default());
    let error = read(&registry("1"), &more.replace("workload.small", "workload.smal"), &[]).unwrap_err();
    assert!(error.contains("no workload `smal`") && error.contains("`small`"), "{error}");
}

#[test]
fn a_named_transport_may_have_a_controller_from_outside() {
    let more = "[transport]\nkind = 'dctcp'\n[transports.own]\nkind = 'fixed-window'\nfixed-window = { gain = 2.0 }\n\
                [transports.plain]\n[workload.small]\ntransport = 'own'\n";
    let base = BASE.replace("[workload.small]\n", more);
    let scenario =
        Scenario::parse_from(&registry("1"), "t", &base, Path::new("."), &Overrides::default()).unwrap();
    let point = &scenario.points()[0];
    assert_eq!(point.model.outside.transport_controllers["own"].params["gain"], 2.0);
    assert!(point.model.transport_config("small").unwrap().custom.is_some());
    assert!(point.model.transport_config("other").unwrap().custom.is_none());
    let again =
        Scenario::parse_from(&registry("1"), "t", &point.canonical(), Path::new("."), &Overrides::default());
    assert_eq!(again.unwrap().points()[0].digest, point.digest);
}

#[test]
fn settings_and_sweeps_reach_the_parameters() {
    let swept = "[sweep]\n\"port.switch.discipline.plain.gain\" = [1.0, 2.0]\n\"paths.first.gain\" = [3.0]\n";
    let points = read(&registry("1"), &format!("{ALL}{swept}"), &["transport.fixed-window.gain=7"]).unwrap();
    let gains: Vec<f64> = points
        .iter()
        .map(|point| point.model.outside.disciplines["leaf"].params["gain"].as_f64().unwrap())
        .collect();
    assert_eq!(gains, [1.0, 2.0]);
    assert_eq!(points[0].model.outside.selector.as_ref().unwrap().params["gain"], 3.0);
    assert_eq!(points[0].model.outside.controller.as_ref().unwrap().params["gain"], 7.0);
    // A parameter turns nothing on.
    let error = read(&registry("1"), "", &["paths.first.gain=1"]).unwrap_err();
    assert!(error.contains("`paths.first` is off in every variant"), "{error}");
    let error = read(&registry("1"), "", &["port.switch.discipline.plain.gain=1"]).unwrap_err();
    assert!(error.contains("`port.switch.discipline` is off in every variant"), "{error}");
    // The default parameters of a controller need no table.
    let set = ["transport.kind=fixed-window", "transport.fixed-window.gain=2"];
    let points = read(&registry("1"), "", &set).unwrap();
    assert_eq!(points[0].model.outside.controller.as_ref().unwrap().params["gain"], 2.0);
}

#[test]
fn mistakes_are_told_with_their_place_and_the_nearest_spelling() {
    for (more, parts) in [
        (
            "[transport]\nkind = 'fixed-windov'\n",
            ["line 18", "\"fixed-windov\" is not one of", "`fixed-window`"],
        ),
        ("[port.leaf]\ndiscipline.plane = {}\n", ["line 18", "no queue discipline `plane`", "`plain`"]),
        (
            "[port.leaf]\ndiscipline = { plain = {}, plainer = {} }\n",
            ["line 18", "not one discipline", "\"off\""],
        ),
        ("[port.leaf]\ndiscipline = 'plain'\n", ["line 18", "not one discipline", "NAME"]),
        ("[paths]\nfrist = {}\n", ["line 18", "unknown key `frist`", "`first`"]),
        (
            "[paths]\nfirst = {}\nsecond = {}\n",
            ["line 19", "`first` and `second` would both", "turn one off"],
        ),
        (
            "[paths]\nfirst = {}\nspray = {}\n",
            ["paths.first", "`spray` and `first` would both", "turn one off"],
        ),
        ("[paths]\nfirst = { gian = 1.0 }\n", ["paths.first.gian", "unknown key `gian`", "`gain`"]),
        ("[paths]\nfirst = { gain = -1.0 }\n", ["paths.first.gain", "-1 does not fit", "0 or more"]),
        ("[paths]\nfirst = { target = '3' }\n", ["paths.first.target", "no unit", "line 18"]),
        (
            "[port.leaf]\nengine = 'express'\ndiscipline.plain = {}\n",
            ["port.leaf.engine", "the express engine cannot do discipline", "\"general\""],
        ),
        (
            "[port.leaf]\npfabric = {}\ndiscipline.plain = {}\n",
            ["port.leaf", "would both order", "turn one off"],
        ),
    ] {
        let error = read(&registry("1"), more, &[]).expect_err(more);
        // The place is `file:line:column`.
        for part in parts {
            let part = part
                .strip_prefix("line ")
                .map_or_else(|| part.to_owned(), |line| format!("test.toml:{line}:"));
            assert!(error.contains(&part), "{part:?} is not in\n{error}");
        }
    }
    // Without a registry the keys are unknown, as any others.
    for more in
        ["transport.kind = 'fixed-window'\n", "[port.leaf]\ndiscipline.plain = {}\n", "[paths]\nfirst = {}\n"]
    {
        assert!(read(&Registry::new(), more, &[]).is_err(), "{more}");
    }
}

#[test]
#[should_panic(expected = "dctcp is taken")]
fn a_name_is_not_taken_twice() {
    let _ = Registry::new().congestion_controller("dctcp", "1", |_: &Params| Box::new(Fixed));
}
