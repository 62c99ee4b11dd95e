//! Commands without a key: what operators say.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use plimsoll_chronos::Step;

use super::commands::{BAD_FORMAT, Command};
use super::words::{self, first_words};
use crate::clock::Clock;
use crate::request::{Bits, Head, Request, Style, Verb};
use crate::service::{Memcached, report_lines};
use crate::stats::{self, Report, Sink};

impl<'a> Command<'a, '_> {
    pub(super) fn flush(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<3>(self.line);
        if count > 3 {
            return self.answer("ERROR");
        }
        let quiet = words[count - 1] == b"noreply";
        let mut given = 0;
        if count != 1 + usize::from(quiet) && self.server.settings.flush {
            let Some(delay) = words::signed_32(words[1]) else {
                return self.answer_unless(quiet, "CLIENT_ERROR invalid exptime argument");
            };
            given = delay;
        }
        let mut head = Head::new(Verb::Flush, Style::Text);
        head.expiry = if given > 0 { self.clock.expiry(given) } else { self.clock.second };
        head.bits = if quiet { Bits::QUIET } else { 0 };
        Step::Everywhere { consumed: self.consumed, request: Request::new(head, &[]) }
    }

    pub(super) fn verbosity(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<3>(self.line);
        if count != 2 && count != 3 {
            return self.answer("ERROR");
        }
        let quiet = words[count - 1] == b"noreply";
        let Some(level) = words::unsigned_32(words[1]) else { return self.answer_unless(quiet, BAD_FORMAT) };
        const VERBOSITY_MAX: u32 = 2;
        self.server.shared.verbosity.store(level.min(VERBOSITY_MAX), Ordering::Relaxed);
        self.answer_unless(quiet, "OK")
    }

    pub(super) fn memory_limit(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<3>(self.line);
        if count != 2 && count != 3 {
            return self.answer("ERROR");
        }
        let quiet = words[count - 1] == b"noreply";
        let answer = match words::unsigned_32(words[1]) {
            None => "ERROR",
            Some(..8) => "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
            Some(1_000_000_001..) => "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
            Some(mebibytes) => {
                let bytes = u64::from(mebibytes) << 20;
                let settings = &self.server.settings;
                if !(settings.memory_min()..=settings.memory_max()).contains(&bytes) {
                    "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"
                } else {
                    self.server.budget.set_limit(bytes);
                    "OK"
                }
            }
        };
        self.answer_unless(quiet, answer)
    }

    pub(super) fn shutdown(&mut self) -> Step<Request<'a>> {
        if !self.server.settings.shutdown {
            return self.answer("ERROR: shutdown not enabled");
        }
        let (words, count) = first_words::<2>(self.line);
        if count == 1 || (count == 2 && words[1] == b"graceful") {
            if let Some(hook) = self.server.shared.shutdown.get() {
                hook();
            }
            return Step::Close;
        }
        self.answer("CLIENT_ERROR invalid shutdown mode")
    }

    pub(super) fn refresh_certificates(&mut self) -> Step<Request<'a>> {
        let Some(certificates) = self.server.shared.certificates.get() else {
            return self.answer("Error TLS not enabled");
        };
        match (certificates.read)() {
            Ok(()) => {
                certificates.read_at.store(self.clock.uptime(), Ordering::Relaxed);
                self.answer("OK")
            }
            Err(reason) => self.answer(&format!("Error {reason}")),
        }
    }

    pub(super) fn stats(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<3>(self.line);
        let server = self.server;
        let report = match words[1] {
            _ if count == 1 => Report::General,
            b"items" => Report::Items,
            b"slabs" => Report::Slabs,
            b"detail" => match words[2] {
                b"dump" => Report::Detail,
                b"on" | b"off" => {
                    server.shared.detail.store(words[2] == b"on", Ordering::Relaxed);
                    return self.answer("OK");
                }
                _ => return self.answer("CLIENT_ERROR usage: stats detail on|off|dump"),
            },
            b"reset" => {
                let head = Head::new(Verb::ResetStats, Style::Text);
                return Step::Everywhere { consumed: self.consumed, request: Request::new(head, &[]) };
            }
            b"settings" => {
                let limit = server.memory().1;
                stats::settings(&server.settings, &server.shared, limit, &mut Lines(self.reply));
                return self.answer("END");
            }
            b"conns" => {
                stats::conns(&server.shared, &mut Lines(self.reply));
                return self.answer("END");
            }
            b"sizes" => {
                Lines(self.reply).line("sizes_status", &"disabled");
                return self.answer("END");
            }
            _ => return self.answer("ERROR"),
        };
        let mut head = Head::new(Verb::Stats, Style::Text);
        head.mode = report as u8;
        Step::Everywhere { consumed: self.consumed, request: Request::new(head, &[]) }
    }
}

/// One answer of all partitions' to `stats`.
pub fn merge_report(
    server: &Memcached,
    report: Report,
    parts: &[Vec<u8>],
    clock: Clock,
    reply: &mut Vec<u8>,
) {
    if report == Report::Detail {
        reply.extend_from_slice(&stats::detail(parts));
        return;
    }
    report_lines(server, report, parts, clock, &mut Lines(reply));
    reply.extend_from_slice(b"END\r\n");
}

/// `STAT name value`.
struct Lines<'a>(&'a mut Vec<u8>);

impl Sink for Lines<'_> {
    fn line(&mut self, name: &str, value: &dyn Display) {
        self.0.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
    }
}
