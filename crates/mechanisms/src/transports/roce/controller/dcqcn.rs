//! DCQCN (Zhu et al., SIGCOMM 2015): the rate is cut by congestion notification packets, and rises in steps.
//!
//! ```text
//! cut      target = rate;  rate *= 1 - alpha / 2;  both stages = 0
//! step     stage of the timer or of the byte counter + 1, then
//!            max(stages) < F   fast recovery                              rate = (target + rate) / 2
//!            min(stages) > F   hyper:     target += i x hyper_increase,   rate = (target + rate) / 2
//!            otherwise         additive:  target += increase,             rate = (target + rate) / 2
//! alpha    with a CNP (1 - g) alpha + g;  a period without one (1 - g) alpha
//! ```
//!
//! The paper's form cuts at each CNP, raises alpha then, and lets it fall in each `alpha_period` without one; in hyper
//! increase i = min(stages) - F counts the steps. The form of NVIDIA's NICs, which HPCC's released simulator has too,
//! starts free-running periods at the first CNP: at the end of each `alpha_period` alpha takes account of whether a CNP
//! came in it, and at the end of each `cut_period` the rate is cut if one came since the last cut. It has no byte
//! counter, its stage is the timer's, and hyper increase adds the same each time.
//!
//! A flow starts at the rate of its NIC, and has no timer until the first CNP. Alpha falls by periods that end between
//! two events, all at once when it is next needed: no event takes place for them.

use plimsoll_units::{Bytes, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::transports::describe::Description;
use crate::transports::roce::FAMILY;
use crate::transports::roce::rate_control::RateController;

/// The description of DCQCN.
pub const DCQCN: Description = Description {
    name: "dcqcn",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: true,
    needs_stamps: false,
};

/// Whose rules a DCQCN sender follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DcqcnForm {
    /// The paper's: each CNP cuts.
    Paper,
    /// Those of NVIDIA's NICs: free-running periods decide.
    Nic,
}

/// DCQCN's rules and timers. The defaults are those of NVIDIA's NICs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DcqcnParams {
    /// The rules: `nic`, of NVIDIA's NICs, or `paper`. Default `nic`.
    pub form: DcqcnForm,
    /// The gain g of alpha: more than 0, less than 1. The paper has 1/256. Default 5/1024.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// The time after which alpha falls without a CNP: more than 0. The paper has 55 us. Default 1 us.
    pub alpha_period: Span,
    /// Form `nic`: the period at whose end the rate is cut if a CNP came: more than 0. Default 4 us.
    pub cut_period: Span,
    /// The time between two steps of increase: more than 0. The paper has 55 us. Default 300 us.
    pub timer: Span,
    /// Form `paper`: the bytes sent between two steps of increase: more than 0. Default 10 MB.
    pub byte_counter: Bytes,
    /// The steps F of fast recovery: 1 or more. The paper has 5. Default 1.
    pub fast_recovery: u32,
    /// What an additive step adds to the target: more than 0. The paper has 40 Mb/s at 40 Gb/s. Default 5 Mb/s.
    pub increase: Rate,
    /// What a hyper step adds to the target: more than 0. Default 50 Mb/s.
    pub hyper_increase: Rate,
    /// The lowest rate: more than 0. Default 1 Mb/s.
    pub min_rate: Rate,
    /// Form `nic`: whether each cut takes the rate as the target, also where no step has been made since the last cut.
    /// Default false.
    pub clamp_target: bool,
}

impl Default for DcqcnParams {
    fn default() -> DcqcnParams {
        DcqcnParams {
            form: DcqcnForm::Nic,
            gain: 5.0 / 1_024.0,
            alpha_period: Span::from_us(1),
            cut_period: Span::from_us(4),
            timer: Span::from_us(300),
            byte_counter: Bytes::new(10_000_000),
            fast_recovery: 1,
            increase: Rate::from_mbps(5),
            hyper_increase: Rate::from_mbps(50),
            min_rate: Rate::from_mbps(1),
            clamp_target: false,
        }
    }
}

