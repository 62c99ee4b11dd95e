//! [`Store`]: where a thread finds partitions: its own, or everybody's under locks (the baselines).

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::mail::Parcel;
use crate::steering::Steering;
use crate::{Access, Now, PartitionId, Service};

/// The partitions, as one thread sees them.
pub(crate) enum Store<P> {
    /// Those that are its own, and the way to the others.
    Owner(Steering<P, Parcel>),
    /// All, under locks.
    Locked(Locked<P>),
}

/// All partitions under the locks of a baseline.
pub(crate) enum Locked<P> {
    /// One lock.
    Global(Arc<Mutex<Vec<P>>>),
    /// One lock that readers share.
    ReaderWriter(Arc<RwLock<Vec<P>>>),
    /// A lock for each partition.
    Partitions(Arc<[OwnLine<Mutex<P>>]>),
}

/// A value on cache lines of its own.
#[repr(align(128))]
pub(crate) struct OwnLine<T>(T);

impl<P> Clone for Locked<P> {
    fn clone(&self) -> Locked<P> {
        match self {
            Locked::Global(all) => Locked::Global(all.clone()),
            Locked::ReaderWriter(all) => Locked::ReaderWriter(all.clone()),
            Locked::Partitions(all) => Locked::Partitions(all.clone()),
        }
    }
}

impl<P> Locked<P> {
    /// The partitions of a service under these locks; None where each has its owner.
    pub(crate) fn new<S>(access: Access, service: &S, partitions: u32) -> Option<Locked<P>>
    where
        S: Service<Partition = P>,
    {
        let all = (0..partitions).map(|partition| service.partition(PartitionId(partition)));
        match access {
            Access::Owner => None,
            Access::GlobalLock => Some(Locked::Global(Arc::new(Mutex::new(all.collect())))),
            Access::ReaderWriterLock => Some(Locked::ReaderWriter(Arc::new(RwLock::new(all.collect())))),
            Access::PartitionLocks => {
                Some(Locked::Partitions(all.map(|partition| OwnLine(Mutex::new(partition))).collect()))
            }
        }
    }

    /// Runs a request under the lock.
    pub(crate) fn execute<S>(
        &self,
        service: &S,
        partition: u32,
        request: &S::Request<'_>,
        now: Now,
        reply: &mut Vec<u8>,
    ) where
        S: Service<Partition = P>,
    {
        if let Locked::ReaderWriter(all) = self
            && service.read(
                &all.read().unwrap_or_else(PoisonError::into_inner)[partition as usize],
                request,
                now,
                reply,
            )
        {
            return;
        }
        self.with(partition, |partition| service.execute(partition, request, now, reply));
    }

    /// Calls `run` with a partition, locked.
    pub(crate) fn with<T>(&self, partition: u32, run: impl FnOnce(&mut P) -> T) -> T {
        let index = partition as usize;
        match self {
            Locked::Global(all) => run(&mut all.lock().unwrap_or_else(PoisonError::into_inner)[index]),
            Locked::ReaderWriter(all) => run(&mut all.write().unwrap_or_else(PoisonError::into_inner)[index]),
            Locked::Partitions(all) => run(&mut all[index].0.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}
