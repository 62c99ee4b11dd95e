//! Plans QJump: the levels at the device, and the programs that have each level.

use std::path::Path;

use plimsoll_mechanisms::qjump::Levels;

use super::Planning;
use crate::Error;
use crate::facts::Unit;
use crate::names::UnitName;
use crate::policy::{DeviceSide, Pace, QjumpPolicy, Subject, Tagging};
use crate::step::{LevelCgroup, PortProgram, Step};

impl Planning<'_> {
    pub(super) fn qjump(&mut self, qjump: &QjumpPolicy) -> Result<(), Error> {
        let levels = qjump.levels().expect("a policy's levels were resolved when it was checked");
        let Some(device) = self.device("qjump.device", &qjump.device)? else { return Ok(()) };
        self.segments(qjump, &levels, device);
        let mut programs = Vec::new();
        if !qjump.ports().is_empty() {
            programs.push((PortProgram::Ports(qjump.ports()), "ports".to_owned()));
        }
        programs.push((PortProgram::Limiter(qjump.clone()), "limiter".to_owned()));
        self.program(&qjump.device, DeviceSide::Egress, programs)?;
        for level in (0..).take(levels.levels.len()) {
            self.level(qjump, &levels, level)?;
        }
        if qjump.tag == Tagging::Dscp {
            self.note(format!(
                "tag = \"dscp\": every packet that leaves {} gets DSCP 8 x its level, also those of programs that are \
                 not named here: a DSCP of \
                 their own is lost; tag = \"none\" leaves it",
                qjump.device
            ));
        }
        self.notes.push(
            "programs without a level here that set IP_TOS or SO_PRIORITY themselves, such as ssh, have the level of \
             that \
             priority (2, 4 or 6), and the kernel's control packets level 7: over ssh, apply with --confirm-within 60s"
                .to_owned(),
        );
        Ok(())
    }

    /// Adds the members of `level` by cgroup or unit.
    fn level(&mut self, qjump: &QjumpPolicy, levels: &Levels, level: u8) -> Result<(), Error> {
        let pins = self.pins.join(format!("level-{level}"));
        let shape = &levels.levels[usize::from(level)];
        let paces = qjump.pace == Pace::Level && shape.latency_bound.is_some();
        let share = paces.then_some((shape.bucket, levels.epoch));
        let (mut members, mut units) = (Vec::new(), Vec::new());
        for (index, one) in qjump.assign.iter().enumerate().filter(|(_, one)| one.level == level) {
            match one.subject() {
                Some(Subject::Cgroup(path)) => {
                    members.extend(self.cgroup(path)?.map(|cgroup| LevelCgroup { cgroup, unit: None }));
                }
                Some(Subject::Unit(unit)) => match self.facts.unit(unit)? {
                    Unit::Unknown => {
                        self.reasons.push(format!("qjump.assign[{index}]: systemd has no unit {unit}"));
                    }
                    Unit::Stopped => units.push(unit),
                    Unit::Running(path) => {
                        let unit_of = |cgroup| LevelCgroup { cgroup, unit: Some(unit.clone()) };
                        members.extend(self.cgroup(&path)?.map(unit_of));
                        units.push(unit);
                    }
                },
                Some(Subject::Port(_)) | None => {}
            }
        }
        if members.is_empty() && units.is_empty() {
            return Ok(());
        }
        self.steps.push(Step::Level { level, members, share, pins: pins.clone() });
        // A scope is created by its program at run time, only once.
        for unit in units.into_iter().filter(|unit| !unit.as_str().ends_with(".scope")) {
            self.drop_in(unit, level, &pins)?;
        }
        Ok(())
    }

    /// Adds a step that configures a unit's level in systemd, until the next boot.
    fn drop_in(&mut self, unit: &UnitName, level: u8, pins: &Path) -> Result<(), Error> {
        let policy = self.pins.file_name().unwrap_or_default().display().to_string();
        let told = if unit.as_str().ends_with(".slice") {
            format!("[Slice]\nIPEgressFilterPath={}/{TRAFFIC}\n", pins.display())
        } else {
            let program = match self.facts.program() {
                Err(Error::Unavailable(reasons)) => {
                    self.reasons
                        .extend(reasons.iter().map(|reason| format!("qjump.assign: {unit}: {reason}")));
                    return Ok(());
                }
                program => program?.display().to_string(),
            };
            if !program.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c)) {
                self.reasons.push(format!(
                    "qjump.assign: {unit} is to call {program}, in a path that systemd might read otherwise; use a \
                     copy in a path of \
                     letters, digits, `.`, `_`, `+` and `-`"
                ));
            }
            // The prefix `-` starts a unit without its level rather than not at all; `+` gives the call the privileges
            // that the unit may lack. systemd reads `\x2d` of a name as a character.
            let name = unit.as_str().replace('\\', "\\\\");
            format!("[Service]\nExecStartPre=-+{program} host attach-unit {policy} {name}\n")
        };
        let file = Path::new(SYSTEMD_RUN).join(format!("{unit}.d")).join(drop_in_name(&policy));
        let text = format!("# Level {level} of QJump; plimsoll host rollback removes it.\n{told}");
        self.steps.push(Step::DropIn { unit: unit.clone(), level, file, text });
        Ok(())
    }
}

/// Returns the name of the drop-in file for a policy's level of a unit.
pub(super) fn drop_in_name(policy: &impl std::fmt::Display) -> String {
    format!("50-plimsoll-{policy}.conf")
}

/// The folder of systemd's configuration that does not survive a reboot.
pub(super) const SYSTEMD_RUN: &str = "/run/systemd/system";
/// The name of the pin of the program that classifies a level's traffic.
pub(crate) const TRAFFIC: &str = "traffic";
