//! Writes to stdout and stderr that never panic: the only way for the programs of this workspace to write there.
//!
//! `println!` and `eprintln!` panic where the stream is a closed pipe, a full disk or a terminal that has gone, and a
//! release build aborts on a panic. The rules here:
//!
//! | stream | closed pipe | any other error |
//! |---|---|---|
//! | stdout | the program ends as if all had been read | an error; the exit status becomes 2 |
//! | stderr | the message is lost | the message is lost |
//!
//! What a message to stderr quotes cannot steer the terminal: control characters are written out, line breaks stay.
//!
//! A descriptor that was closed before the start (`>&-`) is `/dev/null`: Rust's runtime opens it there, so that no file
//! of the program gets the number 1 or 2 and is written into.

use std::fmt;
use std::io::{self, Write};
use std::process;

use plimsoll_units::text::printable_lines;

/// Exit status where stdout could not be written.
pub const ERROR: u8 = 2;

/// Prints a message and a line break to stderr, as `eprintln!` does; a message that cannot be written is lost.
#[macro_export]
macro_rules! note {
    () => {
        $crate::note(::core::format_args!(""))
    };
    ($($message:tt)+) => {
        $crate::note(::core::format_args!($($message)+))
    };
}

/// Prints a line of results to stdout, as `println!` does. Ends the program where it cannot be written, so it is for
/// programs that have nothing to keep: with status 0 if the reader has gone, else with status 2.
#[macro_export]
macro_rules! outln {
    () => {
        $crate::out_or_end(::core::format_args!("\n"))
    };
    ($($line:tt)+) => {
        $crate::out_or_end(::core::format_args!("{}\n", ::core::format_args!($($line)+)))
    };
}

/// The function behind [`note!`].
pub fn note(message: fmt::Arguments<'_>) {
    // One write, so that messages of several threads or processes do not mix.
    let message = message.to_string();
    // Names in it may be a stranger's.
    let _ = io::stderr().write_all(format!("{}\n", printable_lines(&message)).as_bytes());
}

/// Writes results to stdout. A reader that has gone (`| head`) is no error.
///
/// # Errors
/// If stdout cannot be written, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The function behind [`outln!`].
pub fn out_or_end(line: fmt::Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    if let written @ Err(_) = stdout.write_all(line.to_string().as_bytes()).and_then(|()| stdout.flush()) {
        drop(stdout);
        end(written, 0);
    }
}

/// Ends the program after its last write, such as that of `--help`: with `status`, or with 2 if the write failed for
/// another reason than that the reader has gone.
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
