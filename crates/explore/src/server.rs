//! The requests of the page, and their answers.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /state?since=N` | JSON: how far the runs are, and the results if they are newer than version N |
//! | `POST /turn` `{"set": ["key=value", ...]}` | the reader's changes are run |
//! | `POST /line` `{"slo": "p99(small) < 1ms"}` | the load line is searched |
//! | `POST /replay` `{"variant": ..., "from": "10ms", "length": "200us"}` | a replay is drawn |
//! | `GET /line`, `GET /replay` | the page of the last one |
//! | `GET /scenario.toml` | the scenario that is shown |
//!
//! Where GET is allowed, so is HEAD.

use plimsoll_http::{HttpAnswer, Limits, Listener, PATIENCE, Request};
use serde::Deserialize;

use crate::gate::{Credentials, Gate};
use crate::session::Session;

/// All keys of a large scenario are some kilobytes, and a browser asks from six connections, with some in reserve.
const LIMITS: Limits = Limits { body: 64 << 10, connections: 32, patience: PATIENCE };

/// The headers of every answer: the page is shown nowhere else, keeps its address for itself, and is not kept.
const HEADERS: &[(&str, &str)] = &[
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TOML: &str = "application/toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    set: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedLine {
    slo: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedReplay {
    variant: String,
    from: String,
    length: String,
}

/// Answers requests until the listener fails.
///
/// # Errors
/// Returns the error of the listener.
pub fn serve(listener: &Listener, gate: &Gate, session: &Session, page: &str) -> std::io::Result<()> {
    let answer = |request: &Request| HttpAnswer { headers: HEADERS, ..answer(request, gate, session, page) };
    plimsoll_http::serve(listener, LIMITS, &answer)
}

fn answer(request: &Request, gate: &Gate, session: &Session, page: &str) -> HttpAnswer {
    let credentials = Credentials {
        host: request.host(),
        origin: request.header("Origin"),
        token: request.parameter("token"),
        changes: request.method() == "POST",
    };
    if let Err(refusal) = gate.check(credentials) {
        return HttpAnswer::text("403 Forbidden", refusal.text());
    }
    // Of HEAD's answer, the body is not sent.
    let method = if request.method() == "HEAD" { "GET" } else { request.method() };
    match (method, request.path()) {
        ("GET", "/") => of_kind(HTML, page),
        ("GET", "/state") => {
            let since = request.parameter("since").and_then(|text| text.parse().ok());
            of_kind(JSON, session.answer(since).to_string())
        }
        ("GET", "/line") => of_kind(HTML, session.line_page()),
        ("GET", "/replay") => of_kind(HTML, session.replay_page()),
        ("GET", "/scenario.toml") => match session.saved() {
            Some(text) => of_kind(TOML, text),
            None => HttpAnswer::text("404 Not Found", "nothing is shown yet\n"),
        },
        ("POST", "/turn") => take(request, |turn: Turn| {
            session.turn(turn.set);
            Ok(())
        }),
        ("POST", "/line") => take(request, |wanted: WantedLine| session.want_line(&wanted.slo)),
        ("POST", "/replay") => take(request, |wanted: WantedReplay| {
            session.want_replay(&wanted.variant, &wanted.from, &wanted.length)
        }),
        _ => HttpAnswer::text("404 Not Found", "there is no such page\n"),
    }
}

fn of_kind(kind: &'static str, body: impl Into<String>) -> HttpAnswer {
    HttpAnswer { kind, ..HttpAnswer::text("200 OK", body) }
}

/// Reads the body of a request as JSON, and executes it.
fn take<T: serde::de::DeserializeOwned>(
    request: &Request,
    act: impl FnOnce(T) -> Result<(), String>,
) -> HttpAnswer {
    match serde_json::from_slice(request.body()).map_err(|error| error.to_string()).and_then(act) {
        Ok(()) => of_kind(JSON, "{}"),
        Err(error) => HttpAnswer::text("400 Bad Request", format!("{error}\n")),
    }
}
