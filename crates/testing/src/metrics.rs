//! The names of metrics, in an OpenMetrics exposition and in the queries of a Grafana dashboard.

use std::collections::BTreeSet;

/// Returns the names of the samples that the families of an exposition have.
pub fn shown(exposition: &str) -> BTreeSet<String> {
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
        .collect()
}

/// Returns the names with this prefix in the queries of a dashboard, which is JSON with a line for each value.
pub fn asked(dashboard: &str, prefix: &str) -> BTreeSet<String> {
    let queries = dashboard.lines().filter_map(|line| line.trim_start().strip_prefix("\"expr\": "));
    let words = queries.flat_map(|query| query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(prefix)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_both() {
        let exposition =
            "# TYPE a_requests counter\na_requests_total 1\n# TYPE a info\n# TYPE a_bytes gauge\n# EOF\n";
        assert_eq!(shown(exposition), ["a_requests_total", "a_info", "a_bytes"].map(str::to_owned).into());
        let dashboard =
            "  \"title\": \"a_title\",\n  \"expr\": \"rate(a_requests_total{b=~\\\"$a_b\\\"}[5m]) / c\"\n";
        assert_eq!(asked(dashboard, "a_"), ["a_requests_total", "a_b"].map(str::to_owned).into());
    }
}
