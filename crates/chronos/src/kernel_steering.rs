//! [`KernelSteering`]: the part of the kernel and of devices in steering datagrams to the owners of their partitions.
//! That of the kernel is in builds with the feature `kernel`.

use std::sync::Arc;

use crate::device::Dispatcher;
use crate::sockets::Sockets;
use crate::{Config, StartError};

/// The programs of a server's UDP sockets and its devices, to which every move is reported; none where steering is off.
#[derive(Debug, Default)]
pub(crate) struct KernelSteering {
    devices: Vec<Arc<dyn Dispatcher>>,
    #[cfg(feature = "kernel")]
    groups: Vec<plimsoll_bpf::SteeringProgram>,
}

impl KernelSteering {
    /// Has the kernel steer the datagrams of these sockets, if the configuration says so.
    #[cfg(feature = "kernel")]
    pub(crate) fn attach(
        config: &Config,
        sockets: &Sockets,
        owners: &[u32],
    ) -> Result<KernelSteering, StartError> {
        use std::os::fd::AsFd;

        let Some(steering) = config.datagram_steering else { return Ok(KernelSteering::default()) };
        let options = plimsoll_bpf::SteeringOptions {
            seed: steering.hash.seed,
            factor: steering.hash.factor(),
            by_vbucket: steering.by_vbucket,
        };
        let count = sockets.udp.first().map_or(0, Vec::len);
        let group = |number: usize| {
            let group: Vec<_> = sockets.udp.iter().map(|thread| thread[number].as_fd()).collect();
            plimsoll_bpf::SteeringProgram::attach(options, &group, owners)
                .map_err(|error| StartError::Steering { reason: error.to_string() })
        };
        let groups = (0..count).map(group).collect::<Result<_, _>>()?;
        Ok(KernelSteering { devices: sockets.dispatchers.clone(), groups })
    }

    /// Does nothing, unless the configuration asks for steering, which this build does not have.
    #[cfg(not(feature = "kernel"))]
    pub(crate) fn attach(
        config: &Config,
        sockets: &Sockets,
        _owners: &[u32],
    ) -> Result<KernelSteering, StartError> {
        let has_sockets = sockets.udp.iter().any(|thread| !thread.is_empty());
        if config.datagram_steering.is_some() && (has_sockets || sockets.dispatchers.is_empty()) {
            let reason = "this build has no eBPF programs (feature `kernel`)".to_owned();
            return Err(StartError::Steering { reason });
        }
        Ok(KernelSteering { devices: sockets.dispatchers.clone() })
    }

    /// Reports that a partition has moved to this thread.
    pub(crate) fn set_owner(&self, partition: u32, thread: u32) {
        for device in &self.devices {
            device.set_owner(partition, thread);
        }
        #[cfg(feature = "kernel")]
        for group in &self.groups {
            // The partition exists; and a datagram that was steered wrongly is passed on.
            let _ = group.set_owner(partition, thread);
        }
    }
}
