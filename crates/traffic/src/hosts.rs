//! Selections of hosts: one by name, or several by a list, a range or a word.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::facts::NetworkFacts;

/// One host: `client` (the first) or `h<number>`; a graph file names its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HostName(pub String);

impl Default for HostName {
    fn default() -> HostName {
        HostName("client".to_owned())
    }
}

/// Several hosts: `"others"` (all but the one at the other end, the default), `"all"`, a range
/// `"h1..h9"` (both included), or a list of names.
#[derive(Clone, PartialEq, Eq, Debug, Default, JsonSchema)]
#[schemars(untagged)]
pub enum HostSet {
    /// `"others"`, `"all"`, a range or one name.
    Selector(String),
    /// A list names the hosts.
    List(Vec<HostName>),
    /// Not given: all but the host at the other end.
    #[default]
    #[schemars(skip)]
    Others,
}

/// The error that no host has a name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no host `{name}`")]
pub struct UnknownHost {
    /// The name that no host has.
    pub name: String,
}

impl HostSet {
    /// Returns the selection of all hosts.
    pub fn all() -> HostSet {
        HostSet::Selector("all".to_owned())
    }

    /// Returns the selection of the first host.
    pub fn client() -> HostSet {
        HostSet::Selector(HostName::default().0)
    }

    /// Returns the numbers of the hosts, in the order given. `other` is the host at the other end, which
    /// `"others"` leaves out.
    ///
    /// # Errors
    /// Names the first host that the network does not have.
    pub fn resolve(&self, facts: &dyn NetworkFacts, other: Option<u32>) -> Result<Vec<u32>, UnknownHost> {
        self.resolve_except(facts, other.as_slice())
    }

    /// Does what [`HostSet::resolve`] does where several hosts are at the other end.
    ///
    /// # Errors
    /// Names the first host that the network does not have.
    pub fn resolve_except(&self, facts: &dyn NetworkFacts, others: &[u32]) -> Result<Vec<u32>, UnknownHost> {
        let find = |name: &str| facts.host(name).ok_or_else(|| UnknownHost { name: name.to_owned() });
        let all = || 0..facts.host_count();
        let others = || {
            // Half of a million hosts may face the other half.
            let others: BTreeSet<u32> = others.iter().copied().collect();
            all().filter(|host| !others.contains(host)).collect()
        };
        match self {
            HostSet::Others => Ok(others()),
            HostSet::List(names) => names.iter().map(|name| find(&name.0)).collect(),
            HostSet::Selector(text) => match text.as_str() {
                "others" => Ok(others()),
                "all" => Ok(all().collect()),
                text => match text.split_once("..") {
                    Some((first, last)) => Ok((find(first.trim())?..=find(last.trim())?).collect()),
                    None => Ok(vec![find(text)?]),
                },
            },
        }
    }
}

impl Serialize for HostSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            HostSet::Others => serializer.serialize_str("others"),
            HostSet::Selector(text) => serializer.serialize_str(text),
            HostSet::List(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HostSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostSet, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = HostSet;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"others\", \"all\", a range such as \"h1..h9\", or a list of names")
            }
            fn visit_str<E>(self, text: &str) -> Result<HostSet, E> {
                Ok(match text {
                    "others" => HostSet::Others,
                    text => HostSet::Selector(text.to_owned()),
                })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<HostSet, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(HostSet::List(names))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
