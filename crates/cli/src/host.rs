//! `plimsoll host`: a policy for this host, shown, applied, watched and taken back.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use clap::Subcommand;
use plimsoll_host::{Host, Journal, Places, Plan, Policy, PolicyName, UnitName};
use plimsoll_stdio::note;
use plimsoll_units::Span;

use crate::output::{self, Done};

#[cfg(feature = "kernel")]
mod confirmation;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(not(feature = "kernel"))]
#[path = "host/without_programs.rs"]
mod kernel;

/// Put mechanisms on this host by a policy: show what would change, apply it, watch it, take it back.
///
/// Without a command, `plan`. Nothing is changed but by `apply`, `rollback` and `confirm`, and these need root.
/// docs/host.md describes policies, and what each changes.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    plan: Option<PlanArgs>,
}

#[derive(Subcommand)]
enum Action {
    Plan(PlanArgs),
    Apply(ApplyArgs),
    Status(StatusArgs),
    /// Keep a policy that was applied with --confirm-within: it is not rolled back by itself.
    Confirm(NameArgs),
    Rollback(RollbackArgs),
    Pace(PaceArgs),
    AttachUnit(AttachUnitArgs),
    ServeMetrics(MetricsArgs),
}

/// Print what applying the policy would change, and change nothing.
#[derive(clap::Args)]
struct PlanArgs {
    /// The policy.
    #[arg(value_name = "POLICY.toml")]
    policy: PathBuf,
}

/// Apply the policy: try what can be tried, write down the state before, then change it.
///
/// Waits while somebody else changes the host by a policy. If a step fails, those before it are undone. If this process is killed, `plimsoll host rollback` restores the host.
#[derive(clap::Args)]
struct ApplyArgs {
    /// The policy.
    #[arg(value_name = "POLICY.toml")]
    policy: PathBuf,
    /// Wait so long for `plimsoll host confirm`, or Enter on a terminal in the foreground, and roll back without it, or at Ctrl-C, SIGTERM
    /// or the loss of the terminal: for a host that the policy may cut off.
    #[arg(long, value_name = "TIME")]
    confirm_within: Option<Span>,
}

/// Show budgets, what passed and what was refused, marks and phantom queues.
#[derive(clap::Args)]
struct StatusArgs {
    /// The policy, or its name; all that are applied by default.
    #[arg(value_name = "POLICY")]
    policy: Option<Subject>,
    /// As JSON, one object a policy in a list.
    #[arg(short = 'j', long)]
    json: bool,
    /// As OpenMetrics text.
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

/// About one policy.
#[derive(clap::Args)]
struct NameArgs {
    /// The policy, or its name.
    #[arg(value_name = "POLICY")]
    policy: Subject,
}

/// Take a policy back: undo what applying it has changed, the last first. Ends with 1 where something stays, because
/// somebody else has changed it since.
///
/// What was applied in another network namespace is taken back there, where that can be found and entered; otherwise
/// nothing is, and it is said where to do so.
#[derive(clap::Args)]
struct RollbackArgs {
    /// The policy, or its name.
    #[arg(value_name = "POLICY")]
    policy: Subject,
    /// Of a policy whose network namespace, pins or cgroups are gone for good, undo the rest.
    #[arg(long)]
    gone: bool,
}

/// Keep the TBF of a pacer on a host without fq at the pacer's rate, until ended; it then has the link's rate.
#[derive(clap::Args)]
struct PaceArgs {
    /// The policy, or its name.
    #[arg(value_name = "POLICY")]
    policy: Subject,
    /// Only give it the link's rate: after one of these that was killed.
    #[arg(long)]
    stop: bool,
}

/// Give a systemd unit that is being started its level: what the drop-in of an applied policy calls, ahead of its programs.
#[derive(clap::Args)]
struct AttachUnitArgs {
    /// The policy's name.
    #[arg(value_name = "POLICY")]
    policy: PolicyName,
    /// The unit.
    #[arg(value_name = "UNIT")]
    unit: UnitName,
}

/// Serve the metrics of all policies at /metrics, on a socket of this machine, until ended.
#[derive(clap::Args)]
struct MetricsArgs {
    /// unix:/PATH, 127.0.0.1:PORT or [::1]:PORT.
    #[arg(long, value_name = "ADDRESS")]
    listen: String,
}

/// A policy's name, or a file that says it.
#[derive(Clone, Debug)]
struct Subject(PolicyName);

impl FromStr for Subject {
    type Err = String;
    fn from_str(text: &str) -> Result<Subject, String> {
        let is_path = text.contains('/') || text.ends_with(".toml");
        if is_path {
            let policy = Policy::read(Path::new(text)).map_err(|error| error.to_string())?;
            return Ok(Subject(policy.name().clone()));
        }
        text.parse().map(Subject).map_err(|error: plimsoll_host::InvalidName| error.to_string())
    }
}

pub fn host(args: &Args) -> Done {
    let places = Places::default();
    match (&args.action, &args.plan) {
        (None, Some(plan)) | (Some(Action::Plan(plan)), _) => show(&plan.policy, &places),
        (Some(Action::Apply(apply)), _) => kernel::apply(apply, &places),
        (Some(Action::Status(status)), _) => show_status(status, &places),
        (Some(Action::Confirm(name)), _) => kernel::confirm(&name.policy.0, &places),
        (Some(Action::Rollback(args)), _) => kernel::rollback(args, &places),
        (Some(Action::AttachUnit(AttachUnitArgs { policy, unit })), _) => {
            kernel::attach_unit(policy, unit, &places)
        }
        (Some(Action::Pace(pace)), _) => kernel::pace(pace, &places),
        (Some(Action::ServeMetrics(metrics)), _) => kernel::serve(metrics, &places),
        (None, None) => Err(anyhow!("which policy? `plimsoll host POLICY.toml`")),
    }
}

fn planned(path: &Path, places: &Places) -> Result<Plan> {
    let policy = Policy::read(path)?;
    Ok(plimsoll_host::plan(&policy, &Host, places)?)
}

fn show(path: &Path, places: &Places) -> Done {
    let plan = planned(path, places)?;
    let name = plan.policy.name();
    let applied = match Journal::of(places, name).read() {
        // Of which the plan has a note.
        Err(error) if error.is_denied() => false,
        journal => journal?.is_some(),
    };
    let state = if applied { "applied already; from here it would change" } else { "would change" };
    output::print(&format!("policy {name}: {state}\n\n{plan}"))?;
    match kernel::LACKS {
        None => note!("nothing was changed; to do so: plimsoll host apply {}", path.display()),
        Some(lacks) => note!("nothing was changed, and cannot be: {lacks}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn show_status(args: &StatusArgs, places: &Places) -> Done {
    let statuses = kernel::statuses(args.policy.as_ref().map(|subject| &subject.0), places)?;
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&statuses)?)
    } else if args.metrics {
        plimsoll_host::open_metrics(&statuses)
    } else if statuses.is_empty() {
        "no policy is applied\n".to_owned()
    } else {
        statuses.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
