//! Standard streams that cannot be written, as programs meet them: the other end of a pipe has gone, a disk is full, a
//! descriptor was closed before the start, a terminal was closed.

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

/// A standard stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Where results go.
    Stdout,
    /// Where messages go.
    Stderr,
}

/// Why a stream cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The reader of the pipe has gone: `| head -1`.
    ClosedPipe,
    /// The disk is full: `> /dev/full`.
    FullDisk,
    /// The descriptor was closed: `>&-`.
    ClosedDescriptor,
    /// The terminal was closed, as after `nohup`.
    ClosedTerminal,
}

impl Lost {
    /// Every way to lose a stream.
    pub const ALL: [Lost; 4] =
        [Lost::ClosedPipe, Lost::FullDisk, Lost::ClosedDescriptor, Lost::ClosedTerminal];

    /// Whether a program that has results to print ends with an error. Rust's runtime opens /dev/null in the place of a
    /// closed descriptor.
    pub fn is_error_of(self, stream: Stream) -> bool {
        stream == Stream::Stdout && matches!(self, Lost::FullDisk | Lost::ClosedTerminal)
    }

    /// A command whose `stream` is lost like this; the caller adds arguments and chooses the other streams.
    ///
    /// # Errors
    /// If the system has no such stream.
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

/// The end of a terminal that a terminal's window has; the terminal is closed when it is dropped.
#[derive(Debug)]
pub struct Terminal(File);

impl Terminal {
    /// A new terminal, and the end of it that a program has. It is nobody's controlling terminal, so that nobody gets
    /// a SIGHUP when it is closed.
    ///
    /// # Errors
    /// If the system has none left.
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

/// Checks that a server serves and ends with status 0 at SIGTERM however its streams are lost. `arguments` makes it say
/// as much as it can, and listen at this UNIX socket.
///
/// # Panics
/// If it does not.
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

/// Checks what a program ends with however its streams are lost: with `normal` where stderr or a reader of stdout has
/// gone, with 2 where stdout cannot be written otherwise. It has to print results.
///
/// # Panics
/// If it does not.
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

/// Waits until the process has ended, and tries `done` until it is true.
fn wait(child: &mut Child, mut done: impl FnMut(&Child) -> bool) -> ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut is_done = false;
    loop {
        if let Some(status) = child.try_wait().expect("a child of this process") {
            return status;
        }
        is_done = is_done || done(child);
        if Instant::now() > deadline {
            // It has not ended yet, as was just seen.
            let _ = child.kill();
            panic!("it neither serves nor ends");
        }
        thread::yield_now();
    }
}
