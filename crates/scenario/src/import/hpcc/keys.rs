//! The keys of `config.txt`: how many words follow each, and what an import does with it.

/// A key of the settings.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub words: Words,
    pub fate: Fate,
}

/// The words that follow a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Words {
    Count(usize),
    /// A number of entries, each with the rate of a link and a value.
    Map,
}

/// What an import does with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// The scenario has it, if the controller uses it; the text is the value without the key, where there is one.
    Mapped(&'static str),
    /// It says where results are written, or which: a run directory has all of them.
    Results,
    /// Plimsoll has only the behaviour of the first text, a value; the second text says what it means.
    Only(&'static str, &'static str),
    /// As `Only`, of HPCC: other controllers do not use it.
    OfHpcc(&'static str, &'static str),
}

use Fate::{Mapped, OfHpcc, Only, Results};
use Words::{Count, Map};

const fn key(name: &'static str, fate: Fate) -> Key {
    Key { name, words: Count(1), fate }
}

/// All keys: of the HPCC simulator (`scratch/third.cc`), then those that SimAI's and ConWeave's copies add. Defaults
/// are the simulator's.
pub(super) const KEYS: &[Key] = &[
    key("ENABLE_QCN", Mapped("1")),
    key(
        "USE_DYNAMIC_PFC_THRESHOLD",
        Only("1", "the released switches have the dynamic threshold with either"),
    ),
    key("PACKET_PAYLOAD_SIZE", Mapped("1000")),
    key("TOPOLOGY_FILE", Mapped("")),
    key("FLOW_FILE", Mapped("")),
    key("SIMULATOR_STOP_TIME", Mapped("3.01")),
    key("CC_MODE", Mapped("1")),
    key("ALPHA_RESUME_INTERVAL", Mapped("55")),
    key("RATE_DECREASE_INTERVAL", Mapped("4")),
    key("CLAMP_TARGET_RATE", Mapped("0")),
    key("RP_TIMER", Mapped("")),
    key("EWMA_GAIN", Mapped("")),
    key("FAST_RECOVERY_TIMES", Mapped("5")),
    key("RATE_AI", Mapped("")),
    key("RATE_HAI", Mapped("")),
    key("MIN_RATE", Mapped("100Mb/s")),
    key("DCTCP_RATE_AI", Mapped("1000Mb/s")),
    key("ERROR_RATE_PER_LINK", Mapped("0")),
    key("L2_ACK_INTERVAL", Mapped("0")),
    key("L2_CHUNK_SIZE", Mapped("0")),
    key(
        "L2_BACK_TO_ZERO",
        Only("0", "a loss repeats from the missing packet on, not from its chunk or message"),
    ),
    key("HAS_WIN", Mapped("1")),
    key("VAR_WIN", Mapped("0")),
    key("GLOBAL_T", Mapped("1")),
    key("FAST_REACT", OfHpcc("1", "HPCC reacts to each acknowledgement")),
    key("U_TARGET", Mapped("0.95")),
    key("MI_THRESH", Mapped("5")),
    key("INT_MULTI", OfHpcc("", "stamps are exact, so that their units need no factor")),
    key("MULTI_RATE", OfHpcc("0", "HPCC has one reference for all links")),
    key("SAMPLE_FEEDBACK", OfHpcc("0", "each acknowledgement returns the stamps of its packet")),
    key("PINT_LOG_BASE", OfHpcc("", "stamps are exact, not compressed")),
    key("PINT_PROB", OfHpcc("1.0", "each acknowledgement moves the window")),
    key("RATE_BOUND", Only("1", "queue pairs are paced at their rate")),
    key("ACK_HIGH_PRIO", Mapped("0")),
    Key { name: "LINK_DOWN", words: Count(3), fate: Mapped("") },
    Key { name: "KMAX_MAP", words: Map, fate: Mapped("") },
    Key { name: "KMIN_MAP", words: Map, fate: Mapped("") },
    Key { name: "PMAX_MAP", words: Map, fate: Mapped("") },
    key("BUFFER_SIZE", Mapped("16")),
    key("PAUSE_TIME", Only("", "a pause lasts until the resume, as in the released switches")),
    key("DATA_RATE", Only("", "rates are those of the topology file")),
    key("LINK_DELAY", Only("", "delays are those of the topology file")),
    key("ENABLE_TRACE", Results),
    key("TRACE_FILE", Results),
    key("TRACE_OUTPUT_FILE", Results),
    key("FCT_OUTPUT_FILE", Results),
    key("PFC_OUTPUT_FILE", Results),
    key("QLEN_MON_FILE", Results),
    key("QLEN_MON_START", Results),
    key("QLEN_MON_END", Results),
    key("NIC_TOTAL_PAUSE_TIME", Results),
    key("ENABLE_QBB", Mapped("1")),
    key("ENABLE_PFC", Mapped("1")),
    key("ENABLE_IRN", Mapped("0")),
    key("RANDOM_SEED", Mapped("")),
    key("LB_MODE", Only("0", "flows take paths by their hash (ECMP); `paths` has other ways")),
    key("LOAD", Only("", "the flow file has the load")),
    key("FLOWGEN_START_TIME", Only("", "the flow file has the starts")),
    key("FLOWGEN_STOP_TIME", Only("", "the flow file has the starts")),
    key("FLOW_INPUT_FILE", Results),
    key("CNP_OUTPUT_FILE", Results),
    key("VOQ_MON_FILE", Results),
    key("VOQ_MON_DETAIL_FILE", Results),
    key("UPLINK_MON_FILE", Results),
    key("CONN_MON_FILE", Results),
    key("EST_ERROR_MON_FILE", Results),
    key("SW_MONITORING_INTERVAL", Results),
    key("QP_MON_FILE", Results),
    key("BW_MON_FILE", Results),
    key("RATE_MON_FILE", Results),
    key("CNP_MON_FILE", Results),
    key("MON_START", Results),
    key("MON_END", Results),
    key("QP_MON_INTERVAL", Results),
    key("BW_MON_INTERVAL", Results),
    key("QLEN_MON_INTERVAL", Results),
];
