//! Implements `plimsoll host` without the eBPF programs: an error that names the missing feature.

use super::*;

/// The reason why this build cannot apply a policy.
pub const LACKS: Option<&str> = Some(output::NO_PROGRAMS);

/// Carries out an action, of which this build can only plan.
pub fn run(action: &Action, folders: &StateFolders) -> Done {
    match action {
        Action::Plan(args) => return show(&args.policy, folders),
        Action::Apply(args) => drop(planned(&read_policy(&args.policy)?, folders)?),
        _ => {}
    }
    Err(anyhow!(output::NO_PROGRAMS))
}
