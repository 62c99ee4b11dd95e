//! [`KernelDctcp`] registers DCTCP as a congestion control of the kernel's TCP.
//!
//! Alpha is in 2^-30 and g in 2^-32, as in Rust; the kernel counts packets where Rust counts bytes.

use std::path::Path;

use libbpf_rs::{Link, MapCore, OpenObject};
use plimsoll_mechanisms::tcp::TcpConfig;

use crate::shared::{ACTION_PASS, DctcpCounts, DctcpSettings, DctcpVector, Shared};
use crate::{Error, Needs, Packet, Program, ProgramSize};

/// The value of TCP_CONGESTION and `net.ipv4.tcp_congestion_control` that selects this congestion control.
pub const DCTCP_NAME: &str = "plimsoll_dctcp";

/// DCTCP, registered in the kernel until dropped; connections that use it keep it until they close.
///
/// Both ends of a connection need it, since it also contains the receiver's half of DCTCP.
#[derive(Debug)]
pub struct KernelDctcp {
    program: Program,
    registered: Link,
}

impl KernelDctcp {
    /// Registers DCTCP as [`DCTCP_NAME`] with the gain and the initial alpha of `config`.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] before Linux 6.4, and the errors of [`Program::clock`], also where the name is
    /// already registered.
    pub fn register(config: &TcpConfig) -> Result<KernelDctcp, Error> {
        KernelDctcp::register_as(DCTCP_NAME, config)
    }

    /// Registers DCTCP under another name of 1 to 15 bytes, so that several can be registered, each with counts of its
    /// own.
    ///
    /// # Errors
    /// Returns the errors of [`KernelDctcp::register`].
    ///
    /// # Panics
    /// Panics if the name is empty or too long.
    pub fn register_as(name: &str, config: &TcpConfig) -> Result<KernelDctcp, Error> {
        assert!((1..CA_NAME_MAX).contains(&name.len()), "expected a name of 1 to 15 bytes, not `{name}`");
        let mut program = load(name, config)?;
        let failed = program.failed("registering the congestion control of");
        let mut maps = program.object_mut().maps_mut();
        let registered = maps
            .find(|map| map.name() == "dctcp")
            .expect("the program names it")
            .attach_struct_ops()
            .map_err(failed)?;
        drop(maps);
        Ok(KernelDctcp { program, registered })
    }

    /// Checks that the program loads, without registering it.
    ///
    /// # Errors
    /// Returns the errors of [`KernelDctcp::register`], except that the name may be registered already.
    pub fn check(config: &TcpConfig) -> Result<(), Error> {
        load(DCTCP_NAME, config).map(drop)
    }

    /// Keeps the registration as long as the pin `link` exists in `folder`, next to a pin `state` of its counts.
    ///
    /// # Errors
    /// Returns the errors of [`Program::pin_maps`].
    pub fn pin(&mut self, folder: &Path) -> Result<(), Error> {
        self.program.pin_maps(folder, &["state"])?;
        self.registered.pin(folder.join("link")).map_err(self.program.failed("pinning"))
    }

    /// Reads the counts over all connections. A run with `guarded` above 0 is suspect.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self) -> Result<DctcpCounts, Error> {
        self.program.state(0)
    }

    /// Returns the size of all its callbacks together.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the kernel does not report it.
    pub fn size(&self) -> Result<ProgramSize, Error> {
        self.program.size_of_image()
    }
}

/// Loads the program under `name`, without registering it.
fn load(name: &str, config: &TcpConfig) -> Result<Program, Error> {
    let settings = DctcpSettings { initial_alpha: u64::from(config.initial_alpha), gain: config.dctcp_gain };
    let rename = |open: &mut OpenObject| {
        let mut maps = open.maps_mut();
        let mut map = maps.find(|map| map.name() == "dctcp").expect("the program names it");
        let operations = map.initial_value_mut().expect("libbpf keeps the struct until it is loaded");
        let is_name = |bytes: &[u8]| bytes == DCTCP_NAME.as_bytes();
        let at = operations.windows(DCTCP_NAME.len()).position(is_name).expect("the struct has its name");
        operations[at..at + CA_NAME_MAX].fill(0);
        operations[at..at + name.len()].copy_from_slice(name.as_bytes());
        Ok(())
    };
    let program = Program::load_with("dctcp", "dctcp_init", Some(&settings.to_bytes()), rename);
    program.map_err(Needs::StructOpsLinks.explain())
}

/// Runs DCTCP's arithmetic alone, to compare it with Rust.
#[derive(Debug)]
pub struct DctcpArithmetic(Program);

impl DctcpArithmetic {
    /// Loads the program of the arithmetic.
    ///
    /// # Errors
    /// Returns the errors of [`Program::empty`].
    pub fn load() -> Result<DctcpArithmetic, Error> {
        Program::load("dctcp_arithmetic", "dctcp_arithmetic", None).map(DctcpArithmetic)
    }

    /// Computes the results of `vector`.
    ///
    /// # Errors
    /// Returns the errors of [`Program::test_run`].
    pub fn answer(&self, vector: &DctcpVector) -> Result<DctcpVector, Error> {
        let mut frame = vec![0; ETHERNET_LEN];
        frame.extend(vector.to_bytes());
        let run = self.0.test_run(&Packet::new(&frame))?;
        assert_eq!(run.action, ACTION_PASS, "the frame holds a vector");
        Ok(DctcpVector::from_bytes(&run.frame[ETHERNET_LEN..]).expect("the frame keeps its length"))
    }
}

/// The size of a name in the kernel, with its terminating zero (TCP_CA_NAME_MAX, include/net/tcp.h).
const CA_NAME_MAX: usize = 16;
const ETHERNET_LEN: usize = 14;
