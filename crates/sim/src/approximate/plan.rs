//! [`Plan`]: which flows, links and runs an approximate run has, and what their outcomes make.

use plimsoll_fabric::net::{Network, PortId, ideal_time};
use plimsoll_mechanisms::tcp::TcpConfig;
use plimsoll_results::outcome::{Approximation, MessageRecord, Outcome, Split};
use plimsoll_scenario::model::{Approximate, Model};
use plimsoll_traffic::Traffic;
use plimsoll_units::{Span, Streams, Time, mix64};

use super::alone::{AloneRequests, AloneRun, AloneTimes, Chain};
use super::bias::bias;
use super::compose::{Delay, Delays, FlowKey, MeasuredFlow};
use super::flows::{self, Flow, each_flow};
use super::link_model::{CrossingFlow, LinkModel, PACES, PacketSizes, link_chain, link_model};
use super::links::{Links, Sample};
use super::table::{Composed, slowdowns};
use super::task::Answer;
use crate::RunError;

/// The highest load of a link that is accepted: above it, medians are too high by more, the larger the network is.
pub(super) const HIGHEST_LOAD: f64 = 0.6;

/// The flows that are measured, the links that are simulated, and the flows over each.
pub(super) struct Plan<'a> {
    model: &'a Model,
    network: Network,
    links: Links,
    sizes: PacketSizes,
    /// The transport of each workload.
    transports: Vec<TcpConfig>,
    sample: Sample,
    /// By link of the sample and direction: the flows that cross it, in the order of their starts.
    crossing: Vec<[Vec<CrossingFlow>; 2]>,
    /// By class: when its links are run.
    stage_of: Vec<usize>,
    measured: Vec<(Flow, MeasuredFlow)>,
    word: u64,
    busiest: f64,
    flows: u64,
}

/// The run of one direction of a link.
pub(super) struct LinkRun {
    /// The number of the link in the sample.
    link: usize,
    /// The port that sends in this direction.
    direction: usize,
    pub(super) built: LinkModel,
}

/// The delays that runs of links have given, and what they lost.
#[derive(Default)]
pub(super) struct Gathered {
    delays: Delays,
    packet_hops: u64,
    sent: u64,
    lost: u64,
    timeouts: u64,
    messages: u64,
}

impl Gathered {
    pub(super) fn sort(&mut self) {
        self.delays.sort();
    }

    /// Returns the share of packets that were lost, or that of messages with a timeout if it is larger.
    pub(super) fn loss(&self) -> f64 {
        let lost = self.lost as f64 / self.sent.max(1) as f64;
        lost.max(self.timeouts as f64 / self.messages.max(1) as f64)
    }
}

/// What is known of all flows before links are chosen.
struct Survey {
    /// The number of flows at each port.
    flows_of: Vec<u32>,
    flows: u64,
    /// Those that start after the warm-up.
    measured: u64,
    /// The bytes of all of them on the wire.
    bytes: u64,
    last: Time,
}

