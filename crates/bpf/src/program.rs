//! [`Program`] is one compiled program, loaded into the kernel.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, OpenObject, ProgramInput, ProgramMut};
use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};

use crate::shared::Shared;
use crate::{Error, HeldLink, Needs};

/// The source of a program's inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inputs {
    /// The program reads the kernel's clock and queues.
    Kernel,
    /// The program reads the [`Packet`] of a test run.
    Packet,
}

impl Inputs {
    /// Returns the setting `inputs_from_cb` for these inputs.
    pub(crate) fn in_packet(self) -> u64 {
        u64::from(self == Inputs::Packet)
    }
}

/// A packet for a test run.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The frame from its Ethernet header on, without FCS: 14 bytes or more, and at most a page less the kernel's own
    /// needs.
    pub frame: &'a [u8],
    /// The length as the kernel accounts it, with all headers of all segments: at least the frame's, at most 65,536. 0
    /// means the frame's length.
    pub wire_len: u32,
    /// The packet's priority (`skb->priority`).
    pub priority: u32,
    /// The device that carries the packet; 0 for the loopback of this network namespace.
    pub ifindex: u32,
    /// The time in ns, where inputs come from the packet.
    pub now_ns: u64,
    /// The backlog of the queue in bytes and packets, where inputs come from the packet.
    pub waiting: (u32, u32),
    /// The packet's earliest departure (`skb->tstamp`), in ns; 0 for at once.
    pub leaves_ns: u64,
}

impl<'a> Packet<'a> {
    /// Creates a packet with this frame at time 0, all other fields 0.
    pub fn new(frame: &'a [u8]) -> Packet<'a> {
        Packet { frame, wire_len: 0, priority: 0, ifindex: 0, now_ns: 0, waiting: (0, 0), leaves_ns: 0 }
    }

    /// Returns the struct __sk_buff (linux/bpf.h), whose layout is fixed; the kernel rejects fields that a test may not
    /// set.
    fn context(&self) -> [u8; CONTEXT_LEN] {
        let mut context = [0; CONTEXT_LEN];
        let mut set = |at: usize, value: u32| context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        set(PRIORITY_AT, self.priority);
        set(IFINDEX_AT, self.ifindex);
        set(CB_AT, self.now_ns as u32);
        set(CB_AT + 4, (self.now_ns >> 32) as u32);
        set(CB_AT + 8, self.waiting.0);
        set(CB_AT + 12, self.waiting.1);
        set(WIRE_LEN_AT, self.wire_len);
        set(TSTAMP_AT, self.leaves_ns as u32);
        set(TSTAMP_AT + 4, (self.leaves_ns >> 32) as u32);
        context
    }
}

/// The result of a test run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestRun {
    /// The action that the program returned (TC_ACT_*).
    pub action: u64,
    /// The frame after the run.
    pub frame: Vec<u8>,
    /// The priority (`skb->priority`) after the run.
    pub priority: u32,
    /// The earliest departure (`skb->tstamp`) after the run, in ns; 0 for at once.
    pub leaves_ns: u64,
}

/// The size of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramSize {
    /// The number of instructions that the verifier walked, over all paths.
    pub verified: usize,
    /// The number of instructions after translation, which the JIT then compiles.
    pub translated: usize,
}

/// A loaded program with its map; it leaves the kernel when dropped, unless something else holds it.
#[derive(Debug)]
pub struct Program {
    object: Object,
    name: &'static str,
}

impl Program {
    /// Loads a program that does nothing, to measure the cost of a run. If it does not load, no program does.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] if the build had no clang, or if the kernel or this process's privileges do not
    /// suffice.
    pub fn empty() -> Result<Program, Error> {
        Program::load_image("empty", "empty", None, |_| Ok(())).map_err(|error| match error {
            Error::Kernel { source, .. } => {
                Error::Unsupported(format!("an empty program does not load either: {source}"))
            }
            other => other,
        })
    }

    /// Loads a program that only reads the clock, to measure the cost of that.
    ///
    /// # Errors
    /// Returns the errors of [`Program::empty`], and [`Error::Kernel`] if the verifier rejects the program.
    pub fn clock() -> Result<Program, Error> {
        Program::load("clock", "clock", None)
    }

