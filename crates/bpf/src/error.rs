//! [`Error`]: a program that cannot be loaded, run or attached.

use plimsoll_mechanisms::InvalidParam;

/// Why a program did not load, run or attach.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This build or this machine cannot: a reason to go without, and for a test to skip.
    #[error("eBPF is not available: {0}")]
    Unsupported(String),
    /// A parameter that the program cannot honour.
    #[error(transparent)]
    Param(#[from] InvalidParam),
    /// The kernel or libbpf refused.
    #[error("{doing}: {source}")]
    Kernel {
        /// What was being done.
        doing: String,
        /// What the kernel said.
        source: libbpf_rs::Error,
    },
}

impl Error {
    /// For `map_err`: what was being done.
    pub(crate) fn while_doing(doing: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Kernel { doing, source }
    }
}
