//! [`Family`] and [`Description`]: the descriptions of transports by themselves, so that no other file lists
//! transports.

/// The properties of a transport family that scenarios, hosts and parallel runs depend on.
#[derive(Debug)]
pub struct Family {
    /// The name of the family in messages: `TCP`, `MPTCP`.
    pub name: &'static str,
    /// The key of a scenario that chooses the family, for messages.
    pub setting: &'static str,
    /// The reason why one thread has to carry all of its connections; `None` where the two ends of a connection may be
    /// in different logical processes.
    pub one_thread: Option<&'static str>,
    /// Whether receivers acknowledge data, and senders repair losses.
    pub acknowledges: bool,
    /// What carries its connections.
    pub carrier: Carrier,
    /// The features of hosts and queues that the family excludes, each with the reason.
    pub excludes: &'static [(Feature, &'static str)],
    /// The keys that a Linux host has for all of its connections, so that its transports cannot differ in them.
    pub host_wide: &'static [HostWide],
}

/// What carries the connections of a family, from which its ends follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// The host's stack: TCP, MPTCP and datagrams.
    Stack,
    /// A NIC with queue pairs of RoCE.
    Roce,
    /// A NIC with packet delivery contexts of Ultra Ethernet.
    Uet,
    /// A NIC with connections of NDP.
    Ndp,
    /// A NIC with messages of Homa.
    Homa,
}

impl Carrier {
    /// Returns whether a NIC carries the connections, which takes packets from one after the other.
    pub fn is_nic(self) -> bool {
        self != Carrier::Stack
    }

    /// Returns whether receivers grant what is sent.
    pub fn grants(self) -> bool {
        matches!(self, Carrier::Uet | Carrier::Ndp | Carrier::Homa)
    }

    /// Returns whether a receiver has a use for a packet whose payload was trimmed.
    pub fn takes_trimmed(self) -> bool {
        self.chooses_paths()
    }

    /// Returns whether a sender has a use for its packet that a switch has sent back.
    pub fn takes_bounced(self) -> bool {
        self == Carrier::Ndp
    }

    /// Returns whether senders choose the path of each packet.
    pub fn chooses_paths(self) -> bool {
        matches!(self, Carrier::Uet | Carrier::Ndp)
    }
}

/// A key of a transport that a Linux host has for all of its connections.
#[derive(Debug)]
pub struct HostWide {
    /// The key within the transport's table, of which `TransportParams::host_value` returns the value.
    pub key: &'static str,
    /// The setting of the host, and the values that its transports may have.
    pub reason: &'static str,
}

/// A feature of hosts or queues that a family may exclude.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// A window that begins anew with each write (`transport.restart_on_write`).
    RestartOnWrite,
    /// Segmentation offload (`host.bursts.segmentation`).
    Segmentation,
    /// A stack between the transport and the NIC (`host.processor`, and some keys of `host.bursts`).
    HostStack,
    /// Queues that sort packets by the sender's rank (pFabric's).
    Rank,
    /// Connections of several subflows (`transport.mptcp`).
    Subflows,
    /// Mechanisms of a host that hold packets between the transport and the wire (`Table::holds_packets`).
    HeldPackets,
    /// Queues by destination in front of circuits, in a hybrid network.
    Circuits,
}

impl Family {
    /// Returns the reason why the family excludes `feature`; `None` where it does not.
    pub fn excludes(&self, feature: Feature) -> Option<&'static str> {
        self.excludes.iter().find(|(excluded, _)| *excluded == feature).map(|(_, reason)| *reason)
    }
}

/// The properties of a `transport.kind` that other code depends on.
#[derive(Debug)]
pub struct Description {
    /// The value of `transport.kind`.
    pub name: &'static str,
    /// The family.
    pub family: &'static Family,
    /// The Linux kernel's name of this congestion control; `None` if the kernel has none like it.
    pub kernel_name: Option<&'static str>,
    /// Whether the receiver may delay acknowledgements.
    pub delays_acks: bool,
    /// Whether the kind uses ECN without being asked to, and does nothing of its own where no switch marks.
    pub needs_marks: bool,
    /// Whether the kind steers by telemetry (`port.*.int`), and cannot do without.
    pub needs_stamps: bool,
}
