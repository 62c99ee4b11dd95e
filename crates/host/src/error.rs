//! [`Error`] reports a policy that cannot be planned, applied or rolled back.

use std::io;

use crate::names::{PolicyName, nearest};

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This host cannot implement the policy; the error holds every reason.
    #[error("the policy cannot be applied here:\n  {}", .0.join("\n  "))]
    Unavailable(Vec<String>),
    /// The policy is applied already, at least in part.
    #[error("policy {0} is applied already; to roll it back: plimsoll host rollback {0}")]
    Applied(PolicyName),
    /// No policy of this name is applied.
    #[error("policy {name} is not applied{hint}")]
    NotApplied {
        /// The name that was given.
        name: PolicyName,
        /// Names of applied policies, for the message.
        hint: String,
    },
    /// Some of the policy's steps were not made.
    #[error("policy {0} is applied in part; to undo it: plimsoll host rollback {0}")]
    InPart(PolicyName),
    /// The policy's last apply waits for its confirmation.
    #[error(
        "policy {0} waits for a confirmation; first `plimsoll host confirm {0}` or `plimsoll host rollback {0}`"
    )]
    Unconfirmed(PolicyName),
    /// Another process holds the lock longer than this one may wait.
    #[error("another process is changing this host by a policy; try again when it has ended")]
    Busy,
    /// The object that a step would create exists already, and belongs to another program.
    #[error("{0} exists already: it was created after the plan was made")]
    Theirs(String),
    /// A command of the system failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command with its arguments.
        command: String,
        /// The text that it wrote to standard error.
        said: String,
    },
    /// A file could not be accessed, or the system rejected a call.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that was attempted.
        doing: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of this program has unexpected content.
    #[error("{file} is not what plimsoll wrote ({why}); see docs/host.md, \"By hand\"")]
    Journal {
        /// The path of the file.
        file: String,
        /// The difference that was found.
        why: String,
    },
    /// A policy was applied in a namespace that this process cannot enter.
    #[error("{0}")]
    Elsewhere(String),
    /// An eBPF program could not be loaded or attached.
    #[error("{0}")]
    Program(String),
    /// A step failed while the policy was applied.
    #[error("{step}: {why}; {afterwards}")]
    Step {
        /// The step that failed.
        step: String,
        /// The reason of the failure.
        why: Box<Error>,
        /// The result of undoing the steps before it.
        afterwards: String,
    },
    /// Some changes could not be undone; the error holds each reason.
    #[error("some changes could not be undone:\n  {}\nremove the cause, then run the rollback again", .0.join("\n  "))]
    Rollback(Vec<String>),
}

impl Error {
    /// Creates the error that the policy `name` is not applied; it lists the applied ones.
    pub fn not_applied(name: &PolicyName, applied: &[PolicyName]) -> Error {
        let known: Vec<&str> = applied.iter().map(PolicyName::as_str).collect();
        let guess = nearest(name.as_str(), known.iter().copied());
        let guess = guess.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
        let hint = match known.as_slice() {
            [] => "; no policy is applied".to_owned(),
            known => format!("{guess} (applied: {})", known.join(", ")),
        };
        Error::NotApplied { name: name.clone(), hint }
    }

    /// Returns a closure for `map_err` that adds the attempted operation to an error of the system.
    pub(crate) fn doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }

    /// Returns the same closure for an operation that only root may do.
    pub(crate) fn doing_as_root(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| {
            let is_denied = source.kind() == io::ErrorKind::PermissionDenied;
            Error::Io { doing: doing + if is_denied { " (root is needed)" } else { "" }, source }
        }
    }

    /// Returns whether the error is a lack of permission.
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