impl DcqcnParams {
    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        let ok = self.gain > 0.0 && self.gain < 1.0;
        Invalid::unless(ok, "roce.dcqcn.gain", self.gain, "more than 0 and less than 1")?;
        for (key, span) in [
            ("roce.dcqcn.alpha_period", self.alpha_period),
            ("roce.dcqcn.cut_period", self.cut_period),
            ("roce.dcqcn.timer", self.timer),
        ] {
            Invalid::unless(!span.is_zero(), key, span, "more than 0")?;
        }
        let bytes = self.byte_counter;
        Invalid::unless(bytes > Bytes::ZERO, "roce.dcqcn.byte_counter", bytes, "more than 0")?;
        let steps = self.fast_recovery;
        Invalid::unless(steps >= 1, "roce.dcqcn.fast_recovery", steps, "1 or more")?;
        for (key, rate) in [
            ("roce.dcqcn.increase", self.increase),
            ("roce.dcqcn.hyper_increase", self.hyper_increase),
            ("roce.dcqcn.min_rate", self.min_rate),
        ] {
            Invalid::unless(rate > Rate::ZERO, key, rate, "more than 0")?;
        }
        Ok(())
    }
}

/// The reaction point of one flow.
#[derive(Debug)]
pub struct Dcqcn {
    params: DcqcnParams,
    line: Rate,
    rate: Rate,
    target: Rate,
    alpha: f64,
    /// The end of the last period of which alpha takes account.
    alpha_since: Time,
    /// A CNP came in the period of alpha that is running; form `nic`.
    notified: bool,
    timer_stage: u32,
    byte_stage: u32,
    /// Bytes sent since the last step by the byte counter.
    bytes: u64,
    /// The time of the next step by the timer; [`Time::MAX`] while the rate is the line's.
    step_at: Time,
    /// The end of the period in which a CNP has come; [`Time::MAX`] if none has; form `nic`.
    cut_at: Time,
    /// When the periods of form `nic` began, with the first CNP.
    began: Option<Time>,
    /// A step was made since the last cut.
    stepped: bool,
}

impl Dcqcn {
    /// Makes the reaction point of a flow at a NIC of rate `line`, at which it starts.
    pub fn new(params: DcqcnParams, line: Rate) -> Dcqcn {
        Dcqcn {
            params,
            line,
            rate: line,
            target: line,
            alpha: 1.0,
            alpha_since: Time::ZERO,
            notified: false,
            timer_stage: 0,
            byte_stage: 0,
            bytes: 0,
            step_at: Time::MAX,
            cut_at: Time::MAX,
            began: None,
            stepped: true,
        }
    }

    /// Has alpha take account of the periods that have ended by `now`.
    fn pass(&mut self, now: Time) {
        let params = &self.params;
        let periods = now.saturating_since(self.alpha_since).as_ps() / params.alpha_period.as_ps();
        if periods == 0 {
            return;
        }
        let keep = 1.0 - params.gain;
        if std::mem::take(&mut self.notified) {
            self.alpha = keep * self.alpha + params.gain;
        } else {
            self.alpha *= keep;
        }
        self.alpha *= keep.powi(i32::try_from(periods - 1).unwrap_or(i32::MAX));
        self.alpha_since += params.alpha_period.saturating_mul(periods);
    }

    /// Cuts the rate at `now`.
    fn cut(&mut self, now: Time, keeps_target: bool) {
        if !keeps_target {
            self.target = self.rate;
        }
        self.rate = self.rate.scaled(1.0 - self.alpha / 2.0).max(self.params.min_rate).min(self.rate);
        (self.timer_stage, self.byte_stage, self.bytes, self.stepped) = (0, 0, 0, false);
        self.step_at = now + self.params.timer;
    }

    /// Takes a step of increase.
    fn step(&mut self) {
        let params = &self.params;
        let (low, high) = match params.form {
            DcqcnForm::Paper => {
                (self.timer_stage.min(self.byte_stage), self.timer_stage.max(self.byte_stage))
            }
            DcqcnForm::Nic => (self.timer_stage, self.timer_stage),
        };
        let steps = params.fast_recovery;
        let added = match params.form {
            _ if high < steps => 0,
            DcqcnForm::Paper if low > steps => {
                params.hyper_increase.as_bps().saturating_mul(u64::from(low - steps))
            }
            DcqcnForm::Nic if low > steps => params.hyper_increase.as_bps(),
            _ => params.increase.as_bps(),
        };
        self.target = Rate::from_bps(self.target.as_bps().saturating_add(added)).min(self.line);
        // Rounded up, so that the rate reaches the line's.
        self.rate = Rate::from_bps((self.target.as_bps() + self.rate.as_bps()).div_ceil(2));
        self.stepped = true;
        if self.rate == self.line {
            self.step_at = Time::MAX;
        }
    }
}

