//! [`Mechanism`]: the description that a mechanism gives of itself, so that no other file lists mechanisms.
//!
//! A scenario's reader, its checks, its reference and the choice of the port engine follow from these descriptions.
//! [`registry!`] makes the tables of a scenario from one list, in this crate's root.

use crate::{Depth, InvalidParam};

/// The parameters of a mechanism, which are its table in a scenario file.
pub trait Mechanism {
    /// The place of the table in a scenario, and the settings that are the same for all parameters.
    const TABLE: Table;

    /// Checks the ranges that the documentation of the keys states.
    ///
    /// # Errors
    /// Names the first key that is out of its range.
    fn validate(&self) -> Result<(), InvalidParam> {
        Ok(())
    }

    /// Returns the port engine that a mechanism with these parameters needs.
    fn engine(&self) -> EngineNeed {
        Self::TABLE.engine
    }

    /// Returns how it marks packets, or drops them early; `None` for a mechanism that does neither.
    fn marking(&self) -> Option<Marking> {
        None
    }

    /// The setting to name in a message where [`Mechanism::engine`] excludes the express engine.
    fn engine_setting(&self) -> &'static str {
        Self::TABLE.key
    }
}

/// The way in which a mechanism marks packets, for the checks of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Marking {
    /// Whether it marks; else it drops packets early.
    pub marks: bool,
    /// The lengths of the port's queue from which it does so; empty where it judges by something else.
    pub thresholds: Vec<Depth>,
    /// Whether a packet is judged by the queue that it leaves behind.
    pub at_dequeue: bool,
}

/// The place of a mechanism's table in a scenario, and further properties that the scenario's reader needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// The section of a scenario that has the key: `port`, `host` or `paths`.
    pub section: Section,
    /// The key of the mechanism's table within the section, such as `ecn`.
    pub key: &'static str,
    /// The behaviour where the key is `"off"`, as a sentence without its full stop.
    pub off: &'static str,
    /// The port engine that the mechanism needs with all values of its parameters.
    pub engine: EngineNeed,
    /// Whether the mechanism limits the queue in place of the port's `buffer`.
    pub limits_queue: bool,
    /// Whether the mechanism marks by the port's own queue, which one mechanism of a port may.
    pub marks_queue: bool,
    /// Whether the mechanism of a host holds packets between the transport and the wire.
    pub holds_packets: bool,
}

impl Table {
    /// A table `key` of `section` that a variant replaces whole: none of the base's keys remain in it. `"off"` removes
    /// it, and `off` describes the behaviour then.
    pub const fn replaced_whole(section: Section, key: &'static str, off: &'static str) -> Table {
        let engine = EngineNeed::Either;
        Table { section, key, off, engine, limits_queue: false, marks_queue: false, holds_packets: false }
    }

    /// The same table of a mechanism that needs `engine`.
    pub const fn needs(self, engine: EngineNeed) -> Table {
        Table { engine, ..self }
    }

    /// The same table of a mechanism that limits the queue in place of the port's `buffer`.
    pub const fn limits_queue(self) -> Table {
        Table { limits_queue: true, ..self }
    }

    /// The same table of a mechanism that marks by the port's own queue.
    pub const fn marks_queue(self) -> Table {
        Table { marks_queue: true, ..self }
    }

    /// The same table of a host's mechanism that holds packets between the transport and the wire.
    pub const fn holds_packets(self) -> Table {
        Table { holds_packets: true, ..self }
    }

    /// The path of the table as the reference writes it, such as `port.*.ecn`.
    pub fn path(&self) -> String {
        let section = match self.section {
            Section::Port => "port.*",
            Section::Host => "host",
            Section::Paths => "paths",
        };
        format!("{section}.{}", self.key)
    }

    /// Returns whether a scenario's keys lead to this table.
    pub fn is_at<S: AsRef<str>>(&self, path: &[S]) -> bool {
        let mut keys = path.iter().map(AsRef::as_ref);
        let in_section = match self.section {
            Section::Port => keys.next() == Some("port") && keys.next().is_some(),
            Section::Host => keys.next() == Some("host"),
            Section::Paths => keys.next() == Some("paths"),
        };
        in_section && keys.next() == Some(self.key) && keys.next().is_none()
    }
}

/// A section of a scenario that has mechanisms among its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// `port.host`, `port.switch` and each tier of switches: the queue of an output port.
    Port,
    /// `host`: the stages between a host's transport and its NIC.
    Host,
    /// `paths`: the choice among equally short paths.
    Paths,
}

/// The port engine that a mechanism needs, of two, and the ports at which it needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineNeed {
    /// Either engine: a packet's departure is still known when it is admitted.
    Either,
    /// The general engine at the port that has the mechanism.
    GeneralHere,
    /// The general engine at every port of a switch.
    GeneralAtSwitches,
    /// The general engine at every port.
    GeneralEverywhere,
}

