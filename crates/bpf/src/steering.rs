//! [`SteeringProgram`] delivers each datagram of a group of UDP sockets to the socket of the thread that owns its
//! partition (`programs/steering.bpf.c`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::shared::{Shared, SteeringSettings};
use crate::{Error, Program};

/// The function that maps a datagram to its partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteeringOptions {
    /// The initial value of a key's hash.
    pub seed: u64,
    /// The factor by which the hash multiplies words.
    pub factor: u64,
    /// Whether a binary request's partition is its vBucket field (modulo the partitions) instead of its key's.
    pub by_vbucket: bool,
}

/// Steers the datagrams of one group of sockets as long as the sockets are open. This handle changes owners.
#[derive(Debug)]
pub struct SteeringProgram {
    owners: MapHandle,
}

impl SteeringProgram {
    /// Steers between `sockets`, one a thread, all bound to one address with SO_REUSEPORT; partition p is initially
    /// owned by thread `owners[p]`.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] or [`Error::Kernel`] as [`Program::clock`]; [`Error::Kernel`] if a socket cannot
    /// be added.
    pub fn attach(
        options: SteeringOptions,
        sockets: &[BorrowedFd<'_>],
        owners: &[u32],
    ) -> Result<SteeringProgram, Error> {
        let SteeringOptions { seed, factor, by_vbucket } = options;
        let partitions = owners.len() as u64;
        let settings = SteeringSettings { seed, factor, partitions, by_vbucket: u64::from(by_vbucket) };
        let sizes = [("owners", owners.len()), ("sockets", sockets.len())];
        let program = Program::load_with("steering", "steer", Some(&settings.to_bytes()), |open| {
            for mut map in open.maps_mut() {
                let size = sizes.iter().find(|(name, _)| map.name() == *name);
                if let Some((_, size)) = size {
                    map.set_max_entries(*size as u32)?;
                }
            }
            Ok(())
        })?;
        let handle = MapHandle::try_from(&program.map_named("owners")).map_err(program.failed("holding"))?;
        let steering = SteeringProgram { owners: handle };
        for (partition, owner) in (0..).zip(owners) {
            steering.set_owner(partition, *owner)?;
        }
        let map = program.map_named("sockets");
        for (thread, socket) in (0_u32..).zip(sockets) {
            let descriptor = socket.as_raw_fd() as u64;
            map.update(&thread.to_ne_bytes(), &descriptor.to_ne_bytes(), MapFlags::ANY)
                .map_err(program.failed("adding a socket to"))?;
        }
        if let Some(first) = sockets.first() {
            // The whole group uses the program, and keeps it and its maps alive.
            attach_to_group(*first, program.handle().as_fd())
                .map_err(|error| program.failed("attaching")(error.into()))?;
        }
        Ok(steering)
    }

    /// Delivers the partition's datagrams to this thread from now on.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the partition does not exist.
    pub fn set_owner(&self, partition: u32, thread: u32) -> Result<(), Error> {
        self.owners
            .update(&partition.to_ne_bytes(), &thread.to_ne_bytes(), MapFlags::ANY)
            .map_err(Error::while_doing(format!("steering partition {partition}")))
    }
}

#[expect(unsafe_code, reason = "no safe crate of this workspace sets this option")]
fn attach_to_group(socket: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let program = program.as_raw_fd();
    // SAFETY: the call reads one `int` at the pointer, which lives until it returns.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_EBPF,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
