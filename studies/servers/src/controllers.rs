//! [`Controllers`]: OpenFlow controllers that take turns, each started afresh.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_chronos_load::drive::IdleWait;
use plimsoll_chronos_load::openflow::SwitchLoad;
use plimsoll_chronos_load::openflow::compare::{Turn, turn};
use plimsoll_chronos_load::openflow::wire::ProtocolVersion;
use plimsoll_chronos_load::process::Recipe;
use plimsoll_units::Span;
use serde::Deserialize;

use crate::parameters::Parameters;
use crate::plan::{Beside, MANY_ROUNDS, Rounds};
use crate::rounds::{TurnReading, in_rounds, medians};
use crate::task::{MakeTask, Measured, Task};
use crate::turns::{built, installed, two_processors};

/// The controllers that take turns; the others are set beside the first. The third never sleeps.
const CONTROLLERS: [&str; 3] = ["ovs-testcontroller", "Chronos-OF", "Chronos-OF spin"];

const CHRONOS: &str = "chronos-openflow";

/// The keys of a figure of controllers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ControllersFile {
    switches: u32,
    outstanding: usize,
}

/// Reads what makes the tasks of a figure.
pub(crate) fn read(parameters: Parameters) -> Result<MakeTask, String> {
    Ok(Arc::new(move |point| {
        if point.series != CONTROLLERS[0] {
            return None;
        }
        let file = parameters.read(point.x, point.series);
        let ControllersFile { switches, outstanding } = file.expect("a test makes every task of every study");
        let rounds = Rounds::of(point, MANY_ROUNDS, (1_000, 200));
        Some(Arc::new(Controllers { switches, outstanding, rounds, servers: point.servers.to_owned() }))
    }))
}

/// Switches that wait for an answer each, at the controllers in turn.
struct Controllers {
    switches: u32,
    /// Packet-ins outstanding at each switch.
    outstanding: usize,
    rounds: Rounds,
    servers: PathBuf,
}

impl Controllers {
    fn run(&self, goes_on: &dyn Fn() -> bool) -> anyhow::Result<Vec<Measured>> {
        let [server, generator] = two_processors().map_err(anyhow::Error::msg)?;
        let plan = SwitchLoad {
            version: ProtocolVersion::V13,
            switches: self.switches,
            outstanding: self.outstanding,
            macs: 1_000_000,
            buffered: true,
            cpu: Some(generator),
            wait: IdleWait::Spin,
            warm_up: Span::from_ms(self.rounds.warm_up_ms),
            time: Span::from_ms(self.rounds.turn_ms),
            timeout: Span::from_secs(1),
        };
        let ours = self.servers.join(CHRONOS).display().to_string();
        // Its control socket is in a folder of its own, so that it needs no other.
        let words = [
            vec!["env", "OVS_RUNDIR={folder}", CONTROLLERS[0], "ptcp:{port}:127.0.0.1"],
            vec![ours.as_str(), "--listen", "127.0.0.1:{port}"],
            vec![ours.as_str(), "--poll", "spin", "--listen", "127.0.0.1:{port}"],
        ];
        let recipes = [0, 1, 2].map(|side: usize| {
            Recipe::new(CONTROLLERS[side], words[side].iter().map(|word| (*word).to_owned()).collect())
        });
        let turn = |side: usize, _| turn(&plan, &recipes[side], &[server]);
        let turns = in_rounds(recipes.len(), self.rounds.count, goes_on, turn)?;
        let beside: [&[Beside]; 3] = [&[], &[Beside::FIRST], &[Beside::FIRST]];
        let sides = [0, 1, 2].map(|side| (CONTROLLERS[side], beside[side]));
        Ok(medians(&sides, &turns, |turn| !turn.report.suspect.is_empty(), &readings()))
    }
}

fn readings() -> [TurnReading<'static, Turn>; 4] {
    let of = |metric, unit, read: fn(&Turn) -> f64| TurnReading {
        metric,
        unit,
        is_compared: true,
        read: Box::new(read),
    };
    [
        of("latency_us_mean", "us", |turn| turn.report.latency.mean),
        of("latency_us_p99", "us", |turn| turn.report.latency.p99),
        of("requests_per_s", "1/s", |turn| turn.report.rate),
        of("server_us_per_request", "us", |turn| turn.server_us_per_answer),
    ]
}

impl Task for Controllers {
    fn settings(&self) -> String {
        let Controllers { switches, outstanding, rounds, .. } = self;
        format!("{CONTROLLERS:?}: {switches} switches, {outstanding} outstanding at each, {rounds:?}")
    }

    fn check(&self) -> Result<(), String> {
        two_processors()?;
        installed(CONTROLLERS[0], "openvswitch-testcontroller")?;
        built(&self.servers, CHRONOS)
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        self.run(goes_on).map_err(|error| format!("{error:#}"))
    }
}
