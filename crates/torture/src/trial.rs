//! [`Trial`] is one run of one attack, with its random numbers and its folder.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use tempfile::TempDir;
use twox_hash::XxHash3_64;

/// The reason that a trial does not count as held.
#[derive(Debug)]
pub enum Broken {
    /// The trial broke a promise; the text names it, and the observation.
    Lost(String),
    /// The trial cannot run on this machine; the text names the missing part.
    NotTried(String),
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Broken {
        Broken::Lost(format!("the attack itself failed: {error}"))
    }
}

/// The result of an attack: no value if all promises held.
pub type Outcome = Result<(), Broken>;

/// Ends the trial as lost, with a message as of `format!`, unless the condition holds.
macro_rules! hold {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::trial::Broken::Lost(format!($($what)+)));
        }
    };
}
pub(crate) use hold;

/// One run of one attack.
#[derive(Debug)]
pub struct Trial {
    random: Pcg64Mcg,
    folder: Option<TempDir>,
    path: PathBuf,
}

impl Trial {
    /// Creates a trial with an empty folder, and random numbers that depend on seed, attack and number only.
    pub fn new(seed: u64, attack: &str, number: u64) -> Result<Trial> {
        let stream = XxHash3_64::oneshot(format!("{seed}/{attack}/{number}").as_bytes());
        let folder = TempDir::with_prefix("plimsoll-torture-").context("a folder for the trial")?;
        let path = folder.path().to_owned();
        Ok(Trial { random: Pcg64Mcg::seed_from_u64(stream), folder: Some(folder), path })
    }

    /// Returns the folder, which is deleted with the trial.
    pub fn folder(&self) -> &Path {
        &self.path
    }

    /// Returns the path of this name in the trial's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file into the trial's folder.
    pub fn write(&self, name: &str, text: &str) -> Outcome {
        Ok(fs::write(self.path(name), text)?)
    }

    /// Leaves the folder on the disk, and returns its path.
    pub fn keep(&mut self) -> &Path {
        if let Some(folder) = self.folder.take() {
            let _ = folder.keep();
        }
        &self.path
    }

    /// Draws a uniform number in the range.
    pub fn number(&mut self, range: Range<u64>) -> u64 {
        self.random.random_range(range)
    }

    /// Draws one of the choices, each with the same probability.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let index = self.number(0..choices.len() as u64) as usize;
        &choices[index]
    }

    /// Returns true with probability 1 in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.number(0..times) == 0
    }
}
