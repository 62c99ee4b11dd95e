//! The parts of `plimsoll host` that need the eBPF programs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_host::{ApplyProgress, Error, HostCounters, HostLock, Kernel, PolicyStatus, RolledBack};
use plimsoll_process::note;

use super::confirmation::{self, ConfirmationEnd};
use super::heeded::watched;
use super::*;

/// The reason why this build cannot apply a policy.
pub const LACKS: Option<&str> = None;

/// Carries out an action.
pub fn run(action: &Action, folders: &StateFolders) -> Done {
    match action {
        Action::Plan(args) => show(&args.policy, folders),
        Action::Apply(args) => apply(args, folders),
        Action::Status(args) => show_status(args, folders),
        Action::Confirm(args) => confirm(&args.policy.0, folders),
        Action::Rollback(args) => rollback(args, folders),
        Action::AttachUnit(args) => attach_unit(&args.policy, &args.unit, folders),
        Action::Pace(args) => pace(args, folders),
        Action::ServeMetrics(args) => serve(args, folders),
    }
}

fn apply(args: &ApplyArgs, folders: &StateFolders) -> Done {
    let policy = read_policy(&args.policy)?;
    let name = policy.name().clone();
    if args.confirm_within.is_some() {
        // A stopped process could not roll the policy back.
        plimsoll_linux::job_control::ignore()?;
    }
    let signal = watched()?;
    let made = match make(&policy, args, folders, &signal) {
        Err(Error::Busy) if signal.load(Ordering::Relaxed) > 0 => return Ok(ended_by(&signal)),
        made => made?,
    };
    if let Planned::Changed(change) = &made
        && change.difference.is_empty()
    {
        output::print(&format!("policy {name} is applied already: nothing to change\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(within) = args.confirm_within {
        let ended = confirmation::wait(&name, folders, within, &signal);
        if let Some(why) = settle(&made, folders, ended)? {
            say(&why);
            return Ok(ended_by(&signal));
        }
    }
    output::print(&format!("policy {name} is applied; to undo it: plimsoll host rollback {name}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Plans and applies the policy, between two changes of other processes.
fn make(
    policy: &Policy,
    args: &ApplyArgs,
    folders: &StateFolders,
    signal: &AtomicUsize,
) -> Result<Planned, Error> {
    let lock = locked(folders, &mut || signal.load(Ordering::Relaxed) == 0)?;
    let made = planned(policy, folders)?;
    let to_confirm = args.confirm_within.is_some();
    let lines: Vec<String> = match &made {
        Planned::First(plan) => plan.steps.iter().map(ToString::to_string).collect(),
        Planned::Changed(change) => change.difference.moves().iter().map(ToString::to_string).collect(),
    };
    let mut tell = |moment| {
        if let ApplyProgress::Begun(index) = moment {
            say(&format!("[{}/{}] {}", index + 1, lines.len(), lines[index]));
        }
    };
    match &made {
        Planned::First(plan) => plimsoll_host::apply(&lock, plan, &mut Kernel(&lock), to_confirm, &mut tell)?,
        Planned::Changed(change) => {
            // An apply that changes nothing needs no confirmation, and is the last apply from now on.
            let to_confirm = to_confirm && !change.difference.is_empty();
            let left = plimsoll_host::apply_change(&lock, change, &mut Kernel(&lock), to_confirm, &mut tell)?;
            left.iter().for_each(|left| note!("warning: {left}"));
        }
    }
    Ok(made)
}

/// Keeps or rolls back an applied policy, depending on the confirmation and on other processes' changes. If it does not
/// stay, returns a message, which is printed afterwards, since a lost terminal accepts no output.
fn settle(made: &Planned, folders: &StateFolders, ended: ConfirmationEnd) -> Result<Option<String>, Error> {
    let (Planned::First(plan) | Planned::Changed(PlanChange { plan, .. })) = made;
    let name = plan.policy.name();
    let lock = HostLock::acquire(folders, &mut || true)?;
    let (why, back) = match (PolicyJournal::of(folders, name).read(), ended) {
        (Ok(None), _) => return Ok(Some("it was rolled back by another process".to_owned())),
        (Ok(Some(applied)), _) if *applied.policy() != plan.policy => {
            return Ok(Some("another process has put its earlier version in force again".to_owned()));
        }
        (Ok(Some(applied)), _) if applied.confirmed => return Ok(None),
        (Ok(Some(_)), ConfirmationEnd::Kept) => {
            return plimsoll_host::confirm(&lock, name, &mut Kernel(&lock)).map(|_| None);
        }
        (Ok(Some(_)), ConfirmationEnd::Unconfirmed(why)) => {
            (why.to_owned(), plimsoll_host::rollback(&lock, name, &mut Kernel(&lock))?.unwrap_or_default())
        }
        (Err(error), _) if matches!(made, Planned::Changed(_)) => return Err(error),
        (Err(error), _) => {
            (error.to_string(), plimsoll_host::roll_back_plan(&lock, plan, &mut Kernel(&lock))?)
        }
    };
    Ok(Some(format!("{why}\n{}{}", warnings(&back), rolled_back(name, &back))))
}

/// Writes a line to stderr.
pub fn say(line: &str) {
    note!("{line}");
}

/// Waits for other processes that change this host, as long as `goes_on` returns true, and prints a message.
fn locked(folders: &StateFolders, goes_on: &mut dyn FnMut() -> bool) -> Result<HostLock, Error> {
    let mut is_said = false;
    HostLock::acquire(folders, &mut || {
        if !is_said {
            say("waiting: another process is changing this host by a policy");
            is_said = true;
        }
        goes_on()
    })
}

/// Returns the exit status of a process that a signal has ended, or of a finding.
fn ended_by(signal: &AtomicUsize) -> ExitCode {
    match signal.load(Ordering::Relaxed) {
        0 => ExitCode::from(output::FINDING),
        caught => ExitCode::from(128 + caught as u8),
    }
}

fn confirm(name: &PolicyName, folders: &StateFolders) -> Done {
    let begun = Instant::now();
    let lock = locked(folders, &mut || begun.elapsed() < PATIENCE)?;
    if !plimsoll_host::confirm(&lock, name, &mut Kernel(&lock))? {
        let error = Error::not_applied(name, &PolicyJournal::all(folders)?);
        return Err(anyhow!("{error}; it may have been rolled back already"));
    }
    output::print(&format!("policy {name} is confirmed\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn rollback(args: &RollbackArgs, folders: &StateFolders) -> Done {
    let last = args.last.as_deref().map(read_policy).transpose()?;
    let name = match (&last, &args.policy) {
        (Some(policy), _) => policy.name(),
        (None, Some(subject)) => &subject.0,
        (None, None) => return Err(anyhow!("no policy given; write `plimsoll host rollback POLICY`")),
    };
    let lock = locked(folders, &mut || true)?;
    let mut kernel = Kernel(&lock);
    let (back, absent) = match &last {
        Some(policy) => {
            let back = plimsoll_host::roll_back_last(&lock, policy, &Host, &mut kernel)?;
            (back, "not in force in this version")
        }
        None if args.gone => (plimsoll_host::rollback_rest(&lock, name, &mut kernel)?, "not applied"),
        None => (plimsoll_host::rollback(&lock, name, &mut kernel)?, "not applied"),
    };
    let Some(back) = back else {
        output::print(&format!("policy {name} is {absent}: nothing to do\n"))?;
        return Ok(ExitCode::SUCCESS);
    };
    back.left.iter().for_each(|left| note!("warning: {left}"));
    output::print(&format!("{}\n", rolled_back(name, &back)))?;
    Ok(ExitCode::from(if back.left.is_empty() { 0 } else { output::FINDING }))
}

fn warnings(back: &RolledBack) -> String {
    back.left.iter().map(|left| format!("warning: {left}\n")).collect()
}

fn rolled_back(name: &PolicyName, back: &RolledBack) -> String {
    let network = back.network.as_ref();
    let network =
        network.map(|way| format!(", in the network namespace {}", way.display())).unwrap_or_default();
    match back.left.len() {
        0 if back.to_earlier => {
            format!("policy {name} is back at its earlier version: {} changes undone{network}", back.steps)
        }
        left if back.to_earlier => {
            format!("policy {name} is back at its earlier version, but for {left} changes{network}")
        }
        0 => format!("policy {name} is rolled back: {} changes undone{network}", back.steps),
        left => format!("policy {name} is rolled back, but for {left} of {} changes{network}", back.steps),
    }
}

fn show_status(args: &StatusArgs, folders: &StateFolders) -> Done {
    let statuses = statuses(args.policy.as_ref().map(|subject| &subject.0), folders)?;
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&statuses)?)
    } else if args.metrics {
        plimsoll_host::open_metrics(&statuses, &HostCounters::read())
    } else if statuses.is_empty() {
        "no policy is applied\n".to_owned()
    } else {
        statuses.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn statuses(name: Option<&PolicyName>, folders: &StateFolders) -> Result<Vec<PolicyStatus>, Error> {
    if let Some(name) = name {
        return Ok(vec![plimsoll_host::observe(&PolicyJournal::applied(folders, name)?)?]);
    }
    let names = PolicyJournal::all(folders)?;
    let applied = names.iter().filter_map(|name| PolicyJournal::of(folders, name).read().transpose());
    applied.map(|applied| plimsoll_host::observe(&applied?)).collect()
}

fn serve(args: &MetricsArgs, folders: &StateFolders) -> Done {
    let listener = plimsoll_host::bind(&args.listen)?;
    note!("metrics at {}, path /metrics", listener.address());
    plimsoll_host::serve(&listener, &|| {
        Ok(plimsoll_host::open_metrics(&statuses(None, folders)?, &HostCounters::read()))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn attach_unit(name: &PolicyName, unit: &UnitName, folders: &StateFolders) -> Done {
    if !plimsoll_host::attach_unit(name, unit, folders)? {
        note!("policy {name} has no level for {unit}");
    }
    Ok(ExitCode::SUCCESS)
}

fn pace(args: &PaceArgs, folders: &StateFolders) -> Done {
    let name = &args.policy.0;
    let applied = PolicyJournal::applied(folders, name)?;
    if args.stop {
        plimsoll_host::pace_nothing(&applied)?;
        say(&format!("policy {name}: the filter has the link's rate"));
        return Ok(ExitCode::SUCCESS);
    }
    let signal = watched()?;
    say(&format!("policy {name}: the filter follows the pacer until Ctrl-C or a rollback"));
    let changes = plimsoll_host::pace(&applied, &mut || signal.load(Ordering::Relaxed) > 0)?;
    say(&format!("its rate was set {changes} times; the filter now has the link's rate"));
    Ok(ExitCode::SUCCESS)
}

/// The longest wait for the lock: longer than the steps of another policy take, since a confirmation has a deadline.
const PATIENCE: Duration = Duration::from_secs(5);
