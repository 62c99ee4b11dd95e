//! Runs `plimsoll host apply --on` at namespaces that stand for hosts: each has its own devices, pins and journals, and
//! `nsenter` takes the place of ssh. Skipped with the reason where the tests of `host` are.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::host::able;

/// A network and mount namespace with a device `eth9`, unless it is to fail, which ends with its process.
struct NamespaceHost(Child);

impl NamespaceHost {
    fn start(has_device: bool) -> NamespaceHost {
        let device =
            if has_device { "ip link add eth9 type veth peer name peer; ip link set eth9 up;" } else { "" };
        let script = format!(
            "mount -t bpf bpf /sys/fs/bpf; mkdir -p /run/plimsoll; mount -t tmpfs -o mode=755 tmpfs /run/plimsoll; \
             {device} echo ready; exec sleep 600"
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-ec", &script]).stdout(Stdio::piped());
        let mut host = NamespaceHost(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(host.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        host
    }

    fn name(&self) -> String {
        self.0.id().to_string()
    }

    /// Returns the status of all policies at this host.
    fn status(&self) -> String {
        let (name, program) = (self.name(), env!("CARGO_BIN_EXE_plimsoll"));
        let mut command = Command::new("nsenter");
        command.args(["--target", &name, "--net", "--mount", program, "host", "status", "-j"]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }
}

impl Drop for NamespaceHost {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn roll_out(policy: &Path, hosts: &[&NamespaceHost], more: &[&str]) -> Output {
    let list = policy.with_extension("hosts");
    let names: String = hosts.iter().map(|host| host.name() + "  # a namespace\n").collect();
    fs::write(&list, format!("# hosts of a test\n{names}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args([
        "host",
        "apply",
        "--confirm-within",
        "60s",
        "--ssh",
        "nsenter --target {host} --net --mount",
    ]);
    command.args(["--remote", env!("CARGO_BIN_EXE_plimsoll"), "--format", "json", "--on"]).arg(list);
    command.args(more).arg(policy).output().unwrap()
}

/// Returns the states in a rollout's result.
fn states(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    rows.as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect()
}

fn policy(folder: &tempfile::TempDir, levels: &str) -> PathBuf {
    let path = folder.path().join("fleet.toml");
    let text = format!(
        "version = 1\n[qjump]\ndevice = 'eth9'\nhosts = 12\nrate = '10Gbps'\n{levels}\
         [[qjump.assign]]\nlevel = 1\nport = 9\n"
    );
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_failed_wave_is_rolled_back_and_the_one_before_stays() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = policy(&folder, "");
    let hosts = [true, true, true, false, true].map(NamespaceHost::start);
    let [a, b, c, without, e] = &hosts;
    let output = roll_out(&first, &[a, b, c, without, e], &["--wave", "2"]);
    assert_eq!(states(&output), ["confirmed", "confirmed", "rolled-back", "rolled-back", "waiting"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(a.status().contains("\"confirmed\": true") && b.status().contains("\"confirmed\": true"));
    assert_eq!((c.status().trim(), e.status().trim()), ("[]", "[]"));

    // A changed policy fails in its second wave: the first keeps the change, the second its earlier version.
    let output = roll_out(&first, &[c], &[]);
    assert_eq!((states(&output), output.status.code()), (vec!["confirmed".to_owned()], Some(0)));
    let before = c.status();
    let second = policy(&folder, "epoch = '1ms'\n");
    let output = roll_out(&second, &[a, c, without], &["--wave", "1", "--growth", "2"]);
    assert_eq!(states(&output), ["confirmed", "rolled-back", "rolled-back"]);
    let epoch = |status: &str| -> serde_json::Value {
        let rows: serde_json::Value = serde_json::from_str(status).unwrap();
        rows[0]["epoch_ns"].clone()
    };
    assert_eq!(epoch(&c.status()), epoch(&before), "the earlier version is in force");
    assert_ne!(epoch(&a.status()), epoch(&before), "the change is in force");
    // A host that has the policy already needs no confirmation.
    let output = roll_out(&second, &[a], &[]);
    assert_eq!(states(&output), ["confirmed"]);
}

#[test]
fn a_wrong_list_of_hosts_names_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, list) = (policy(&folder, ""), folder.path().join("hosts.txt"));
    for (hosts, part) in [
        ("rack1\n-oProxyCommand=x\n", "line 2: invalid host \"-oProxyCommand=x\""),
        ("rack1\nrack1\n", "line 2: host rack1 is listed twice"),
        ("# none\n", "no hosts"),
    ] {
        fs::write(&list, hosts).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(["host", "apply", "--confirm-within", "60s"]).arg(&policy).arg("--on").arg(&list);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(part), "{said}");
    }
}
