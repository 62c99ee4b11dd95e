//! [`RequestTrace`] traces the requests of a server, its packets, sockets and threads, without changing it
//! (`programs/requests.bpf.c`).

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::rc::Rc;

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Link, MapCore, MapFlags, RingBuffer, RingBufferBuilder};

use crate::shared::{RequestCounts, RequestRecord, RequestSettings, Shared};
use crate::{Error, Program, tracepoints};

/// The requests to trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestTraceOptions {
    /// The inode number of the server's network namespace (`/proc/PID/ns/net`).
    pub network: u64,
    /// One connection of this many is traced, at least 1. The choice is by the peer's address and port.
    pub sample: u32,
    /// Whether requests over TCP are traced.
    pub tcp: bool,
    /// Whether requests over UDP are traced.
    pub udp: bool,
}

/// The programs that trace requests. They leave the kernel with this value, or with the process that has it, however it
/// ends: nothing is pinned.
pub struct RequestTrace {
    // The order is that of dropping: detach first, read no more, unload last.
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Vec<RequestRecord>>>,
    program: Program,
    attached: Vec<&'static str>,
}

impl RequestTrace {
    /// Loads the programs, which trace nothing before [`RequestTrace::attach`].
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] if the kernel does not describe its types (BTF) or lacks a tracepoint, which the
    /// error names, and otherwise the errors of [`Program::clock`].
    pub fn load(options: RequestTraceOptions) -> Result<RequestTrace, Error> {
        let here = tracepoints::present(POINTS.iter().map(|point| point.tracepoint))?;
        let has = |name: &str| here.contains(&name);
        let wanted = POINTS.iter().filter(|point| point.when.applies(&options, &has));
        let attached: Vec<&'static str> = wanted.map(|point| point.program).collect();
        let missing: Vec<&str> = POINTS
            .iter()
            .filter(|point| attached.contains(&point.program) && !has(point.tracepoint))
            .map(|point| point.tracepoint)
            .collect();
        if !missing.is_empty() {
            return Err(Error::Unsupported(format!(
                "this kernel has no tracepoint {}, which tracing needs",
                missing.join(", ")
            )));
        }
        let settings = RequestSettings {
            network: options.network,
            sample: u64::from(options.sample.max(1)),
            tcp: u64::from(options.tcp),
            udp: u64::from(options.udp),
            system_calls: u64::from(attached.contains(&"send_call")),
        };
        let name = attached.first().copied().expect("some programs are always wanted");
        let program = Program::load_with("requests", name, Some(&settings.to_bytes()), |open| {
            for mut program in open.progs_mut() {
                let is_wanted = attached.iter().any(|wanted| program.name() == *wanted);
                program.set_autoload(is_wanted);
            }
            Ok(())
        })?;
        let records = Rc::new(RefCell::new(Vec::new()));
        let into = records.clone();
        let mut builder = RingBufferBuilder::new();
        let map = program.map_named("records");
        builder
            .add(&map, move |bytes| {
                into.borrow_mut().extend(RequestRecord::from_words(bytes));
                0
            })
            .map_err(program.failed("reading the records of"))?;
        let ring = builder.build().map_err(program.failed("reading the records of"))?;
        Ok(RequestTrace { links: Vec::new(), ring, records, program, attached })
    }

    /// Traces the requests to this local port.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written.
    pub fn add_port(&self, port: u16) -> Result<(), Error> {
        let map = self.program.map_named("ports");
        map.update(&u32::from(port).to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(self.program.failed("adding a port to"))
    }

    /// Traces the threads of this process, as the server's.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written, as with more than 4,096 processes.
    pub fn add_process(&self, process: u32) -> Result<(), Error> {
        let map = self.program.map_named("processes");
        map.update(&process.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(self.program.failed("adding a process to"))
    }

    /// Attaches the programs.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel rejects one.
    pub fn attach(&mut self) -> Result<(), Error> {
        for program in self.program.object_mut().progs_mut() {
            let Some(name) = self.attached.iter().find(|name| program.name() == **name) else { continue };
            let link = program.attach().map_err(Error::while_doing(format!("attaching {name}")))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Detaches the programs, which stay loaded; records that they have written can still be read.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Appends the records since the last call, in nearly the order of their time: two processors write at once.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the ring buffer cannot be read.
    pub fn read(&self, into: &mut Vec<RequestRecord>) -> Result<(), Error> {
        self.ring.consume().map_err(self.program.failed("reading the records of"))?;
        into.append(&mut self.records.borrow_mut());
        Ok(())
    }

    /// Returns the addresses of the stack that a REQUEST_WAITED names, the innermost first; none if the kernel has no
    /// such stack.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn stack(&self, number: u32) -> Result<Vec<u64>, Error> {
        self.program.stack(number)
    }

    /// Makes the kernel measure the time of all BPF programs until the guard is dropped, which costs about 20 ns a run.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel does not.
    pub fn measure_cost(&self) -> Result<CostGuard, Error> {
        CostGuard::start().map_err(self.program.failed("measuring the time of"))
    }

    /// Returns the runs and the time in ns, while it was measured, of the programs at packets and sockets, and of the
    /// programs at the scheduler, which also run for the threads of other processes.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel does not report them.
    pub fn cost(&self) -> Result<[(u64, u64); 2], Error> {
        let of = |names: &[&str]| -> Result<(u64, u64), Error> {
            let ids = self.program.ids(names).map_err(self.program.failed("reading the time of"))?;
            let ours = ProgInfoIter::default().filter(|info| ids.contains(&info.id));
            Ok(ours.fold((0, 0), |(runs, ns), info| (runs + info.run_cnt, ns + info.run_time_ns)))
        };
        let (scheduler, others): (Vec<&str>, Vec<&str>) =
            self.attached.iter().partition(|name| ["woken", "switched"].contains(name));
        Ok([of(&others)?, of(&scheduler)?])
    }

    /// Returns how many records found no room in the ring buffer since the programs were loaded.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn lost(&self) -> Result<u64, Error> {
        let map = self.program.map_named("counts");
        let found = map
            .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(self.program.failed("reading the counts of"))?;
        Ok(found.and_then(|bytes| RequestCounts::from_bytes(&bytes)).map_or(0, |counts| counts.lost))
    }
}

impl fmt::Debug for RequestTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTrace").field("attached", &self.attached).finish_non_exhaustive()
    }
}

