//! What one step of a mechanism costs this machine: Solstice's schedule of a demand, and a packet in QJump's limiter.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_circuits::{SchedulerKind, Switching, Workload};
use plimsoll_stats::Estimate;

use crate::parameters::Parameters;
use crate::task::{MakeTask, Measured, Task};

/// Solstice on demands of the paper's workload.
struct ScheduleCost {
    ports: usize,
    demands: u32,
    seed: u64,
}

/// Reads what makes the tasks of a figure by the number of ports.
pub(crate) fn schedules(_: Parameters) -> Result<MakeTask, String> {
    Ok(Arc::new(|point| {
        let demands = if point.quick { 11 } else { 501 };
        Some(Arc::new(ScheduleCost { ports: point.x.parse().ok()?, demands, seed: point.seed }))
    }))
}

impl Task for ScheduleCost {
    fn settings(&self) -> String {
        format!("the median time of {} schedules for {} ports", self.demands, self.ports)
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let workload = Workload::paper(self.ports);
        let mut scheduler = SchedulerKind::Solstice.make();
        let mut time = |number| {
            let demand = workload.demand(&Switching::PAPER, self.seed, number);
            let begin = Instant::now();
            black_box(scheduler.schedule(black_box(&demand), &Switching::PAPER));
            begin.elapsed().as_secs_f64() * 1e6
        };
        let times: Vec<f64> = (0..self.demands).map(&mut time).collect();
        Ok(median("schedule_us_p50", "us", times))
    }
}

/// The eBPF limiter on packets of one level, less an empty program.
struct LimiterCost {
    is_within_epoch: bool,
}

/// Reads what makes the tasks of a figure by whether a packet is stamped within its epoch.
pub(crate) fn packets(_: Parameters) -> Result<MakeTask, String> {
    Ok(Arc::new(|point| {
        let is_within_epoch = match point.x {
            "reads the clock" => false,
            "within its epoch by its stamp" => true,
            _ => return None,
        };
        Some(Arc::new(LimiterCost { is_within_epoch }))
    }))
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
impl Task for LimiterCost {
    fn settings(&self) -> String {
        format!("the median of {ROUNDS} times {RUNS} packets, stamped: {}", self.is_within_epoch)
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let cycles = self.cycles().map_err(|error| error.to_string())?;
        Ok(median("cycles", "cycles", cycles))
    }
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
const ROUNDS: usize = 31;
#[cfg(all(target_os = "linux", feature = "kernel"))]
const RUNS: u32 = 200_000;

#[cfg(all(target_os = "linux", feature = "kernel"))]
impl LimiterCost {
    /// Measures the processor's cycles of a packet beyond an empty program's, by round.
    fn cycles(&self) -> anyhow::Result<Vec<f64>> {
        use anyhow::Context as _;
        use plimsoll_bpf::{Inputs, LimiterProgram, Packet, Program};
        use plimsoll_mechanisms::qjump::{Excess, LevelShare, QjumpParams};
        use plimsoll_units::{Bytes, Rate, Span};

        let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
        let mhz = cpus
            .lines()
            .find_map(|line| line.strip_prefix("cpu MHz")?.split(':').nth(1)?.trim().parse().ok());
        let mhz: f64 = mhz.context("/proc/cpuinfo names no `cpu MHz`, which turns times into cycles")?;
        let levels = vec![LevelShare::Bytes(Bytes::new(1 << 40))];
        let params = QjumpParams { levels, epoch: Some(Span::from_us(5)), ..Default::default() };
        let levels = params.resolve(12, Rate::from_gbps(10))?;
        let limiter = LimiterProgram::load(&levels, Excess::Refuse, false, Inputs::Kernel)?;
        let empty = Program::empty()?;
        // An Ethernet frame of IPv4, whose content does not matter to the limiter.
        let mut frame = [0; 64];
        frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
        let packet = Packet { leaves_ns: u64::from(self.is_within_epoch), ..Packet::new(&frame) };
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let ns = |program: &Program| program.time(&packet, RUNS).map(|time| time.as_nanos() as f64);
            rounds.push((ns(limiter.program())? - ns(&empty)?) * mhz / 1e3);
        }
        Ok(rounds)
    }
}

#[cfg(not(all(target_os = "linux", feature = "kernel")))]
impl Task for LimiterCost {
    fn settings(&self) -> String {
        format!("packets of the limiter, stamped: {}", self.is_within_epoch)
    }

    fn check(&self) -> Result<(), String> {
        Err(crate::WITHOUT_PROGRAMS.to_owned())
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        self.check().map(|()| Vec::new())
    }
}

/// Returns the median of the samples as a number.
fn median(metric: &str, unit: &str, mut samples: Vec<f64>) -> Vec<Measured> {
    samples.sort_unstable_by(f64::total_cmp);
    let middle = samples.get(samples.len() / 2);
    let estimate = middle.map(|median| Estimate::bare(*median, samples.len() as u64));
    Measured::own(metric, unit, estimate).into_iter().collect()
}
