//! [`Parameter`]: a key of the scenario with a length of time, and the form in which it is set.

use plimsoll_scenario::{Overrides, Scenario, ScenarioError};
use plimsoll_units::Span;

/// A key whose value is fitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The key of the scenario that is set.
    pub key: String,
    /// True if the table of the key is set whole, since the scenario has its mechanism turned off.
    in_table: bool,
}

impl Parameter {
    /// Finds the form in which the scenario takes the key.
    ///
    /// # Errors
    /// Returns the errors of the scenario with the key set plainly, if no form is valid.
    pub fn new(scenario: &Scenario, key: &str) -> Result<Parameter, Vec<ScenarioError>> {
        let form = |in_table| Parameter { key: key.to_owned(), in_table };
        let try_with = |parameter: &Parameter| {
            let overrides = with(scenario, &[parameter.set(TRIAL)], &[]);
            scenario.with_overrides(&overrides).map(drop)
        };
        let plain = form(false);
        match try_with(&plain) {
            Ok(()) => Ok(plain),
            Err(errors) => {
                let in_table = form(true);
                if key.contains('.') && try_with(&in_table).is_ok() { Ok(in_table) } else { Err(errors) }
            }
        }
    }

    /// Returns the override that gives the key this value.
    pub fn set(&self, value: Span) -> String {
        match self.key.rsplit_once('.').filter(|_| self.in_table) {
            Some((table, name)) => format!("{table}={{ {name} = \"{value}\" }}"),
            None => format!("{}={value}", self.key),
        }
    }
}

/// A value that every key of a host's costs takes.
const TRIAL: Span = Span::from_us(1);

/// Returns the overrides of a scenario with further settings: `at`, and then `parameters`.
pub fn with(scenario: &Scenario, parameters: &[String], at: &[String]) -> Overrides {
    let mut overrides = scenario.overrides().clone();
    overrides.set.extend(at.iter().chain(parameters).cloned());
    overrides
}

/// Returns the parameters that are fitted by default: the time of the workload's servers, by the mean of its
/// distribution if it has one, and the cost of an interrupt of the hosts' processors. A key that the scenario cannot
/// have is left out.
pub fn by_default(scenario: &Scenario, workload: &str) -> Vec<Parameter> {
    let service = [format!("workload.{workload}.service.mean"), format!("workload.{workload}.service")];
    let service = service.iter().find_map(|key| Parameter::new(scenario, key).ok());
    let stack = Parameter::new(scenario, "host.processor.interrupt").ok();
    service.into_iter().chain(stack).collect()
}