/// Makes the kernel measure BPF programs as long as it exists.
#[derive(Debug)]
pub struct CostGuard(#[expect(dead_code, reason = "closing it ends the measurement")] OwnedFd);

impl CostGuard {
    #[expect(unsafe_code, reason = "libbpf-rs has no form of this call")]
    fn start() -> libbpf_rs::Result<CostGuard> {
        // SAFETY: the call takes no pointer.
        let answer = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if answer < 0 {
            return Err(io::Error::from_raw_os_error(-answer).into());
        }
        // SAFETY: the kernel has just opened the descriptor, and no other value owns it.
        Ok(CostGuard(unsafe { OwnedFd::from_raw_fd(answer) }))
    }
}

impl RequestRecord {
    /// Reads a record of the ring buffer without an allocation; none if it has another length.
    fn from_words(bytes: &[u8]) -> Option<RequestRecord> {
        let (words, rest) = bytes.as_chunks::<8>();
        let [time_ns, kind, thread, flow, bytes, first, second] = words else { return None };
        let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
        rest.is_empty().then(|| RequestRecord {
            time_ns: word(time_ns),
            kind: word(kind),
            thread: word(thread),
            flow: word(flow),
            bytes: word(bytes),
            first: word(first),
            second: word(second),
        })
    }
}

/// The condition under which a program is needed.
#[derive(Clone, Copy)]
enum When {
    Always,
    Tcp,
    /// TCP, if the kernel has the tracepoint; system calls replace it.
    TcpIfThere,
    /// UDP, and TCP where its tracepoint is missing.
    SystemCalls,
}

impl When {
    fn applies(self, options: &RequestTraceOptions, has: &impl Fn(&str) -> bool) -> bool {
        match self {
            When::Always => true,
            When::Tcp => options.tcp,
            When::TcpIfThere => options.tcp && has(TCP_SEND),
            When::SystemCalls => options.udp || (options.tcp && !has(TCP_SEND)),
        }
    }
}

/// A program and the tracepoint that it is attached to.
struct Point {
    program: &'static str,
    tracepoint: &'static str,
    when: When,
}

const TCP_SEND: &str = "tcp_sendmsg_locked";

/// The programs of `requests.bpf.c`.
const POINTS: &[Point] = &[
    Point { program: "received", tracepoint: "netif_receive_skb", when: When::Always },
    Point { program: "ready", tracepoint: "sk_data_ready", when: When::Always },
    Point { program: "read", tracepoint: "sock_recv_length", when: When::Always },
    Point { program: "send_stream", tracepoint: TCP_SEND, when: When::TcpIfThere },
    Point { program: "send_call", tracepoint: "sys_enter", when: When::SystemCalls },
    Point { program: "queued", tracepoint: "net_dev_queue", when: When::Always },
    Point { program: "transmitted", tracepoint: "net_dev_start_xmit", when: When::Always },
    Point { program: "closed", tracepoint: "tcp_destroy_sock", when: When::Tcp },
    Point { program: "woken", tracepoint: "sched_wakeup", when: When::Always },
    Point { program: "switched", tracepoint: "sched_switch", when: When::Always },
];
