//! Standard streams that cannot be written: a pipe without reader, a full disk, a descriptor that was closed before the
//! start, a closed terminal.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// One of the two standard streams that a program writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// The standard output, which carries results.
    Stdout,
    /// The standard error, which carries messages.
    Stderr,
}

/// The reason why a stream cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The reader has closed the pipe: `| head -1`.
    ClosedPipe,
    /// The disk is full: `> /dev/full`.
    FullDisk,
    /// The descriptor was closed: `>&-`.
    ClosedDescriptor,
    /// The terminal was closed, as after `nohup`.
    ClosedTerminal,
}

impl Lost {
    /// All reasons why a stream cannot be written.
    pub const ALL: [Lost; 4] =
        [Lost::ClosedPipe, Lost::FullDisk, Lost::ClosedDescriptor, Lost::ClosedTerminal];

    /// Returns whether a program that prints results ends with an error. Rust's runtime opens /dev/null in the place of
    /// a closed descriptor.
    pub fn is_error_of(self, stream: Stream) -> bool {
        stream == Stream::Stdout && matches!(self, Lost::FullDisk | Lost::ClosedTerminal)
    }

    /// Returns a command whose `stream` cannot be written for this reason; the caller adds arguments and the other
    /// streams.
    ///
    /// # Errors
    /// Returns an error if the system has no such stream.
    pub fn command(self, program: &str, stream: Stream) -> io::Result<Command> {
        let lost = match self {
            Lost::ClosedDescriptor => {
                let closed = match stream {
                    Stream::Stdout => r#"exec "$0" "$@" >&-"#,
                    Stream::Stderr => r#"exec "$0" "$@" 2>&-"#,
                };
                let mut shell = Command::new("sh");
                shell.args(["-c", closed, program]);
                return Ok(shell);
            }
            Lost::ClosedPipe => Stdio::from(io::pipe()?.1),
            Lost::FullDisk => Stdio::from(OpenOptions::new().write(true).open("/dev/full")?),
            Lost::ClosedTerminal => Stdio::from(Terminal::open()?.1),
        };
        let mut command = Command::new(program);
        match stream {
            Stream::Stdout => command.stdout(lost),
            Stream::Stderr => command.stderr(lost),
        };
        Ok(command)
    }
}

/// The controlling end of a pseudoterminal; dropping it closes the terminal.
#[derive(Debug)]
pub struct Terminal(File);

impl Terminal {
    /// Opens a pseudoterminal, and returns the end for a program with it. It is not the controlling terminal of any
    /// process, so that closing it sends no SIGHUP.
    ///
    /// # Errors
    /// Returns an error if the system has no pseudoterminal left.
    pub fn open() -> io::Result<(Terminal, File)> {
        let window = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&window)?;
        unlockpt(&window)?;
        let name = ptsname(&window, Vec::new())?;
        let inner = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        Ok((Terminal(File::from(window)), File::from(inner)))
    }
}

impl io::Read for Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Checks that a server serves requests and ends with status 0 at SIGTERM, whichever stream cannot be written.
/// `arguments` receives the path of a UNIX socket to listen on, and should make the server print as much as it can.
///
/// # Panics
/// Panics if the server does not.
pub fn serves_without_streams(program: &str, folder: &Path, arguments: impl Fn(&str) -> Vec<String>) {
    for stream in [Stream::Stdout, Stream::Stderr] {
        for lost in Lost::ALL {
            let socket = folder.join(format!("{stream:?}-{lost:?}"));
            let socket = socket.to_str().expect("a path in UTF-8");
            let mut command = lost.command(program, stream).expect("such a stream");
            match stream {
                Stream::Stdout => command.stderr(Stdio::null()),
                Stream::Stderr => command.stdout(Stdio::null()),
            };
            let mut server = command.args(arguments(socket)).spawn().expect("the program starts");
            let status = wait(&mut server, |server| {
                if UnixStream::connect(socket).is_err() {
                    return false;
                }
                let pid = Pid::from_child(server);
                kill_process(pid, Signal::TERM).expect("a running server");
                true
            });
            assert!(status.success(), "{program} with {stream:?} lost ({lost:?}): {status}");
        }
    }
}

/// Checks a program's exit status for each stream that cannot be written: `normal` for stderr and for a closed pipe at
/// stdout, 2 for any other stdout. The program must print results.
///
/// # Panics
/// Panics if a status differs.
pub fn ends_without_streams(program: &str, arguments: &[&str], normal: i32) {
    for stream in [Stream::Stdout, Stream::Stderr] {
        for lost in Lost::ALL {
            let mut command = lost.command(program, stream).expect("such a stream");
            match stream {
                Stream::Stdout => command.stderr(Stdio::null()),
                Stream::Stderr => command.stdout(Stdio::null()),
            };
            let status = command.args(arguments).stdin(Stdio::null()).status().expect("the program starts");
            let expected = if lost.is_error_of(stream) { 2 } else { normal };
            assert_eq!(
                status.code(),
                Some(expected),
                "{program} {arguments:?} with {stream:?} lost ({lost:?})"
            );
        }
    }
}

/// Waits until the process has ended, and calls `done` until it returns true.
fn wait(child: &mut Child, mut done: impl FnMut(&Child) -> bool) -> ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut is_done = false;
    loop {
        if let Some(status) = child.try_wait().expect("a child of this process") {
            return status;
        }
        is_done = is_done || done(child);
        if Instant::now() > deadline {
            // The process has not ended: `try_wait` just returned none.
            let _ = child.kill();
            panic!("it neither serves nor ends");
        }
        thread::yield_now();
    }
}
