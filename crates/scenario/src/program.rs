//! Programs that run in emulated hosts.

use plimsoll_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use plimsoll_traffic::hosts::HostName;

/// A program that `plimsoll emulate` runs in a host, such as `iperf3 -s`, beside the workloads. A simulation warns
/// that it has none of them. Its output goes to `program-HOST.log` in the run directory. Needs `run.duration`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The host that it runs in. Its address is 10.0.0.1 for `h0`, 10.0.0.2 for `h1`, and so on.
    pub host: HostName,
    /// The program and its arguments, with quotes as in a shell. No shell runs it, so pipes, variables and
    /// `;` have no effect; name one for them, as in `sh -c 'sleep 1; echo done'`.
    pub command: String,
    /// QJump's level of the sockets that the program opens, 0 to 7; needs `host.qjump`. Default: the
    /// program's own settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// The time at which the program starts, since the start of the workloads. Default `"0s"`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: Span,
    /// The time at which the program is killed, if it has not ended: after `start`. Default `run.duration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
}

/// The program and its arguments that `command` names; none if it is empty, or a quote has no end.
pub fn words(command: &str) -> Option<Vec<String>> {
    shlex::split(command).filter(|words| words.first().is_some_and(|program| !program.is_empty()))
}

/// For serde, which hands over a reference.
fn is_zero(span: &Span) -> bool {
    span.is_zero()
}
