//! [`Error`] reports why a server cannot be traced.

use std::io;
use std::process::ExitStatus;

/// The reason why a server cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No socket receives requests at the port.
    #[error(
        "nothing listens on TCP or UDP port {port}; ports with a listener in this network namespace: {others}"
    )]
    NothingListens {
        /// The port that was given.
        port: u16,
        /// The ports that could be given.
        others: String,
    },
    /// The port has listeners in several network namespaces, and none in this one.
    #[error("port {port} has listeners in {networks} other network namespaces: name the process with --pid")]
    SeveralNetworks {
        /// The port that was given.
        port: u16,
        /// The number of the namespaces.
        networks: usize,
    },
    /// The port has a listener whose process is not visible.
    #[error("the process that listens on port {port} is not visible: it is in another PID namespace")]
    OwnerHidden {
        /// The port that was given.
        port: u16,
    },
    /// The process does not exist.
    #[error("there is no process {process}")]
    NoProcess {
        /// The process that was given.
        process: u32,
    },
    /// The process has no socket that receives requests.
    #[error(
        "process {process} ({name}) listens on no TCP or UDP port; a worker's parent may have the socket"
    )]
    ListensNowhere {
        /// The process that was given.
        process: u32,
        /// The name of the process.
        name: String,
    },
    /// This process may not trace.
    #[error("tracing needs root, or the capabilities {missing}, which this process lacks")]
    Privileges {
        /// The capabilities that are missing.
        missing: String,
    },
    /// A file of /proc cannot be read.
    #[error("cannot read {what}: {source}")]
    Reading {
        /// The file, with the needs of its reader.
        what: String,
        /// The error that the system returned.
        source: io::Error,
    },
    /// A server or a load cannot be run.
    #[error("cannot run {name}: {source}")]
    Running {
        /// The command line that was run.
        name: String,
        /// The error that the system returned.
        source: io::Error,
    },
    /// A server ended before it could be traced.
    #[error("{name} ended before it listened on a port: {status}")]
    EndedEarly {
        /// The command line that was run.
        name: String,
        /// The exit status, or the signal.
        status: ExitStatus,
    },
    /// A load gave no numbers.
    #[error("`{command}` {reason}")]
    Load {
        /// The command line that was run.
        command: String,
        /// The reason, with the expected values.
        reason: String,
    },
    /// The caller wanted the work to stop.
    #[error("stopped by a signal")]
    Stopped,
    /// The programs cannot be loaded or read.
    #[cfg(feature = "kernel")]
    #[error(transparent)]
    Programs(#[from] plimsoll_bpf::Error),
}

impl Error {
    /// Returns a closure for `map_err` that names the command that cannot be run.
    #[cfg(feature = "kernel")]
    pub(crate) fn running(name: &str) -> impl FnOnce(io::Error) -> Error {
        let name = name.to_owned();
        move |source| Error::Running { name, source }
    }

    /// Returns a closure for `map_err` that names the file that cannot be read.
    pub(crate) fn reading(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Reading { what, source }
    }
}
