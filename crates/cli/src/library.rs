//! What the Python package shares with the commands, so that both record, resume and summarize a run in the same way.

use clap::Parser as _;

use crate::{Cli, Command, circuits, model};

pub use crate::batch::{conclude_points, keep, threads};
pub use crate::compare::side_by_side;
pub use crate::job::{Shard, check_variants, key, plan, share};
pub use crate::line::{Question, keep_lines, line_plan};
pub use crate::memory::default_limit;
pub use crate::output::{VERSION, commit};
pub use crate::run::{create, missing};
pub use crate::source::{Source, quoted};

/// Returns what a subcommand of `model` or `circuits` prints. `words` are those after the name of the program.
///
/// # Errors
/// Returns an error for words that the command line rejects, and where the subcommand fails.
pub fn printed(words: &[String]) -> anyhow::Result<String> {
    let words = std::iter::once("plimsoll").chain(words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let message = text.split("\n\nUsage:").next().unwrap_or_default();
        anyhow::anyhow!("{}", message.strip_prefix("error: ").unwrap_or(message).trim_end())
    })?;
    match &cli.command {
        Command::Model(args) => model::printed(args),
        Command::Circuits(args) => circuits::printed(args),
        _ => Err(anyhow::anyhow!("only `model` and `circuits` have results without a run")),
    }
}
