//! Kills applies and rollbacks of `plimsoll host`, in namespaces that end with the trial.

use std::time::{Duration, Instant};

use super::namespaces::{HeldNamespaces, differences};
use crate::program::{ProgramFolder, RunningProgram, run};
use crate::trial::{Broken, Outcome, Trial, hold};

/// Prepares the namespaces: a pair of devices, a BPF file system, a folder for journals.
const PREPARATION: &str = "mount -t bpf bpf /sys/fs/bpf && mkdir -p /run/plimsoll && \
    mount -t tmpfs tmpfs /run/plimsoll && ip link set lo up && \
    ip link add near type veth peer name far && ip addr add 198.18.9.1/24 dev near && \
    ip link set near up && ip link set far up && ip route add 10.0.0.0/8 via 198.18.9.2";

/// Prints the host's network state, without counters and without numbers that the kernel assigns anew.
const LOOK: &str = "tc qdisc show; tc filter show dev near ingress; tc filter show dev near egress; \
    ip -4 route show table all; ip -6 route show table main; ip -d link show dev near; ip -d link show dev far; \
    bpftool net show dev near | sed -E 's/ (prog_)?id [0-9]+//g'; \
         find /sys/fs/bpf/plimsoll /run/plimsoll -type f ! -name '.*' 2>/dev/null; \
    sysctl -a 2>/dev/null | grep '^net\\.' | \
    grep -vE 'count|route.flush|random|fastopen_key|stable_secret|available_congestion|allowed_congestion|\\.fs\\.'";

/// Kills up to six applies and rollbacks, each at a random moment; a last rollback must restore the host.
pub fn killed(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let inside = HeldNamespaces::create(trial, PREPARATION)?;
    let name = format!("torture-{}", std::process::id());
    let policy = policy(trial, &name);
    trial.write(&format!("{name}.toml"), &policy)?;
    let file = trial.path(&format!("{name}.toml")).to_string_lossy().into_owned();
    let before = inside.look(LOOK)?;

    let begun = Instant::now();
    let applied = run(&mut inside.plimsoll(programs, &["host", "apply", &file]))?;
    if applied.stderr.contains("make kernel") {
        return Err(Broken::NotTried("this build has no eBPF programs".to_owned()));
    }
    hold!(applied.code() == Some(0), "apply: {}\n{policy}", applied.described());
    hold!(inside.look(LOOK)? != before, "the policy changes nothing\n{policy}");
    let time = begun.elapsed().as_micros() as u64 + 1;
    for _ in 0..trial.number(1..7) {
        let action = if trial.once_in(2) { ["host", "apply", &file] } else { ["host", "rollback", &name] };
        let moment = Duration::from_micros(trial.number(0..time));
        RunningProgram::start(&mut inside.plimsoll(programs, &action))?.kill_after(moment);
    }
    let back = run(&mut inside.plimsoll(programs, &["host", "rollback", &name]))?;
    hold!(back.code() == Some(0), "rollback: {}\n{policy}", back.described());
    // A child of a killed apply may still act after the rollback, so several looks are taken.
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut calm = 0;
    while calm < 5 {
        let after = inside.look(LOOK)?;
        calm = if after == before { calm + 1 } else { 0 };
        let changed = differences(&before, &after);
        hold!(calm > 0 || Instant::now() < deadline, "after the rollback: {changed}\n{policy}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Writes a policy of one to three mechanisms.
fn policy(trial: &mut Trial, name: &str) -> String {
    let parts = [
        format!(
            "[qjump]\ndevice = 'near'\nhosts = 12\nrate = '10Gbps'\n\
             levels = ['line', '64x', '32x', '16x', '8x', '9KB', '2x', '1x']\n\
             [[qjump.assign]]\nlevel = 5\ncgroup = '/{name}/app'\n[[qjump.assign]]\nlevel = 7\nport = 319\n"
        ),
        "[[phantom-queue]]\ndevice = 'far'\ndirection = 'ingress'\nrate = '10Mbps'\n".to_owned(),
        "[dctcp]\ndestinations = ['198.18.9.0/24', '10.0.0.0/8']\n".to_owned(),
    ];
    let first = trial.number(0..3) as usize;
    let count = trial.number(1..4) as usize;
    // The mechanisms keep the order of the file, since tables of one kind must stay together.
    let chosen = |index: usize| (index + 3 - first) % 3 < count;
    let text = parts.iter().enumerate().filter(|(index, _)| chosen(*index)).map(|(_, part)| part.as_str());
    format!("version = 1\n{}", text.collect::<String>())
}
