//! [`Traffic`]: all sources of a run.

use plimsoll_fabric::Unbuildable;
use plimsoll_units::{Bytes, Span, Streams, Time};

use crate::Workload;
use crate::facts::NetworkFacts;
use crate::kind::Context;
use crate::record::{Supply, WorkloadInfo};
use crate::source::Source;

/// The inputs from which the sources of a run are made.
pub struct TrafficSpec<'a> {
    /// The workloads by name, in the order of their numbers.
    pub workloads: Vec<WorkloadSpec<'a>>,
    /// The facts about the network.
    pub facts: &'a dyn NetworkFacts,
    /// The time for which traffic is generated; `None` where every workload stops by itself.
    pub duration: Option<Span>,
    /// The time before which messages do not count.
    pub warmup: Span,
    /// The time after the last arrival in which open messages may complete.
    pub drain: Span,
}

/// The inputs from which the source of one workload is made.
pub struct WorkloadSpec<'a> {
    /// The name of the workload.
    pub name: &'a str,
    /// The parameters of the workload.
    pub workload: &'a Workload,
    /// The header of its transport, which single packets have as well.
    pub header: Bytes,
    /// Whether connections are kept, rather than opened for each message.
    pub keeps_connections: bool,
}

/// All sources of a run, with their names.
pub struct Traffic {
    /// The sources, by number.
    pub sources: Vec<Box<dyn Source>>,
    /// The names, kinds and deadlines of the workloads, by number.
    pub infos: Vec<WorkloadInfo>,
    /// Whether some flows send for as long as the run lasts.
    pub endless: bool,
    duration: Option<Span>,
    drain: Span,
}

impl Traffic {
    /// Builds the sources of `spec`, which draw from `streams`.
    ///
    /// # Errors
    /// Fails if one of them cannot be built.
    pub fn new(spec: &TrafficSpec<'_>, streams: &Streams) -> Result<Traffic, Unbuildable> {
        let mut traffic = Traffic {
            sources: Vec::new(),
            infos: Vec::new(),
            endless: false,
            duration: spec.duration,
            drain: spec.drain,
        };
        for (index, of) in spec.workloads.iter().enumerate() {
            let (name, workload, params) = (of.name, of.workload, of.workload.params());
            let context = Context {
                facts: spec.facts,
                streams,
                name,
                index: index as u16,
                until: spec.duration.map_or(Time::MAX, |duration| Time::ZERO + duration),
                warmup: Time::ZERO + spec.warmup,
                header: of.header,
                keeps_connections: of.keeps_connections,
            };
            traffic.infos.push(WorkloadInfo {
                name: name.to_owned(),
                kind: workload.kind().to_owned(),
                deadline: params.deadline(),
                observed: params.observed().map(str::to_owned),
                supply: params.supply(),
                groups: params.job().map(|job| job.groups().to_vec()).unwrap_or_default(),
            });
            traffic.endless |= params.supply() == Supply::Endless;
            traffic.sources.push(params.source(&context)?);
        }
        Ok(traffic)
    }

    /// Returns when the run ends at the latest. Endless flows end with the duration; everything else has the drain
    /// after it, in which open messages may complete. Without a duration it ends after ten minutes, since a sender
    /// repeats what its receiver never answers for ever.
    pub fn horizon(&self) -> Time {
        match self.duration {
            None => Time::ZERO + LONGEST,
            Some(duration) if self.endless => Time::ZERO + duration,
            Some(duration) => (Time::ZERO + duration).saturating_add(self.drain),
        }
    }
}

/// The longest run without `run.duration`.
const LONGEST: Span = Span::from_secs(600);
