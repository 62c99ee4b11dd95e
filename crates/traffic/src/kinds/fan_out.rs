//! `fan-out`: queries to every server at once.

use plimsoll_fabric::Unbuildable;
use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Directed, WorkloadCheck, WorkloadDemand};
use crate::distribution::{SizeDistribution, TimeDistribution};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, ExpectedRecords, Input, Kind, LoadKey, cdf_inputs, host_count, number};
use crate::record::Supply;
use crate::requests::{RequestSource, RequestsConfig};
use crate::source::Source;

/// Queries that ask every server at once and wait for the slowest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FanOut {
    /// The host that sends the queries; default `client`.
    #[serde(default)]
    pub client: HostName,
    /// The hosts that answer; default: all others.
    #[serde(default)]
    pub servers: HostSet,
    /// Size of the request to each server.
    pub request: Bytes,
    /// The payload of the response of each server.
    pub response: SizeDistribution,
    /// The mean number of queries per second, a Poisson process.
    pub queries_per_second: f64,
    /// Time a server takes to answer; it serves one request at a time, first come first served.
    #[serde(default)]
    pub service: TimeDistribution,
    /// Responses later than this miss the deadline.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// The number of queries, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time from which on queries may start.
    #[serde(default)]
    pub start: Span,
}

impl Kind for FanOut {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let client = check.host("client", &self.client);
        let servers = check.hosts("servers", &self.servers, client);
        check.some_bytes("request", self.request);
        check.distribution("response", &mut self.response);
        check.distribution("service", &mut self.service);
        check.deadline("deadline", self.deadline);
        let queries = self.queries_per_second;
        if !check.per_second("queries_per_second", queries, "queries") {
            return WorkloadDemand::default();
        }
        if let Some(service) = self.service.known_mean() {
            check.service("service", queries, service);
        }
        let bits = self.response.known_mean().map(|response| queries * servers.len() as f64 * response * 8.0);
        WorkloadDemand {
            ends: self.count.is_some(),
            start: self.start,
            directed: Directed::new(servers, client, bits),
            ..WorkloadDemand::default()
        }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let client = context.host(&self.client, "client")?;
        let config = RequestsConfig {
            workload: context.index,
            client,
            servers: context.hosts(&self.servers, &[client], "servers")?,
            request: SizeDistribution::Constant(self.request).sampler(),
            response: self.response.sampler(),
            service: self.service.sampler(),
            mean_gap: 1.0 / self.queries_per_second,
            fan_out: true,
            random_server: false,
            deadline: self.deadline,
            count: self.count,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_request: !context.keeps_connections,
        };
        Ok(Box::new(RequestSource::new(config, context.streams, context.name)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::PerSecond { key: "queries_per_second", per_second: self.queries_per_second })
    }

    fn deadline(&self) -> Option<Span> {
        self.deadline
    }

    fn shared_link(&self) -> Option<&HostName> {
        Some(&self.client)
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        let servers = host_count(facts, &self.servers, &[&self.client]);
        Some(self.queries_per_second * servers * self.response.sampler().mean() * 8.0)
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.response.table(), self.service.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let servers = host_count(facts, &self.servers, &[&self.client]);
        let records = ExpectedRecords::new("queries_per_second", self.start);
        Some(records.per_second(self.queries_per_second).limit(number(self.count)).queries(servers))
    }

    fn lasting_connections(&self, facts: &dyn NetworkFacts, kept: bool) -> f64 {
        if kept { host_count(facts, &self.servers, &[&self.client]) } else { 0.0 }
    }
}
