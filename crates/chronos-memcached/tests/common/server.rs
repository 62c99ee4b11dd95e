//! The program itself, on ports of its own.

#![allow(dead_code, reason = "every test uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running server; it ends with this.
pub struct Server {
    child: Child,
    directory: tempfile::TempDir,
    /// TCP port, if it has one.
    pub tcp: u16,
    /// UDP port, if it has one.
    pub udp: u16,
}

fn command(options: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronos-memcached"));
    command.args(["-u", "root"]).args(options).stderr(Stdio::null());
    command.env("MEMCACHED_PORT_FILENAME", directory.join("ports"));
    command
}

impl Server {
    /// Starts one on TCP and UDP.
    pub fn start(options: &[&str], environment: &[(&str, &Path)]) -> Server {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = command(options, directory.path());
        command.args(["-l", "127.0.0.1", "-p", "-1"]).envs(environment.iter().copied());
        if !options.contains(&"-Y") {
            command.args(["-U", "-1"]);
        }
        let mut server = Server { child: command.spawn().expect("it starts"), directory, tcp: 0, udp: 0 };
        let ports = server.wait_for("ports");
        let text = std::fs::read_to_string(ports).expect("ports");
        let port = |kind: &str| {
            text.lines().find_map(|line| line.strip_prefix(kind)?.trim().parse().ok()).unwrap_or(0)
        };
        (server.tcp, server.udp) = (port("TCP INET:"), port("UDP INET:"));
        server
    }

    /// Starts one on a UNIX socket, whose path is returned too.
    pub fn start_unix(options: &[&str]) -> (Server, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let child = command(options, directory.path()).arg("-s").arg(&path).spawn().expect("it starts");
        let mut server = Server { child, directory, tcp: 0, udp: 0 };
        server.wait_for("ports");
        (server, path)
    }

    fn wait_for(&mut self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        while !path.exists() {
            assert!(self.child.try_wait().expect("a child").is_none(), "the server did not start");
            std::thread::yield_now();
        }
        path
    }

    /// Sends SIGTERM, and returns how the server ended.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        self.wait()
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().expect("a child")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
