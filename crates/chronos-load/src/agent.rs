//! Agents generate load on other machines, for one caller at a time.
//!
//! ```text
//!  caller                                   agent
//!  hello (version, token), within 2 s ────> compares the token, and takes one caller at a time
//!  prepare (servers, options, share) ─────> stores the keys if asked to ─> ready
//!  run (phase) ───────────────────────────> opens its connections ───────> connected
//!  go, once all agents are connected ─────> sends its share ─────────────> done (counts, histograms)
//! ```
//! A message is a JSON object on a line. Each agent measures its own latencies by its own clock, so clocks need not
//! agree; the caller adds up counts and histograms. Several agents send the same requests as one generator with as many
//! clients and threads: the requests are the same function of the seed. Nothing is encrypted: `docs/chronos/load.md`
//! has the risk.

mod call;
mod histogram;
mod serve;
mod strangers;
mod wire;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, ensure};
use plimsoll_files::Origin;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::book::Counts;
use crate::phase::GeneratorShare;

pub use call::Agents;
pub use serve::serve;

/// The version of the messages, which both sides must have.
const VERSION: u32 = 1;
/// Most agents of a caller.
pub const AGENTS_MAX: u32 = 256;

/// A message of the caller.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Call {
    Hello { version: u32, token: String },
    Prepare(Preparation),
    Run(LoadRound),
    Go,
}

/// The load without its rate and length.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Preparation {
    /// The addresses of the servers.
    servers: Vec<String>,
    /// The options of the load, as on a command line.
    options: Vec<String>,
    share: GeneratorShare,
    /// Whether this agent stores the keys.
    stores: bool,
}

/// A phase of load, without its requests.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LoadRound {
    index: u8,
    pace: RoundPace,
    warm_up_ps: u64,
    time_ps: u64,
}

/// The distribution of a phase's requests over time, by all agents together.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum RoundPace {
    Open { arrivals: String, rate: f64 },
    Closed { outstanding: u32 },
}

/// A message of an agent.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum AgentMessage {
    Welcome,
    Ready,
    Connected,
    Done(Box<SentBook>),
    Error(String),
}

/// A [`crate::book::Book`] on its way.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SentBook {
    counts: Counts,
    latency: String,
    given_up: String,
    lag: String,
    examples: Vec<String>,
    busy_ps: u64,
    waited_ps: u64,
}

/// The largest file of a token that is read, in bytes.
const TOKEN_FILE_BYTES_MAX: u64 = 1 << 20;

/// The secret that a caller and its agents share.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Reads the token from the first line of a file that only its owner may read.
    ///
    /// # Errors
    /// Returns an error if others may read the file, or its first line is not a token.
    pub fn read(path: &Path) -> anyhow::Result<Token> {
        let doing = || format!("--token-file {}", path.display());
        let mode = fs::metadata(path).with_context(doing)?.permissions().mode();
        ensure!(
            mode & 0o077 == 0,
            "{}: others may use the file (mode {:o}); chmod 600 it",
            doing(),
            mode & 0o777
        );
        let text =
            plimsoll_files::read_text(path, Origin::Argument, TOKEN_FILE_BYTES_MAX).with_context(doing)?;
        let token = text.lines().next().unwrap_or_default().trim();
        let length = token.len();
        ensure!(
            (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&length)
                && token.bytes().all(|byte| byte.is_ascii_graphic()),
            "{}: its first line has {length} bytes; expected {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} ASCII letters, \
             digits or signs, such as the output of `openssl rand -hex 32`",
            doing()
        );
        Ok(Token(token.to_owned()))
    }

    /// Compares with the text that a caller has sent, in a time that does not depend on where they differ.
    fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

const TOKEN_BYTES_MIN: usize = 16;
const TOKEN_BYTES_MAX: usize = 512;