impl RateController for Dcqcn {
    fn on_cnp(&mut self, now: Time) {
        let (form, gain) = (self.params.form, self.params.gain);
        match (form, self.began) {
            (DcqcnForm::Paper, began) => {
                if began.is_some() {
                    self.pass(now);
                }
                self.began = Some(now);
                self.cut(now, false);
                self.alpha = (1.0 - gain) * self.alpha + gain;
                self.alpha_since = now;
            }
            (DcqcnForm::Nic, None) => {
                self.began = Some(now);
                self.alpha_since = now;
                self.notified = true;
                self.cut_at = now + self.params.cut_period;
                self.step_at = now + self.params.timer;
            }
            (DcqcnForm::Nic, Some(began)) => {
                self.pass(now);
                self.notified = true;
                let period = self.params.cut_period;
                let periods = now.saturating_since(began).as_ps() / period.as_ps();
                self.cut_at = self.cut_at.min(began + period.saturating_mul(periods + 1));
            }
        }
    }

    fn on_sent(&mut self, _now: Time, bytes: u64) {
        if self.params.form != DcqcnForm::Paper || self.step_at == Time::MAX {
            return;
        }
        self.bytes += bytes;
        if self.bytes >= self.params.byte_counter.get() {
            self.bytes = 0;
            self.byte_stage += 1;
            self.step();
        }
    }

    fn deadline(&self) -> Time {
        self.step_at.min(self.cut_at)
    }

