//! Dependent/sequential: a chain of requests, each of which needs the answer to the one before (dissertation, section
//! 4.2, Eq. 4.2).
//!
//! ```text
//! W = (rho + lambda mu Var(S)) / (2 (mu - lambda))        rho = lambda / mu
//! ```
//!
//! This is Pollaczek and Khinchine's mean wait of an M/G/1 queue if mu is the *rate* of service; the text calls it the
//! service time, with which the formula has no unit. It is used here with the rate, and a test holds it to the usual
//! form lambda E(S^2) / (2 (1 - rho)).

/// A server with one thread, Poisson arrivals and any distribution of service times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Server {
    /// The mean service time in us, more than 0.
    pub mean_us: f64,
    /// Its standard deviation in us, 0 or more.
    pub sd_us: f64,
}

impl Server {
    /// Computes the mean wait in us at a load (the server's utilisation), 0 <= `load` < 1; infinite from 1 on.
    pub fn wait_us(&self, load: f64) -> f64 {
        if load >= 1.0 {
            return f64::INFINITY;
        }
        let mu = 1.0 / self.mean_us;
        let lambda = load * mu;
        (load + lambda * mu * self.sd_us * self.sd_us) / (2.0 * (mu - lambda))
    }

    /// Computes the mean wait and service in us.
    pub fn latency_us(&self, load: f64) -> f64 {
        self.wait_us(load) + self.mean_us
    }

    /// Computes how many requests, one after the other, a budget of `budget_us` has room for in the mean.
    pub fn calls(&self, load: f64, budget_us: f64) -> u64 {
        calls(self.latency_us(load), budget_us)
    }
}

/// Computes how many requests of `latency_us` fit one after the other into `budget_us`.
pub fn calls(latency_us: f64, budget_us: f64) -> u64 {
    // A number that is whole except for rounding counts as whole; an infinite latency never fits.
    (budget_us / latency_us * (1.0 + 1e-12)).floor() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_printed_formula_is_pollaczek_and_khinchine_with_a_rate(
            mean_us in 0.1f64..1000.0, ratio in 0.0f64..5.0, load in 0.0f64..0.99,
        ) {
            let server = Server { mean_us, sd_us: ratio * mean_us };
            let second_moment = mean_us * mean_us + server.sd_us * server.sd_us;
            let usual = load / mean_us * second_moment / (2.0 * (1.0 - load));
            prop_assert!((server.wait_us(load) - usual).abs() <= 1e-9 * usual.max(1e-9));
        }
    }

    /// M/D/1 and M/M/1 at half load, in service times.
    #[test]
    fn half_load_waits_half_or_one_service_time() {
        let wait = |sd_us| Server { mean_us: 1.0, sd_us }.wait_us(0.5);
        assert_eq!([wait(0.0), wait(1.0)], [0.5, 1.0]);
    }

    #[test]
    fn a_budget_has_room_for_whole_calls() {
        let server = Server { mean_us: 1.0, sd_us: 1.0 };
        assert_eq!(server.calls(0.5, 100.0), 50);
        assert_eq!(server.calls(1.0, 100.0), 0);
    }
}
