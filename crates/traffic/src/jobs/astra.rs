//! Workloads of ASTRA-sim 1.0 and SimAI: an iteration of training as a table of layers.
//!
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus: 64
//! 2                                                                    layers, each with twelve columns:
//! attn -1 5000 ALLREDUCE 8388608 5000 ALLREDUCE 8388608 5000 NONE 0 100
//! name, -, then time (ns), collective and bytes of the forward pass, input gradient and weight gradient; update time
//! ```
//!
//! The forward pass goes through the layers, and each waits for its collective. On the way back a layer's weight
//! gradient comes first, whose collective runs beside the others, and then its input gradient, whose collective is
//! waited for.

use std::io::BufRead;

use plimsoll_units::Span;

use super::goal::BadGoal;
use super::graph::{GraphBuilder, JobGraph, nanoseconds};
use super::schedule::{Algorithm, Collective, CollectiveOperation, LastOperations};
use crate::check::NumberedLine;

/// A table of layers, from which a job is made.
#[derive(Clone, Debug)]
pub struct AstraWorkload {
    /// The ranks that share a layer: of `model_parallel_NPU_group`, or all with `MODEL`.
    tensor: Option<u32>,
    expert: u32,
    /// The ranks, where the file has them.
    ranks: Option<u32>,
    layers: Vec<AstraLayer>,
}

#[derive(Clone, Debug)]
struct AstraLayer {
    forward: AstraStep,
    input_gradient: AstraStep,
    weight_gradient: AstraStep,
    update: Span,
}

/// A computation, and a collective operation behind it.
#[derive(Clone, Copy, Debug)]
struct AstraStep {
    time: Span,
    collective: Option<(CollectiveOperation, AstraMembers)>,
    bytes: u64,
}

/// The ranks of a collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AstraMembers {
    /// The ranks that share a layer; for weights its replicas.
    OfPass,
    /// The ranks that share experts.
    Expert,
    /// The replicas of an expert.
    ExpertReplicas,
}

const HEAD: &str =
    "a line such as `DATA`, `MODEL` or `HYBRID_TRANSFORMER model_parallel_NPU_group: 8 all_gpus: 64`";
const COUNT: &str = "the number of layers, such as 2";
const LAYER: &str = "12 columns: name, -1, and time, collective and bytes three times, then the update time";
const COLLECTIVES: &str = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with _EP or _DP_EP";

impl AstraWorkload {
    /// Reads a table of layers, a line at a time.
    ///
    /// # Errors
    /// Names the first word that does not fit.
    pub fn read(input: impl BufRead) -> Result<AstraWorkload, BadGoal> {
        let mut lines = AstraLines { input, text: String::new(), number: 0 };
        let missing = |problem: &str, allowed| BadGoal {
            at: None,
            line: None,
            problem: problem.to_owned(),
            allowed: Some(allowed),
        };
        if !lines.next()? {
            return Err(missing("an empty file", HEAD));
        }
        let mut workload = AstraWorkload::of_head(&lines)?;
        if !lines.next()? {
            return Err(missing("no number of layers", COUNT));
        }
        let count = lines.text.trim();
        let layers: usize = count
            .parse()
            .map_err(|_| lines.bad(count, format!("`{count}` is no number of layers"), COUNT))?;
        // The number is what is wrong where layers are missing.
        let bad_count = lines.bad(count, String::new(), "a line for each layer");
        for number in 0..layers {
            if !lines.next()? {
                return Err(BadGoal { problem: format!("{number} of {layers} layers"), ..bad_count });
            }
            workload.layers.push(AstraLayer::of_line(&lines)?);
        }
        Ok(workload)
    }

