//! `plimsoll host apply --on`: applies a policy at many hosts by a command such as ssh, in waves.
//!
//! [`Rollout`] decides; this file runs its commands and reports their replies to it. The policy goes to each host by
//! standard input. `host apply --confirm-within` waits there for `host confirm`, which a second connection runs: a host
//! that the policy cuts off from this one rolls back by itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use plimsoll_host::{HostCommand, HostReply, Policy, PolicyName, Rollout, RolloutState, WaveSizes};
use plimsoll_process::note;
use plimsoll_units::{Span, whole};
use serde::Serialize;

use super::heeded;
use crate::output::{self, Done, Format};

/// Options of an apply at many hosts.
#[derive(clap::Args)]
pub struct RolloutArgs {
    /// Apply the policy at the hosts of this file instead, one name a line; `#` begins a comment.
    #[arg(long, value_name = "FILE", requires = "confirm_within")]
    pub on: Option<std::path::PathBuf>,
    /// Number of hosts of the first wave. The next wave begins when all hosts of a wave are confirmed; if one fails,
    /// the wave is rolled back, and no other begins.
    #[arg(long, value_name = "HOSTS", default_value_t = 1, requires = "on")]
    #[arg(value_parser = whole::<u32>(1..))]
    wave: u32,
    /// Factor by which each wave is larger than the one before.
    #[arg(long, value_name = "FACTOR", default_value_t = 1, requires = "on")]
    #[arg(value_parser = whole::<u32>(1..))]
    growth: u32,
    /// Command that runs another one at a host; `{host}` is the host's name. Words are separated by spaces, and no
    /// shell reads them.
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}",
        requires = "on"
    )]
    ssh: String,
    /// Name or path of this program at the hosts.
    #[arg(long, value_name = "PROGRAM", default_value = "plimsoll", requires = "on")]
    remote: String,
    /// Form of the result, a row a host, with its wave, its state, and its last message.
    #[arg(long, value_name = "FORMAT", default_value = "table", requires = "on")]
    format: Format,
}

/// Applies the policy at the hosts of `list`; a host that is not confirmed `within` this time rolls back.
pub fn run(path: &Path, list: &Path, within: Span, args: &RolloutArgs) -> Done {
    let policy = Policy::read(path)?;
    let text = output::read_text(path, plimsoll_files::Origin::Argument)?;
    let hosts = hosts(list)?;
    if !args.ssh.contains("{host}") {
        bail!(
            "invalid value {:?} for --ssh: expected a command with `{{host}}`, such as `ssh {{host}}`",
            args.ssh
        );
    }
    let mut fleet = Fleet {
        name: policy.name().clone(),
        text: named(&text, policy.name()),
        within,
        args,
        hosts: hosts.into_iter().map(|name| FleetHost { name, wave: None, message: String::new() }).collect(),
        running: Vec::new(),
        lines: mpsc::channel(),
    };
    let sizes = WaveSizes { first: args.wave as usize, growth: args.growth as usize };
    let rollout = fleet.roll_out(Rollout::new(fleet.hosts.len(), sizes), &*heeded::watched()?)?;
    fleet.show(&rollout)?;
    Ok(ExitCode::from(if rollout.has_succeeded() { 0 } else { output::FINDING }))
}

/// Reads the names of hosts.
fn hosts(list: &Path) -> Result<Vec<String>> {
    let text = output::read_text(list, plimsoll_files::Origin::Argument)?;
    let mut hosts: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let name = line.split('#').next().unwrap_or_default().trim();
        let place = || format!("{}, line {}", list.display(), index + 1);
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-:@%[]".contains(c);
        if name.starts_with('-') || !name.chars().all(is_name) {
            bail!(
                "{}: invalid host {name:?}: expected a name or an address, such as `rack1` or `root@10.0.0.7`",
                place()
            );
        }
        if hosts.iter().any(|host| host == name) {
            bail!("{}: host {name} is listed twice", place());
        }
        if !name.is_empty() {
            hosts.push(name.to_owned());
        }
    }
    if hosts.is_empty() {
        bail!("{}: no hosts; write one name a line", list.display());
    }
    Ok(hosts)
}

