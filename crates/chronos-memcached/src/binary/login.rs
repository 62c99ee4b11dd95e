//! SASL: one mechanism, PLAIN.

use std::sync::atomic::Ordering;

use plimsoll_chronos::Step;

use super::parse::Packet;
use super::{Failure, opcode};
use crate::auth;
use crate::request::Request;
use crate::server::Memcached;
use crate::session::Session;

/// A mechanism's name is not longer.
const MECHANISM_BYTES_MAX: usize = 32;
/// Credentials are not longer.
const CREDENTIALS_BYTES_MAX: usize = 4096;
const CONTINUE: u16 = 0x21;

/// Commands that need no login.
pub(super) fn is_open(plain: u8) -> bool {
    matches!(plain, opcode::SASL_LIST | opcode::SASL_AUTH | opcode::SASL_STEP | opcode::VERSION)
}

/// Runs one of the SASL commands.
pub(super) fn login<'a>(
    server: &Memcached,
    session: &mut Session,
    input: &'a [u8],
    packet: &Packet<'a>,
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let Packet { echo, head_bytes, value_bytes, .. } = *packet;
    if !server.settings.sasl {
        echo.fail(reply, Failure::Unknown);
        session.skip = value_bytes;
        return Step::Done { consumed: head_bytes };
    }
    if packet.echo.opcode == opcode::SASL_LIST {
        echo.push(reply, 0, 0, [b"", b"", b"PLAIN"]);
        return Step::Done { consumed: head_bytes };
    }
    if packet.key.len() > MECHANISM_BYTES_MAX || value_bytes > CREDENTIALS_BYTES_MAX {
        echo.fail(reply, Failure::Invalid);
        session.skip = value_bytes;
        return Step::Done { consumed: head_bytes };
    }
    let total = head_bytes + value_bytes;
    let Some(message) = input.get(head_bytes..total) else { return Step::Incomplete { total } };
    session.authenticated = false;
    // PLAIN has one message: it comes with the start, or after an empty challenge.
    let begun = session.credentials.take().is_some();
    let usable = if packet.echo.opcode == opcode::SASL_AUTH { packet.key == b"PLAIN" } else { begun };
    if usable && message.is_empty() && packet.echo.opcode == opcode::SASL_AUTH {
        session.credentials = Some(0);
        echo.push(reply, CONTINUE, 0, [b"", b"", b""]);
        return Step::Done { consumed: total };
    }
    let known = server.settings.credentials.as_ref().zip(auth::plain(message));
    let accepted = usable && known.is_some_and(|(known, (user, password))| known.accept(user, password));
    server.shared.auth_commands.fetch_add(1, Ordering::Relaxed);
    if accepted {
        session.authenticated = true;
        echo.push(reply, 0, 0, [b"", b"", b"Authenticated"]);
    } else {
        server.shared.auth_errors.fetch_add(1, Ordering::Relaxed);
        echo.fail(reply, Failure::Login);
    }
    Step::Done { consumed: total }
}
