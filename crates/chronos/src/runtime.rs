//! [`Runtime`]: starts a server's threads, and stops them.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use plimsoll_mechanisms::partition_balancer::Balance;

use crate::balancer::{self, Balancer};
use crate::buffers::Buffers;
use crate::datagrams::Datagrams;
use crate::device::DeviceQueue;
use crate::engine::RequestEngine;
use crate::epoll::EpollDriver;
use crate::kernel_steering::KernelSteering;
use crate::mail::{Mail, ThreadMessage};
use crate::memory::ThreadMemory;
use crate::nodes;
use crate::reply_budget::ReplyBudget;
use crate::shared::Shared;
use crate::sockets::{ServerSocket, Sockets};
use crate::steering::PartitionSteering;
use crate::uring::UringDriver;
use crate::worker::{Clock, Worker};
use crate::{Config, IoBackend, Listen, PartitionId, RuntimeStats, Service, StartError};

/// The entry point, which starts servers.
#[derive(Debug)]
pub struct Runtime;

/// A server that runs. It keeps running if this is dropped.
#[derive(Debug)]
pub struct RunningServer {
    stop: Stop,
    stats: Arc<RuntimeStats>,
    bound: Vec<Listen>,
    io: IoBackend,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Stops a server, from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Shared>);

/// The reason that a server ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The kernel refused a resource that a thread needs.
    #[error("worker thread {thread}: {source}")]
    Kernel {
        /// The number of the thread.
        thread: usize,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A worker thread panicked.
    #[error("worker thread {thread} panicked")]
    Panicked {
        /// The number of the thread.
        thread: usize,
    },
}

impl Runtime {
    /// Starts a server whose partitions are moved by Algorithm 1, if at all; [`crate::Balancing`] sets the deviation
    /// from chance at which a thread is overloaded, whether hot groups of partitions are split, and whether partitions
    /// cross NUMA nodes.
    ///
    /// # Errors
    /// If a value is not allowed, or the kernel refuses a socket, a processor or another resource of a thread.
    pub fn start<S: Service>(service: S, config: &Config) -> Result<RunningServer, StartError> {
        config.check()?;
        Runtime::start_with(service, config, balancer::policy(config, Path::new(nodes::FOLDER)))
    }

    /// As [`Runtime::start`], with another policy of moving partitions, to which `split` and `across_nodes` do not
    /// apply.
    ///
    /// # Errors
    /// As for [`Runtime::start`].
    pub fn start_with<S: Service>(
        service: S,
        config: &Config,
        policy: Box<dyn Balance>,
    ) -> Result<RunningServer, StartError> {
        config.check()?;
        let owners = policy.first_owners(config.partitions(), config.threads);
        let sockets = Sockets::open(config, &owners)?;
        let failed =
            |source: rustix::io::Errno| StartError::Worker { what: "eventfd", source: source.into() };
        let shared = Arc::new(Shared::new(config.threads, &owners).map_err(failed)?);
        let stats = Arc::new(RuntimeStats::new(config.threads, &owners, sockets.devices.clone()));
        let steering = KernelSteering::attach(config, &sockets, &owners)?;
        let mut config = config.clone();
        if config.io == IoBackend::Fastest {
            // On a thread of its own: a ring's end interrupts system calls of the thread that made it.
            let tried = thread::Builder::new().spawn(UringDriver::is_available);
            let tried = tried.map_err(|source| StartError::Worker { what: "thread", source })?;
            let is_available = tried.join().unwrap_or(false);
            config.io = if is_available { IoBackend::IoUring } else { IoBackend::Epoll };
        }
        let service = Arc::new(service);
        service.started(stats.clone());
        let listeners = sockets.listeners.iter().map(|listener| &listener.socket);
        listeners.chain(sockets.udp.iter().flatten()).for_each(|socket| service.listens(socket.as_fd()));
        let setup = ThreadSetup {
            service,
            config,
            steering: Arc::new(steering),
            _guards: sockets.guards,
            owners,
            shared: shared.clone(),
            stats: stats.clone(),
            clock: Clock::new(),
            ended: Mutex::default(),
        };
        let io = setup.config.io;
        let mut running =
            RunningServer { stop: Stop(shared), stats, bound: sockets.bound, io, threads: Vec::new() };
        let datagrams = sockets.udp.into_iter().zip(sockets.queues).collect();
        running.spawn(&Arc::new(setup), sockets.listeners, datagrams, policy)?;
        Ok(running)
    }
}

