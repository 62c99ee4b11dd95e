//! Generates docs/reference/cli.md from the commands. To regenerate it: `UPDATE=1 cargo test -p plimsoll-cli
//! reference`.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

const HEAD: &str = "# Command line

<!-- Generated from crates/cli; to regenerate it: UPDATE=1 cargo test -p plimsoll-cli reference -->

Results go to stdout, progress and messages to stderr. The exit status is 0; 1 for a finding (a figure is off, a load is
above its line); 2 for an error; 130 after Ctrl-C. `--help` explains any command.
";

/// The width of a line of prose.
const COLUMNS: usize = 118;

fn write(command: &Command, path: &str, out: &mut String) {
    let path = format!("{path}{}", command.get_name());
    let has_commands = command.get_subcommands().any(|sub| sub.get_name() != "help");
    let _ = writeln!(out, "\n## `{path}`\n");
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    about.split("\n\n").for_each(|paragraph| write_wrapped(paragraph, out));
    if !has_commands {
        let usage = command.clone().bin_name(&path).render_usage().to_string();
        let _ = writeln!(out, "```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim_end());
    }
    let mut args: Vec<&Arg> = command.get_arguments().filter(|arg| is_of_its_own(arg)).collect();
    args.sort_by_key(|arg| !arg.is_positional());
    if !args.is_empty() {
        out.push_str("| argument | meaning |\n|---|---|\n");
        args.iter().for_each(|arg| out.push_str(&row(arg)));
    }
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        write(sub, &format!("{path} "), out);
    }
}

/// Appends a paragraph in lines of at most [`COLUMNS`] characters.
fn write_wrapped(paragraph: &str, out: &mut String) {
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        match width {
            0 => width = length,
            _ if width + 1 + length > COLUMNS => {
                out.push('\n');
                width = length;
            }
            _ => {
                out.push(' ');
                width += 1 + length;
            }
        }
        out.push_str(word);
    }
    out.push_str("\n\n");
}

fn is_of_its_own(arg: &Arg) -> bool {
    !["help", "version"].contains(&arg.get_id().as_str()) && !arg.is_hide_set()
}

fn row(arg: &Arg) -> String {
    let value = || {
        let names: Vec<&str> =
            arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
        names.join(" ")
    };
    let takes_value = arg.get_action().takes_values();
    let mut name = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (Some(long), None) => format!("--{long}"),
        _ => value(),
    };
    if takes_value && !arg.is_positional() {
        name.push_str(&format!(" {}", value()));
    }
    let mut meaning =
        arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> = match takes_value {
        true => arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect(),
        false => Vec::new(),
    };
    if !choices.is_empty() {
        let _ = write!(meaning, ": {}", choices.join(", "));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|v| format!("`{}`", v.to_string_lossy())).collect();
    if takes_value && !defaults.is_empty() {
        let _ = write!(meaning, " (default {})", defaults.join(", "));
    }
    format!("| `{name}` | {}. |\n", meaning.replace('|', "\\|").replace('\n', " ").trim_end_matches('.'))
}

#[test]
fn reference_is_up_to_date() {
    let mut made = HEAD.to_owned();
    let mut command = crate::Cli::command();
    command.build();
    write(&command, "", &mut made);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "docs/reference/cli.md is out of date; regenerate it: UPDATE=1 cargo test -p plimsoll-cli reference"
    );
}

#[test]
fn the_commands_are_well_formed() {
    crate::Cli::command().debug_assert();
}
