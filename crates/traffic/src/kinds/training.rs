//! `training`: iterations of a training job from a dozen numbers.
//!
//! ```text
//! rank = (stage x data + replica) x tensor + part
//! stage:  receive activations ──> layers: compute, all-reduce among the parts ──> send activations    forward
//!         send gradients <── layers: compute, all-reduce among the parts <── receive gradients        backward
//! layer:  its last backward pass ──> all-reduce of its gradients among the replicas ──> update
//! ```
//!
//! A stage alternates between forward and backward passes as soon as it has one of each (1F1B).

use std::ops::Range;
use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::jobs::graph::{BadGraph, GraphBuilder, JobGraph, OperationNumber};
use crate::jobs::run::JobRun;
use crate::jobs::schedule::{Algorithm, Collective, CollectiveOperation, LastOperations};
use crate::jobs::size::JobSize;
use crate::kind::{Context, ExpectedRecords, Kind};
use crate::record::Supply;
use crate::source::Source;

/// A training job: layers in stages (pipeline), each layer split among parts (tensor), and all of it in replicas that
/// sum their gradients (data). An iteration is a query; its communication groups are `tp`, `pp`, `dp` and `ep`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The layers of the model: 1 or more, which the stages divide.
    pub layers: u32,
    /// The ranks that share a layer (tensor parallelism): 1 or more. Default 1.
    #[serde(default = "one")]
    pub tensor: u32,
    /// The stages of the pipeline: 1 or more. Default 1.
    #[serde(default = "one")]
    pub pipeline: u32,
    /// The replicas among which the experts of a layer are spread: 1, or a number that divides the replicas. Default 1.
    #[serde(default = "one")]
    pub expert: u32,
    /// The parts of the batch of a replica that go through the pipeline one after the other: 1 or more. Default 1.
    #[serde(default = "one")]
    pub micro_batches: u32,
    /// The time of a rank for the forward pass of a micro-batch through a layer.
    pub forward: Span,
    /// The same for the backward pass. Default absent: twice `forward`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Span>,
    /// The time of a rank to update a layer. Default 0 s.
    #[serde(default)]
    pub update: Span,
    /// The activations of a micro-batch between two layers: what parts of a layer sum after each pass, and what stages
    /// send to each other.
    pub activations: Bytes,
    /// The gradients of a rank's part of a layer, which replicas sum. Default 0 B, without a sum.
    #[serde(default)]
    pub gradients: Bytes,
    /// The bytes that a rank exchanges with its expert group, before and after the experts of a layer: the blocks for
    /// all of them together. Default 0 B.
    #[serde(default)]
    pub tokens: Bytes,
    /// Whether gradients are summed as soon as a layer has them, beside the backward passes of others; otherwise after
    /// all of them. Default true.
    #[serde(default = "yes")]
    pub overlap: bool,
    /// The schedule by which replicas sum: one of an all-reduce. Default `ring`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Where and how it runs.
    #[serde(default, skip_serializing_if = "JobRun::is_default")]
    pub run: JobRun,
    /// The operations, made when the scenario is checked.
    #[serde(skip)]
    pub graph: Arc<JobGraph>,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl Training {
    fn backward(&self) -> Span {
        self.backward.unwrap_or(self.forward + self.forward)
    }

    /// Checks the numbers, and returns the replicas; `None` if there are errors.
    fn check_numbers(&self, check: &mut WorkloadCheck<'_>, ranks: u32) -> Option<u32> {
        let before = check.errors.len();
        for (key, number, problem) in [
            ("layers", self.layers, "no layer"),
            ("tensor", self.tensor, "no part of a layer"),
            ("pipeline", self.pipeline, "no stage"),
            ("expert", self.expert, "no replica in a group"),
            ("micro_batches", self.micro_batches, "no micro-batch"),
        ] {
            check.at_least_one(key, number.into(), problem);
        }
        check.some_bytes("activations", self.activations);
        check.may_be_longest("gradients", self.gradients.get() as f64);
        if check.errors.len() > before || ranks == 0 {
            return None;
        }
        let of_replica = self.tensor.saturating_mul(self.pipeline);
        if !ranks.is_multiple_of(of_replica) {
            let problem = format!("{ranks} hosts for replicas of {} x {} ranks", self.pipeline, self.tensor);
            check.error("run.hosts", problem, "a multiple of `pipeline` times `tensor`");
        }
        if !self.layers.is_multiple_of(self.pipeline) {
            let problem = format!("{} stages for {} layers", self.pipeline, self.layers);
            check.error("pipeline", problem, "a number that divides `layers`");
        }
        let replicas = ranks / of_replica.max(1);
        if !replicas.is_multiple_of(self.expert) {
            let problem = format!("groups of {} of {replicas} replicas", self.expert);
            check.error("expert", problem, "a number that divides the replicas");
        }
        let algorithm = self.algorithm.unwrap_or(Algorithm::Ring);
        if !CollectiveOperation::AllReduce.algorithms().contains(&algorithm)
            || algorithm == Algorithm::Hierarchical
        {
            let problem = format!("`{}` does not sum gradients", algorithm.name());
            let allowed = "`ring`, `halving-doubling`, `recursive-doubling`, `tree` or `double-tree`";
            check.error("algorithm", problem, allowed);
        } else if algorithm.needs_power_of_two() && !replicas.is_power_of_two() {
            check.error("algorithm", format!("{replicas} replicas, which are no power of two"), "`ring`");
        }
        let passes = u64::from(self.layers) * u64::from(self.micro_batches) * u64::from(ranks);
        let messages = passes.saturating_mul(2 * u64::from(self.tensor));
        if messages > MESSAGES_MAX {
            check.error(
                "micro_batches",
                format!("about {messages} messages"),
                format!("at most {MESSAGES_MAX}"),
            );
        }
        (check.errors.len() == before).then_some(replicas)
    }
}

