//! [`KernelTransport`]: the transport of a workload, as this kernel runs it.

use plimsoll_mechanisms::tcp::TcpConfig;

use crate::net::namespaces::RouteSettings;

/// The transport of a workload, resolved to the socket options and the route that this kernel gives it.
#[derive(Clone, Debug)]
pub(crate) struct KernelTransport {
    /// The parameters, from which ideal times are computed.
    pub(crate) config: TcpConfig,
    /// The kernel's name of the congestion control.
    pub(crate) congestion_control: String,
    /// Whether connections are of MPTCP.
    pub(crate) multipath: bool,
    /// Whether connections negotiate ECN.
    pub(crate) ecn: bool,
    /// Whether they do so because of their congestion control.
    pub(crate) needs_ecn: bool,
}

/// The size of IP's and TCP's headers in bytes, without options, and with the timestamps option.
const PLAIN_HEADER: u64 = 40;
const TIMESTAMPS_HEADER: u64 = 52;
/// Smallest and largest MTU that hosts get (RFC 791; a frame is read whole).
const MTU: std::ops::RangeInclusive<u64> = 576..=65_500;

impl KernelTransport {
    /// Returns the size of IP's and TCP's headers in bytes.
    pub(crate) fn header(&self) -> u64 {
        if self.config.params.has_timestamps() { TIMESTAMPS_HEADER } else { PLAIN_HEADER }
    }

    /// Returns the most bytes of an IP packet.
    pub(crate) fn mtu(&self) -> u32 {
        (self.config.segment + self.header()).clamp(*MTU.start(), *MTU.end()) as u32
    }

    /// Returns the warning of packets that are longer or shorter than the scenario's, since an MTU has its range.
    pub(crate) fn mtu_warning(&self) -> Option<String> {
        let asked = self.config.segment + self.header();
        (u64::from(self.mtu()) != asked).then(|| {
            format!(
                "`transport.segment`: packets of {asked} B were asked for, and the hosts' MTU is {} B (allowed: {} to \
                 {} B with headers)",
                self.mtu(),
                MTU.start(),
                MTU.end()
            )
        })
    }

    /// Returns the settings of its connections' route in a host that has ECN by default, if so.
    pub(crate) fn route(&self, by_default: bool) -> RouteSettings {
        let params = &self.config.params;
        RouteSettings {
            mtu: self.mtu(),
            ecn: self.ecn && !self.needs_ecn && !by_default,
            congestion_control: self.congestion_control.clone(),
            min_rto_ms: (params.min_rto.as_ms_f64() as u64).max(1),
            initial_window: params.initial_window,
        }
    }
}
