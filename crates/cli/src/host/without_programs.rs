//! `plimsoll host` without the eBPF programs: an error that says what is missing.

use super::*;

/// What keeps this build from applying a policy.
pub const LACKS: Option<&str> = Some(output::NO_PROGRAMS);

fn unavailable() -> Done {
    Err(anyhow!(output::NO_PROGRAMS))
}

pub fn apply(args: &ApplyArgs, places: &Places) -> Done {
    planned(&args.policy, places)?;
    let _ = args.confirm_within;
    unavailable()
}

pub fn confirm(_: &PolicyName, _: &Places) -> Done {
    unavailable()
}

pub fn rollback(args: &RollbackArgs, _: &Places) -> Done {
    let RollbackArgs { policy: _, gone: _ } = args;
    unavailable()
}

pub fn statuses(_: Option<&PolicyName>, _: &Places) -> Result<Vec<plimsoll_host::Status>> {
    Err(anyhow!(output::NO_PROGRAMS))
}

pub fn attach_unit(_: &PolicyName, _: &UnitName, _: &Places) -> Done {
    unavailable()
}

pub fn pace(args: &PaceArgs, _: &Places) -> Done {
    let PaceArgs { policy: _, stop: _ } = args;
    unavailable()
}

pub fn serve(args: &MetricsArgs, _: &Places) -> Done {
    let _ = &args.listen;
    unavailable()
}