impl Kind for Training {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let ranks = self.run.check(check);
        if let Some(replicas) = self.check_numbers(check, ranks) {
            match TrainingGraph::new(self, ranks, replicas).build() {
                Ok(graph) => self.graph = Arc::new(graph),
                Err(bad) => check.error("layers", bad.to_string(), "other numbers"),
            }
        }
        self.run.demand()
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        self.run.source(&self.graph, JobSize::of(&self.graph), context)
    }

    fn supply(&self) -> Supply {
        Supply::Fixed
    }

    fn bounding_key(&self) -> &'static str {
        "run.iterations"
    }

    fn repeats(&self) -> bool {
        self.run.repeats()
    }

    fn job(&self) -> Option<&JobGraph> {
        Some(&self.graph)
    }

    fn expected_records(&self, _: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        Some(self.run.expected_records(&self.graph))
    }

    fn lasting_connections(&self, _: &dyn NetworkFacts, kept: bool) -> f64 {
        self.run.lasting_connections(&self.graph, kept)
    }
}

/// A training job's operations in the making.
struct TrainingGraph<'a> {
    params: &'a Training,
    replicas: u32,
    builder: GraphBuilder,
    tag: u32,
    /// The last pass of each rank.
    last: LastOperations,
    /// The last backward computation of each layer of a stage, by rank and layer.
    gradients: Vec<Vec<Option<OperationNumber>>>,
}

/// The direction of a pass through the layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TrainingPass {
    Forward,
    Backward,
}

/// Streams of a rank: communication does not wait for computation.
const COMPUTE: u8 = 0;
const TENSOR: u8 = 1;
const PIPELINE: u8 = 2;
const DATA: u8 = 3;
const EXPERT: u8 = 4;

