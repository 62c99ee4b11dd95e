//! Implements `plimsoll host`, which plans, applies, observes and rolls back policies of this host.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context as _, Result, anyhow};
use clap::Subcommand;
use plimsoll_host::{ApplyPlan, Host, PlanChange, Policy, PolicyJournal, PolicyName, StateFolders, UnitName};
use plimsoll_process::note;
use plimsoll_scenario::Registry;
use plimsoll_units::Span;

use crate::memory::{self, Work};
use crate::output::{self, Done};

#[cfg(feature = "kernel")]
mod confirmation;
mod heeded;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(not(feature = "kernel"))]
#[path = "host/without_programs.rs"]
mod kernel;
mod rollout;

/// Install mechanisms on this host by a policy: plan its changes, apply it, observe it, roll it back.
///
/// Without a command, `plan`. Only `apply`, `rollback` and `confirm` change the host, and they need root. docs/host.md
/// describes policies, and the changes that each section makes.
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
    /// Keep a policy that was applied with --confirm-within, so that it is not rolled back by itself.
    Confirm(NameArgs),
    Rollback(RollbackArgs),
    Pace(PaceArgs),
    AttachUnit(AttachUnitArgs),
    ServeMetrics(MetricsArgs),
}

/// Print the changes that applying the policy would make, without making them.
#[derive(clap::Args)]
struct PlanArgs {
    /// File of the policy.
    #[arg(value_name = "POLICY.toml")]
    policy: PathBuf,
}

/// Apply the policy: check every step, record the state before it, then change the host.
///
/// If an earlier version of the policy is applied, only the steps that differ are undone or made. With --on, the policy
/// is applied at other hosts instead, in waves.
///
/// Waits while another process changes the host by a policy. If a step fails, the steps before it are undone. If this
/// process is killed, `plimsoll host rollback` restores the host.
#[derive(clap::Args)]
struct ApplyArgs {
    /// File of the policy; `-` reads standard input.
    #[arg(value_name = "POLICY.toml")]
    policy: PathBuf,
    /// Wait this long for `plimsoll host confirm`, or for Enter on a terminal in the foreground. Without it, or at
    /// Ctrl-C, SIGTERM or the loss of the terminal, roll back: for a host that the policy may cut off.
    #[arg(long, value_name = "TIME", value_parser = time_to_confirm)]
    confirm_within: Option<Span>,
    #[command(flatten)]
    rollout: rollout::RolloutArgs,
}

/// Parses the time for a confirmation, in which somebody must be able to type it.
fn time_to_confirm(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error| format!("{error}"))?;
    if time.is_zero() { Err("expected more than 0s, such as 60s".to_owned()) } else { Ok(time) }
}

