//! The keys of a scenario that several modules know by name.

/// The key of a port's table under which a scenario names a queue discipline from outside.
pub(crate) const DISCIPLINE: &str = "discipline";

/// The key of `transport` under which a workload has a controller of its own.
pub(crate) const WORKLOAD: &str = "workload";

/// The key of the tables of transports beside `transport`.
pub(crate) const TRANSPORTS: &str = "transports";

/// The key of a scenario, a variant or a transport that names its preset.
pub(crate) const PRESET: &str = "preset";

/// The keys of a file that the model does not have.
pub(crate) const OUTER_KEYS: &[&str] = &["include", "set", "replicates", "variant", "sweep", "slo", "files"];

/// The keys among [`OUTER_KEYS`] that `--set` may set; a file alone has the others.
pub(crate) const SET_AROUND: &[&str] = &["replicates", "variant", "sweep", "slo"];

/// The table of `transport` with the keys of queue pairs, in which each controller has a table of its own.
pub(crate) const ROCE: &str = "roce";

/// The table of `transport` with the keys of packet delivery contexts.
pub(crate) const UET: &str = "uet";

/// The table of `transport` with the keys of NDP.
pub(crate) const NDP: &str = "ndp";

/// The table of `transport` with the keys of Homa.
pub(crate) const HOMA: &str = "homa";

/// The tables of `transport` that are merged key by key, but for the tables within them.
pub(crate) const NIC_TABLES: [&str; 4] = [ROCE, UET, NDP, HOMA];
