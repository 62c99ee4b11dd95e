//! [`Dctcp`]: DCTCP as a congestion control of the kernel's TCP.
//!
//! Alpha in 2^-30 and g in 2^-32, as in Rust; the kernel counts packets where Rust counts bytes.

use std::path::Path;

use libbpf_rs::{Link, MapCore, OpenObject};
use plimsoll_mechanisms::tcp::Config;

use crate::shared::{ACTION_PASS, DctcpCounts, DctcpSettings, DctcpVector, Shared};
use crate::{Error, Needs, Packet, Program, Size};

/// The name for TCP_CONGESTION and `net.ipv4.tcp_congestion_control`.
pub const DCTCP_NAME: &str = "plimsoll_dctcp";

/// DCTCP, registered in the kernel until dropped; connections that use it keep it until they close.
///
/// Both ends of a connection need it, since the receiver's half of DCTCP is in it too.
#[derive(Debug)]
pub struct Dctcp {
    program: Program,
    registered: Link,
}

impl Dctcp {
    /// Registers it as [`DCTCP_NAME`] with the gain and the initial alpha of `config`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] before Linux 6.4, and that or [`Error::Kernel`] as [`Program::clock`], also where one is
    /// registered already.
    pub fn register(config: &Config) -> Result<Dctcp, Error> {
        Dctcp::register_as(DCTCP_NAME, config)
    }

    /// As [`Dctcp::register`] under another name of 1 to 15 bytes, so that several can be registered, each with counts
    /// of its own.
    ///
    /// # Errors
    /// As [`Dctcp::register`].
    ///
    /// # Panics
    /// If the name is empty or too long.
    pub fn register_as(name: &str, config: &Config) -> Result<Dctcp, Error> {
        assert!((1..CA_NAME_MAX).contains(&name.len()), "`{name}` has 1 to 15 bytes");
        let mut program = load(name, config)?;
        let failed = program.failed("registering the congestion control of");
        let mut maps = program.object_mut().maps_mut();
        let registered = maps
            .find(|map| map.name() == "dctcp")
            .expect("the program names it")
            .attach_struct_ops()
            .map_err(failed)?;
        drop(maps);
        Ok(Dctcp { program, registered })
    }

    /// Whether it loads, without registering it.
    ///
    /// # Errors
    /// As [`Dctcp::register`], but for one that is registered already.
    pub fn check(config: &Config) -> Result<(), Error> {
        load(DCTCP_NAME, config).map(drop)
    }

    /// Keeps it registered as long as there is a pin `link` in `folder`, beside one of its counts, `state`.
    ///
    /// # Errors
    /// As [`Program::pin_maps`].
    pub fn pin(&mut self, folder: &Path) -> Result<(), Error> {
        self.program.pin_maps(folder, &["state"])?;
        self.registered.pin(folder.join("link")).map_err(self.program.failed("pinning"))
    }

    /// What it has counted over all connections. A run with `guarded` above 0 is suspect.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self) -> Result<DctcpCounts, Error> {
        self.program.state(0)
    }

    /// How large its callbacks are together.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel does not say.
    pub fn size(&self) -> Result<Size, Error> {
        self.program.size_of_image()
    }
}

/// Loads it under `name`.
fn load(name: &str, config: &Config) -> Result<Program, Error> {
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

/// DCTCP's arithmetic by itself, for comparison with Rust.
#[derive(Debug)]
pub struct DctcpArithmetic(Program);

impl DctcpArithmetic {
    /// Loads it.
    ///
    /// # Errors
    /// As [`Program::empty`].
    pub fn load() -> Result<DctcpArithmetic, Error> {
        Program::load("dctcp_arithmetic", "dctcp_arithmetic", None).map(DctcpArithmetic)
    }

    /// Fills in the answers of `vector`.
    ///
    /// # Errors
    /// As [`Program::test_run`].
    pub fn answer(&self, vector: &DctcpVector) -> Result<DctcpVector, Error> {
        let mut frame = vec![0; ETHERNET_LEN];
        frame.extend(vector.to_bytes());
        let run = self.0.test_run(&Packet::new(&frame))?;
        assert_eq!(run.action, ACTION_PASS, "the frame holds a vector");
        Ok(DctcpVector::from_bytes(&run.frame[ETHERNET_LEN..]).expect("the frame keeps its length"))
    }
}

/// TCP_CA_NAME_MAX (include/net/tcp.h), with the zero at its end.
const CA_NAME_MAX: usize = 16;
const ETHERNET_LEN: usize = 14;