impl<'a> Plan<'a> {
    pub(super) fn new(model: &'a Model, size: Approximate) -> Result<Plan<'a>, RunError> {
        let network = flows::network(model)?;
        let streams = Streams::new(model.run.seed);
        let config = |name: &String| model.transport_config(name).map_err(RunError::from);
        let transports = model.workload.keys().map(config).collect::<Result<Vec<_>, _>>()?;
        let survey = survey(model, &network, &transports)?;
        if survey.measured == 0 {
            let problem = "no flow starts between `run.warmup` and this".to_owned();
            return Err(RunError::Build { key: "run.duration".to_owned(), problem });
        }
        let links = Links::new(&network);
        let seconds = model.run.duration.map_or(survey.last.as_secs_f64(), Span::as_secs_f64);
        let bits_per_flow = survey.bytes as f64 * 8.0 / survey.flows as f64 / seconds.max(1e-12);
        let busiest = links.busiest(&survey.flows_of, bits_per_flow);
        if busiest > HIGHEST_LOAD {
            let problem = format!(
                "with the flows that were drawn the busiest link has a load of {busiest:.2}, and approximate runs \
                 are accepted up to {HIGHEST_LOAD}, as they are too far off above it: lower the load, or run the \
                 whole network"
            );
            return Err(RunError::Build { key: "run.approximate".to_owned(), problem });
        }
        let sample = links.sample(&network, size.links as usize, streams.word("approximate/links"));
        let mut plan = Plan {
            model,
            sizes: PacketSizes::of(model),
            crossing: vec![[Vec::new(), Vec::new()]; sample.links.len()],
            stage_of: vec![0; links.classes.len()],
            network,
            links,
            transports,
            sample,
            measured: Vec::new(),
            word: streams.word("approximate/messages"),
            busiest,
            flows: survey.flows,
        };
        plan.collect(f64::from(size.messages) / survey.measured as f64)?;
        Ok(plan)
    }

    /// Collects the flows over sampled links, and this share of the measured ones.
    fn collect(&mut self, share: f64) -> Result<(), RunError> {
        let warmup = Time::ZERO + self.model.run.warmup;
        let (network, sample, sizes, links) = (&self.network, &self.sample, self.sizes, &self.links);
        let (crossing, measured, stage_of) = (&mut self.crossing, &mut self.measured, &mut self.stage_of);
        let word = self.word;
        let mut path: Vec<PortId> = Vec::new();
        each_flow(self.model, |flow| {
            path.clear();
            path.extend(network.path(&flow.packet(0)));
            for (place, port) in path.iter().enumerate() {
                let stage = &mut stage_of[usize::from(links.class_of(*port))];
                *stage = place.max(*stage);
                let Some(number) = sample.number_of(*port) else { continue };
                let hops = |ports: &[PortId]| sizes.hops(ports.iter().map(|port| network.link(*port)));
                let direction = usize::from(sample.links[number][0] != *port);
                crossing[number][direction].push(CrossingFlow {
                    flow: *flow,
                    links: path[..place].iter().map(|port| (links.class_of(*port), *port)).collect(),
                    before: hops(&path[..place]),
                    behind: hops(&path[place + 1..]),
                    hops: path.len() as u8,
                });
            }
            let drawn = mix64(word ^ u64::from(flow.workload) << 48 ^ flow.index);
            if flow.start >= warmup && drawn as f64 <= share * u64::MAX as f64 {
                let links = path.iter().map(|port| (links.class_of(*port), *port)).collect();
                measured.push((*flow, MeasuredFlow { key: key(flow), bytes: flow.bytes, links }));
            }
        })?;
        Ok(())
    }

    fn workload(&self, flow: &Flow) -> &str {
        self.model.workload.keys().nth(usize::from(flow.workload)).map_or("", String::as_str)
    }

    fn packets(&self, flow: &Flow) -> u64 {
        flow.bytes.div_ceil(self.transports[usize::from(flow.workload)].segment)
    }

    /// Returns the links of a measured flow's path.
    fn chain_of(&self, flow: &MeasuredFlow) -> Chain {
        let links = flow.links.iter().map(|(_, port)| self.network.link(*port));
        links.map(|link| (link.rate, link.propagation)).collect()
    }

    /// Returns the runs of measured messages alone on their paths.
    pub(super) fn whole_paths_alone(&self) -> Vec<AloneRun> {
        let mut requests = AloneRequests::default();
        for (flow, measured) in &self.measured {
            requests.want(self.chain_of(measured), flow.workload, flow.bytes);
        }
        requests.runs(self.model, self.first_tier())
    }

    /// Returns the runs of flows alone on their links in `runs`.
    pub(super) fn links_alone(&self, runs: &[LinkRun]) -> Vec<AloneRun> {
        let mut requests = AloneRequests::default();
        for run in runs {
            let target = self.network.link(self.sample.links[run.link][run.direction]);
            for (number, pace) in run.built.order.iter().flatten() {
                let crossing = &self.crossing[run.link][run.direction][*number as usize];
                let chain = link_chain(self.sizes, target, crossing, *pace);
                requests.want(chain, crossing.flow.workload, crossing.flow.bytes);
            }
        }
        requests.runs(self.model, self.first_tier())
    }

    fn first_tier(&self) -> &'static str {
        self.network.tiers().first().copied().unwrap_or_default()
    }

    /// Returns the number of runs of links.
    pub(super) fn link_count(&self) -> usize {
        self.crossing.iter().flatten().filter(|crossing| !crossing.is_empty()).count()
    }

    /// Returns the number of stages: links of a stage see the delays at those of all stages before.
    pub(super) fn stages(&self) -> usize {
        self.stage_of.iter().max().map_or(0, |last| last + 1)
    }

    /// Returns the runs of the sampled links of a stage.
    pub(super) fn link_runs(&self, stage: usize, gathered: &Gathered) -> Vec<LinkRun> {
        let mut runs = Vec::new();
        for (link, crossing) in self.crossing.iter().enumerate() {
            for (direction, crossing) in crossing.iter().enumerate() {
                let port = self.sample.links[link][direction];
                if crossing.is_empty() || self.stage_of[usize::from(self.links.class_of(port))] != stage {
                    continue;
                }
                let mut built = link_model(self.model, &self.network, port, crossing, |crossing| {
                    self.arrival(crossing, gathered)
                });
                built.task.seed = mix64(self.model.run.seed ^ u64::from(port.0));
                runs.push(LinkRun { link, direction, built });
            }
        }
        runs
    }

    /// Returns how much later, and at which pace, a flow comes to a link, after those before.
    fn arrival(&self, crossing: &CrossingFlow, gathered: &Gathered) -> (Span, u32) {
        let Some(before) = crossing.before else { return (Span::ZERO, 0) };
        let flow = &crossing.flow;
        let delay = gathered.delays.along(key(flow), flow.bytes, crossing.hops, &crossing.links, self.word);
        let delay = delay.max(0) as f64;
        // The packets of an initial window come as they are sent, all later; what follows comes with acknowledgements.
        let window = f64::from(self.model.transport_of(self.workload(flow)).initial_window);
        let late = delay * (window / self.packets(flow) as f64).min(1.0);
        let time = before.rate.byte_time().span(flow.bytes).as_ps() as f64;
        let slower = (time + delay - late) / time.max(1.0);
        let pace = (slower.log2() * PACES).round().clamp(0.0, 40.0) as u32;
        (Span::from_ps(late as u64), pace)
    }