impl<'a> TrainingGraph<'a> {
    fn new(params: &'a Training, ranks: u32, replicas: u32) -> TrainingGraph<'a> {
        let layers = (params.layers / params.pipeline) as usize;
        TrainingGraph {
            params,
            replicas,
            builder: GraphBuilder::new(ranks),
            tag: 0,
            last: vec![None; ranks as usize],
            gradients: vec![vec![None; layers]; ranks as usize],
        }
    }

    fn build(mut self) -> Result<JobGraph, BadGraph> {
        for stage in 0..self.params.pipeline {
            for first in (0..self.replicas).step_by(self.params.expert as usize) {
                let replicas = first..first + self.params.expert;
                for (pass, batch) in self.order(stage) {
                    self.pass(stage, replicas.clone(), pass, batch);
                }
            }
        }
        self.sum_gradients();
        self.builder.finish()
    }

    fn rank(&self, stage: u32, replica: u32, part: u32) -> u32 {
        (stage * self.replicas + replica) * self.params.tensor + part
    }

    /// Returns the passes of a stage in their order: as many forward as later stages are behind, then one of each.
    fn order(&self, stage: u32) -> Vec<(TrainingPass, u32)> {
        let batches = self.params.micro_batches;
        let ahead = (self.params.pipeline - 1 - stage).min(batches);
        let mut order: Vec<_> = (0..ahead).map(|batch| (TrainingPass::Forward, batch)).collect();
        for batch in 0..batches {
            if ahead + batch < batches {
                order.push((TrainingPass::Forward, ahead + batch));
            }
            order.push((TrainingPass::Backward, batch));
        }
        order
    }

    /// A pass of a micro-batch through the layers of a stage, in the replicas that share experts.
    fn pass(&mut self, stage: u32, replicas: Range<u32>, pass: TrainingPass, batch: u32) {
        let Training { pipeline, activations, .. } = *self.params;
        let next = Some(stage + 1).filter(|next| *next < pipeline);
        let (before, after) = match pass {
            TrainingPass::Forward => (stage.checked_sub(1), next),
            TrainingPass::Backward => (next, stage.checked_sub(1)),
        };
        // A tag for each micro-batch and direction, beside those of collective operations.
        let tag = TAGS_OF_PASSES + 2 * batch + u32::from(pass == TrainingPass::Backward);
        if let Some(before) = before {
            self.builder.in_group("pp").on(PIPELINE, 0);
            self.each(stage, &replicas, |graph, replica, part, rank| {
                let from = graph.rank(before, replica, part);
                let receive = graph.builder.receive(rank, from, activations.get(), tag);
                graph.follows(rank, receive);
            });
        }
        let layers = self.gradients[0].len();
        for layer in 0..layers {
            self.layer(stage, &replicas, pass, layer);
        }
        if let Some(after) = after {
            self.builder.in_group("pp").on(PIPELINE, 0);
            self.each(stage, &replicas, |graph, replica, part, rank| {
                let to = graph.rank(after, replica, part);
                let send = graph.builder.send(rank, to, activations.get(), tag);
                if let Some(last) = graph.last[rank as usize] {
                    graph.builder.after(send, last);
                }
            });
        }
    }

    /// The pass through one layer: computation, the sum among its parts, and the experts.
    fn layer(&mut self, stage: u32, replicas: &Range<u32>, pass: TrainingPass, layer: usize) {
        let Training { tensor, expert, activations, tokens, .. } = *self.params;
        let layers = self.gradients[0].len();
        let (time, place) = match pass {
            TrainingPass::Forward => (self.params.forward, layer),
            TrainingPass::Backward => (self.params.backward(), layers - 1 - layer),
        };
        self.builder.in_group("").on(COMPUTE, 0);
        self.each(stage, replicas, |graph, _, _, rank| {
            let compute = graph.builder.compute(rank, time);
            graph.follows(rank, compute);
            if pass == TrainingPass::Backward {
                graph.gradients[rank as usize][place] = Some(compute);
            }
        });
        self.builder.in_group("tp").on(TENSOR, 0);
        for replica in replicas.clone() {
            let parts: Vec<u32> = (0..tensor).map(|part| self.rank(stage, replica, part)).collect();
            self.collective(&parts, &all_reduce(activations, Algorithm::Ring));
        }
        if tokens > Bytes::ZERO && expert > 1 {
            self.builder.in_group("ep").on(EXPERT, 0);
            let exchange = Collective {
                operation: CollectiveOperation::AllToAll,
                algorithm: Algorithm::Shift,
                ..all_reduce(tokens, Algorithm::Shift)
            };
            for part in 0..tensor {
                let members: Vec<u32> =
                    replicas.clone().map(|replica| self.rank(stage, replica, part)).collect();
                // To the experts, and back.
                self.collective(&members, &exchange);
                self.collective(&members, &exchange);
            }
        }
    }

    /// Does something for each rank of a stage in some replicas: with its replica, its part and its number.
    fn each(&mut self, stage: u32, replicas: &Range<u32>, mut act: impl FnMut(&mut Self, u32, u32, u32)) {
        for replica in replicas.clone() {
            for part in 0..self.params.tensor {
                let rank = self.rank(stage, replica, part);
                act(self, replica, part, rank);
            }
        }
    }

    /// An operation follows the last one of its rank.
    fn follows(&mut self, rank: u32, operation: OperationNumber) {
        if let Some(last) = self.last[rank as usize].replace(operation) {
            self.builder.after(operation, last);
        }
    }

    /// A collective operation follows the last ones of its members.
    fn collective(&mut self, members: &[u32], collective: &Collective) {
        let last: LastOperations = members.iter().map(|&rank| self.last[rank as usize]).collect();
        let last = collective.add(&mut self.builder, members, &last, &mut self.tag);
        members.iter().zip(last).for_each(|(&rank, last)| self.last[rank as usize] = last);
    }

    /// Replicas sum the gradients of each layer, from the last one on, and update it.
    fn sum_gradients(&mut self) {
        let Training { gradients, update, overlap, pipeline, tensor, .. } = *self.params;
        let algorithm = self.params.algorithm.unwrap_or(Algorithm::Ring);
        for stage in 0..pipeline {
            for part in 0..tensor {
                let members: Vec<u32> =
                    (0..self.replicas).map(|replica| self.rank(stage, replica, part)).collect();
                let mut sent: LastOperations = vec![None; members.len()];
                for layer in (0..self.gradients[members[0] as usize].len()).rev() {
                    let ready: LastOperations = members
                        .iter()
                        .zip(&sent)
                        .map(|(&rank, sent)| {
                            let own = self.gradients[rank as usize][layer];
                            let begin = if overlap { own } else { self.last[rank as usize] };
                            self.both(rank, begin, *sent)
                        })
                        .collect();
                    sent = if gradients == Bytes::ZERO {
                        ready
                    } else {
                        self.builder.in_group("dp").on(DATA, 0);
                        all_reduce(gradients, algorithm).add(
                            &mut self.builder,
                            &members,
                            &ready,
                            &mut self.tag,
                        )
                    };
                    if !update.is_zero() {
                        self.builder.in_group("").on(COMPUTE, 0);
                        for (&rank, sent) in members.iter().zip(&sent) {
                            let own = self.builder.compute(rank, update);
                            self.builder.after_all(own, &sent.iter().copied().collect::<Vec<_>>());
                        }
                    }
                }
            }
        }
    }

    /// Returns an operation of `rank` that ends after both others.
    fn both(
        &mut self,
        rank: u32,
        one: Option<OperationNumber>,
        other: Option<OperationNumber>,
    ) -> Option<OperationNumber> {
        let (Some(first), Some(second)) = (one, other) else { return one.or(other) };
        self.builder.in_group("").on(DATA, 0);
        let both = self.builder.compute(rank, Span::ZERO);
        self.builder.after_all(both, &[first, second]);
        Some(both)
    }
}

fn all_reduce(bytes: Bytes, algorithm: Algorithm) -> Collective {
    Collective {
        operation: CollectiveOperation::AllReduce,
        algorithm,
        bytes: bytes.get(),
        chunks: 1,
        per_server: 1,
        reduce_per_byte: Span::ZERO,
    }
}

/// Messages between stages have tags from here on.
const TAGS_OF_PASSES: u32 = 1 << 31;

/// The most messages of an iteration.
const MESSAGES_MAX: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use crate::record::Records;
    use crate::testing::{checked, errors, parsed, records_of};

