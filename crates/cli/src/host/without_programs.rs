//! Implements `plimsoll host` without the eBPF programs: an error that names what is missing.

use super::*;

/// The reason why this build cannot apply a policy.
pub const LACKS: Option<&str> = Some(output::NO_PROGRAMS);

fn unavailable() -> Done {
    Err(anyhow!(output::NO_PROGRAMS))
}

pub fn apply(args: &ApplyArgs, folders: &StateFolders) -> Done {
    planned(&args.policy, folders)?;
    let _ = args.confirm_within;
    unavailable()
}

pub fn confirm(_: &PolicyName, _: &StateFolders) -> Done {
    unavailable()
}

pub fn rollback(args: &RollbackArgs, _: &StateFolders) -> Done {
    let RollbackArgs { policy: _, gone: _ } = args;
    unavailable()
}

pub fn statuses(_: Option<&PolicyName>, _: &StateFolders) -> Result<Vec<plimsoll_host::Status>> {
    Err(anyhow!(output::NO_PROGRAMS))
}

pub fn attach_unit(_: &PolicyName, _: &UnitName, _: &StateFolders) -> Done {
    unavailable()
}

pub fn pace(args: &PaceArgs, _: &StateFolders) -> Done {
    let PaceArgs { policy: _, stop: _ } = args;
    unavailable()
}

pub fn serve(args: &MetricsArgs, _: &StateFolders) -> Done {
    let _ = &args.listen;
    unavailable()
}
