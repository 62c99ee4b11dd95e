//! [`Announcements`]: data that workloads and programs will send, announced before they write it.
//!
//! ```text
//! workload: SourceHints::replace ─────────────────────┐
//! program in h0: "h3 3MB 40ms" ──> @plimsoll-hints ──> Announcements::add ──> demand of the week's schedule
//! ```
//!
//! A program sends one datagram for a transfer to the abstract UNIX socket [`SOCKET`] of its host's network namespace:
//! the receiving host, the bytes, and the time from now until it will write them. If its own socket has an address, it
//! gets `ok` or an error as the answer. An announcement ends when its time has come: from then on the data is in a
//! socket, where the kernel shows it.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_circuits::Demand;
use plimsoll_fabric::net::HostId;
use plimsoll_traffic::{Hint, Source};
use plimsoll_units::{Bytes, Span, Time};

use crate::net::namespaces::Namespaces;

/// The abstract name of the socket by which programs announce data.
pub const SOCKET: &str = "plimsoll-hints";

/// The longest announcement, in bytes.
const ANNOUNCEMENT_MAX: usize = 256;

/// The data that the run's own workloads announce, by workload.
#[derive(Debug, Default)]
pub(crate) struct SourceHints(Mutex<BTreeMap<u16, Vec<Hint>>>);

impl SourceHints {
    /// Replaces the announcements of workload `number` by the announcements of `source`, whose clock begins at
    /// `origin`.
    pub(crate) fn replace(&self, number: u16, source: &dyn Source, origin: Span) {
        let mut hints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hints = hints.entry(number).or_default();
        hints.clear();
        source.hints(&mut |hint| {
            hints.push(Hint { ready: hint.ready.saturating_add(origin), ..hint });
        });
    }
}

/// Everything that is announced in a run.
#[derive(Debug)]
pub(crate) struct Announcements {
    sources: Arc<SourceHints>,
    programs: ProgramHints,
}

/// The data that programs announce.
#[derive(Debug, Default)]
struct ProgramHints {
    /// The socket of each host, by number.
    sockets: Vec<UnixDatagram>,
    /// The announcements whose time has not come.
    hints: Vec<Hint>,
    rejected: u64,
    /// Why the first announcement was rejected.
    first_error: Option<String>,
}

impl Announcements {
    /// Opens the sockets for programs in all hosts.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn open(
        sources: Arc<SourceHints>,
        namespaces: &Namespaces,
        hosts: u32,
    ) -> io::Result<Announcements> {
        let open = |host| {
            namespaces.inside(host, || {
                let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(SOCKET)?)?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            })
        };
        let sockets = (0..hosts).map(open).collect::<io::Result<_>>()?;
        Ok(Announcements { sources, programs: ProgramHints { sockets, ..ProgramHints::default() } })
    }

    /// Adds the announced bytes to `demand` that are to be ready `within` a time.
    ///
    /// # Errors
    /// If a socket cannot be read.
    pub(crate) fn add(
        &mut self,
        now: Time,
        within: &RangeInclusive<Time>,
        demand: &mut Demand,
    ) -> io::Result<()> {
        self.programs.receive(now)?;
        let sources = self.sources.0.lock().unwrap_or_else(PoisonError::into_inner);
        for hint in sources.values().flatten().chain(&self.programs.hints) {
            if within.contains(&hint.ready) {
                *demand.get_mut(hint.from.0 as usize, hint.to.0 as usize) += hint.bytes;
            }
        }
        Ok(())
    }

    /// Returns the warning of announcements that were rejected.
    pub(crate) fn warning(&self) -> Option<String> {
        let ProgramHints { rejected, first_error, .. } = &self.programs;
        let error = first_error.as_ref()?;
        Some(format!("{rejected} announcements of programs were rejected; the first: {error}"))
    }
}

impl ProgramHints {
    /// Takes the announcements that have come, and drops those whose time has.
    fn receive(&mut self, now: Time) -> io::Result<()> {
        self.hints.retain(|hint| hint.ready > now);
        let hosts = self.sockets.len() as u32;
        for (from, socket) in (0..).zip(&self.sockets) {
            let mut room = [0; ANNOUNCEMENT_MAX + 1];
            loop {
                let (length, sender) = match socket.recv_from(&mut room) {
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                let parsed = parse(&room[..length], HostId(from), hosts, now);
                let answer = parsed.as_ref().err().map_or("ok\n".to_owned(), |error| format!("{error}\n"));
                if !sender.is_unnamed() {
                    // A program that has ended needs no answer.
                    let _ = socket.send_to_addr(answer.as_bytes(), &sender);
                }
                match parsed {
                    Ok(hint) => self.hints.push(hint),
                    Err(error) => {
                        self.rejected += 1;
                        self.first_error.get_or_insert(error);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Parses an announcement that a program in `from` has made at `now`.
///
/// # Errors
/// Names the host, the value and the allowed values.
fn parse(text: &[u8], from: HostId, hosts: u32, now: Time) -> Result<Hint, String> {
    let own = from.0;
    let text = std::str::from_utf8(text).unwrap_or_default().trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    let [to, bytes, wait] = words[..] else {
        return Err(format!(
            "h{own} announced `{}`: expected a host, bytes and a time from now, such as `h3 3MB 40ms`",
            text.escape_default()
        ));
    };
    let number = to.strip_prefix('h').and_then(|number| number.parse().ok());
    let Some(receiver) = number.filter(|number| *number < hosts && *number != own) else {
        return Err(format!(
            "h{own} announced data for `{}`: expected another of the hosts h0 to h{}",
            to.escape_default(),
            hosts - 1
        ));
    };
    let bytes: Bytes = bytes.parse().map_err(|error| format!("h{own} announced bytes: {error}"))?;
    let wait: Span = wait.parse().map_err(|error| format!("h{own} announced a time: {error}"))?;
    Ok(Hint { from, to: HostId(receiver), bytes: bytes.get(), ready: now.saturating_add(wait) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_names_host_bytes_and_time() {
        let now = Time::ZERO + Span::from_ms(5);
        let parse = |text: &str| parse(text.as_bytes(), HostId(1), 4, now);
        let ready = Time::ZERO + Span::from_ms(45);
        let expected = Hint { from: HostId(1), to: HostId(3), bytes: 3_000_000, ready };
        assert_eq!(parse("h3 3MB 40ms\n"), Ok(expected));
        let cases = [
            ("h3 3MB", "such as `h3 3MB 40ms`"),
            ("h4 3MB 40ms", "`h4`: expected another of the hosts h0 to h3"),
            ("h1 3MB 40ms", "`h1`: expected another"),
            ("h3 3 40ms", "`3` has no unit"),
            ("h3 3MB 40mss", "`mss` in `40mss` is not a unit"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
        ];
        for (text, part) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("h1 announced") && error.contains(part), "{text}: {error}");
        }
    }
}
