//! The metrics of a process under the names that Prometheus's client libraries give them.

use std::fs;

use super::Exposition;

/// Writes processor time, resident memory, open files and the start time of this process; none that the kernel does
/// not report.
pub fn process(out: &mut Exposition) {
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    if let Some(stat) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(Stat::parse) {
        out.counter(
            "process_cpu_seconds",
            "Processor time in user and system mode, in seconds.",
            stat.processor_ticks as f64 / ticks,
        );
        out.gauge(
            "process_resident_memory_bytes",
            "Resident memory in bytes.",
            stat.resident_pages * rustix::param::page_size() as u64,
        );
        if let Some(boot) = fs::read_to_string("/proc/stat").ok().as_deref().and_then(boot_seconds) {
            out.gauge(
                "process_start_time_seconds",
                "When the process started, in seconds since 1970.",
                boot as f64 + stat.start_ticks as f64 / ticks,
            );
        }
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        out.gauge("process_open_fds", "Open file descriptors.", files.count());
    }
}

/// The fields of /proc/PID/stat that are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stat {
    processor_ticks: u64,
    start_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(line: &str) -> Option<Stat> {
        // The second field is the program's name, which may hold anything but ends with the last parenthesis.
        let fields: Vec<&str> = line[line.rfind(')')? + 1..].split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            processor_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
            resident_pages: field(24)?,
        })
    }
}

fn boot_seconds(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let line = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22";
        // Field 3 is the state, so field 14 is the 11th number behind it.
        let expected = Stat { processor_ticks: 11 + 12, start_ticks: 19, resident_pages: 21 };
        assert_eq!(Stat::parse(line), Some(expected));
        assert_eq!(Stat::parse("7 (short) S 1"), None);
        assert_eq!(boot_seconds("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000));
    }

    #[test]
    fn this_process_has_all_of_them() {
        let mut out = Exposition::default();
        process(&mut out);
        let text = out.finish();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse::<f64>().ok())
        };
        assert!(value("process_resident_memory_bytes").is_some_and(|bytes| bytes > 1e5), "{text}");
        assert!(value("process_start_time_seconds").is_some_and(|start| start > 1.6e9), "{text}");
        assert!(
            value("process_cpu_seconds_total").is_some() && value("process_open_fds").is_some(),
            "{text}"
        );
    }
}
