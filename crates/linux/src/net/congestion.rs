//! [`KernelCongestionControl`]: the congestion control of the hosts' TCP, the kernel's own or the one that this program
//! contains.
//!
//! A kernel without `dctcp` gets the one of `crates/bpf` for the time of the run, under a name that is unique to the
//! run.

use std::fs;

use plimsoll_mechanisms::tcp::{Kind, TcpConfig};

use crate::features;

/// A congestion control that sockets of this kernel can have until this is dropped.
#[derive(Debug)]
pub(crate) struct KernelCongestionControl {
    name: String,
    #[cfg(feature = "kernel")]
    registered: Option<plimsoll_bpf::KernelDctcp>,
}

/// The kernel has no such congestion control, and none could be brought along.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: this kernel has no `{name}` congestion control{hint}; `plimsoll check` lists what it has")]
pub struct NoCongestionControl {
    /// The key or the option that requests it.
    pub key: String,
    /// The kernel's name for it.
    pub name: String,
    /// The advice that the message adds; it may be empty.
    pub hint: String,
}

/// The kernel's name of RFC 8257.
const DCTCP: &str = "dctcp";

impl KernelCongestionControl {
    /// Returns the congestion control named `asked`, or else the one of `transport`, which the key `kind` of the
    /// scenario chooses.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn find(
        transport: &TcpConfig,
        asked: Option<&str>,
        kind: &str,
    ) -> Result<KernelCongestionControl, NoCongestionControl> {
        let (key, name) = match (asked, transport.params.kind.describe().kernel_name) {
            (Some(name), _) => ("--congestion-control", name),
            (None, Some(name)) => (kind, name),
            (None, None) => {
                let emulated = Kind::ALL.iter().filter(|kind| kind.describe().kernel_name.is_some());
                let emulated: Vec<String> = emulated.map(|kind| format!("`{}`", kind.name())).collect();
                return Err(NoCongestionControl {
                    key: kind.to_owned(),
                    name: transport.params.kind.name().to_owned(),
                    hint: format!("; allowed: {}", emulated.join(", ")),
                });
            }
        };
        let refused = |hint: String| NoCongestionControl { key: key.to_owned(), name: name.to_owned(), hint };
        if features::has_congestion_control(name) {
            Ok(KernelCongestionControl::of_kernel(name))
        } else if name == DCTCP {
            KernelCongestionControl::brought_along(transport).map_err(refused)
        } else {
            let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
            let there = there.unwrap_or_default().trim().replace(' ', ", ");
            Err(refused(format!(" (it has {there})")))
        }
    }

    fn of_kernel(name: &str) -> KernelCongestionControl {
        KernelCongestionControl {
            name: name.to_owned(),
            #[cfg(feature = "kernel")]
            registered: None,
        }
    }

    #[cfg(feature = "kernel")]
    fn brought_along(transport: &TcpConfig) -> Result<KernelCongestionControl, String> {
        use std::sync::atomic::{AtomicU8, Ordering};

        static REGISTERED: AtomicU8 = AtomicU8::new(0);
        // A name may have 15 characters, of which the process number takes at most 6.
        let number = REGISTERED.fetch_add(1, Ordering::Relaxed);
        let name = format!("{DCTCP}_{:x}_{number:x}", std::process::id());
        let registered = plimsoll_bpf::KernelDctcp::register_as(&name, transport)
            .map_err(|error| format!(", and Plimsoll's own cannot be registered: {error}"))?;
        Ok(KernelCongestionControl { name, registered: Some(registered) })
    }

    #[cfg(not(feature = "kernel"))]
    fn brought_along(_: &TcpConfig) -> Result<KernelCongestionControl, String> {
        Err(". A build with the eBPF programs brings its own: `make kernel`".to_owned())
    }

    /// Returns the name for TCP_CONGESTION and `net.ipv4.tcp_congestion_control`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it has no effect without ECN.
    pub(crate) fn needs_ecn(&self) -> bool {
        self.name.starts_with(DCTCP)
    }

    /// Windows that its guard had to put back: a run with any is suspect.
    #[cfg(feature = "kernel")]
    pub(crate) fn guarded(&self) -> u64 {
        let counts = self.registered.as_ref().map(plimsoll_bpf::KernelDctcp::counts);
        counts.and_then(Result::ok).map_or(0, |counts| counts.guarded)
    }

    /// The kernel's own have no guard.
    #[cfg(not(feature = "kernel"))]
    pub(crate) fn guarded(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_mechanisms::tcp::TransportParams;

    use super::*;

    #[test]
    fn a_controller_that_no_kernel_has_is_refused_with_those_that_are_emulated() {
        let swift = TransportParams { kind: Kind::Swift, ..TransportParams::default() };
        let config = swift.resolve().expect("valid parameters");
        let refused = KernelCongestionControl::find(&config, None, "transports.own.kind")
            .expect_err("no kernel has it")
            .to_string();
        let expected = "transports.own.kind: this kernel has no `swift` congestion control; \
                        allowed: `tcp`, `cubic`, `dctcp`; `plimsoll check` lists what it has";
        assert_eq!(refused, expected);
    }
}