impl EngineNeed {
    /// Returns whether a port needs the general engine; `has_it` means that the mechanism is at this port.
    pub fn is_general(self, at_switch: bool, has_it: bool) -> bool {
        match self {
            EngineNeed::Either => false,
            EngineNeed::GeneralHere => has_it,
            EngineNeed::GeneralAtSwitches => at_switch,
            EngineNeed::GeneralEverywhere => true,
        }
    }
}

/// A mechanism that is on, as a walk over the mechanisms of a section meets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Active {
    /// The place of its table in a scenario.
    pub table: Table,
    /// The port engine that its parameters need.
    pub engine: EngineNeed,
    /// The key and value that need the engine, for messages.
    pub engine_setting: &'static str,
    /// The result of [`Mechanism::validate`]: the first parameter that is out of range, if any.
    pub verdict: Result<(), InvalidParam>,
    /// The way in which it marks packets or drops them early, if it does.
    pub marking: Option<Marking>,
}

impl Active {
    /// Makes the description of a mechanism with these parameters.
    pub fn new<M: Mechanism>(params: &M) -> Active {
        Active {
            table: M::TABLE,
            engine: params.engine(),
            engine_setting: params.engine_setting(),
            verdict: params.validate(),
            marking: params.marking(),
        }
    }
}

/// Generates from one list of mechanisms: [`TABLES`](crate::TABLES); for each section a struct of the parameters that
/// are on; and a macro that hands the section's list to another macro, by which a scenario's table gets its keys.
macro_rules! registry {
    ($d:tt $(
        $(#[$section_doc:meta])*
        $Section:ident by $with_section:ident { $( $(#[$doc:meta])* $key:ident: $($Params:ident)::+, )+ }
    )+) => {
        /// The table of every mechanism, in the order in which scenarios and their reference have them.
        pub const TABLES: &[Table] = &[$($( <$($Params)::+ as Mechanism>::TABLE, )+)+];

        $(
            $(#[$section_doc])*
            #[derive(Clone, PartialEq, Debug, Default)]
            #[allow(missing_docs, reason = "the parameters say what each mechanism is")]
            pub struct $Section { $( pub $key: Option<$($Params)::+>, )+ }

            impl $Section {
                /// The mechanisms that are on, in the order of their tables.
                pub fn active(&self) -> Vec<Active> {
                    let active = [$( self.$key.as_ref().map(Active::new), )+];
                    active.into_iter().flatten().collect()
                }
            }

            /// Calls a macro with the arguments given, and after them with the mechanisms of a section: the
            /// documentation, the key and the type of the parameters of each.
            #[macro_export]
            macro_rules! $with_section {
                ($d callback:ident! { $d($d arguments:tt)* }) => {
                    $d callback! { { $d($d arguments)* } { $( $(#[$doc])* $key: $d crate::$($Params)::+, )+ } }
                };
            }
        )+
    };
}

pub(crate) use registry;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TABLES;

    #[test]
    fn a_path_leads_to_a_table() {
        let ecn = Table::replaced_whole(Section::Port, "ecn", "");
        for (path, leads) in [
            (&["port", "leaf", "ecn"][..], true),
            (&["port", "ecn"], false),
            (&["port", "leaf", "ecn", "at"], false),
            (&["host", "leaf", "ecn"], false),
            (&["port", "leaf", "red"], false),
        ] {
            assert_eq!(ecn.is_at(path), leads, "{path:?}");
        }
        assert!(Table::replaced_whole(Section::Host, "pacer", "").is_at(&["host", "pacer"]));
    }

    #[test]
    fn no_two_mechanisms_have_one_table() {
        for (index, table) in TABLES.iter().enumerate() {
            assert!(!TABLES[..index].iter().any(|other| other.path() == table.path()), "{}", table.path());
            assert!(!table.off.is_empty() && !table.off.ends_with('.'), "{}: {:?}", table.path(), table.off);
        }
    }

    #[test]
    fn an_engine_is_needed_here_or_elsewhere() {
        for (engine, at_switch, has_it, general) in [
            (EngineNeed::Either, true, true, false),
            (EngineNeed::GeneralHere, true, false, false),
            (EngineNeed::GeneralHere, false, true, true),
            (EngineNeed::GeneralAtSwitches, true, false, true),
            (EngineNeed::GeneralAtSwitches, false, false, false),
            (EngineNeed::GeneralEverywhere, false, false, true),
        ] {
            assert_eq!(engine.is_general(at_switch, has_it), general, "{engine:?} {at_switch} {has_it}");
        }
    }
}
