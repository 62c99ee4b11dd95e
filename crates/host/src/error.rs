//! [`Error`]: a policy that cannot be planned, applied or taken back.

use std::io;

use crate::names::{PolicyName, nearest};

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This host cannot do what the policy wants; every reason.
    #[error("the policy cannot be applied here:\n  {}", .0.join("\n  "))]
    Unavailable(Vec<String>),
    /// The policy is applied, at least in part.
    #[error("policy {0} is applied already; `plimsoll host rollback {0}` takes it back")]
    Applied(PolicyName),
    /// No policy of this name is applied.
    #[error("policy {name} is not applied{hint}")]
    NotApplied {
        /// The name.
        name: PolicyName,
        /// What is applied.
        hint: String,
    },
    /// Some of its steps were not made.
    #[error("policy {0} is applied in part; `plimsoll host rollback {0}` takes that back")]
    InPart(PolicyName),
    /// Somebody else holds the lock, and was not waited for any longer.
    #[error("somebody else changes this host by a policy at this moment; try again when that is over")]
    Busy,
    /// What a step makes is there already, and so is somebody else's.
    #[error("{0} is there already: somebody has made it since the plan")]
    Theirs(String),
    /// A command of the system failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// With its arguments.
        command: String,
        /// What it wrote on standard error.
        said: String,
    },
    /// A file or the system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file of this program's own is not as it wrote it.
    #[error("{file} is not as it was written ({why}); see docs/host.md, \"By hand\"")]
    Journal {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// A policy was applied somewhere else, where this process is not and does not get.
    #[error("{0}")]
    Elsewhere(String),
    /// An eBPF program did not load or attach.
    #[error("{0}")]
    Program(String),
    /// A step failed while applying.
    #[error("{step}: {why}; {afterwards}")]
    Step {
        /// Which.
        step: String,
        /// Why.
        why: Box<Error>,
        /// What became of the steps before it.
        afterwards: String,
    },
    /// Something could not be taken back.
    #[error("not everything could be taken back:\n  {}\nrun the rollback again when the cause is gone", .0.join("\n  "))]
    Rollback(Vec<String>),
}

impl Error {
    /// That the policy `name` is not applied, and which are.
    pub fn not_applied(name: &PolicyName, applied: &[PolicyName]) -> Error {
        let known: Vec<&str> = applied.iter().map(PolicyName::as_str).collect();
        let guess = nearest(name.as_str(), known.iter().copied());
        let guess = guess.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
        let hint = match known.as_slice() {
            [] => "; no policy is".to_owned(),
            known => format!("{guess} (applied: {})", known.join(", ")),
        };
        Error::NotApplied { name: name.clone(), hint }
    }

    /// For `map_err`: what was being done.
    pub(crate) fn doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }

    /// The same of what only root may.
    pub(crate) fn doing_as_root(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| {
            let is_denied = source.kind() == io::ErrorKind::PermissionDenied;
            Error::Io { doing: doing + if is_denied { " (root is needed)" } else { "" }, source }
        }
    }

    /// Whether it is that this user may not.
    pub fn is_denied(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

#[cfg(feature = "kernel")]
impl From<plimsoll_bpf::Error> for Error {
    fn from(error: plimsoll_bpf::Error) -> Error {
        Error::Program(error.to_string())
    }
}