    /// Takes the delays of a link's run.
    pub(super) fn gather(&self, run: &LinkRun, answer: &Answer, alone: &AloneTimes, gathered: &mut Gathered) {
        let port = self.sample.links[run.link][run.direction];
        let crossing = &self.crossing[run.link][run.direction];
        let target = self.network.link(port);
        gathered.packet_hops += answer.packet_hops;
        gathered.sent += answer.sent;
        gathered.lost += answer.lost;
        // Without a loss a timeout is that of a delayed acknowledgement, as in the whole run.
        if answer.lost > 0 {
            gathered.timeouts += answer.timeouts;
        }
        gathered.messages += answer.messages.len() as u64;
        for message in &answer.messages {
            let (number, pace) = run.built.order[usize::from(message.workload)][message.index as usize];
            let crossing = &crossing[number as usize];
            let flow = &crossing.flow;
            let Some(extra) = message.extra else { continue };
            let chain = link_chain(self.sizes, target, crossing, pace);
            let without_others = alone.extra(&chain, flow.workload, flow.bytes);
            let delay = Delay {
                flow: key(flow),
                bytes: flow.bytes,
                link: run.link as u32,
                ps: extra - without_others,
            };
            let pool = (self.links.class_of(port), crossing.hops, flow.workload);
            gathered.delays.add(pool, port, delay);
        }
    }

    /// Composes the completion times of the measured flows.
    pub(super) fn conclude(&self, gathered: &Gathered, alone: &AloneTimes) -> Result<Outcome, RunError> {
        let flows: Vec<Composed> = self
            .measured
            .iter()
            .map(|(flow, measured)| {
                let config = &self.transports[usize::from(flow.workload)];
                let ideal = ideal_time(&self.network, config, flow.bytes, flow.packet(0), false);
                let extra = alone.extra(&self.chain_of(measured), flow.workload, flow.bytes);
                Composed { flow: measured, ideal, alone: plus(ideal, extra) }
            })
            .collect();
        let links = self.sample.links.len();
        let bias = bias(self.busiest);
        let approximation = Approximation {
            busiest: self.busiest,
            links: self.link_count() as u64,
            of_links: self.network.links().len() as u64,
            flows: self.flows,
            packet_hops: gathered.packet_hops,
            slowdowns: slowdowns(
                self.model.workload.keys(),
                &flows,
                &gathered.delays,
                links,
                self.word,
                bias,
            ),
        };
        let messages = flows.iter().zip(&self.measured).map(|(composed, (flow, measured))| {
            let delay = gathered.delays.of(measured, self.word);
            MessageRecord {
                workload: flow.workload,
                index: flow.index,
                query: None,
                source: flow.source.0,
                destination: flow.destination.0,
                bytes: flow.bytes,
                created: flow.start,
                completed: Some(flow.start + plus(composed.alone, delay)),
                ideal: composed.ideal,
                split: Split::default(),
            }
        });
        let mut messages: Vec<MessageRecord> = messages.collect();
        messages.sort_unstable_by_key(|message| (message.workload, message.index));
        let traffic = Traffic::new(&self.model.traffic_spec(), &Streams::new(self.model.run.seed))?;
        Ok(Outcome {
            workloads: traffic.infos,
            tiers: self.network.tiers().iter().map(|&tier| tier.to_owned()).collect(),
            end: messages.iter().filter_map(|message| message.completed).max().unwrap_or_default(),
            warmup: self.model.run.warmup,
            messages,
            approximation: Some(approximation),
            ..Outcome::default()
        })
    }
}

/// Returns a span of `ps` picoseconds more, at least zero.
fn plus(span: Span, ps: i64) -> Span {
    Span::from_ps(span.as_ps().saturating_add_signed(ps))
}

fn key(flow: &Flow) -> FlowKey {
    (flow.workload, flow.index)
}

fn survey(model: &Model, network: &Network, transports: &[TcpConfig]) -> Result<Survey, RunError> {
    let warmup = Time::ZERO + model.run.warmup;
    let flows_of = vec![0_u32; network.links().len()];
    let mut survey = Survey { flows_of, flows: 0, measured: 0, bytes: 0, last: Time::ZERO };
    each_flow(model, |flow| {
        let transport = &transports[usize::from(flow.workload)];
        survey.flows += 1;
        survey.measured += u64::from(flow.start >= warmup);
        survey.bytes += flow.bytes + flow.bytes.div_ceil(transport.segment) * transport.ideal_header();
        survey.last = flow.start;
        for port in network.path(&flow.packet(0)) {
            survey.flows_of[port.0 as usize] += 1;
        }
    })?;
    Ok(survey)
}
