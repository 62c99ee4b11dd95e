//! [`Options`]: which parts of a study are run, and how.

use std::path::PathBuf;

/// The options of a reproduction, as `plimsoll reproduce` has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Short runs: the shape of every figure, without its tails.
    pub quick: bool,
    /// The number of threads on which runs are made, at least 1.
    pub threads: usize,
    /// The seed of every run; values that are off are repeated with further seeds.
    pub seed: u64,
    /// The figures or points to run; everything if empty.
    pub only: Vec<Part>,
    /// The folder of the servers' programs, where a study runs real servers.
    pub servers: PathBuf,
    /// The commit of this build, where known: kept with every run.
    pub commit: Option<String>,
}

/// A figure, or some of its points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The name of the figure: `fig2b`.
    pub figure: String,
    /// The points on the figure's x axis; all if empty.
    pub xs: Vec<String>,
}

/// Hears `(done, of, packet_hops so far)` and may stop everything by returning false.
pub type OnProgress<'a> = &'a (dyn Fn(usize, usize, u64) -> bool + Sync);

impl Part {
    pub(crate) fn has(&self, figure: &str, x: &str) -> bool {
        self.figure == figure && (self.xs.is_empty() || self.xs.iter().any(|other| other == x))
    }
}

impl std::str::FromStr for Part {
    type Err = std::convert::Infallible;
    /// Reads `fig9` or `fig9@0.2,0.5`; `reproduce` checks that the study has such a part.
    fn from_str(text: &str) -> Result<Part, Self::Err> {
        let (figure, xs) = text.split_once('@').unwrap_or((text, ""));
        let xs = xs.split(',').map(str::trim).filter(|x| !x.is_empty());
        Ok(Part { figure: figure.trim().to_owned(), xs: xs.map(str::to_owned).collect() })
    }
}
