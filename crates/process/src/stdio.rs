//! Writes to stdout and stderr without panics; the programs of this workspace write there in no other way.
//!
//! `println!` and `eprintln!` panic where the stream is a closed pipe, a full disk or a closed terminal, and a release
//! build aborts on a panic. This module does the following instead:
//!
//! | stream | closed pipe | any other error |
//! |---|---|---|
//! | stdout | the program ends as if the reader had read everything | an error is returned; the exit status becomes 2 |
//! | stderr | the message is dropped | the message is dropped |
//!
//! Quoted text in a message to stderr cannot control the terminal: control characters are escaped, line breaks stay.
//!
//! A descriptor that was closed before the start (`>&-`) becomes `/dev/null`: Rust's runtime opens it there, so that no
//! file of the program gets the number 1 or 2 and receives its output.

use std::fmt;
use std::io::{self, Write};
use std::process;

use plimsoll_text::printable_lines;

/// The exit status where stdout could not be written.
pub const ERROR: u8 = 2;

/// Prints a message and a line break to stderr, as `eprintln!` does; a message that cannot be written is dropped.
#[macro_export]
macro_rules! note {
    () => {
        $crate::note(::core::format_args!(""))
    };
    ($($message:tt)+) => {
        $crate::note(::core::format_args!($($message)+))
    };
}

/// Prints a line of results to stdout, as `println!` does. Where the line cannot be written, the macro ends the
/// program, with status 0 if the reader has closed the pipe and with status 2 otherwise; so it is only for programs
/// that have no state to save.
#[macro_export]
macro_rules! outln {
    () => {
        $crate::out_or_end(::core::format_args!("\n"))
    };
    ($($line:tt)+) => {
        $crate::out_or_end(::core::format_args!("{}\n", ::core::format_args!($($line)+)))
    };
}

/// Writes the message of [`note!`].
pub fn note(message: fmt::Arguments<'_>) {
    // A single write keeps the messages of several threads and processes apart.
    let message = message.to_string();
    // Names in the message may be foreign text.
    let _ = io::stderr().write_all(format!("{}\n", printable_lines(&message)).as_bytes());
}

/// Prints a message and a line break to stderr, as [`note!`] does, unless that would have to wait: if stderr is a full
/// pipe without a reader, the message is dropped. Only for threads on which others depend.
pub fn note_or_drop(message: fmt::Arguments<'_>) {
    // A pipe that has any room has this much.
    const ROOM: usize = 4096;
    let mut line = printable_lines(&message.to_string()).into_owned();
    line.truncate((0..ROOM).rev().find(|&end| line.is_char_boundary(end)).unwrap_or(0));
    line.push('\n');
    // Other threads of this process cannot fill the room in between.
    let mut stderr = io::stderr().lock();
    if has_room(&stderr) {
        let _ = stderr.write_all(line.as_bytes());
    }
}

#[cfg(unix)]
fn has_room(stderr: &io::StderrLock<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(stderr, PollFlags::OUT)], Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
fn has_room(_: &io::StderrLock<'_>) -> bool {
    true
}

/// Prints a message and a line break to stderr without any memory, which the program has run out of: at most a kilobyte
/// of it. Nothing is escaped, so it has no foreign text.
pub fn note_without_memory(message: fmt::Arguments<'_>) {
    let mut text = [0; 1 << 10];
    let mut room = &mut text[..];
    // The rest is left out if it does not fit.
    let _ = writeln!(room, "{message}");
    let left = room.len();
    let _ = io::stderr().write_all(&text[..text.len() - left]);
}

/// Writes results to stdout. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// Returns an error if stdout cannot be written, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes the line of [`outln!`].
pub fn out_or_end(line: fmt::Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    if let written @ Err(_) = stdout.write_all(line.to_string().as_bytes()).and_then(|()| stdout.flush()) {
        drop(stdout);
        end(written, 0);
    }
}

/// Ends the program after its last write, such as that of `--help`: with `status`, or with 2 if the write failed for
/// any reason other than a closed pipe.
pub fn end(written: io::Result<()>, status: i32) -> ! {
    let status = match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            note!("error: cannot write to stdout: {error}");
            i32::from(ERROR)
        }
        _ => status,
    };
    process::exit(status)
}