    /// Loads program `name` of `image`, with `settings` as its constants.
    pub(crate) fn load(
        image: &'static str,
        name: &'static str,
        settings: Option<&[u8]>,
    ) -> Result<Program, Error> {
        Program::load_with(image, name, settings, |_| Ok(()))
    }

    /// Loads a program as `load` does, after `prepare` has changed its object.
    pub(crate) fn load_with(
        image: &'static str,
        name: &'static str,
        settings: Option<&[u8]>,
        prepare: impl FnOnce(&mut OpenObject) -> libbpf_rs::Result<()>,
    ) -> Result<Program, Error> {
        // A machine without eBPF is reported in preference to a rejected program: the verifier's errors look alike.
        Program::load_image(image, name, settings, prepare).map_err(|error| match Program::empty() {
            Err(reason) => reason,
            Ok(_) if !Path::new(KERNEL_TYPES).exists() => Error::Unsupported(format!(
                "{error}; this kernel does not describe its types at {KERNEL_TYPES}"
            )),
            Ok(_) => error,
        })
    }

    fn load_image(
        image: &'static str,
        name: &'static str,
        settings: Option<&[u8]>,
        prepare: impl FnOnce(&mut OpenObject) -> libbpf_rs::Result<()>,
    ) -> Result<Program, Error> {
        let (_, bytes) = IMAGES.iter().find(|(known, _)| *known == image).expect("a file of programs/");
        let Some(bytes) = bytes else {
            let reason = "this build had no clang (apt-get install clang, then build again)";
            return Err(Error::Unsupported(reason.to_owned()));
        };
        let failed = || Error::while_doing(format!("loading {name}"));
        let mut open = ObjectBuilder::default().open_memory(bytes).map_err(failed())?;
        if let Some(settings) = settings {
            let mut constants =
                open.maps_mut().find(|map| map.name().as_encoded_bytes().ends_with(b".rodata"));
            let constants = constants.as_mut().expect("a program with settings has constants");
            constants.set_initial_value(settings).map_err(failed())?;
        }
        prepare(&mut open).map_err(failed())?;
        Ok(Program { object: open.load().map_err(failed())?, name })
    }

    /// Runs the program once on `packet`.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel rejects the packet.
    pub fn test_run(&self, packet: &Packet) -> Result<TestRun, Error> {
        let mut context = packet.context();
        let mut context_after = [0; CONTEXT_LEN];
        // The buffer has space for bytes that a program may add; these programs add nothing.
        let mut frame = vec![0; packet.frame.len() + 64];
        let input = ProgramInput {
            context_in: Some(&mut context),
            context_out: Some(&mut context_after),
            data_in: Some(packet.frame),
            data_out: Some(&mut frame),
            ..Default::default()
        };
        let output = self.handle().test_run(input).map_err(self.failed("running"))?;
        let action = u64::from(output.return_value);
        let length = output.data.map_or(0, |data| data.len());
        frame.truncate(length);
        let priority = context_after[PRIORITY_AT..].first_chunk().expect("inside the context");
        let leaves_ns = context_after[TSTAMP_AT..].first_chunk().expect("inside the context");
        Ok(TestRun {
            action,
            frame,
            priority: u32::from_ne_bytes(*priority),
            leaves_ns: u64::from_ne_bytes(*leaves_ns),
        })
    }

    /// Returns the action of this XDP program for a frame of 14 bytes or more.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel rejects the frame.
    pub fn test_frame(&self, frame: &[u8]) -> Result<u64, Error> {
        let input = ProgramInput { data_in: Some(frame), ..Default::default() };
        let output = self.handle().test_run(input).map_err(self.failed("running"))?;
        Ok(u64::from(output.return_value))
    }

