//! The registry of topology kinds: macros that make an enum of kinds, such as [`super::Topology`], its names, its
//! schema and the dispatch to [`super::Kind`] from a table of one line a kind, which is in `topology.rs`.

/// Makes the enum of all kinds from lines `Parameters "name" in module;`.
macro_rules! topologies {
    ($($kind:ident $name:tt in $module:ident;)*) => {
        $(pub use $module::$kind;)*

        registry::kinds! {
            /// Hosts, switches and links.
            Topology read_as InFile "Topology";
            $($kind $name;)*
        }

        /// The names of the tiers of each kind, from the hosts upwards.
        const TIERS: &[(&str, &[&str])] = &[$(($name, $kind::TIERS),)*];
    };
}

/// Makes an enum of kinds from lines `Parameters "name";`.
macro_rules! kinds {
    ($(#[$doc:meta])* $Kinds:ident read_as $InFile:ident $remote:literal; $($kind:ident $name:tt;)*) => {
        $(#[$doc])*
        // A variant needs no comment: the description of its parameters is the description of the kind.
        #[allow(missing_docs)]
        #[derive(Clone, PartialEq, Debug, ::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(tag = "kind", deny_unknown_fields)]
        pub enum $Kinds {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        /// The shape that the scenario's own deserialiser reads, which tags kinds by the key `kind`.
        #[derive(::serde::Deserialize)]
        #[serde(remote = $remote)]
        enum $InFile {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        impl $Kinds {
            /// Returns the `kind` in a file.
            pub fn kind(&self) -> &'static str {
                match self {
                    $($Kinds::$kind(_) => $name,)*
                }
            }

            /// Returns the parameters.
            pub fn params(&self) -> &dyn Kind {
                match self {
                    $($Kinds::$kind(params) => params,)*
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $Kinds {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<$Kinds, D::Error> {
                $InFile::deserialize(deserializer)
            }
        }
    };
}

pub(super) use {kinds, topologies};