impl RunningServer {
    fn spawn<S: Service>(
        &mut self,
        setup: &Arc<ThreadSetup<S>>,
        listeners: Vec<ServerSocket>,
        datagrams: Vec<DatagramPlaces>,
        policy: Box<dyn Balance>,
    ) -> Result<(), StartError> {
        let (ready, started) = mpsc::channel();
        let (mut listeners, mut policy) = (Some(listeners), Some(policy));
        let mail = Mail::between(setup.config.threads, setup.config.ring_messages);
        for ((me, mail), datagrams) in (0..).zip(mail).zip(datagrams) {
            let (setup, ready) = (setup.clone(), ready.clone());
            // The first thread accepts for all, and balances.
            let sockets = (listeners.take().unwrap_or_default(), datagrams);
            let policy = policy.take();
            let thread = thread::Builder::new()
                .name(format!("chronos-{me}"))
                .spawn(move || setup.work(me, mail, sockets, policy, &ready))
                .map_err(|source| StartError::Worker { what: "thread", source });
            match thread {
                Ok(thread) => self.threads.push(thread),
                Err(error) => return Err(self.give_up(error)),
            }
        }
        drop(ready);
        for _ in 0..self.threads.len() {
            match started.recv() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(self.give_up(error)),
                // It panicked: joining reports it.
                Err(mpsc::RecvError) => break,
            }
        }
        Ok(())
    }

    fn give_up(&mut self, error: StartError) -> StartError {
        self.stop.0.fail();
        for thread in self.threads.drain(..) {
            // The error is in `error`.
            let _ = thread.join();
        }
        error
    }

    /// Returns the places at which the server listens, in the order of [`Config::listen`], with the ports that the
    /// kernel chose.
    pub fn bound(&self) -> &[Listen] {
        &self.bound
    }

    /// Returns the I/O backend of its threads.
    pub fn io(&self) -> IoBackend {
        self.io
    }

    /// Returns the counters of the server.
    pub fn stats(&self) -> &Arc<RuntimeStats> {
        &self.stats
    }

    /// Returns a handle that stops it.
    pub fn stop_handle(&self) -> Stop {
        self.stop.clone()
    }

    /// Stops it: it accepts no more connections, and runs no more requests than are here; their replies are sent, for
    /// at most [`crate::Limits::drain`]. Returns when all threads have ended.
    ///
    /// # Errors
    /// If a thread had ended with an error before.
    pub fn stop(self) -> Result<(), ServerError> {
        self.stop.stop();
        self.join()
    }

    /// Waits until the server has been stopped.
    ///
    /// # Errors
    /// If a thread ended with an error; the others have ended then.
    pub fn join(self) -> Result<(), ServerError> {
        let mut result = Ok(());
        for (thread, handle) in self.threads.into_iter().enumerate() {
            let ended = match handle.join() {
                Ok(Ok(())) => Ok(()),
                Ok(Err(source)) => Err(ServerError::Kernel { thread, source }),
                Err(_) => Err(ServerError::Panicked { thread }),
            };
            result = result.and(ended);
        }
        result
    }
}

impl Stop {
    /// Stops the server; [`RunningServer::join`] returns once it has drained.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// The parts of which every thread is made.
struct ThreadSetup<S: Service> {
    service: Arc<S>,
    config: Config,
    steering: Arc<KernelSteering>,
    /// Keeps the devices open for as long as the threads run.
    _guards: Vec<Box<dyn Any + Send + Sync>>,
    owners: Vec<u32>,
    shared: Arc<Shared>,
    stats: Arc<RuntimeStats>,
    clock: Clock,
    /// The engines of the threads that have ended in order.
    ended: Mutex<Vec<RequestEngine<S>>>,
}

/// The UDP sockets and the queues of devices of one thread.
type DatagramPlaces = (Vec<OwnedFd>, Vec<DeviceQueue>);

/// The driver that the configuration names.
enum AnyDriver {
    Epoll(EpollDriver),
    IoUring(UringDriver),
}

/// Reports to the other threads if this one is lost.
struct FailureGuard(Arc<Shared>);

impl Drop for FailureGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail();
        }
    }
}

