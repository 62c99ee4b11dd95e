//! The registry of workload kinds: a macro that makes the enum [`crate::Workload`], the names, the schema and the
//! dispatch to [`crate::Kind`] from a table of one line a kind, which is in `kinds.rs`.

/// Makes the enum of all kinds from lines `Parameters "name" in module;`, with `(flow)` after the name where messages
/// are flows, which get no answer.
macro_rules! workloads {
    ($($kind:ident $name:tt $(($flow:ident))? in $module:ident;)*) => {
        $(pub use $module::$kind;)*

        /// The parameters of a workload of any kind.
        // A variant needs no comment: the description of its parameters is the description of the kind.
        #[allow(missing_docs)]
        #[derive(Clone, PartialEq, Debug, ::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(tag = "kind", deny_unknown_fields)]
        pub enum Workload {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        /// The shape that the scenario's own deserialiser reads, which tags kinds by the key `kind`.
        #[derive(::serde::Deserialize)]
        #[serde(remote = "Workload")]
        enum InFile {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        impl Workload {
            /// The kinds whose messages are flows, which their source sends and which get no answer.
            pub const FLOWS: &[&str] = &[$($({
                let _ = stringify!($flow);
                $name
            },)?)*];

            /// Returns the `kind` in a file.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Workload::$kind(_) => $name,)*
                }
            }

            /// Returns the parameters.
            pub fn params(&self) -> &dyn $crate::Kind {
                match self {
                    $(Workload::$kind(params) => params,)*
                }
            }

            /// Returns the parameters, to be checked and completed.
            pub fn params_mut(&mut self) -> &mut dyn $crate::Kind {
                match self {
                    $(Workload::$kind(params) => params,)*
                }
            }
        }

        impl<'de> ::serde::Deserialize<'de> for Workload {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
                InFile::deserialize(deserializer)
            }
        }
    };
}

pub(crate) use workloads;
