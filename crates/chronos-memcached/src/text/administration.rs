//! Commands without a key: the commands of operators.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use plimsoll_chronos::{SessionTransport, Step};

use super::commands::{BAD_FORMAT, CommandLine};
use super::dump_cursor::{Dump, DumpStyle};
use super::words::{self, Words, first_words};
use crate::clock::Clock;
use crate::request::{Bits, ReplyStyle, Request, RequestHead, Verb};
use crate::server::Memcached;
use crate::stats::{self, Report, ReportSink, SocketState};

impl<'a> CommandLine<'a, '_> {
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
        let mut head = RequestHead::new(Verb::Flush, ReplyStyle::Text);
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
                hook(count == 2);
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

    /// `lru_crawler`: here each thread looks for expired items, when it is idle.
    pub(super) fn crawler(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<4>(self.line);
        let (shared, number) = (&self.server.shared, words::unsigned_32(words[2]));
        match (words[1], count) {
            (b"enable", 2) if shared.crawler.swap(true, Ordering::Relaxed) => {
                self.answer("ERROR failed to start lru crawler thread")
            }
            (b"disable", 2) => {
                shared.crawler.store(false, Ordering::Relaxed);
                self.answer("OK")
            }
            (b"enable", 2) => self.answer("OK"),
            (b"crawl" | b"metadump" | b"mgdump", 3) if !shared.crawler.load(Ordering::Relaxed) => {
                self.answer("CLIENT_ERROR lru crawler disabled")
            }
            (b"crawl", 3) if words[2] == b"hash" => self.answer("ERROR an unknown error happened"),
            (b"crawl", 3) => match classes(words[2]) {
                None => self.answer("BADCLASS invalid class id"),
                Some(_) => {
                    let head = RequestHead::new(Verb::Crawl, ReplyStyle::Text);
                    Step::Everywhere { consumed: self.consumed, request: Request::new(head, &[]) }
                }
            },
            (b"metadump", 3) => self.dump(DumpStyle::Metadump, words[2]),
            (b"mgdump", 3) => self.dump(DumpStyle::Mgdump, words[2]),
            (b"tocrawl" | b"sleep", 3) => {
                /// The longest pause of the crawler in microseconds.
                const SLEEP_MAX: u32 = 1_000_000;
                let Some(number) = number else { return self.answer(BAD_FORMAT) };
                let is_sleep = words[1] == b"sleep";
                if is_sleep && number > SLEEP_MAX {
                    return self.answer("CLIENT_ERROR sleep must be one second or less");
                }
                let place = if is_sleep { &shared.crawler_sleep } else { &shared.crawler_items };
                place.store(number, Ordering::Relaxed);
                self.answer("OK")
            }
            _ => self.answer("ERROR"),
        }
    }

    fn dump(&mut self, style: DumpStyle, word: &[u8]) -> Step<Request<'a>> {
        if !self.server.settings.dump {
            let text = match style {
                DumpStyle::Metadump => "ERROR metadump not allowed",
                DumpStyle::Mgdump => "ERROR key dump not allowed",
            };
            return self.answer(text);
        }
        // memcached refuses this too; here the answer could only be taken for that of another command.
        if self.session.is_piped {
            let name = if style == DumpStyle::Metadump { "metadump" } else { "mgdump" };
            return self.answer(&format!("ERROR cannot pipeline other commands before {name}"));
        }
        // A dump has no end that fits a datagram.
        if self.session.transport == SessionTransport::Udp {
            return self.answer("ERROR");
        }
        let classes = if word == b"hash" { Some(None) } else { classes(word) };
        let Some(classes) = classes else { return self.answer("BADCLASS invalid class id") };
        self.session.dump = Some(Box::new(Dump::new(style, classes)));
        Step::Done { consumed: self.consumed }
    }

    /// `slabs`: pages move from class to class by themselves here, so no command moves them.
    pub(super) fn slabs(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<5>(self.line);
        let quiet = words[count.min(5) - 1] == b"noreply";
        match (words[1], count) {
            (b"reassign", 4) => self.answer("CLIENT_ERROR slab reassignment disabled"),
            (b"automove", 3..) if words[2] == b"ratio" => {
                let ratio = std::str::from_utf8(words[3]).ok().and_then(|word| word.parse::<f64>().ok());
                self.answer_unless(quiet, if ratio.is_some() { "OK" } else { "ERROR" })
            }
            (b"automove", 3..) => match words::unsigned_32(words[2]) {
                None => self.answer_unless(quiet, BAD_FORMAT),
                Some(level @ ..=2) => {
                    self.server.shared.automove.store(level, Ordering::Relaxed);
                    self.answer_unless(quiet, "OK")
                }
                Some(_) => self.answer_unless(quiet, "ERROR"),
            },
            _ => self.answer("ERROR"),
        }
    }

    /// `watch`, answered like memcached with `-W`: requests are not logged here.
    pub(super) fn watch(&mut self) -> Step<Request<'a>> {
        let quiet = Words(self.line).last() == Some(b"noreply");
        self.answer_unless(quiet, "CLIENT_ERROR watch commands not allowed")
    }

    fn cachedump(&mut self) -> Step<Request<'a>> {
        let (words, count) = first_words::<4>(self.line);
        if !self.server.settings.dump {
            return self.answer("CLIENT_ERROR stats cachedump not allowed");
        }
        if count < 4 {
            return self.answer("CLIENT_ERROR bad command line");
        }
        let (Some(class), Some(limit)) = (words::unsigned_32(words[2]), words::unsigned_32(words[3])) else {
            return self.answer(BAD_FORMAT);
        };
        if class > CLASS_MAX {
            return self.answer("CLIENT_ERROR Illegal slab id");
        }
        let mut head = RequestHead::new(Verb::Cachedump, ReplyStyle::Text);
        // No item is in memcached's class 0, nor in a class that does not exist here.
        (head.initial, head.delta) = (u64::from(class.wrapping_sub(1)), limit.into());
        Step::Everywhere { consumed: self.consumed, request: Request::new(head, &[]) }
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
                let head = RequestHead::new(Verb::ResetStats, ReplyStyle::Text);
                return Step::Everywhere { consumed: self.consumed, request: Request::new(head, &[]) };
            }
            b"cachedump" => return self.cachedump(),
            b"settings" => {
                let limit = server.memory().1;
                stats::settings(&server.settings, &server.shared, limit, &mut Lines(self.reply));
                return self.answer("END");
            }
            b"conns" => {
                self.session.note(SocketState::Running, self.clock.second);
                server.shared.roster.report(self.clock.second, &mut Lines(self.reply));
                return self.answer("END");
            }
            b"sizes" => {
                Lines(self.reply).line("sizes_status", &"disabled");
                return self.answer("END");
            }
            _ => return self.answer("ERROR"),
        };
        let mut head = RequestHead::new(Verb::Stats, ReplyStyle::Text);
        head.mode = report as u8;
        Step::Everywhere { consumed: self.consumed, request: Request::new(head, &[]) }
    }
}

/// The greatest number of a size class that a client may name.
const CLASS_MAX: u32 = 255;

/// Returns the classes of `word`, numbered from 0: numbers with `,` between, or `all` (None). None if it is neither.
fn classes(word: &[u8]) -> Option<Option<Vec<u32>>> {
    if word == b"all" {
        return Some(None);
    }
    let number = |part: &[u8]| words::unsigned_32(part).filter(|number| (1..=CLASS_MAX).contains(number));
    let parts = word.split(|&byte| byte == b',').filter(|part| !part.is_empty());
    let mut classes: Vec<u32> =
        parts.map(|part| number(part).map(|number| number - 1)).collect::<Option<_>>()?;
    classes.sort_unstable();
    classes.dedup();
    Some(Some(classes))
}

/// Makes one answer to `stats` of the answers of all partitions.
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
    server.report_lines(report, parts, clock, &mut Lines(reply));
    reply.extend_from_slice(b"END\r\n");
}

/// Writes lines of the form `STAT name value`.
struct Lines<'a>(&'a mut Vec<u8>);

impl ReportSink for Lines<'_> {
    fn line(&mut self, name: &str, value: &dyn Display) {
        self.0.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
    }
}
