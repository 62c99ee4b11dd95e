//! [`Exposition`] writes metric families as OpenMetrics text.

use std::fmt::{Display, Write as _};

/// The text of metric families, one after the other.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    /// The name of the family to which samples belong, with the suffix of its kind.
    name: String,
}

/// The kinds of metric family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// A number that only grows, from the start of the process; its samples end in `_total`.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Labels that describe the process; its samples end in `_info` and are 1.
    Info,
}

impl MetricKind {
    fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Info => "info",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            MetricKind::Counter => "_total",
            MetricKind::Gauge => "",
            MetricKind::Info => "_info",
        }
    }
}

impl Exposition {
    /// Begins a family: its name without the suffix of its kind, which ends in the unit if it has one.
    pub fn family(&mut self, name: &str, kind: MetricKind, help: &str) -> &mut Exposition {
        let _ = writeln!(self.text, "# TYPE {name} {}", kind.name());
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
        self.name.clear();
        self.name.push_str(name);
        self.name.push_str(kind.suffix());
        self
    }

    /// Writes a sample of the family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Exposition {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
        self
    }

    /// Writes a family of one counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, MetricKind::Counter, help).sample(&[], value);
    }

    /// Writes a family of one gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, MetricKind::Gauge, help).sample(&[], value);
    }

    /// Returns the whole text.
    pub fn finish(self) -> String {
        self.text + "# EOF\n"
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_with_the_suffix_of_their_kind() {
        let mut text = Exposition::default();
        text.family("server_requests", MetricKind::Counter, "Requests.").sample(&[("thread", "0")], 7_u64);
        text.gauge("server_memory_bytes", "Memory.", 1.5);
        text.family("server", MetricKind::Info, "The server.").sample(&[("version", "a\"b\\c\nd")], 1);
        let expected = "\
# TYPE server_requests counter
# HELP server_requests Requests.
server_requests_total{thread=\"0\"} 7
# TYPE server_memory_bytes gauge
# HELP server_memory_bytes Memory.
server_memory_bytes 1.5
# TYPE server info
# HELP server The server.
server_info{version=\"a\\\"b\\\\c\\nd\"} 1
# EOF
";
        assert_eq!(text.finish(), expected);
    }
}
