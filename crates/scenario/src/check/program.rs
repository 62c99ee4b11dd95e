//! Checks of `program`: hosts that there are, and times within the run.

use plimsoll_units::Span;

use super::Checker;
use crate::error::did_you_mean;
use crate::model::{Model, Program};
use crate::program::words;

/// Host names compared for the nearest spelling.
const NAMES_MAX: u32 = 2_000;

impl Checker<'_> {
    pub(super) fn programs(&mut self, model: &Model) {
        for (number, program) in model.program.iter().enumerate() {
            let index = number.to_string();
            self.program_host(&index, program, model);
            if words(&program.command).is_none() {
                self.error(
                    &["program", &index, "command"],
                    "there is nothing to run, or a quote without its end",
                    "a program and its arguments",
                );
            }
            self.program_level(&index, program, model);
            self.program_times(&index, program, model.run.duration);
        }
    }

    fn program_host(&mut self, index: &str, program: &Program, model: &Model) {
        let (topology, name) = (&model.topology, &program.host.0);
        if topology.host(name).is_some() {
            return;
        }
        let hosts = topology.host_count();
        let names: Vec<String> = (0..hosts.min(NAMES_MAX)).map(|host| topology.host_name(host)).collect();
        let report = self
            .report(&["program", index, "host"], format!("there is no host `{name}`"))
            .allowed(format!("a host such as {}", topology.host_name(0)))
            .maybe_help(did_you_mean(name, names.iter().map(String::as_str)));
        self.found.errors.push(report);
    }

    fn program_level(&mut self, index: &str, program: &Program, model: &Model) {
        let Some(level) = program.level else { return };
        let levels = model.host.qjump().map(|params| params.levels.len());
        match levels {
            Some(levels) if usize::from(level) >= levels => {
                let message = format!("level {level}, and `host.qjump.levels` has {levels} levels");
                self.error(&["program", index, "level"], message, format!("0 to {}", levels.max(1) - 1));
            }
            Some(_) => {}
            None => {
                let allowed = "none, or a table `host.qjump`";
                self.error(&["program", index, "level"], "hosts without QJump have no levels", allowed);
            }
        }
    }

    fn program_times(&mut self, index: &str, program: &Program, duration: Option<Span>) {
        let Some(duration) = duration else {
            let message = "programs run until `run.duration`, which is not set";
            return self.error(&["program", index], message, "a `run.duration`");
        };
        if program.start >= duration {
            let message = format!("it starts at {}, and the run ends at {duration}", program.start);
            self.error(&["program", index, "start"], message, format!("less than {duration}"));
        }
        if let Some(stop) = program.stop.filter(|stop| *stop <= program.start) {
            let message = format!("it stops at {stop}, and starts at {}", program.start);
            self.error(&["program", index, "stop"], message, format!("after {}", program.start));
        }
    }
}