    /// Returns the mean time of `repeat` runs on `packet`, in whole ns as the kernel reports it.
    ///
    /// # Errors
    /// Returns the errors of [`Program::test_run`].
    pub fn time(&self, packet: &Packet, repeat: u32) -> Result<Duration, Error> {
        let mut context = packet.context();
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(packet.frame),
            repeat,
            ..Default::default()
        };
        Ok(self.handle().test_run(input).map_err(self.failed("timing"))?.duration)
    }

    /// Returns the size of the program.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel does not report it.
    pub fn size(&self) -> Result<ProgramSize, Error> {
        self.size_of(&self.handle())
    }

    /// Returns the size of all programs of the image together.
    pub(crate) fn size_of_image(&self) -> Result<ProgramSize, Error> {
        self.object.progs_mut().try_fold(ProgramSize { verified: 0, translated: 0 }, |sum, program| {
            let one = self.size_of(&program)?;
            Ok(ProgramSize {
                verified: sum.verified + one.verified,
                translated: sum.translated + one.translated,
            })
        })
    }

    fn size_of(&self, program: &ProgramMut) -> Result<ProgramSize, Error> {
        let id = libbpf_rs::Program::id_from_fd(program.as_fd()).map_err(self.failed("sizing"))?;
        let options = ProgInfoQueryOptions::default().include_xlated_prog_insns(true);
        let info = ProgInfoIter::with_query_opts(options).find(|info| info.id == id);
        let info = info.expect("a program that is held is listed");
        Ok(ProgramSize {
            verified: info.verified_insns as usize,
            translated: info.xlated_prog_insns.len() / INSTRUCTION_LEN,
        })
    }

    /// Attaches the program to the device, which gets a clsact queue if it has none. Of several programs on one device
    /// and direction the newest runs first, until one does not pass the packet on.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the device does not exist, [`Error::Unsupported`] without privileges.
    pub fn attach(&self, ifindex: i32, direction: HookDirection) -> Result<Attached, Error> {
        let program = self.handle();
        let mut hook = TcHookBuilder::new(program.as_fd()).ifindex(ifindex).handle(1).hook(direction.point());
        hook.create().map_err(self.failed("making a clsact queue for"))?;
        hook.attach().map_err(self.failed("attaching"))?;
        Ok(Attached(hook))
    }

    /// Attaches the program to the device behind existing programs, without a queue of its own (tcx: Linux 6.6). It
    /// stays as long as the link, or the link's pin. Programs run in the order of their links, until one does not pass
    /// the packet on.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the device does not exist, [`Error::Unsupported`] without tcx or privileges.
    pub fn link(&self, ifindex: i32, direction: HookDirection) -> Result<HeldLink, Error> {
        let link = HeldLink::attach(&self.handle(), ifindex, direction);
        link.map_err(self.failed("attaching")).map_err(Needs::DeviceLinks.explain())
    }

    /// Attaches the program to the device's clsact queue, as filter `priority` (1 to 65535; the lowest runs first),
    /// until that filter is removed.
    ///
    /// # Errors
    /// Returns the errors of [`Program::attach`], and [`Error::Kernel`] where the device has no clsact queue or the
    /// priority is taken.
    pub fn filter(&self, ifindex: i32, direction: HookDirection, priority: u32) -> Result<(), Error> {
        let program = self.handle();
        let mut builder = TcHookBuilder::new(program.as_fd());
        let mut hook =
            builder.ifindex(ifindex).handle(1).priority(priority).replace(false).hook(direction.point());
        hook.attach().map_err(self.failed("attaching"))?;
        Ok(())
    }

    /// Pins the program at `path`.
    ///
    /// # Errors
    /// Returns the errors of [`Program::pin_maps`].
    pub fn pin(&mut self, path: &Path) -> Result<(), Error> {
        let (name, failed) = (self.name, self.failed("pinning"));
        let mut program =
            self.object.progs_mut().find(|program| program.name() == name).expect("load names it");
        program.pin(path).map_err(failed)
    }

    /// Pins the program's maps in `names` into `folder`, each by its name. A pinned object lives as long as its pin;
    /// [`Pinned`](crate::pinned::Pinned) reads it.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the folder is not in a BPF file system, or contains such a name already.
    pub fn pin_maps(&mut self, folder: &Path, names: &[&str]) -> Result<(), Error> {
        let failed = self.failed("pinning a map of");
        let mut maps = self.object.maps_mut().filter(|map| names.iter().any(|name| map.name() == *name));
        maps.try_for_each(|mut map| {
            let path = folder.join(map.name());
            map.pin(path)
        })
        .map_err(failed)
    }

    /// Reads entry `index` of the program's map.
    pub(crate) fn state<T: Shared>(&self, index: u32) -> Result<T, Error> {
        let found = self.map().lookup(&index.to_ne_bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        Ok(found.and_then(|bytes| T::from_bytes(&bytes)).expect("the map has this entry and layout"))
    }

    /// Reads entry `index` of the program's map of counts, of every processor.
    pub(crate) fn counts<T: Shared>(&self, index: u32) -> Result<Vec<T>, Error> {
        let map = self.object.maps().find(|map| map.name() == "counts").expect("such programs call it so");
        let found = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        let found = found.expect("the map has this entry");
        Ok(found.iter().map(|bytes| T::from_bytes(bytes).expect("the map has this layout")).collect())
    }

    /// Sets entry `index` of the program's map.
    pub(crate) fn set_state<T: Shared>(&self, index: u32, state: &T) -> Result<(), Error> {
        let (key, value) = (index.to_ne_bytes(), state.to_bytes());
        self.map().update(&key, &value, MapFlags::ANY).map_err(self.failed("resetting"))
    }

    /// Returns the kernel's numbers of the image's programs with these names.
    pub(crate) fn ids(&self, names: &[&str]) -> libbpf_rs::Result<Vec<u32>> {
        let programs = self.object.progs_mut();
        programs
            .filter(|program| names.iter().any(|name| program.name() == *name))
            .map(|program| libbpf_rs::Program::id_from_fd(program.as_fd()))
            .collect()
    }

    pub(crate) fn object_mut(&mut self) -> &mut Object {
        &mut self.object
    }

    pub(crate) fn handle(&self) -> ProgramMut<'_> {
        self.object.progs_mut().find(|program| program.name() == self.name).expect("load names it")
    }

    fn map(&self) -> libbpf_rs::Map<'_> {
        self.map_named("state")
    }

    /// Returns the map of this name.
    pub(crate) fn map_named(&self, name: &str) -> libbpf_rs::Map<'_> {
        self.object.maps().find(|map| map.name() == name).expect("the program has this map")
    }

    /// Returns the addresses of a stack in the map `stacks`, the innermost first; none if the map has no such stack.
    pub(crate) fn stack(&self, number: u32) -> Result<Vec<u64>, Error> {
        let found = self
            .map_named("stacks")
            .lookup(&number.to_ne_bytes(), MapFlags::ANY)
            .map_err(self.failed("reading the stacks of"))?
            .unwrap_or_default();
        let (words, _) = found.as_chunks();
        let addresses = words.iter().map(|word| u64::from_ne_bytes(*word));
        Ok(addresses.take_while(|address| *address != 0).collect())
    }

    pub(crate) fn failed(&self, doing: &str) -> impl FnOnce(libbpf_rs::Error) -> Error + use<> {
        Error::while_doing(format!("{doing} {}", self.name))
    }
}

