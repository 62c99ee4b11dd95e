//! Creates a network namespace at the end of a veth pair, and removes it when dropped.

use std::process::{Child, Command, Stdio};

/// A pair of devices: the near one is in this namespace, the far one in a namespace of its own.
pub struct Namespace {
    name: String,
    near: String,
    subnet: u32,
}

impl Namespace {
    /// Creates a namespace for the test `label`, a word of at most three letters; `subnet` is less than 256 and used by
    /// no other test. Prints the reason and returns none if this machine cannot.
    pub fn new(label: &str, subnet: u32) -> Option<Namespace> {
        let id = std::process::id();
        let namespace =
            Namespace { name: format!("plimsoll-{label}-{id}"), near: format!("pl{label}{id}"), subnet };
        let (name, near, far) = (&namespace.name, &namespace.near, "far");
        let made = ip(&format!("netns add {name}"))
            && ip(&format!("link add {near} type veth peer name {far} netns {name}"))
            && ip(&format!("addr add 198.18.{subnet}.1/24 dev {near}"))
            && ip(&format!("link set {near} up"))
            && ip(&format!("-n {name} addr add 198.18.{subnet}.2/24 dev {far}"))
            && ip(&format!("-n {name} link set {far} up"));
        if !made {
            plimsoll_testing::skipped!("this machine makes no network namespace with a veth pair");
        }
        made.then_some(namespace)
    }

    /// Returns the name of the near device.
    pub fn near(&self) -> &str {
        &self.near
    }

    /// Returns the interface index of the near device.
    pub fn near_ifindex(&self) -> i32 {
        let text = std::fs::read_to_string(format!("/sys/class/net/{}/ifindex", self.near)).unwrap();
        text.trim().parse().unwrap()
    }

    /// Returns the address of the far end.
    pub fn address(&self) -> String {
        format!("198.18.{}.2", self.subnet)
    }

    /// Runs `ip` or `tc`, with `{device}` in `arguments` replaced by the near device. Returns whether it succeeded.
    pub fn run(&self, program: &str, arguments: &str) -> bool {
        succeeds(program, &arguments.replace("{device}", &self.near))
    }

    /// Starts Python in the namespace, its input and output piped.
    pub fn python(&self, source: &str) -> Child {
        python("ip", &["netns", "exec", &self.name, "python3"], source)
    }
}

/// Starts Python by `program` with `arguments`, its input and output piped.
pub fn python(program: &str, arguments: &[&str], source: &str) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).args(["-c", source]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Deleting the near device deletes the pair.
        ip(&format!("link del {}", self.near));
        ip(&format!("netns del {}", self.name));
    }
}

/// Returns whether python3 runs, and prints a message if not.
pub fn python_is_here() -> bool {
    let here = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !here {
        plimsoll_testing::skipped!("no python3");
    }
    here
}

fn ip(arguments: &str) -> bool {
    succeeds("ip", arguments)
}

fn succeeds(program: &str, arguments: &str) -> bool {
    Command::new(program).args(arguments.split(' ')).status().is_ok_and(|status| status.success())
}
