//! `transfer`: open-loop bulk transfers to one client.

use plimsoll_fabric::Unbuildable;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Span, Time};
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

/// Open-loop bulk transfers to one client: like `rpc`, for large responses, with a load in bytes per second
/// rather than requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The host that sends the requests; default `client`.
    #[serde(default)]
    pub client: HostName,
    /// The hosts that send; default: all others.
    #[serde(default)]
    pub servers: HostSet,
    /// Size of the request for a transfer.
    #[serde(default = "Transfer::default_request")]
    pub request: Bytes,
    /// The payload of a transfer.
    pub size: SizeDistribution,
    /// Bytes transferred per second: a rate, or a share of the client's link.
    pub load: Load,
    /// The rule that chooses the server of the next transfer.
    #[serde(default)]
    pub pick: ServerChoice,
    /// The number of transfers, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time from which on transfers may start.
    #[serde(default)]
    pub start: Span,
}

impl Transfer {
    fn default_request() -> Bytes {
        Bytes::new(100)
    }
}

impl Kind for Transfer {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let client = check.host("client", &self.client);
        let servers = check.hosts("servers", &self.servers, client);
        check.some_bytes("request", self.request);
        check.distribution("size", &mut self.size);
        let bits = check.load("load", self.load, client.map(|host| check.facts().host_rate(host)));
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
        let response = self.size.sampler();
        let config = RequestsConfig {
            workload: context.index,
            client,
            servers: context.hosts(&self.servers, &[client], "servers")?,
            request: SizeDistribution::Constant(self.request).sampler(),
            mean_gap: context.mean_gap(self.load, client, response.mean()),
            response,
            service: TimeDistribution::default().sampler(),
            fan_out: false,
            random_server: self.pick == ServerChoice::Random,
            deadline: None,
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

    fn shared_link(&self) -> Option<&HostName> {
        Some(&self.client)
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        Some(bits_per_second(facts, self.load, &self.client))
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.size.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let per_second = messages_per_second(facts, self.load, &self.client, self.size.sampler().mean());
        let records = ExpectedRecords::new("load", self.start).per_second(per_second);
        Some(records.limit(number(self.count)))
    }

    fn lasting_connections(&self, facts: &dyn NetworkFacts, kept: bool) -> f64 {
        if kept { host_count(facts, &self.servers, &[&self.client]) } else { 0.0 }
    }
}
