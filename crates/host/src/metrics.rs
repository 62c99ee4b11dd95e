//! Writes a [`Status`] as OpenMetrics text, and serves it on a local socket.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::Error;
use crate::status::Status;

/// Writes all of `statuses` as one OpenMetrics exposition.
pub fn open_metrics(statuses: &[Status]) -> String {
    let mut text = String::new();
    for (name, kind, help, samples) in FAMILIES {
        let _ = writeln!(text, "# TYPE plimsoll_{name} {kind}");
        let _ = writeln!(text, "# HELP plimsoll_{name} {help}");
        let total = if *kind == "counter" { "_total" } else { "" };
        for status in statuses {
            for (labels, value) in samples(status) {
                let policy = [("policy", status.policy.to_string())];
                let labels: Vec<String> = policy
                    .iter()
                    .chain(&labels)
                    .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                    .collect();
                let _ = writeln!(text, "plimsoll_{name}{total}{{{}}} {value}", labels.join(","));
            }
        }
    }
    text + "# EOF\n"
}

type Labels = Vec<(&'static str, String)>;
type Samples = fn(&Status) -> Vec<(Labels, f64)>;

/// The metric families: name without prefix, kind, help text, and samples.
const FAMILIES: &[(&str, &str, &str, Samples)] = &[
    ("applied", "gauge", "1 where the whole policy is applied and confirmed.", |status| {
        vec![(Vec::new(), f64::from(status.complete && status.confirmed))]
    }),
    ("attached", "gauge", "1 where the part of the policy is in place, 0 where it is gone.", attached),
    ("qjump_epoch_seconds", "gauge", "The network epoch.", |status| {
        status.epoch_ns.map(|epoch| (device(status), epoch as f64 / 1e9)).into_iter().collect()
    }),
    ("qjump_budget_bytes", "gauge", "What a level may send in an epoch.", |status| {
        let limited = status.levels.iter().filter_map(|level| Some((level.level, level.budget_bytes?)));
        limited.map(|(level, budget)| (of_level(status, level, None), budget as f64)).collect()
    }),
    ("qjump_packets", "counter", "Packets that passed, or that were refused beyond the budget.", |status| {
        let both = |level: &crate::LevelStatus| {
            [("passed", level.passed_packets), ("refused", level.refused_packets)]
                .map(|(verdict, count)| (of_level(status, level.level, Some(verdict)), count as f64))
        };
        status.levels.iter().flat_map(both).collect()
    }),
    ("qjump_bytes", "counter", "Bytes that passed.", |status| {
        let one =
            |level: &crate::LevelStatus| (of_level(status, level.level, None), level.passed_bytes as f64);
        status.levels.iter().map(one).collect()
    }),
    ("phantom_queue_length_bytes", "gauge", "The length of the phantom queue.", |status| {
        status.phantom_queues.iter().map(|queue| (of_port(queue, None), queue.length_bytes as f64)).collect()
    }),
    (
        "phantom_queue_packets",
        "counter",
        "Packets over the threshold: marked, or not capable of a mark.",
        |status| {
            let both = |queue: &crate::PhantomQueueStatus| {
                [("marked", queue.marked_packets), ("not-capable", queue.not_capable_packets)]
                    .map(|(result, count)| (of_port(queue, Some(result)), count as f64))
            };
            status.phantom_queues.iter().flat_map(both).collect()
        },
    ),
    ("pacer_packets", "counter", "Packets that got a departure time, or bypassed.", |status| {
        let both = |pacer: &crate::PacerStatus| {
            [("paced", pacer.paced_packets), ("bypassed", pacer.bypassed_packets)].map(|(result, count)| {
                (vec![("device", pacer.device.to_string()), ("result", result.to_owned())], count as f64)
            })
        };
        status.pacer.iter().flat_map(both).collect()
    }),
    ("dctcp_events", "counter", "DCTCP over all its connections; any `guarded` is suspect.", |status| {
        let all = |dctcp: &crate::DctcpStatus| {
            [
                ("connections", dctcp.connections),
                ("updates", dctcp.updates),
                ("cuts", dctcp.cuts),
                ("losses", dctcp.losses),
                ("guarded", dctcp.guarded),
            ]
            .map(|(event, count)| (vec![("event", event.to_owned())], count as f64))
        };
        status.dctcp.iter().flat_map(all).collect()
    }),
    ("dctcp_alpha", "gauge", "The alpha of the last update.", |status| {
        status.dctcp.iter().map(|dctcp| (Vec::new(), dctcp.last_alpha)).collect()
    }),
];

fn attached(status: &Status) -> Vec<(Labels, f64)> {
    let limiter = status.limiting.map(|there| ("limiter".to_owned(), there));
    let assignments = status.assignments.iter().map(|one| (one.who.clone(), one.attached));
    let queues = status
        .phantom_queues
        .iter()
        .map(|queue| (format!("phantom-queue {} {}", queue.device, queue.side.name()), queue.attached));
    let pacer = status.pacer.iter().map(|pacer| (format!("pacer {}", pacer.device), pacer.attached));
    let queues = queues.chain(pacer);
    let all = limiter.into_iter().chain(assignments).chain(queues);
    all.map(|(part, there)| (vec![("part", part)], f64::from(there))).collect()
}

fn device(status: &Status) -> Labels {
    status.device.iter().map(|device| ("device", device.to_string())).collect()
}

fn of_level(status: &Status, level: u8, verdict: Option<&str>) -> Labels {
    let mut labels = device(status);
    labels.push(("level", level.to_string()));
    labels.extend(verdict.map(|verdict| ("verdict", verdict.to_owned())));
    labels
}

fn of_port(queue: &crate::PhantomQueueStatus, result: Option<&str>) -> Labels {
    let mut labels = vec![("device", queue.device.to_string()), ("side", queue.side.name().to_owned())];
    labels.extend(result.map(|result| ("result", result.to_owned())));
    labels
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A local socket that serves metrics.
#[derive(Debug)]
pub enum Listener {
    /// A UNIX socket of a path.
    Unix(UnixListener),
    /// A TCP socket on a loopback address.
    Tcp(TcpListener),
}

impl Listener {
    /// Binds `unix:/PATH` or `127.0.0.1:PORT` or `[::1]:PORT`.
    ///
    /// # Errors
    /// Returns an error if the text has another form, the address is not local, or it is in use.
    pub fn bind(text: &str) -> Result<Listener, Error> {
        let doing = || Error::doing(format!("--listen {text}"));
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            // A killed process leaves its socket behind, at which nobody listens.
            let stale = fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_socket())
                && UnixStream::connect(&path).is_err();
            if stale {
                fs::remove_file(&path).map_err(doing())?;
            }
            return UnixListener::bind(&path).map(Listener::Unix).map_err(doing());
        }
        let allowed = "expected unix:/PATH, 127.0.0.1:PORT or [::1]:PORT";
        let address: SocketAddr =
            text.parse().map_err(|_| doing()(io::Error::other(format!("not an address; {allowed}"))))?;
        if !address.ip().is_loopback() {
            return Err(doing()(io::Error::other(format!("not a local address; {allowed}"))));
        }
        TcpListener::bind(address).map(Listener::Tcp).map_err(doing())
    }

    /// Returns the listening address; port 0 is replaced by the port that the system chose.
    pub fn address(&self) -> String {
        match self {
            Listener::Unix(listener) => {
                let path = listener.local_addr().ok().and_then(|at| at.as_pathname().map(PathBuf::from));
                format!("unix:{}", path.unwrap_or_default().display())
            }
            Listener::Tcp(listener) => listener.local_addr().map(|at| at.to_string()).unwrap_or_default(),
        }
    }
}