/// Returns the policy's text with its name, which a host cannot take from a file's name.
fn named(text: &str, name: &PolicyName) -> String {
    match Policy::parse(text, "") {
        Ok(_) => text.to_owned(),
        Err(_) => format!("name = \"{name}\"\n{text}"),
    }
}

struct FleetHost {
    name: String,
    wave: Option<usize>,
    /// The last line that the host has printed.
    message: String,
}

/// A command that runs at a host.
struct Running {
    host: usize,
    command: HostCommand,
    child: Child,
    until: Instant,
    /// Whether the reply to this command is known already, although it still runs.
    has_replied: bool,
}

struct Fleet<'a> {
    name: PolicyName,
    text: String,
    within: Span,
    args: &'a RolloutArgs,
    hosts: Vec<FleetHost>,
    running: Vec<Running>,
    /// Lines that the commands print, with the index of the host and the command.
    lines: (Sender<PrintedLine>, Receiver<PrintedLine>),
}

type PrintedLine = (usize, HostCommand, String);

impl Fleet<'_> {
    /// Runs the commands of `rollout` to its end. A signal stops it, and the present wave is rolled back.
    fn roll_out(&mut self, mut rollout: Rollout, signal: &AtomicUsize) -> Result<Rollout> {
        let mut waves = 0;
        while !rollout.is_over() {
            if signal.swap(0, Ordering::Relaxed) > 0 {
                note!("interrupted: the present wave is rolled back");
                rollout.stop();
            }
            let commands = rollout.next_commands();
            if commands.iter().any(|(_, command)| *command == HostCommand::Apply) {
                waves += 1;
                let names =
                    commands.iter().map(|(host, _)| self.hosts[*host].name.as_str()).collect::<Vec<_>>();
                note!("wave {waves}: {}", names.join(", "));
            }
            for (host, command) in commands {
                self.hosts[host].wave.get_or_insert(waves);
                if let Err(error) = self.start(host, command) {
                    self.hosts[host].message = format!("{error:#}");
                    rollout.on_reply(host, command, HostReply::Failed);
                }
            }
            self.listen(&mut rollout);
            self.reap(&mut rollout)?;
        }
        // An apply ends as soon as it notices its confirmation or its rollback.
        for mut one in self.running.drain(..) {
            one.child.wait().context("waiting for a host's command")?;
        }
        Ok(rollout)
    }

    /// Starts a command at a host.
    fn start(&mut self, host: usize, command: HostCommand) -> Result<()> {
        let name = self.name.to_string();
        let within = self.within.to_string();
        let words: Vec<&str> = match command {
            HostCommand::Apply => vec!["host", "apply", "-", "--confirm-within", &within],
            HostCommand::Confirm => vec!["host", "confirm", &name],
            HostCommand::RollBack => vec!["host", "rollback", "--last", "-"],
        };
        let template =
            self.args.ssh.split_whitespace().map(|word| word.replace("{host}", &self.hosts[host].name));
        let template: Vec<String> = template.collect();
        let (program, arguments) = template.split_first().ok_or_else(|| anyhow!("--ssh is empty"))?;
        let mut child = Command::new(program);
        child.args(arguments).arg(&self.args.remote).args(words);
        child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = child.spawn().with_context(|| format!("cannot run {program}"))?;
        let (stdin, text) = (child.stdin.take(), self.text.clone());
        let (stderr, lines) = (child.stderr.take(), self.lines.0.clone());
        thread::spawn(move || {
            // A command that ends before it has read the policy fails by itself.
            let _ = stdin.map(|mut stdin| stdin.write_all(text.as_bytes()));
        });
        thread::spawn(move || {
            for line in
                stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines()).map_while(Result::ok)
            {
                if lines.send((host, command, line)).is_err() {
                    break;
                }
            }
        });
        let until = Instant::now() + Duration::from_nanos(self.within.as_ps() / 1_000);
        self.running.push(Running { host, command, child, until, has_replied: false });
        Ok(())
    }

    /// Takes the lines that the hosts have printed, and waits for one a short time.
    fn listen(&mut self, rollout: &mut Rollout) {
        let mut wait = LOOK_AGAIN;
        while let Ok((host, command, line)) = self.lines.1.recv_timeout(wait) {
            wait = Duration::ZERO;
            let line = plimsoll_text::printable(&line).into_owned();
            note!("{}: {line}", self.hosts[host].name);
            if command == HostCommand::Apply && line.starts_with(heeded::TO_KEEP_IT) {
                rollout.on_reply(host, command, HostReply::Applied);
                let applies = |one: &&mut Running| one.host == host && one.command == command;
                self.running.iter_mut().filter(applies).for_each(|one| one.has_replied = true);
            } else {
                self.hosts[host].message = line;
            }
        }
    }

    /// Reports the commands that have ended, and ends commands that take too long.
    fn reap(&mut self, rollout: &mut Rollout) -> Result<()> {
        let mut index = 0;
        while let Some(one) = self.running.get_mut(index) {
            let is_late = !one.has_replied && Instant::now() >= one.until;
            if is_late {
                self.hosts[one.host].message = format!("no reply within {}", self.within);
                // It may have ended just now.
                let _ = one.child.kill();
            }
            let ended = if is_late { Some(one.child.wait()) } else { one.child.try_wait().transpose() };
            let Some(status) = ended.transpose().context("waiting for a host's command")? else {
                index += 1;
                continue;
            };
            let reply = match (one.command, status.success() && !is_late) {
                (_, false) => HostReply::Failed,
                (HostCommand::Apply, true) => HostReply::Unchanged,
                (HostCommand::Confirm | HostCommand::RollBack, true) => HostReply::Done,
            };
            rollout.on_reply(one.host, one.command, reply);
            self.running.swap_remove(index);
        }
        Ok(())
    }

    /// Prints the result, a row a host.
    fn show(&self, rollout: &Rollout) -> Result<()> {
        let rows: Vec<HostRow<'_>> = self
            .hosts
            .iter()
            .zip(rollout.hosts())
            .map(|(host, state)| HostRow {
                host: &host.name,
                wave: host.wave,
                state: *state,
                message: &host.message,
            })
            .collect();
        let cells = rows.iter().map(HostRow::cells);
        let cells: Vec<[String; 4]> = [HEADINGS.map(str::to_owned)].into_iter().chain(cells).collect();
        let lines = |shown: &dyn Fn(&[String; 4]) -> String| {
            cells.iter().map(|row| shown(row) + "\n").collect::<String>()
        };
        let text = match self.args.format {
            Format::Json => format!("{}\n", serde_json::to_string_pretty(&rows)?),
            Format::Csv => lines(&|row| row.each_ref().map(|cell| plimsoll_text::csv_cell(cell)).join(",")),
            Format::Md => {
                lines(&|row| format!("| {} |", row.join(" | "))).replacen('\n', "\n|---|---|---|---|\n", 1)
            }
            Format::Table => {
                let width = cells.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
                lines(&|[host, wave, state, message]| {
                    format!("{host:width$}  {wave:>4}  {state:12}  {message}").trim_end().to_owned()
                })
            }
        };
        output::print(&text)
    }
}

/// The state in which a rollout has left one host, as a row of the result.
#[derive(Serialize)]
struct HostRow<'a> {
    host: &'a str,
    wave: Option<usize>,
    state: RolloutState,
    message: &'a str,
}

impl HostRow<'_> {
    fn cells(&self) -> [String; 4] {
        let state = serde_json::to_value(self.state).ok();
        let state = state.and_then(|state| Some(state.as_str()?.to_owned())).unwrap_or_default();
        let wave = self.wave.map_or_else(|| "-".to_owned(), |wave| wave.to_string());
        [self.host.to_owned(), wave, state, self.message.to_owned()]
    }
}

const HEADINGS: [&str; 4] = ["host", "wave", "state", "message"];
/// The polling interval of the commands: short compared with the start of one.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