/// Show budgets, passed and refused packets, marks and phantom queues.
#[derive(clap::Args)]
struct StatusArgs {
    /// File or name of the policy; all applied policies by default.
    #[arg(value_name = "POLICY")]
    policy: Option<PolicySubject>,
    /// Print JSON: a list with one object a policy.
    #[arg(short = 'j', long)]
    json: bool,
    /// Print OpenMetrics text.
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

/// Arguments of a command about one policy.
#[derive(clap::Args)]
struct NameArgs {
    /// File or name of the policy.
    #[arg(value_name = "POLICY")]
    policy: PolicySubject,
}

/// Roll a policy back: undo its changes in reverse order. Ends with 1 where a change stays because somebody else has
/// modified it since.
///
/// Changes in another network namespace are undone there, if it can be found and entered; otherwise nothing is undone,
/// and a message says where to run the command. A change of an applied policy that is interrupted or not confirmed is
/// reverted to the earlier version; the next rollback undoes that.
#[derive(clap::Args)]
struct RollbackArgs {
    /// File or name of the policy.
    #[arg(value_name = "POLICY", required_unless_present = "last")]
    policy: Option<PolicySubject>,
    /// Undo only the last apply of this version of the policy, confirmed or not, so that the version that it has
    /// replaced is in force again; do nothing where another version is. `-` reads standard input.
    #[arg(long, value_name = "POLICY.toml", conflicts_with_all = ["policy", "gone"])]
    last: Option<PathBuf>,
    /// Undo the rest of a policy whose devices, network namespace, pins or cgroups are gone for good.
    #[arg(long)]
    gone: bool,
}

/// Keep the TBF of a pacer on a host without fq at the pacer's rate, until interrupted; then restore the link's rate.
#[derive(clap::Args)]
struct PaceArgs {
    /// File or name of the policy.
    #[arg(value_name = "POLICY")]
    policy: PolicySubject,
    /// Only restore the link's rate, after such a process was killed.
    #[arg(long)]
    stop: bool,
}

/// Give a starting systemd unit its level: the drop-in of an applied policy calls this ahead of the unit's programs.
#[derive(clap::Args)]
struct AttachUnitArgs {
    /// Name of the policy.
    #[arg(value_name = "POLICY")]
    policy: PolicyName,
    /// Name of the systemd unit.
    #[arg(value_name = "UNIT")]
    unit: UnitName,
}

/// Serve the metrics of all policies at /metrics, on a local socket, until interrupted.
#[derive(clap::Args)]
struct MetricsArgs {
    /// Address: unix:/PATH, 127.0.0.1:PORT or [::1]:PORT.
    #[arg(long, value_name = "ADDRESS")]
    listen: String,
}

/// The name of a policy, or a file that contains it.
#[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "a build without the programs only plans"))]
#[derive(Clone, Debug)]
struct PolicySubject(PolicyName);

impl FromStr for PolicySubject {
    type Err = String;
    fn from_str(text: &str) -> Result<PolicySubject, String> {
        let is_path = text.contains('/') || text.ends_with(".toml");
        if is_path {
            let policy = Policy::read(Path::new(text)).map_err(|error| error.to_string())?;
            return Ok(PolicySubject(policy.name().clone()));
        }
        text.parse().map(PolicySubject).map_err(|error: plimsoll_host::InvalidName| error.to_string())
    }
}

pub fn run(args: &Args, _: &Registry) -> Done {
    if let Some(Action::Apply(ApplyArgs { policy, confirm_within: Some(within), rollout })) = &args.action
        && let Some(list) = &rollout.on
    {
        return rollout::run(policy, list, *within, rollout);
    }
    if let Some(Action::Apply(_) | Action::Rollback(_)) = &args.action {
        memory::begin(Work::Host);
    }
    let folders = StateFolders::default();
    match (&args.action, &args.plan) {
        (None, Some(plan)) => show(&plan.policy, &folders),
        (Some(action), _) => kernel::run(action, &folders),
        (None, None) => Err(anyhow!("no policy given; write `plimsoll host POLICY.toml`")),
    }
}

/// Reads a policy from a file, or from standard input.
fn read_policy(path: &Path) -> Result<Policy> {
    if path != Path::new("-") {
        return Ok(Policy::read(path)?);
    }
    let mut bytes = Vec::new();
    let mut bounded = std::io::stdin().lock().take(POLICY_BYTES_MAX);
    bounded.read_to_end(&mut bytes).context("cannot read the policy from standard input")?;
    let text = String::from_utf8(bytes).context("standard input: it is no text in UTF-8")?;
    Policy::parse(&text, "").map_err(|error| anyhow!("standard input: {error}"))
}

/// The changes that an apply makes.
enum Planned {
    /// The policy is not applied yet.
    First(ApplyPlan),
    /// An earlier version of it is applied.
    Changed(PlanChange),
}

fn planned(policy: &Policy, folders: &StateFolders) -> Result<Planned, plimsoll_host::Error> {
    let applied = match PolicyJournal::of(folders, policy.name()).read() {
        // The plan has a note about this.
        Err(error) if error.is_denied() => None,
        journal => journal?,
    };
    match applied {
        Some(applied) => plimsoll_host::plan_change(policy, &applied, &Host, folders).map(Planned::Changed),
        None => plimsoll_host::plan(policy, &Host, folders).map(Planned::First),
    }
}

fn show(path: &Path, folders: &StateFolders) -> Done {
    let policy = read_policy(path)?;
    let name = policy.name();
    let text = match planned(&policy, folders)? {
        Planned::First(plan) => format!("policy {name}: would change\n\n{plan}"),
        Planned::Changed(change) if change.difference.is_empty() => {
            format!("policy {name}: applied already; nothing would change (=)\n\n{change}")
        }
        Planned::Changed(change) => {
            format!("policy {name}: applied already; would change, except for =\n\n{change}")
        }
    };
    output::print(&text)?;
    match kernel::LACKS {
        None => note!("nothing was changed; to apply the policy: plimsoll host apply {}", path.display()),
        Some(lacks) => note!("nothing was changed, and the policy cannot be applied: {lacks}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The largest policy on standard input, in bytes.
const POLICY_BYTES_MAX: u64 = 1 << 20;
