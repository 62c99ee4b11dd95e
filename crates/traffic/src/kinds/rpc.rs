//! `rpc`: open-loop requests of one client.

use plimsoll_fabric::Unbuildable;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::ServerChoice;
use crate::check::{Directed, WorkloadCheck, WorkloadDemand};
use crate::distribution::{SizeDistribution, TimeDistribution};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{
    Context, ExpectedRecords, Input, Kind, LoadKey, bits_per_second, cdf_inputs, host_count,
    messages_per_second, number,
};
use crate::record::Supply;
use crate::requests::{RequestSource, RequestsConfig};
use crate::source::Source;

/// Open-loop requests of one client to many servers; each gets a response.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rpc {
    /// The host that sends the requests; default `client`.
    #[serde(default)]
    pub client: HostName,
    /// The hosts that answer; default: all others.
    #[serde(default)]
    pub servers: HostSet,
    /// The payload of a request.
    pub request: SizeDistribution,
    /// The payload of a response.
    pub response: SizeDistribution,
    /// Response bytes requested per second: a rate, or a share of the client's link.
    pub load: Load,
    /// The rule that chooses the server of the next request.
    #[serde(default)]
    pub pick: ServerChoice,
    /// Time a server takes to answer; it serves one request at a time.
    #[serde(default)]
    pub service: TimeDistribution,
    /// A response later than this misses its deadline.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// The number of requests, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time from which on requests may be sent.
    #[serde(default)]
    pub start: Span,
}

impl Kind for Rpc {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let client = check.host("client", &self.client);
        let servers = check.hosts("servers", &self.servers, client);
        check.distribution("request", &mut self.request);
        check.distribution("response", &mut self.response);
        check.distribution("service", &mut self.service);
        check.deadline("deadline", self.deadline);
        let bits = check.load("load", self.load, client.map(|host| check.facts().host_rate(host)));
        if let (Some(response), Some(service)) = (self.response.known_mean(), self.service.known_mean()) {
            let requests = bits / 8.0 / response;
            check.service("service", requests / servers.len().max(1) as f64, service);
        }
        let directed = Directed::new(servers, client, Some(bits));
        WorkloadDemand {
            ends: self.count.is_some(),
            start: self.start,
            directed,
            ..WorkloadDemand::default()
        }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let client = context.host(&self.client, "client")?;
        let response = self.response.sampler();
        let config = RequestsConfig {
            workload: context.index,
            client,
            servers: context.hosts(&self.servers, &[client], "servers")?,
            request: self.request.sampler(),
            mean_gap: context.mean_gap(self.load, client, response.mean()),
            response,
            service: self.service.sampler(),
            fan_out: false,
            random_server: self.pick == ServerChoice::Random,
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
        Some(LoadKey::Load(self.load))
    }

    fn deadline(&self) -> Option<Span> {
        self.deadline
    }

    fn shared_link(&self) -> Option<&HostName> {
        Some(&self.client)
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        Some(bits_per_second(facts, self.load, &self.client))
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.request.table(), self.response.table(), self.service.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let per_second = messages_per_second(facts, self.load, &self.client, self.response.sampler().mean());
        let records = ExpectedRecords::new("load", self.start).per_second(per_second);
        Some(records.limit(number(self.count)))
    }

    fn lasting_connections(&self, facts: &dyn NetworkFacts, kept: bool) -> f64 {
        if kept { host_count(facts, &self.servers, &[&self.client]) } else { 0.0 }
    }
}
