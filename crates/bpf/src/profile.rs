//! [`Profile`] samples the code that the processors run for some processes (`programs/profile.bpf.c`).

use std::fmt;
use std::io;
use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};

use libbpf_rs::{Link, MapCore, MapFlags, num_possible_cpus};

use crate::shared::{SampleCounts, SamplePlace, Shared};
use crate::{Error, Program};

/// The samples of the processes that are added. The program leaves the kernel with this value, or with the process that
/// has it.
pub struct Profile {
    // The order is that of dropping: detach first.
    links: Vec<Link>,
    program: Program,
}

impl Profile {
    /// Loads the program, which samples nothing before [`Profile::attach`].
    ///
    /// # Errors
    /// Returns the errors of [`Program::clock`].
    pub fn load() -> Result<Profile, Error> {
        Ok(Profile { links: Vec::new(), program: Program::load("profile", "sampled", None)? })
    }

    /// Samples the threads of this process.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written, as with more than 4,096 processes.
    pub fn add_process(&self, process: u32) -> Result<(), Error> {
        let map = self.program.map_named("processes");
        map.update(&process.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(self.program.failed("adding a process to"))
    }

    /// Begins to sample every processor, `hertz` times per second of its time.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel has no such clock, or does not let this process use it.
    pub fn attach(&mut self, hertz: u64) -> Result<(), Error> {
        let processors = num_possible_cpus().map_err(Error::while_doing("counting the processors"))?;
        for processor in 0..processors {
            let clock = match clock_of(processor, hertz) {
                // It is possible, and not there.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                other => other.map_err(|error| {
                    Error::while_doing("opening a clock to sample a processor")(error.into())
                })?,
            };
            // The link closes the descriptor.
            let link = self.program.handle().attach_perf_event(clock.into_raw_fd());
            self.links.push(link.map_err(self.program.failed("attaching"))?);
        }
        Ok(())
    }

    /// Ends the sampling; the samples can still be read.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Reads how many samples were taken at each place, in no order.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn samples(&self) -> Result<Vec<(SamplePlace, u64)>, Error> {
        let map = self.program.map_named("samples");
        let mut samples = Vec::new();
        for key in map.keys() {
            let count =
                map.lookup(&key, MapFlags::ANY).map_err(self.program.failed("reading the samples of"))?;
            let count = count.and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)));
            samples.extend(SamplePlace::from_bytes(&key).zip(count));
        }
        Ok(samples)
    }

    /// Returns the addresses of the code of a stack that a [`SamplePlace`] names, the innermost first; none if the
    /// kernel has no such stack.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn stack(&self, number: u32) -> Result<Vec<u64>, Error> {
        self.program.stack(number)
    }

    /// Returns how many samples are missing, since the map was full.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn lost(&self) -> Result<u64, Error> {
        let map = self.program.map_named("counts");
        let found = map
            .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(self.program.failed("reading the counts of"))?;
        Ok(found.and_then(|bytes| SampleCounts::from_bytes(&bytes)).map_or(0, |counts| counts.lost))
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("clocks", &self.links.len()).finish_non_exhaustive()
    }
}

/// Opens a clock that interrupts a processor (perf_event_open(2)).
#[expect(unsafe_code, reason = "the system call has no wrapper in libc")]
fn clock_of(processor: usize, hertz: u64) -> io::Result<OwnedFd> {
    let attributes = EventAttributes {
        kind: constants::PERF_TYPE_SOFTWARE,
        size: size_of::<EventAttributes>() as u32,
        config: constants::PERF_COUNT_SW_CPU_CLOCK,
        frequency: hertz,
        flags: constants::FREQUENCY,
        ..EventAttributes::default()
    };
    let (any_process, no_group) = (-1_i32, -1_i32);
    // SAFETY: the kernel reads `size` bytes of the attributes, which is their size, and keeps no pointer to them.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            any_process,
            processor as i32,
            no_group,
            constants::PERF_FLAG_FD_CLOEXEC,
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened the descriptor, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}

/// The first version of `struct perf_event_attr` (linux/perf_event.h), which every kernel reads.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config_1: u64,
}

/// Constants of linux/perf_event.h, which libc lacks.
mod constants {
    pub(super) const PERF_TYPE_SOFTWARE: u32 = 1;
    pub(super) const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
    /// The bit that makes the frequency be one, instead of a period.
    pub(super) const FREQUENCY: u64 = 1 << 10;
    pub(super) const PERF_FLAG_FD_CLOEXEC: u64 = 1 << 3;
}
