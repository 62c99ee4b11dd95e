//! [`Error`] reports a program that cannot be loaded, run or attached.

use plimsoll_mechanisms::InvalidParam;

/// The reason why a program cannot be loaded, run or attached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This build or this machine lacks eBPF: callers do without it, and tests are skipped.
    #[error("eBPF is not available: {0}")]
    Unsupported(String),
    /// A parameter has a value that the program cannot implement.
    #[error(transparent)]
    Param(#[from] InvalidParam),
    /// The kernel or libbpf rejected a call.
    #[error("{doing}: {source}")]
    Kernel {
        /// The operation that was rejected.
        doing: String,
        /// The error that the kernel returned.
        source: libbpf_rs::Error,
    },
}

impl Error {
    /// Returns a closure for `map_err` that adds the operation to the kernel's error.
    pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Kernel { doing, source }
    }
}