/// The direction of the packets that a program handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HookDirection {
    /// The packets that arrive at the device.
    Ingress,
    /// The packets that leave, before they join the device's queue.
    Egress,
}

impl HookDirection {
    fn point(self) -> TcAttachPoint {
        match self {
            HookDirection::Ingress => TC_INGRESS,
            HookDirection::Egress => TC_EGRESS,
        }
    }
}

/// A program that is attached to a device until this value is dropped. The program may be dropped earlier.
#[derive(Debug)]
pub struct Attached(TcHook);

impl Attached {
    /// Leaves the program attached as long as the device exists.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The device may have been removed, and the program with it.
        let _ = self.0.detach();
    }
}

/// The kernel's type information (CONFIG_DEBUG_INFO_BTF), which programs need that read kernel structures.
pub(crate) const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The length of a BPF instruction in bytes (RFC 9669, section 3).
const INSTRUCTION_LEN: usize = 8;
/// The length of `struct __sk_buff`, and the offsets of its fields (linux/bpf.h, which only grows at the end).
const CONTEXT_LEN: usize = 192;
const PRIORITY_AT: usize = 32;
const IFINDEX_AT: usize = 40;
const CB_AT: usize = 48;
const TSTAMP_AT: usize = 152;
const WIRE_LEN_AT: usize = 160;

static IMAGES: &[(&str, Option<&[u8]>)] = include!(concat!(env!("OUT_DIR"), "/images.rs"));
