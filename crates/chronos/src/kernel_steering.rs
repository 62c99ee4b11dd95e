//! [`KernelSteering`]: the kernel's part in steering datagrams, where this build has it (feature `kernel`).

use crate::sockets::Sockets;
use crate::{Config, StartError};

/// The programs of a server's UDP sockets, told of every move; nothing where they are not asked for.
#[derive(Debug, Default)]
pub(crate) struct KernelSteering {
    #[cfg(feature = "kernel")]
    groups: Vec<plimsoll_bpf::DatagramSteering>,
}

impl KernelSteering {
    /// Has the kernel steer what comes to these sockets, if the configuration says so.
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
            plimsoll_bpf::DatagramSteering::attach(options, &group, owners)
                .map_err(|error| StartError::Steering { reason: error.to_string() })
        };
        Ok(KernelSteering { groups: (0..count).map(group).collect::<Result<_, _>>()? })
    }

    /// Nothing, unless the configuration asks for what this build has not.
    #[cfg(not(feature = "kernel"))]
    pub(crate) fn attach(
        config: &Config,
        _sockets: &Sockets,
        _owners: &[u32],
    ) -> Result<KernelSteering, StartError> {
        if config.datagram_steering.is_some() {
            let reason = "this build has no eBPF programs (feature `kernel`)".to_owned();
            return Err(StartError::Steering { reason });
        }
        Ok(KernelSteering::default())
    }

    /// A partition has moved.
    pub(crate) fn set_owner(&self, partition: u32, thread: u32) {
        #[cfg(feature = "kernel")]
        for group in &self.groups {
            // The partition exists; and a datagram steered wrongly is passed on.
            let _ = group.set_owner(partition, thread);
        }
        #[cfg(not(feature = "kernel"))]
        let _ = (partition, thread);
    }
}