/// Answers requests for `/metrics` one after the other with the result of `text`, until the listener fails.
///
/// # Errors
/// Returns the error of the listener.
pub fn serve(listener: &Listener, text: &mut dyn FnMut() -> Result<String, Error>) -> Result<(), Error> {
    let doing = || Error::doing("waiting for a request");
    loop {
        // A client that sends nothing, is slow or disconnects does not end the server.
        let _ = match listener {
            Listener::Unix(listener) => {
                answer(&mut Until::patience(listener.accept().map_err(doing())?.0), text)
            }
            Listener::Tcp(listener) => {
                answer(&mut Until::patience(listener.accept().map_err(doing())?.0), text)
            }
        };
    }
}

/// A connection with a deadline for all its reads and writes together.
struct Until<S> {
    stream: S,
    deadline: Instant,
}

/// A connection whose next read and write have a timeout.
trait Timed: Read + Write {
    fn set_timeouts(&self, time: Duration) -> io::Result<()>;
}

impl Timed for UnixStream {
    fn set_timeouts(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time)).and_then(|()| self.set_write_timeout(Some(time)))
    }
}

impl Timed for TcpStream {
    fn set_timeouts(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time)).and_then(|()| self.set_write_timeout(Some(time)))
    }
}

impl<S: Timed> Until<S> {
    fn patience(stream: S) -> Until<S> {
        Until { stream, deadline: Instant::now() + PATIENCE }
    }

    fn wait(&mut self) -> io::Result<&mut S> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_timeouts(left)?;
        Ok(&mut self.stream)
    }
}

impl<S: Timed> Read for Until<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?.read(buffer)
    }
}

impl<S: Timed> Write for Until<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn answer(
    stream: &mut (impl Read + Write),
    text: &mut dyn FnMut() -> Result<String, Error>,
) -> io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        match stream.read(&mut piece)? {
            0 => break,
            length => request.extend_from_slice(&piece[..length]),
        }
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        match text() {
            Ok(body) => ("200 OK", body),
            Err(error) => ("500 Internal Server Error", format!("{error}\n")),
        }
    } else {
        ("404 Not Found", "GET /metrics\n".to_owned())
    };
    let kind = if status.starts_with("200") { OPEN_METRICS } else { "text/plain; charset=utf-8" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The deadline of a whole request, during which others wait: half of Prometheus's timeout.
const PATIENCE: Duration = Duration::from_secs(5);
const REQUEST_MAX: usize = 8 * 1024;

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