    /// Reads the parallelism of the first line.
    fn of_head<R: BufRead>(lines: &AstraLines<R>) -> Result<AstraWorkload, BadGoal> {
        let mut words = lines.text.split_whitespace();
        let parallel = words.next().unwrap_or_default();
        let mut workload = AstraWorkload {
            tensor: if parallel == "MODEL" { None } else { Some(1) },
            expert: 1,
            ranks: None,
            layers: Vec::new(),
        };
        let is_known = ["DATA", "MODEL", "MICRO"].contains(&parallel) || parallel.starts_with("HYBRID");
        if !is_known {
            return Err(lines.bad(parallel, format!("`{parallel}` is no parallelism"), HEAD));
        }
        while let Some(key) = words.next() {
            let Some(name) = key.strip_suffix(':') else { continue };
            let value = words.next().unwrap_or_default();
            let number: u32 = value.parse().map_err(|_| {
                lines.bad(if value.is_empty() { key } else { value }, format!("`{name}` has no number"), HEAD)
            })?;
            match name {
                "model_parallel_NPU_group" => workload.tensor = Some(number.max(1)),
                "ep" => workload.expert = number.max(1),
                "all_gpus" => workload.ranks = Some(number),
                "pp" if number > 1 => {
                    let problem = format!("{number} stages, whose messages the table does not have");
                    return Err(lines.bad(value, problem, "pp: 1; the kind `training` has pipelines"));
                }
                _ => {}
            }
        }
        Ok(workload)
    }

    /// Returns the ranks that the file names.
    pub fn ranks(&self) -> Option<u32> {
        self.ranks
    }

    /// Returns an iteration of the job on `ranks`.
    ///
    /// # Errors
    /// Fails if the ranks cannot be divided as the table says.
    pub fn job(&self, ranks: u32, all_reduce: Algorithm, chunks: u32) -> Result<JobGraph, String> {
        let tensor = self.tensor.unwrap_or(ranks);
        if ranks == 0 || !ranks.is_multiple_of(tensor) || !(ranks / tensor).is_multiple_of(self.expert) {
            let replicas = ranks / tensor.max(1);
            return Err(format!(
                "{ranks} ranks in groups of {tensor} that share a layer, and {replicas} replicas in groups of {} that \
                 share experts: each has to divide the one before",
                self.expert
            ));
        }
        // At most three collective operations a layer, of rings among the larger groups.
        let members = u64::from(tensor.max(ranks / tensor));
        let of_ring = (2 * members).saturating_mul(chunks.into()).saturating_mul(ranks.into());
        let about = of_ring.saturating_mul(3 * self.layers.len() as u64);
        if about > MESSAGES_MAX {
            return Err(format!(
                "up to {about} messages on {ranks} ranks, where at most {MESSAGES_MAX} are made"
            ));
        }
        let mut job = AstraJob {
            workload: self,
            builder: GraphBuilder::new(ranks),
            ranks,
            tensor,
            all_reduce,
            chunks,
            tag: 0,
            last: vec![None; ranks as usize],
        };
        job.build();
        job.builder.finish().map_err(|bad| bad.to_string())
    }
}

impl AstraLayer {
    fn of_line<R: BufRead>(lines: &AstraLines<R>) -> Result<AstraLayer, BadGoal> {
        let cells: Vec<&str> = lines.text.split_whitespace().collect();
        let &[_, _, ft, fc, fb, it, ic, ib, wt, wc, wb, update] = cells.as_slice() else {
            return Err(lines.bad(lines.text.trim(), format!("{} columns", cells.len()), LAYER));
        };
        let number = |word: &str| {
            word.parse::<u64>()
                .map_err(|_| lines.bad(word, format!("`{word}` is no whole number"), "0 or more"))
        };
        let time = |word: &str| number(word).map(nanoseconds);
        let step = |time_of: &str, name: &str, bytes: &str| {
            let collective = collective(name).ok_or_else(|| {
                lines.bad(name, format!("`{name}` is no collective operation"), COLLECTIVES)
            })?;
            Ok::<_, BadGoal>(AstraStep { time: time(time_of)?, collective, bytes: number(bytes)? })
        };
        Ok(AstraLayer {
            forward: step(ft, fc, fb)?,
            input_gradient: step(it, ic, ib)?,
            weight_gradient: step(wt, wc, wb)?,
            update: time(update)?,
        })
    }
}

/// The lines of a table that are not blank.
struct AstraLines<R> {
    input: R,
    /// The text of the line, with its line break.
    text: String,
    number: usize,
}

impl<R: BufRead> AstraLines<R> {
    /// Reads the next line; false at the end of the file.
    fn next(&mut self) -> Result<bool, BadGoal> {
        loop {
            self.text.clear();
            self.number += 1;
            match self.input.read_line(&mut self.text) {
                Ok(0) => return Ok(false),
                Ok(_) if self.text.trim().is_empty() => {}
                Ok(_) => return Ok(true),
                Err(error) => {
                    let problem = format!("line {}: {error}", self.number);
                    return Err(BadGoal { at: None, line: None, problem, allowed: None });
                }
            }
        }
    }