    /// When the iteration ends, in ms, without any time in the network.
    fn iteration(hosts: u32, keys: &str) -> (f64, Records) {
        let text = format!(
            "kind = 'training'\nforward = '1ms'\nactivations = '1MB'\nrun = {{ network = 'loggops' }}\n{keys}"
        );
        let records = records_of(hosts, &checked(hosts, &text));
        (records.iterations[0].took.as_ms_f64(), records)
    }

    #[test]
    fn stages_wait_for_each_other_as_the_share_of_bubbles_says() {
        // Each of m micro-batches takes 3 ms in a stage, and p - 1 stages have to fill and to drain.
        for (stages, batches) in [(1, 5), (2, 4), (4, 8), (4, 2)] {
            let keys = format!("layers = {stages}\npipeline = {stages}\nmicro_batches = {batches}");
            let (took, records) = iteration(stages, &keys);
            assert_eq!(took, f64::from(3 * (batches + stages - 1)), "{keys}");
            let computed: Vec<_> = records.ranks.iter().filter(|rank| rank.group == 0).collect();
            assert!(computed.iter().all(|rank| rank.computed.as_ms_f64() == f64::from(3 * batches)));
        }
    }

    #[test]
    fn groups_have_the_messages_that_their_sizes_give() {
        let (_, records) = iteration(
            16,
            "layers = 4\ntensor = 2\npipeline = 2\nexpert = 2\nmicro_batches = 3\ngradients = '8MB'\n\
             tokens = '6MB'",
        );
        let of = |bytes: u64| records.messages.iter().filter(|message| message.bytes == bytes).count();
        // Between two stages: 3 micro-batches, two directions, 4 replicas of 2 parts.
        assert_eq!(of(1_000_000), 3 * 2 * 8);
        // Halves of activations, of 4 layers: 3 micro-batches, two passes, 4 replicas, 2 messages of each of 2 parts.
        assert_eq!(of(500_000), 4 * 3 * 2 * 4 * 2 * 2);
        // Quarters of gradients, of 4 layers in 2 parts: 6 rounds of 4 replicas.
        assert_eq!(of(2_000_000), 4 * 2 * 6 * 4);
        // Half of the tokens goes from one to the other: there and back, in two passes of 3 micro-batches of 4
        // layers, in 4 pairs of ranks.
        assert_eq!(of(3_000_000), 2 * 2 * 3 * 4 * 4 * 2);
    }

    #[test]
    fn numbers_have_to_divide_each_other() {
        for (hosts, keys, wrong) in [
            (6, "layers = 4\ntensor = 4", "run.hosts"),
            (4, "layers = 3\npipeline = 2", "pipeline"),
            (4, "layers = 4\nexpert = 3", "expert"),
            (3, "layers = 4\nalgorithm = 'halving-doubling'", "algorithm"),
            (4, "layers = 0", "layers"),
            (4, "layers = 4\nrun = { scale_up = { ranks = 2, rate = '0Gbps' } }", "run.scale_up.rate"),
            (4, "layers = 4\nrun = { iterations = 0 }", "run.iterations"),
        ] {
            let text = format!("kind = 'training'\nforward = '1ms'\nactivations = '1MB'\n{keys}");
            assert_eq!(errors(hosts, &parsed(&text)), [wrong], "{keys}");
        }
    }
}
