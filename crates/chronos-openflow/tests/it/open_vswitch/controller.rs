//! A controller of its own process, beside the switch.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use crate::open_vswitch::switch::inside;

/// A controller, which is killed when this is dropped.
pub struct Controller {
    child: Child,
    pub address: SocketAddr,
}

impl Controller {
    /// Starts it with two threads, so that messages cross from one to the other or not. Returns once it listens.
    pub fn start(space: &str, listen: &str) -> Controller {
        let program = env!("CARGO_BIN_EXE_chronos-openflow");
        let mut child = inside(space)
            .arg(program)
            .args(["--threads=2", "--listen", listen])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).parse().unwrap();
        Controller { child, address }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
