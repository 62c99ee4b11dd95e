//! The registry of topology kinds: a macro that makes the enum [`super::Topology`], the names, the schema and the
//! dispatch to [`super::Kind`] from a table of one line a kind, which is in `topology.rs`.

/// Makes the enum of all kinds from lines `Parameters "name" in module;`.
macro_rules! topologies {
    ($($kind:ident $name:tt in $module:ident;)*) => {
        $(pub use $module::$kind;)*

        /// Hosts, switches and links.
        // A variant needs no comment: the description of its parameters is the description of the kind.
        #[allow(missing_docs)]
        #[derive(Clone, PartialEq, Debug, ::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(tag = "kind", deny_unknown_fields)]
        pub enum Topology {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        /// The shape that the scenario's own deserialiser reads, which tags kinds by the key `kind`.
        #[derive(::serde::Deserialize)]
        #[serde(remote = "Topology")]
        enum InFile {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        /// The names of the tiers of each kind, from the hosts upwards.
        const TIERS: &[(&str, &[&str])] = &[$(($name, $kind::TIERS),)*];

        impl Topology {
            /// Returns the `kind` in a file.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Topology::$kind(_) => $name,)*
                }
            }

            /// Returns the parameters.
            pub fn params(&self) -> &dyn Kind {
                match self {
                    $(Topology::$kind(params) => params,)*
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for Topology {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Topology, D::Error> {
                InFile::deserialize(deserializer)
            }
        }
    };
}

pub(super) use topologies;