    /// Returns an error at `word`, a part of the line.
    fn bad(&self, word: &str, problem: String, allowed: &'static str) -> BadGoal {
        let start = word.as_ptr() as usize - self.text.as_ptr() as usize;
        let line = NumberedLine { number: self.number, text: self.text.trim_end().to_owned() };
        BadGoal { at: Some(start..start + word.len()), line: Some(line), problem, allowed: Some(allowed) }
    }
}

/// Returns the collective operation of a name, and who takes part; `None` for an unknown one.
fn collective(name: &str) -> Option<Option<(CollectiveOperation, AstraMembers)>> {
    let (name, members) = if let Some(name) = name.strip_suffix("_DP_EP") {
        (name, AstraMembers::ExpertReplicas)
    } else if let Some(name) = name.strip_suffix("_EP") {
        (name, AstraMembers::Expert)
    } else {
        (name, AstraMembers::OfPass)
    };
    let operation = match name {
        "NONE" => return Some(None),
        "ALLREDUCE" => CollectiveOperation::AllReduce,
        "ALLGATHER" => CollectiveOperation::AllGather,
        "REDUCESCATTER" => CollectiveOperation::ReduceScatter,
        "ALLTOALL" => CollectiveOperation::AllToAll,
        _ => return None,
    };
    Some(Some((operation, members)))
}

struct AstraJob<'a> {
    workload: &'a AstraWorkload,
    builder: GraphBuilder,
    ranks: u32,
    tensor: u32,
    all_reduce: Algorithm,
    chunks: u32,
    tag: u32,
    last: LastOperations,
}

/// The most messages of an iteration, by their bound.
const MESSAGES_MAX: u64 = 40_000_000;

/// The stream on which weights' collectives run beside the passes.
const WEIGHTS: u8 = 2;
/// That of collectives for which the next layer waits.
const PASSES: u8 = 1;

