//! Command lines: how programs parse theirs, and the completions of shells for them.
//!
//! A program without subcommands gets the option `--completions SHELL`, one with subcommands the subcommand
//! `completions SHELL`.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory, Parser, value_parser};
pub use clap_complete::Shell;

use plimsoll_process::{end, print};

const NAME: &str = "completions";

/// Returns the completions of `shell` for `command`.
pub fn completions(shell: Shell, command: &mut Command) -> String {
    let (mut text, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(shell, command, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the command of `T` with the request for completions, as the program's help and manual page show it.
pub fn command<T: CommandFactory>() -> Command {
    let command = T::command();
    let shell = Arg::new(NAME).value_name("SHELL").value_parser(value_parser!(Shell));
    if command.has_subcommands() {
        let print = Command::new(NAME).about("Print the completions of a shell for this command");
        return command
            .subcommand(print.arg(shell.required(true).help("Shell that will use the completions")));
    }
    // WithoutSubcommands a heading of its own it would get that of the group before it.
    let shell = shell.long(NAME).exclusive(true).help_heading(None::<&str>);
    command.arg(shell.help("Print the completions of a shell for this command, and exit"))
}

/// Parses a program's command line. Prints help, an error or completions where they are due, and ends the program then.
pub fn parse<T: Parser>(arguments: impl IntoIterator<Item = OsString>) -> T {
    let mut command = command::<T>();
    let parsed = command.try_get_matches_from_mut(arguments).and_then(|mut matches| {
        let asked = matches.subcommand().map_or(&matches, |(_, of_subcommand)| of_subcommand);
        let shell = asked.try_get_one::<Shell>(NAME).ok().flatten().copied();
        if let Some(shell) = shell {
            end(print(&completions(shell, &mut command)), 0);
        }
        T::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    });
    parsed.unwrap_or_else(|said| end(said.print(), said.exit_code()))
}

#[cfg(test)]
mod tests {
    use std::process::Command as Program;

    use clap::Subcommand;

    use super::*;

    #[derive(Parser)]
    #[command(name = "without")]
    struct WithoutSubcommands {
        #[arg(long, help_heading = "Runtime", required = true)]
        _threads: u32,
    }

    #[derive(Parser)]
    #[command(name = "with")]
    struct WithSubcommands {
        #[command(subcommand)]
        _command: TestWords,
    }

    #[derive(Subcommand)]
    enum TestWords {
        Run,
    }

    #[test]
    fn completions_are_asked_for_by_an_option_or_a_subcommand() {
        let mut without = command::<WithoutSubcommands>();
        without
            .try_get_matches_from_mut(["without", "--completions", "bash"])
            .expect("no other option is needed");
        assert!(without.try_get_matches_from_mut(["without", "--completions", "csh"]).is_err());
        command::<WithSubcommands>()
            .try_get_matches_from(["with", "completions", "fish"])
            .expect("a subcommand");
        assert!(command::<WithSubcommands>().try_get_matches_from(["with", "completions"]).is_err());
    }

    /// Each shell reads its completions without an error, where it is installed.
    #[test]
    fn shells_read_their_completions() {
        let folder = tempfile::tempdir().expect("a folder");
        for (shell, program, check) in
            [(Shell::Bash, "bash", "-n"), (Shell::Zsh, "zsh", "-n"), (Shell::Fish, "fish", "--no-execute")]
        {
            for mut command in [command::<WithoutSubcommands>(), command::<WithSubcommands>()] {
                let text = completions(shell, &mut command);
                assert!(text.contains(NAME) && text.contains(command.get_name()), "{shell}: {text}");
                let file = folder.path().join(program);
                std::fs::write(&file, text).expect("a file");
                match Program::new(program).arg(check).arg(&file).output() {
                    Err(error) => {
                        plimsoll_testing::skipped!("{program} ({error}): apt-get install {program}")
                    }
                    Ok(read) => {
                        assert!(
                            read.status.success(),
                            "{program}: {}",
                            String::from_utf8_lossy(&read.stderr)
                        );
                    }
                }
            }
        }
    }
}
