//! `--conf`: a file of options as Debian has it in `/etc/memcached.conf`.
//!
//! ```text
//! # a comment
//! -m 64
//! -l 127.0.0.1
//! logfile /var/log/memcached.log
//! ```
//!
//! The words of its lines are put before those of the command line, so that the last of an option counts. Debian's
//! scripts give the lines to a shell; here nothing is quoted, and a character that a shell would interpret is refused.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use plimsoll_files::Origin;
use plimsoll_process::note;

use super::Options;

/// The options of a file, with their lines.
#[derive(Clone, Debug, Default)]
pub(super) struct ConfFile {
    /// The path, as it was given.
    path: String,
    lines: Vec<ConfLine>,
}

/// A line of the file that has options.
#[derive(Clone, Debug)]
struct ConfLine {
    number: usize,
    words: Vec<String>,
    options: ArgMatches,
}

impl ConfFile {
    const BYTES_MAX: u64 = 1 << 20;
    /// Characters of a value that a shell would interpret.
    const OF_SHELLS: [char; 11] = ['"', '\'', '\\', '$', '`', ';', '&', '|', '<', '>', '*'];

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or a line is no option; the error has the number of the line.
    pub(super) fn read(path: &Path) -> Result<ConfFile> {
        let path_shown = path.display().to_string();
        let text = plimsoll_files::read_text(path, Origin::Argument, ConfFile::BYTES_MAX)
            .with_context(|| format!("--conf {path_shown}"))?;
        let mut file = ConfFile { path: path_shown, lines: Vec::new() };
        for (number, line) in (1..).zip(text.lines()) {
            let place = format!("{}:{number}", file.path);
            let words: Vec<String> =
                line.split('#').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
            match words.first().map(String::as_str) {
                None => {}
                Some("-d" | "--daemon") if words.len() == 1 => {
                    note!(
                        "{place}: -d has no effect in a file: on the command line it starts a background process"
                    );
                }
                Some("logfile") => {
                    note!("{place}: logfile has no effect: messages are written to standard error");
                }
                Some(_) => {
                    let options = parse_line(&words).with_context(|| place)?;
                    file.lines.push(ConfLine { number, words, options });
                }
            }
        }
        Ok(file)
    }

    /// Returns the options of the file and of the command line `arguments`, which override those of the file. `given`
    /// has those of the command line alone.
    pub(super) fn join(self, arguments: &[OsString], given: &Options) -> Result<Options> {
        let (program, own) = arguments.split_first().context("a command line has the name of its program")?;
        let words = self.lines.iter().flat_map(|line| line.words.iter().map(OsString::from));
        let all = std::iter::once(program.clone()).chain(words).chain(own.iter().cloned());
        let matches = Options::command().try_get_matches_from(all)?;
        let mut options = Options::from_arg_matches(&matches)?;
        // Repeated addresses add up within one source, not over both.
        if !given.listen.is_empty() {
            options.listen.clone_from(&given.listen);
        }
        options.daemon = given.daemon;
        options.file = self;
        Ok(options)
    }

    /// Returns the place in the file of the option that `error` is about, if it begins with the option's letter.
    pub(super) fn place_of(&self, error: &str) -> Option<String> {
        let mut words = error.split([' ', ':', '=']);
        let letter = words.next()?.strip_prefix('-')?.chars().next()?;
        let extended = words.next().filter(|_| letter == 'o');
        let command = Options::command();
        let id =
            command.get_arguments().find(|argument| argument.get_short() == Some(letter))?.get_id().as_str();
        let is_meant = |line: &&ConfLine| {
            line.options.value_source(id) == Some(ValueSource::CommandLine)
                && extended.is_none_or(|name| line.words.iter().any(|word| word.contains(name)))
        };
        let line = self.lines.iter().rev().find(is_meant)?;
        Some(format!("{}:{}", self.path, line.number))
    }
}