    fn on_deadline(&mut self, now: Time) {
        if now >= self.cut_at {
            self.cut_at = Time::MAX;
            self.pass(now);
            let keeps_target = !self.params.clamp_target && !self.stepped;
            self.cut(now, keeps_target);
        }
        if now >= self.step_at {
            self.timer_stage += 1;
            self.step_at = now + self.params.timer;
            self.step();
        }
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn alpha(&self) -> f64 {
        self.alpha
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Rate;

    use super::*;

    const LINE: Rate = Rate::from_gbps(40);

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// The parameters of the paper's fluid model: 40 Gb/s.
    fn paper() -> DcqcnParams {
        DcqcnParams {
            form: DcqcnForm::Paper,
            gain: 1.0 / 256.0,
            alpha_period: Span::from_us(55),
            timer: Span::from_us(55),
            fast_recovery: 5,
            increase: Rate::from_mbps(40),
            hyper_increase: Rate::from_mbps(400),
            ..DcqcnParams::default()
        }
    }

    fn gbps(flow: &Dcqcn) -> f64 {
        flow.rate().as_bps() as f64 / 1e9
    }

    /// Passes all deadlines up to `until`.
    fn run(flow: &mut Dcqcn, until: Time) {
        while flow.deadline() <= until {
            let due = flow.deadline();
            flow.on_deadline(due);
        }
    }

    #[test]
    fn the_papers_form_cuts_at_each_cnp_and_recovers_by_halves() {
        let mut flow = Dcqcn::new(paper(), LINE);
        assert_eq!(flow.deadline(), Time::MAX, "no CNP, no timer");
        flow.on_cnp(at(0));
        assert_eq!(gbps(&flow), 20.0, "alpha is 1");
        // Fast recovery to the target of 40: four steps, of the timer alone.
        for (step, rate) in [(1, 30.0), (2, 35.0), (3, 37.5), (4, 38.75)] {
            run(&mut flow, at(55 * step));
            assert_eq!(gbps(&flow), rate, "step {step}");
        }
        // Then additive: the target stays at the line's rate.
        run(&mut flow, at(55 * 5));
        assert_eq!(gbps(&flow), 39.375);
        // Two CNPs 50 us apart: alpha has had no period without one.
        let (mut flow, keep) = (Dcqcn::new(paper(), LINE), 1.0_f64 - 1.0 / 256.0);
        flow.on_cnp(at(0));
        flow.on_cnp(at(50));
        assert_eq!((gbps(&flow), flow.alpha()), (10.0, 1.0));
        assert_eq!(flow.target.as_mbps_f64(), 20_000.0);
        // 3 periods of 55 us later.
        flow.on_cnp(at(50 + 170));
        let alpha: f64 = keep.powi(3);
        assert!((flow.alpha() - (alpha * keep + 1.0 / 256.0)).abs() < 1e-12);
    }

    #[test]
    fn the_papers_increases_go_by_the_lower_and_the_higher_stage() {
        let mut flow = Dcqcn::new(paper(), LINE);
        flow.on_cnp(at(0));
        flow.on_cnp(at(1));
        let target = |flow: &Dcqcn| flow.target.as_bps() / 1_000_000;
        assert_eq!(target(&flow), 20_000);
        run(&mut flow, at(1 + 55 * 4));
        assert_eq!(target(&flow), 20_000, "both stages are below 5");
        run(&mut flow, at(1 + 55 * 7));
        assert_eq!(target(&flow), 20_000 + 3 * 40, "the timer's stage is 7: additive");
        // The byte counter follows: its 6th stage begins hyper increase, by one more each time.
        (0..5).for_each(|_| flow.on_sent(at(400), 10_000_000));
        assert_eq!(target(&flow), 20_120 + 5 * 40);
        flow.on_sent(at(400), 9_999_999);
        flow.on_sent(at(400), 1);
        assert_eq!(target(&flow), 20_320 + 400);
        flow.on_sent(at(400), 10_000_000);
        assert_eq!(target(&flow), 20_720 + 2 * 400);
    }

    #[test]
    fn the_nics_form_cuts_at_the_ends_of_periods() {
        let params = DcqcnParams { gain: 1.0 / 256.0, ..DcqcnParams::default() };
        let mut flow = Dcqcn::new(params, LINE);
        flow.on_cnp(at(100));
        assert_eq!((gbps(&flow), flow.deadline()), (40.0, at(104)));
        // A CNP in the first of the four periods of alpha, none in the others.
        let keep: f64 = 1.0 - 1.0 / 256.0;
        run(&mut flow, at(104));
        let alpha = keep.powi(3);
        assert!((flow.alpha() - alpha).abs() < 1e-12, "{} {alpha}", flow.alpha());
        assert!((gbps(&flow) - 40.0 * (1.0 - alpha / 2.0)).abs() < 1e-6);
        // A second cut before any step keeps the target; CNPs of one period cut once.
        flow.on_cnp(at(105));
        flow.on_cnp(at(107));
        run(&mut flow, at(108));
        assert_eq!(flow.target, LINE);
        assert!((gbps(&flow) - 40.0 * (1.0 - alpha / 2.0) * (1.0 - flow.alpha() / 2.0)).abs() < 1e-6);
        assert_eq!(flow.deadline(), at(408), "the timer begins anew with a cut");
        // One step of fast recovery would be `stage < 1`: the first step is additive, the next ones are hyper.
        let before = flow.rate().as_bps();
        run(&mut flow, at(408));
        assert_eq!(flow.rate().as_bps(), (before + LINE.as_bps()).div_ceil(2));
    }

    #[test]
    fn alpha_passes_periods_as_if_each_had_its_event() {
        let params = DcqcnParams::default();
        let mut lazy = Dcqcn::new(params.clone(), LINE);
        lazy.on_cnp(at(0));
        let (mut alpha, mut notified) = (1.0, true);
        for us in 1..200u64 {
            alpha = (1.0 - params.gain) * alpha + if notified { params.gain } else { 0.0 };
            notified = us % 7 == 3;
            if notified {
                // After the end of the period that ends at this time.
                lazy.on_cnp(at(us));
                assert!((lazy.alpha() - alpha).abs() < 1e-9, "{us}: {} {alpha}", lazy.alpha());
            }
        }
    }

    #[test]
    fn the_rate_returns_to_the_line_and_its_timer_stops() {
        for params in [paper(), DcqcnParams::default()] {
            let mut flow = Dcqcn::new(params, LINE);
            flow.on_cnp(at(0));
            run(&mut flow, at(100_000));
            assert_eq!((flow.rate(), flow.deadline()), (LINE, Time::MAX));
        }
    }
}