impl<S: Service> ThreadSetup<S> {
    /// One thread, from its start to its end.
    fn work(
        &self,
        me: u32,
        mail: Mail<S::Partition>,
        (listeners, (sockets, queues)): (Vec<ServerSocket>, DatagramPlaces),
        policy: Option<Box<dyn Balance>>,
        ready: &mpsc::Sender<Result<(), StartError>>,
    ) -> io::Result<()> {
        let _guard = FailureGuard(self.shared.clone());
        let started = self.pin(me).and_then(|()| {
            let datagrams = Datagrams::new(sockets, queues, self.config.poll);
            Ok(match self.config.io {
                IoBackend::Epoll | IoBackend::Fastest => {
                    AnyDriver::Epoll(EpollDriver::new(&self.shared, me, listeners, datagrams)?)
                }
                IoBackend::IoUring => {
                    AnyDriver::IoUring(UringDriver::new(&self.shared, me, listeners, datagrams)?)
                }
            })
        });
        let driver = match started {
            Ok(driver) => driver,
            Err(error) => {
                // The thread that starts the server waits for this.
                let _ = ready.send(Err(error));
                return Ok(());
            }
        };
        let mut worker = self.worker(me, mail, policy);
        let _ = ready.send(Ok(()));
        let result = match driver {
            AnyDriver::Epoll(mut driver) => worker.run(&mut driver),
            AnyDriver::IoUring(mut driver) => worker.run(&mut driver),
        };
        match result {
            Ok(()) => self.end(worker.engine),
            Err(_) => self.shared.fail(),
        }
        result
    }

    /// Keeps the engine of a thread that has ended. The last one gives the service its partitions, wherever they are: a
    /// partition may be between two threads.
    fn end(&self, engine: RequestEngine<S>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push(engine);
        if ended.len() < self.config.threads as usize {
            return;
        }
        let mut all = Vec::new();
        for engine in ended.drain(..) {
            all.extend(engine.partitions.into_states());
            let messages = engine.mail.into_messages().into_iter().chain(engine.inbox).chain(engine.deferred);
            all.extend(messages.filter_map(|message| match message {
                ThreadMessage::Adopt { partition, state } => Some((partition, *state)),
                _ => None,
            }));
        }
        all.sort_by_key(|&(partition, _)| partition);
        let partitions = all.into_iter().map(|(_, state)| state).collect();
        self.service.ended(partitions, self.clock.now());
    }

    fn pin(&self, me: u32) -> Result<(), StartError> {
        let processors = &self.config.processors;
        if processors.is_empty() {
            return Ok(());
        }
        let processor = processors[me as usize % processors.len()];
        let failed = |source| StartError::Processor { processor, source };
        if processor >= rustix::thread::CpuSet::MAX_CPU {
            return Err(failed(io::Error::from(rustix::io::Errno::INVAL)));
        }
        let mut set = rustix::thread::CpuSet::new();
        set.set(processor);
        rustix::thread::sched_setaffinity(None, &set).map_err(|errno| failed(errno.into()))
    }

    /// The worker, whose partitions are made here: on the thread that owns them, in the memory near it.
    fn worker(&self, me: u32, mail: Mail<S::Partition>, policy: Option<Box<dyn Balance>>) -> Worker<S> {
        let config = &self.config;
        let state = |partition| self.service.partition(PartitionId(partition));
        let balancing = config.balancing.filter(|_| config.threads > 1);
        let balancer = policy
            .zip(balancing)
            .map(|(policy, settings)| Balancer::new(policy, settings, config.poll, self.owners.clone()));
        let engine = RequestEngine {
            me,
            service: self.service.clone(),
            partitions: PartitionSteering::new(me, &self.owners, state),
            mail,
            buffers: Buffers::new(ThreadMemory::pool_bytes(&config.limits, config.threads)),
            shared: self.shared.clone(),
            stats: self.stats.clone(),
            kernel_steering: self.steering.clone(),
            limits: config.limits,
            reply_budget: ReplyBudget::new(&config.limits),
            memory: ThreadMemory::new(&config.limits, self.shared.clone()),
            metric: config.load_metric(),
            now: self.clock.now(),
            arrived: Vec::new(),
            newcomers: Vec::new(),
            inbox: Vec::new(),
            deferred: Vec::new(),
            settled: 0,
        };
        Worker::new(engine, config.poll, self.clock, balancer)
    }
}