/// Parses the words of one line.
fn parse_line(words: &[String]) -> Result<ArgMatches> {
    if let Some(word) = words.iter().find(|word| word.contains(ConfFile::OF_SHELLS)) {
        bail!(
            "{word}: quotes, backslashes and other characters of a shell are not interpreted; leave them out"
        );
    }
    if let Some(word) = words.first().filter(|word| !word.starts_with('-')) {
        bail!("{word}: an option is expected, such as -m 64, or logfile <file>");
    }
    let line = std::iter::once("chronos-memcached").chain(words.iter().map(String::as_str));
    let matches = Options::command().try_get_matches_from(line).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            anyhow::anyhow!("{}: it is for the command line only", words[0])
        }
        // The lines after it point to the help of the command line.
        _ => {
            let said = error.to_string();
            let reason = said.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
            anyhow::anyhow!("{}", reason.split_whitespace().collect::<Vec<_>>().join(" "))
        }
    })?;
    for only in ["conf", "license"] {
        if matches.value_source(only) == Some(ValueSource::CommandLine) {
            bail!("{}: it is for the command line only", words[0]);
        }
    }
    Ok(matches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::settings_of;

    fn read(text: &str) -> Result<ConfFile> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("memcached.conf");
        std::fs::write(&path, text).expect("a file");
        ConfFile::read(&path)
    }

    fn joined(text: &str, line: &str) -> Result<Options> {
        let arguments: Vec<OsString> =
            std::iter::once("chronos-memcached").chain(line.split_whitespace()).map(OsString::from).collect();
        let given = Options::from_arg_matches(&Options::command().try_get_matches_from(&arguments)?)?;
        read(text)?.join(&arguments, &given)
    }

    /// The file as Debian ships it, without its longer comments.
    const DEBIAN: &str = "\
# memcached default config file

# Run memcached as a daemon. This command is implied, and is not needed for the
-d
logfile /var/log/memcached.log

# -v
-m 64
-p 11211
-u memcache
  -l 127.0.0.1   # this host only
-l ::1
# -k
-P /var/run/memcached/memcached.pid
";

    #[test]
    fn debians_file_is_read() {
        let options = joined(DEBIAN, "").expect("Debian's file");
        assert_eq!((options.user.as_deref(), options.daemon), (Some("memcache"), false));
        let (settings, config) = settings_of(&options).expect("good options");
        assert_eq!((settings.memory_limit, settings.tcp_port, config.listen.len()), (64 << 20, 11_211, 2));
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let options = joined(
            &format!("{DEBIAN}-o idle_timeout=3,chronos_poll=spin"),
            "-m 128 -l 127.0.0.2 -o idle_timeout=5",
        );
        let (settings, config) = settings_of(&options.expect("good options")).expect("good options");
        assert_eq!((settings.memory_limit, settings.tcp_port, settings.idle_timeout), (128 << 20, 11_211, 5));
        assert_eq!(settings.listen.as_deref(), Some("127.0.0.2"));
        assert_eq!((config.listen.len(), config.poll), (1, plimsoll_chronos::Poll::Spin));
    }

    #[test]
    fn errors_have_the_line() {
        for (text, expected) in [
            ("-m 64\n\n-m lots", "memcached.conf:3: invalid value 'lots' for '--memory-limit <num>'"),
            ("# a\n-k", "memcached.conf:2: -k is not supported: locking memory"),
            ("-m 64\n--slab-growth-factor 1", "memcached.conf:2: -f 1: the factor must be greater than 1"),
            ("-t 2\n-o modern,chronos_pol=spin", "memcached.conf:2: -o chronos_pol: there is no such option"),
            ("maxconn 5", "memcached.conf:1: maxconn: an option is expected"),
            ("-s \"/run/a b\"", "memcached.conf:1: \"/run/a: quotes, backslashes"),
            ("--colour", "memcached.conf:1: unexpected argument '--colour' found"),
            ("-h", "memcached.conf:1: -h: it is for the command line only"),
            ("-V", "memcached.conf:1: -V: it is for the command line only"),
            ("--conf x", "memcached.conf:1: --conf: it is for the command line only"),
        ] {
            let refused = joined(text, "-v").and_then(|options| settings_of(&options).map(|_| ()));
            let error = format!("{:#}", refused.expect_err(text));
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = ConfFile::read(Path::new("/nonexistent/memcached.conf")).expect_err("no file");
        assert!(format!("{error:#}").starts_with("--conf /nonexistent/memcached.conf: "), "{error:#}");
        // An option of the command line has no line.
        let options = joined("-m 64", "-f 1").expect("words that are options");
        assert!(format!("{:#}", settings_of(&options).expect_err("-f 1")).starts_with("-f 1: "));
    }
}
