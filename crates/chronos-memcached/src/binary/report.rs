//! `stat`: a packet for each line, and one without a key at the end.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use plimsoll_chronos::Step;

use super::execute::echo;
use super::parse::{Packet, head};
use super::{Echo, Failure};
use crate::clock::Clock;
use crate::request::{Request, Verb};
use crate::server::Memcached;
use crate::session::Session;
use crate::stats::{self, Report, ReportSink, SocketState};

/// Reads a stat command.
pub(super) fn parse<'a>(
    server: &Memcached,
    session: &Session,
    clock: Clock,
    packet: &Packet<'a>,
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let consumed = packet.head_bytes;
    let key = packet.key;
    let shared = &server.shared;
    let report = match key {
        b"" => Report::General,
        b"items" => Report::Items,
        b"slabs" => Report::Slabs,
        _ if key.starts_with(b"detail dump") => Report::Detail,
        _ if key.starts_with(b"reset") => {
            let request = Request::new(head(packet, Verb::ResetStats), &[]);
            return Step::Everywhere { consumed, request };
        }
        _ => {
            let mut lines = Lines { echo: packet.echo, reply };
            if key.starts_with(b"settings") {
                stats::settings(&server.settings, shared, server.memory().1, &mut lines);
            } else if key.starts_with(b"detail on") || key.starts_with(b"detail off") {
                shared.detail.store(key.starts_with(b"detail on"), Ordering::Relaxed);
            } else if key == b"conns" {
                session.note(SocketState::Running, clock.second);
                shared.roster.report(clock.second, &mut lines);
            } else if key == b"sizes" {
                lines.line("sizes_status", &"disabled");
            } else {
                packet.echo.fail(reply, Failure::NotFound);
                return Step::Done { consumed };
            }
            packet.echo.push(reply, 0, 0, [b"", b"", b""]);
            return Step::Done { consumed };
        }
    };
    let mut head = head(packet, Verb::Stats);
    // The opcode is known; its place in the head carries the report.
    head.mode = report as u8;
    head.delta = u64::from(packet.echo.opcode);
    Step::Everywhere { consumed, request: Request::new(head, &[]) }
}

/// Makes one answer to `stat` of the answers of all partitions.
pub fn merge_report(
    server: &Memcached,
    request: &Request<'_>,
    parts: &[Vec<u8>],
    clock: Clock,
    reply: &mut Vec<u8>,
) {
    let report = Report::from_mode(request.head.mode);
    let echo = Echo { opcode: request.head.delta as u8, ..echo(&request.head) };
    if report == Report::Detail {
        echo.push(reply, 0, 0, [b"", b"detailed", &stats::detail(parts)]);
    }
    server.report_lines(report, parts, clock, &mut Lines { echo, reply });
    echo.push(reply, 0, 0, [b"", b"", b""]);
}

struct Lines<'a> {
    echo: Echo,
    reply: &'a mut Vec<u8>,
}

impl ReportSink for Lines<'_> {
    fn line(&mut self, name: &str, value: &dyn Display) {
        self.echo.push(self.reply, 0, 0, [b"", name.as_bytes(), value.to_string().as_bytes()]);
    }
}
