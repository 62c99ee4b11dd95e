//! The program itself, on ports of its own.

#![allow(dead_code, reason = "every test uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// A running server, which ends when this is dropped.
pub struct Server {
    child: Child,
    directory: tempfile::TempDir,
    /// TCP port, if it has one.
    pub tcp: u16,
    /// UDP port, if it has one.
    pub udp: u16,
}

/// The program of the crate whose tests these are.
const PROGRAM: Option<&str> = match option_env!("CARGO_BIN_EXE_chronos-memcached") {
    Some(program) => Some(program),
    None => option_env!("CARGO_BIN_EXE_chronos-memcached-locked"),
};

/// The program with `options`, which writes its ports and its messages into `directory`.
pub fn command(options: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(PROGRAM.expect("a program of this crate"));
    let errors = std::fs::File::create(directory.join("errors")).expect("a file");
    command.args(["-u", "root"]).args(options).stderr(errors);
    command.env("MEMCACHED_PORT_FILENAME", directory.join("ports"));
    command
}

impl Server {
    /// Starts one on TCP and UDP.
    pub fn start(options: &[&str], environment: &[(&str, &Path)]) -> Server {
        let started = Server::try_start(options, environment);
        started.unwrap_or_else(|errors| panic!("the server did not start: {errors}"))
    }

    /// Starts one on TCP and UDP, or returns the reason that it did not start.
    pub fn try_start(options: &[&str], environment: &[(&str, &Path)]) -> Result<Server, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = command(options, directory.path());
        command.args(["-l", "127.0.0.1"]).envs(environment.iter().copied());
        if !options.contains(&"-p") {
            command.args(["-p", "-1"]);
        }
        if !options.contains(&"-Y") && !options.contains(&"-U") {
            command.args(["-U", "-1"]);
        }
        let mut server = Server { child: command.spawn().expect("it starts"), directory, tcp: 0, udp: 0 };
        server.wait_for_ports()?;
        (server.tcp, server.udp) = ports(server.directory.path());
        Ok(server)
    }

    /// Starts one on a UNIX socket, whose path is returned too.
    pub fn start_unix(options: &[&str]) -> (Server, PathBuf) {
        Server::start_unix_with(options, &[])
    }

    /// The same, with more environment.
    pub fn start_unix_with(options: &[&str], environment: &[(&str, &str)]) -> (Server, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        (Server::unix(options, &path, directory, environment), path)
    }

    /// Starts one on the UNIX socket `path`.
    pub fn start_unix_at(options: &[&str], path: &Path) -> Server {
        Server::unix(options, path, tempfile::tempdir().expect("a directory"), &[])
    }

    fn unix(
        options: &[&str],
        path: &Path,
        directory: tempfile::TempDir,
        environment: &[(&str, &str)],
    ) -> Server {
        let mut command = command(options, directory.path());
        let child = command.arg("-s").arg(path).envs(environment.iter().copied()).spawn().expect("it starts");
        let mut server = Server { child, directory, tcp: 0, udp: 0 };
        server.wait_for_ports().unwrap_or_else(|errors| panic!("the server did not start: {errors}"));
        server
    }

    fn wait_for_ports(&mut self) -> Result<(), String> {
        while !self.directory.path().join("ports").exists() {
            if self.child.try_wait().expect("a child").is_some() {
                return Err(self.errors());
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Returns the number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its output on standard error.
    pub fn errors(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("errors")).expect("a file")
    }

    /// Sends it a signal, by its name.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Sends SIGTERM, and returns how the server ended.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("a child")
    }
}

/// Sends a process a signal, by its name.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
    assert!(status.expect("kill").success(), "kill -{name} {process}");
}

/// The TCP and the UDP port that the server of `directory` wrote down.
pub fn ports(directory: &Path) -> (u16, u16) {
    let text = std::fs::read_to_string(directory.join("ports")).expect("ports");
    let port =
        |kind: &str| text.lines().find_map(|line| line.strip_prefix(kind)?.trim().parse().ok()).unwrap_or(0);
    (port("TCP INET:"), port("UDP INET:"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