impl AstraJob<'_> {
    fn build(&mut self) {
        let layers = self.workload.layers.clone();
        for layer in &layers {
            self.step(&layer.forward);
        }
        for layer in layers.iter().rev() {
            self.compute(layer.weight_gradient.time);
            let before = self.last.clone();
            let weights = self.collective(&layer.weight_gradient, &before, true);
            self.step(&layer.input_gradient);
            self.update(&weights, layer.update);
        }
    }

    /// A computation, and the collective for which the next one waits.
    fn step(&mut self, step: &AstraStep) {
        self.compute(step.time);
        let last = self.last.clone();
        self.last = self.collective(step, &last, false);
    }

    fn compute(&mut self, time: Span) {
        self.builder.in_group("").on(0, 0);
        for rank in 0..self.ranks {
            let compute = self.builder.compute(rank, time);
            if let Some(last) = self.last[rank as usize].replace(compute) {
                self.builder.after(compute, last);
            }
        }
    }

    fn update(&mut self, weights: &LastOperations, time: Span) {
        self.builder.in_group("").on(0, 0);
        for (rank, weights) in (0..self.ranks).zip(weights) {
            let update = self.builder.compute(rank, time);
            if let Some(weights) = *weights {
                self.builder.after(update, weights);
            }
        }
    }

    /// The collective operation of a step among the ranks that take part, each after its `last` operation.
    fn collective(&mut self, step: &AstraStep, last: &LastOperations, is_of_weights: bool) -> LastOperations {
        let Some((operation, members)) = step.collective.filter(|_| step.bytes > 0) else {
            return last.clone();
        };
        let (tensor, expert) = (self.tensor, self.workload.expert);
        let replicas = self.ranks / tensor;
        // Rank = replica x tensor + part; replicas that share experts follow each other.
        let rank = |replica: u32, part: u32| replica * tensor + part;
        let (name, groups): (&str, Vec<Vec<u32>>) = match members {
            AstraMembers::OfPass if is_of_weights => (
                "dp",
                (0..tensor).map(|part| (0..replicas).map(|replica| rank(replica, part)).collect()).collect(),
            ),
            AstraMembers::OfPass => (
                "tp",
                (0..replicas).map(|replica| (0..tensor).map(|part| rank(replica, part)).collect()).collect(),
            ),
            AstraMembers::Expert => {
                let firsts = (0..replicas).step_by(expert as usize);
                let group =
                    |first: u32, part: u32| (first..first + expert).map(|of| rank(of, part)).collect();
                ("ep", firsts.flat_map(|first| (0..tensor).map(move |part| group(first, part))).collect())
            }
            AstraMembers::ExpertReplicas => {
                let group = |place: u32, part: u32| {
                    (place..replicas).step_by(expert as usize).map(|of| rank(of, part)).collect()
                };
                (
                    "dp_ep",
                    (0..expert).flat_map(|place| (0..tensor).map(move |part| group(place, part))).collect(),
                )
            }
        };
        self.builder.in_group(name).on(if is_of_weights { WEIGHTS } else { PASSES }, 0);
        let mut ends = last.clone();
        for members in groups {
            let count = members.len() as u64;
            let algorithm = match operation {
                CollectiveOperation::AllReduce
                    if count.is_power_of_two() || !self.all_reduce.needs_power_of_two() =>
                {
                    self.all_reduce
                }
                _ => operation.algorithms()[0],
            };
            // Here an all-gather's size is that of one rank.
            let is_gather = operation == CollectiveOperation::AllGather;
            let collective = Collective {
                operation,
                algorithm,
                bytes: if is_gather { step.bytes.saturating_mul(count) } else { step.bytes },
                chunks: self.chunks,
                per_server: 1,
                reduce_per_byte: Span::ZERO,
            };
            let last: LastOperations = members.iter().map(|&rank| last[rank as usize]).collect();
            let end = collective.add(&mut self.builder, &members, &last, &mut self.tag);
            members.iter().zip(end).for_each(|(&rank, end)| ends[rank as usize] = end);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8\n2\n\
                        attn -1 5000 ALLREDUCE 8000 5000 ALLREDUCE 8000 5000 ALLREDUCE 4000 100\n\
                        moe -1 5000 ALLTOALL_EP 6000 5000 NONE 0 5000 ALLGATHER_DP_EP 4000 100\n";

    #[test]
    fn layers_are_a_job_with_groups() {
        let workload = AstraWorkload::read(TEXT.as_bytes()).unwrap();
        assert_eq!(workload.ranks(), Some(8));
        let graph = workload.job(8, Algorithm::Ring, 1).unwrap();
        let mut groups: Vec<_> = graph.groups().to_vec();
        groups.sort();
        assert_eq!(groups, ["", "dp", "dp_ep", "ep", "tp"]);
        // tp: 2 messages of a half at each of 8 ranks, twice. dp: 6 rounds of a quarter at 8 ranks. ep: 3000 B at 8.
        // dp_ep: a gather of two times 4000 B, half of it at each of 8.
        assert_eq!(graph.bytes(), 2 * 2 * 4_000 * 8 + 6 * 1_000 * 8 + 3_000 * 8 + 4_000 * 8);
    }

    #[test]
    fn errors_say_where() {
        for (from, to, wrong, problem) in [
            ("HYBRID_TRANSFORMER", "TRIPLE", "TRIPLE", "`TRIPLE` is no parallelism"),
            ("pp: 1", "pp: 4", "4", "4 stages, whose messages the table does not have"),
            ("ALLTOALL_EP", "GATHER", "GATHER", "`GATHER` is no collective operation"),
            ("NONE 0", "NONE x", "x", "`x` is no whole number"),
            ("8\n2\n", "8\n3\n", "3", "2 of 3 layers"),
        ] {
            let text = TEXT.replace(from, to);
            let bad = AstraWorkload::read(text.as_bytes()).unwrap_err();
            let line = bad.line.unwrap();
            assert_eq!((&line.text[bad.at.unwrap()], bad.problem.as_str()), (wrong, problem), "{to}");
            assert_eq!(text.lines().nth(line.number - 1), Some(line.text.as_str()), "{to}");
        }
        assert!(AstraWorkload::read(TEXT.as_bytes()).unwrap().job(6, Algorithm::Ring, 1).is_err());
        // Rings of half a million ranks would take all memory before anything was written.
        let large =
            AstraWorkload::read(TEXT.as_bytes()).unwrap().job(u32::MAX - 3, Algorithm::Ring, 1).unwrap_err();
        assert!(large.starts_with("up to "), "{large}");
    }
}
