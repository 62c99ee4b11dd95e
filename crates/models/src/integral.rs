//! [`of_pieces`]: integrals of functions that are polynomials, or nearly so, between the pieces' ends.

/// Integrates a function over each piece between two neighbouring `knots`, by Gauss and Legendre with four nodes: exact
/// where the function is a polynomial of degree 7 or less within a piece.
pub(crate) fn of_pieces(knots: &[f64], of: impl Fn(f64) -> f64) -> impl Iterator<Item = f64> {
    knots.windows(2).map(move |ends| {
        let (middle, half) = ((ends[0] + ends[1]) / 2.0, (ends[1] - ends[0]) / 2.0);
        NODES
            .iter()
            .map(|(node, weight)| weight * (of(middle - half * node) + of(middle + half * node)))
            .sum::<f64>()
            * half
    })
}

/// Sorts, and keeps one of equal values.
pub(crate) fn sorted(mut knots: Vec<f64>) -> Vec<f64> {
    knots.sort_unstable_by(f64::total_cmp);
    knots.dedup();
    knots
}

/// Nodes and weights between -1 and 1; each node represents its negative, too.
const NODES: [(f64, f64); 2] = [
    (0.339_981_043_584_856_26, 0.652_145_154_862_546_1),
    (0.861_136_311_594_052_6, 0.347_854_845_137_453_85),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_of_degree_7_are_exact() {
        let sum: f64 = of_pieces(&[0.0, 0.3, 2.0], |x| libm::pow(x, 7.0)).sum();
        assert!((sum - 32.0).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn a_jump_at_a_knot_is_exact() {
        let sum: f64 = of_pieces(&[0.0, 0.7, 1.0], |x| if x < 0.7 { 1.0 } else { 3.0 }).sum();
        assert!((sum - 1.6).abs() < 1e-12, "{sum}");
    }
}
