//! The two distribution functions that confidence intervals need: the incomplete beta function and,
//! from it, Student's t.
//!
//! All of it goes through `libm`, so that an interval has the same last digit on every machine.
//! The continued fraction is the one of Abramowitz and Stegun 26.5.8, evaluated by Lentz's method.

use std::cell::RefCell;

/// The regularised incomplete beta function: the probability that a Beta(`a`, `b`) variable is at
/// most `x`. `a` and `b` are positive; `x` outside 0..1 is clamped.
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    let front = libm::exp(log_front);
    // The fraction converges fast on one side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, 1.0 - x) / b
    }
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..MAX_TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        fraction *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// Terms needed grow with the square root of the larger parameter; this suffices for 10^9 samples.
const MAX_TERMS: u32 = 200_000;

/// The value that a Student t variable with `freedom` degrees of freedom exceeds in absolute value
/// with probability 1 - `level`: 1.96 for many degrees of freedom and a level of 0.95.
pub fn student_t(freedom: f64, level: f64) -> f64 {
    KNOWN.with_borrow_mut(|known| {
        if let Some(&(_, t)) = known.iter().find(|(of, _)| *of == (freedom, level)) {
            return t;
        }
        let t = inverse_student_t(freedom, level);
        if known.len() == KNOWN_MAX {
            known.clear();
        }
        known.push(((freedom, level), t));
        t
    })
}

/// Number of values that are cached. A summary needs the same two for each of thousands of queues.
const KNOWN_MAX: usize = 16;

thread_local! {
    static KNOWN: RefCell<Vec<((f64, f64), f64)>> = const { RefCell::new(Vec::new()) };
}

fn inverse_student_t(freedom: f64, level: f64) -> f64 {
    let inside = |t: f64| 1.0 - incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    let (mut low, mut high) = (0.0, 1.0);
    while inside(high) < level {
        high *= 2.0;
    }
    loop {
        let middle = 0.5 * (low + high);
        // No other number lies between them.
        if middle <= low || middle >= high {
            return middle;
        }
        if inside(middle) < level {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_matches_the_printed_tables() {
        for (freedom, table) in
            [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (19.0, 2.0930), (30.0, 2.0423), (1e6, 1.9600)]
        {
            let computed = student_t(freedom, 0.95);
            assert!((computed - table).abs() < 6e-5, "{freedom}: {computed} for {table}");
        }
    }

    #[test]
    fn a_remembered_value_is_the_computed_one_however_many_are_asked_for() {
        for _ in 0..2 {
            for freedom in (1..3 * KNOWN_MAX).map(|freedom| freedom as f64) {
                for level in [0.95, 0.999] {
                    assert_eq!(student_t(freedom, level), inverse_student_t(freedom, level));
                    assert_eq!(student_t(freedom, level), inverse_student_t(freedom, level));
                }
            }
        }
    }

    #[test]
    fn incomplete_beta_has_its_closed_forms() {
        // I_x(1, b) = 1 - (1-x)^b and I_x(a, 1) = x^a.
        for x in [0.01, 0.3, 0.5, 0.9, 0.999] {
            assert!((incomplete_beta(1.0, 7.0, x) - (1.0 - (1.0 - x).powi(7))).abs() < 1e-12);
            assert!((incomplete_beta(5.0, 1.0, x) - x.powi(5)).abs() < 1e-12);
        }
        assert!((incomplete_beta(50_000.0, 50_000.0, 0.5) - 0.5).abs() < 1e-9);
        // A large one, where the fraction needs many terms: the median is close to the mean.
        let large = incomplete_beta(990_000.0, 10_000.0, 0.99);
        assert!((large - 0.5).abs() < 0.01, "{large}");
    }
}
