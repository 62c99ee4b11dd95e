//! `plimsoll host`: a policy for this host, shown, applied, watched and taken back.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use clap::Subcommand;
use plimsoll_host::{Host, Journal, Places, Plan, Policy, PolicyName, UnitName};
use plimsoll_units::Span;

use crate::output::{self, Done};

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
    Confirm(NameArgs),
    Rollback(NameArgs),
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
/// If a step fails, those before it are undone. If this process is killed, `plimsoll host rollback` restores the host.
#[derive(clap::Args)]
struct ApplyArgs {
    /// The policy.
    #[arg(value_name = "POLICY.toml")]
    policy: PathBuf,
    /// Wait so long for `plimsoll host confirm`, or Enter on a terminal, and roll back without it, or at Ctrl-C, SIGTERM
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

/// Keep the TBF of a pacer on a host without fq at the pacer's rate, until ended; it then has the link's rate.
#[derive(clap::Args)]
struct PaceArgs {
    /// The policy, or its name.
    #[arg(value_name = "POLICY")]
    policy: Subject,
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
        (Some(Action::Confirm(name)), _) => confirm(&name.policy.0, &places),
        (Some(Action::Rollback(name)), _) => kernel::rollback(&name.policy.0, &places),
        (Some(Action::AttachUnit(AttachUnitArgs { policy, unit })), _) => {
            kernel::attach_unit(policy, unit, &places)
        }
        (Some(Action::Pace(pace)), _) => kernel::pace(&pace.policy.0, &places),
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
    let applied = Journal::of(places, name).read()?.is_some();
    let state = if applied { "applied already; from here it would change" } else { "would change" };
    output::print(&format!("policy {name}: {state}\n\n{plan}"))?;
    eprintln!("nothing was changed; to do so: plimsoll host apply {}", path.display());
    kernel::available()
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

fn confirm(name: &PolicyName, places: &Places) -> Done {
    let journal = Journal::of(places, name);
    match journal.read()? {
        None => Err(anyhow!("policy {name} is not applied; it may have been rolled back already")),
        Some(_) => {
            journal.confirm()?;
            output::print(&format!("policy {name} stays\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What needs the eBPF programs.
#[cfg(feature = "kernel")]
mod kernel {
    use std::io::{self, BufRead as _, IsTerminal as _};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use plimsoll_host::{Error, Kernel, Listener, Moment, Status};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    use super::*;

    pub fn available() -> Done {
        Ok(ExitCode::SUCCESS)
    }

    pub fn apply(args: &ApplyArgs, places: &Places) -> Done {
        let plan = planned(&args.policy, places)?;
        let name = plan.policy.name().clone();
        let signal = watched()?;
        let mut tell = |moment| {
            if let Moment::Begun(index) = moment {
                eprintln!("[{}/{}] {}", index + 1, plan.steps.len(), plan.steps[index]);
            }
        };
        plimsoll_host::apply(&plan, places, &mut Kernel, args.confirm_within.is_some(), &mut tell)?;
        if let Some(within) = args.confirm_within
            && let Some(why) = unconfirmed(&name, places, within, &signal)?
        {
            eprintln!("{why}");
            rollback(&name, places)?;
            let caught = signal.load(Ordering::Relaxed);
            let status = if caught > 0 { 128 + caught as u8 } else { output::FINDING };
            return Ok(ExitCode::from(status));
        }
        output::print(&format!("policy {name} is applied; to undo it: plimsoll host rollback {name}\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// The first of the signals that would otherwise end this process half way; 0 for none yet.
    fn watched() -> Result<Arc<AtomicUsize>> {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, caught.clone(), signal as usize)?;
        }
        Ok(caught)
    }

    /// Waits to be confirmed; why it was not, if it was not.
    fn unconfirmed(
        name: &PolicyName,
        places: &Places,
        within: Span,
        signal: &AtomicUsize,
    ) -> Result<Option<&'static str>> {
        let deadline = Instant::now() + Duration::from_nanos(within.as_ps() / 1_000);
        let journal = Journal::of(places, name);
        let entered = Arc::new(AtomicBool::new(false));
        if io::stdin().is_terminal() {
            eprintln!("to keep it, press Enter or run `plimsoll host confirm {name}` within {within}");
            let entered = entered.clone();
            thread::spawn(move || {
                // The end of input is a terminal that has gone, and no confirmation.
                let read = io::stdin().lock().read_line(&mut String::new());
                entered.store(read.is_ok_and(|length| length > 0), Ordering::Relaxed);
            });
        } else {
            eprintln!("to keep it, run `plimsoll host confirm {name}` within {within}");
        }
        loop {
            match journal.read()? {
                None => return Ok(Some("it was rolled back by somebody else")),
                Some(applied) if applied.confirmed => return Ok(None),
                Some(_) => {}
            }
            if entered.load(Ordering::Relaxed) {
                journal.confirm()?;
                return Ok(None);
            }
            if signal.load(Ordering::Relaxed) > 0 {
                return Ok(Some("interrupted before it was confirmed: rolling back"));
            }
            if Instant::now() >= deadline {
                return Ok(Some("not confirmed in time: rolling back"));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    pub fn rollback(name: &PolicyName, places: &Places) -> Done {
        match plimsoll_host::rollback(name, places, &mut Kernel)? {
            None => output::print(&format!("policy {name} is not applied: nothing to do\n"))?,
            Some(back) => {
                for left in &back.left {
                    eprintln!("warning: {left}");
                }
                output::print(&format!("policy {name} is rolled back: {} changes undone\n", back.steps))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    pub fn statuses(name: Option<&PolicyName>, places: &Places) -> Result<Vec<Status>, Error> {
        let names = name.map_or_else(|| Journal::all(places), |name| Ok(vec![name.clone()]))?;
        let applied = names.iter().filter_map(|name| Journal::of(places, name).read().transpose());
        applied.map(|applied| plimsoll_host::observe(&applied?)).collect()
    }

    pub fn serve(args: &MetricsArgs, places: &Places) -> Done {
        let listener = Listener::bind(&args.listen)?;
        eprintln!("metrics at {}, path /metrics", listener.address());
        plimsoll_host::serve(&listener, &mut || Ok(plimsoll_host::open_metrics(&statuses(None, places)?)))?;
        Ok(ExitCode::SUCCESS)
    }

    pub fn attach_unit(name: &PolicyName, unit: &UnitName, places: &Places) -> Done {
        if !plimsoll_host::attach_unit(name, unit, places)? {
            eprintln!("policy {name} gives {unit} no level");
        }
        Ok(ExitCode::SUCCESS)
    }

    pub fn pace(name: &PolicyName, places: &Places) -> Done {
        let applied = Journal::of(places, name).read()?;
        let applied = applied.ok_or_else(|| anyhow!("policy {name} is not applied"))?;
        let signal = watched()?;
        eprintln!("policy {name}: the filter follows the pacer, until Ctrl-C or a rollback");
        let changes = plimsoll_host::pace(&applied, &mut || signal.load(Ordering::Relaxed) > 0)?;
        eprintln!("its rate was set {changes} times; it paces nothing now");
        Ok(ExitCode::SUCCESS)
    }

    const LOOK_AGAIN: Duration = Duration::from_millis(100);
}

/// The same without the programs: an error that says what is missing.
#[cfg(not(feature = "kernel"))]
mod kernel {
    use super::*;

    pub fn available() -> Done {
        Err(anyhow!(output::NO_PROGRAMS))
    }

    pub fn apply(args: &ApplyArgs, places: &Places) -> Done {
        planned(&args.policy, places)?;
        let _ = args.confirm_within;
        available()
    }

    pub fn rollback(_: &PolicyName, _: &Places) -> Done {
        available()
    }

    pub fn statuses(_: Option<&PolicyName>, _: &Places) -> Result<Vec<plimsoll_host::Status>> {
        Err(anyhow!(output::NO_PROGRAMS))
    }

    pub fn attach_unit(_: &PolicyName, _: &UnitName, _: &Places) -> Done {
        available()
    }

    pub fn pace(_: &PolicyName, _: &Places) -> Done {
        available()
    }

    pub fn serve(args: &MetricsArgs, _: &Places) -> Done {
        let _ = &args.listen;
        available()
    }
}
