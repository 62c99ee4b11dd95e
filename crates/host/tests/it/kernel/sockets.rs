//! Tests unmodified programs: by cgroup, and started at a level.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use plimsoll_host::{ConnectionOptions, Launch, launch};
use plimsoll_mechanisms::qjump::pace;
use plimsoll_units::{Bytes, Span};

use crate::kernel::world::World;

/// Opens a socket in a cgroup, sets a priority of its own, and sends twenty datagrams for each input line.
const SENDER: &str = "import socket, sys
open(sys.argv[1], 'w').write('0')
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(1, 12, 2)
print('open', flush=True)
for line in sys.stdin:
    for _ in range(20):
        s.sendto(b'x', ('198.18.9.2', 9))
    print('sent', flush=True)
";

/// Sockets that are open when a policy is applied have its level from then on, until the rollback.
#[test]
fn a_cgroup_gives_its_level_to_sockets_that_are_open() {
    let path = "sockets::a_cgroup_gives_its_level_to_sockets_that_are_open";
    let Some(world) = World::enter(path) else { return };
    let folder = world.cgroups().join(&world.name).join("app");
    fs::create_dir_all(&folder).unwrap();
    let mut sender = Command::new("python3")
        .args(["-c", SENDER])
        .arg(folder.join("cgroup.procs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = sender.stdin.take().unwrap();
    let mut answers = BufReader::new(sender.stdout.take().unwrap()).lines();
    assert_eq!(answers.next().unwrap().unwrap(), "open");
    let mut send = || {
        writeln!(input).unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "sent");
    };
    let assigned = |level: u8| {
        let text = "[qjump]\ndevice = 'near'\nhosts = 2\nrate = '1Gbps'\n";
        format!("{text}[[qjump.assign]]\nlevel = {level}\ncgroup = '/{{world}}/app'\n")
    };
    for level in [6, 0] {
        world.apply(&assigned(level));
        send();
        let levels = world.status().levels;
        let seen: Vec<u64> =
            levels.iter().map(|level| level.passed_packets + level.refused_packets).collect();
        let mut expected = vec![0; levels.len()];
        expected[usize::from(level)] = 20;
        assert_eq!(seen, expected, "level {level}");
        assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    }
    // With the limiter alone, the program's own priority counts again.
    world.apply("[qjump]\ndevice = 'near'\nhosts = 2\nrate = '1Gbps'\n");
    send();
    let second = &world.status().levels[2];
    assert_eq!(second.passed_packets + second.refused_packets, 20);
    world.rollback().unwrap();
    drop(input);
    assert!(sender.wait().unwrap().success());
    fs::remove_dir(&folder).unwrap();
    fs::remove_dir(folder.parent().unwrap()).unwrap();
}

/// Joins a cgroup, and prints the pacing rate of a connection that it opens.
const CONNECTS: &str = "import socket, sys
open(sys.argv[1], 'w').write('0')
listener = socket.create_server(('127.0.0.1', 0))
one = socket.create_connection(listener.getsockname())
print(int.from_bytes(one.getsockopt(1, 47, 8), 'little'), end='')
";

/// A cgroup's connections pace themselves to its level, unless the policy disables it.
#[test]
fn a_cgroups_connections_have_the_pace_of_its_level() {
    let Some(world) = World::enter("sockets::a_cgroups_connections_have_the_pace_of_its_level") else {
        return;
    };
    for (keys, is_paced) in [("", true), ("pace = 'kernel'\n", false)] {
        let policy = format!(
            "[qjump]\ndevice = 'near'\nhosts = 2\nrate = '1Gbps'\nlevels = ['line', '20KB']\n{keys}[[qjump.assign]]\n\
             level = 1\ncgroup = '/{{world}}/app'\n"
        );
        let plan = world.apply(&policy);
        let levels = plan.policy.qjump.as_ref().unwrap().levels().unwrap();
        let procs = world.cgroups().join(&world.name).join("app/cgroup.procs");
        let output = Command::new("python3").args(["-c", CONNECTS]).arg(procs).output().unwrap();
        let told: u64 = String::from_utf8_lossy(&output.stdout).parse().unwrap();
        let whole = levels.levels[1].bucket.get() as f64 / levels.epoch.as_secs_f64();
        // The rate is reduced by half a packet of up to 64 KB; the other end of the connection shares it, if it was
        // active before.
        let within = (1.0..=whole).contains(&(told as f64));
        assert_eq!((within, told == u64::MAX), (is_paced, !is_paced), "{told} B/s, the level has {whole}");
        world.rollback().unwrap();
    }
}

#[test]
fn what_runs_in_a_cgroup_that_a_policy_made_runs_on() {
    let Some(world) = World::enter("sockets::what_runs_in_a_cgroup_that_a_policy_made_runs_on") else {
        return;
    };
    let policy = "[qjump]\ndevice = 'near'\nhosts = 2\nrate = '1Gbps'\n[[qjump.assign]]\nlevel = 6\n\
                  cgroup = '/{world}/app'\n";
    world.apply(policy);
    let procs = world.cgroups().join(&world.name).join("app/cgroup.procs");
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(&procs, sleeper.id().to_string()).unwrap();
    assert_eq!(world.rollback().unwrap().left, Vec::<String>::new());
    assert!(sleeper.try_wait().unwrap().is_none(), "it runs on");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_program_is_started_at_a_level_with_its_send_buffer() {
    let Some(world) = World::enter("sockets::a_program_is_started_at_a_level_with_its_send_buffer") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // The values are SO_PRIORITY of a socket, SO_SNDBUF of a connection at both of its ends (which the kernel doubles),
    // their segment sizes, and their pacing rates.
    let source = format!(
        "import socket\n\
         listener = socket.create_server(('127.0.0.1', 0))\n\
         one = socket.create_connection(listener.getsockname())\n\
         two, _ = listener.accept()\n\
         values = [one.getsockopt(1, 12), one.getsockopt(1, 7), two.getsockopt(1, 7)]\n\
         paces = [int.from_bytes(end.getsockopt(1, 47, 8), 'little') for end in (one, two)]\n\
         segments = [end.getsockopt(6, 2) for end in (one, two)]\n\
         values += segments + paces\n\
         open('{}', 'w').write(str(values))\n\
         raise SystemExit(9)",
        out.display()
    );
    let command = vec!["python3".to_owned(), "-c".to_owned(), source];
    let connections = ConnectionOptions {
        send_buffer: Some(10_000),
        share: Some((Bytes::new(2_000_000), Span::from_ms(10))),
    };
    let ended = launch(&Launch { level: 7, connections, user: None, command }, &mut || None).unwrap();
    assert_eq!(ended.code(), Some(9));
    let values = fs::read_to_string(out).unwrap();
    let values: Vec<u64> =
        values.trim_matches(['[', ']']).split(", ").map(|value| value.parse().unwrap()).collect();
    let [level, ref buffers @ .., first, second, pace_first, pace_second] = values[..] else {
        panic!("{values:?}")
    };
    assert_eq!((level, buffers), (7, &[20_000, 20_000][..]));
    // Both ends have the level. The kernel's order decides which of them is active first.
    let pace = |segment, sharers| pace(Bytes::new(2_000_000), Span::from_ms(10), segment, 66, sharers);
    let either = [[pace(first, 1), pace(second, 2)], [pace(first, 2), pace(second, 1)]];
    assert!(either.contains(&[pace_first, pace_second]), "{values:?}, not {either:?}");
    let left = fs::read_dir(world.cgroups())
        .unwrap()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy() == format!("plimsoll-run-{}", std::process::id()));
    assert!(!left, "its cgroup goes with it");
}
