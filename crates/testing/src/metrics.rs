//! The names of metrics, in an OpenMetrics exposition, and in the queries of a Grafana dashboard and of alert rules.

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
    queries.flat_map(|query| names(query, prefix)).collect()
}

/// Returns the names with this prefix in the queries of alert rules: YAML in which a query is behind `expr:`, and on
/// the lines below it that are indented more.
pub fn alerted(rules: &str, prefix: &str) -> BTreeSet<String> {
    let mut queries = BTreeSet::new();
    let mut within = None;
    for line in rules.lines() {
        let indent = line.len() - line.trim_start().len();
        let query = line.trim_start().strip_prefix("expr:");
        within = if query.is_some() { Some(indent) } else { within.filter(|at| indent > *at) };
        if within.is_some() {
            queries.extend(names(query.unwrap_or(line), prefix));
        }
    }
    queries
}

fn names<'t>(query: &'t str, prefix: &'t str) -> impl Iterator<Item = String> + 't {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(move |word| word.starts_with(prefix)).map(str::to_owned)
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
        let rules = "  - alert: a_name\n    expr: >-\n      a_one > 1\n      and a_two\n    for: a_time\n\
                     \x20   expr: a_three\n";
        assert_eq!(alerted(rules, "a_"), ["a_one", "a_two", "a_three"].map(str::to_owned).into());
    }
}
