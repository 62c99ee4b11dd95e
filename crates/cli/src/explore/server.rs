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

use std::io::Read as _;
use std::time::Duration;

use serde::Deserialize;
use tiny_http::{Header, Method, Request, Response, Server};

use super::gate::{Credentials, Gate};
use super::session::Session;

/// The most bytes of a request's body: all keys of a large scenario are some kilobytes.
const BODY_MAX: u64 = 64 << 10;

/// The interval at which a server looks whether it is to end.
const LOOK_UP: Duration = Duration::from_millis(200);

/// An answer before it is sent.
struct Answer {
    status: u16,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn ok(kind: &'static str, body: String) -> Answer {
        Answer { status: 200, kind, body }
    }

    fn error(status: u16, body: &str) -> Answer {
        Answer { status, kind: TEXT, body: body.to_owned() }
    }
}

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

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

/// Answers requests until `goes_on` is false.
pub fn serve(
    server: &Server,
    gate: &Gate,
    session: &Session,
    page: &str,
    goes_on: &(dyn Fn() -> bool + Sync),
) {
    while goes_on() {
        let Ok(Some(mut request)) = server.recv_timeout(LOOK_UP) else { continue };
        let answer = answer(&mut request, gate, session, page);
        let response = Response::from_string(answer.body).with_status_code(answer.status);
        let response =
            headers(answer.kind).into_iter().fold(response, |response, header| response.with_header(header));
        // A browser that has gone away is no error of ours.
        let _ = request.respond(response);
    }
}

fn answer(request: &mut Request, gate: &Gate, session: &Session, page: &str) -> Answer {
    let url = request.url().to_owned();
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    let parameter = |name: &str| {
        query
            .split('&')
            .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
            .map(|(_, value)| value)
    };
    let is_post = *request.method() == Method::Post;
    let header = |name: &'static str| {
        let mut named = request.headers().iter().filter(|header| header.field.equiv(name));
        let value = named.next().map(|header| header.value.as_str());
        // Of two there is no telling which one counts.
        value.filter(|_| named.next().is_none())
    };
    let credentials = Credentials {
        host: header("Host"),
        origin: header("Origin"),
        token: parameter("token"),
        changes: is_post,
    };
    if let Err(refusal) = gate.check(credentials) {
        return Answer::error(403, refusal.text());
    }
    match (request.method(), path) {
        (Method::Get, "/") => Answer::ok(HTML, page.to_owned()),
        (Method::Get, "/state") => {
            let since = parameter("since").and_then(|text| text.parse().ok());
            match serde_json::to_string(&session.answer(since)) {
                Ok(json) => Answer::ok(JSON, json),
                Err(error) => Answer::error(500, &error.to_string()),
            }
        }
        (Method::Get, "/line") => Answer::ok(HTML, session.line_page()),
        (Method::Get, "/replay") => Answer::ok(HTML, session.replay_page()),
        (Method::Get, "/scenario.toml") => match session.saved() {
            Some(text) => Answer::ok("application/toml", text),
            None => Answer::error(404, "nothing is shown yet\n"),
        },
        (Method::Post, "/turn") => take(request, |turn: Turn| {
            session.turn(turn.set);
            Ok(())
        }),
        (Method::Post, "/line") => take(request, |wanted: WantedLine| session.want_line(&wanted.slo)),
        (Method::Post, "/replay") => take(request, |wanted: WantedReplay| {
            session.want_replay(&wanted.variant, &wanted.from, &wanted.length)
        }),
        _ => Answer::error(404, "there is no such page\n"),
    }
}

/// Reads the body of a request as JSON, and does what it asks for.
fn take<T: serde::de::DeserializeOwned>(
    request: &mut Request,
    act: impl FnOnce(T) -> Result<(), String>,
) -> Answer {
    let mut body = String::new();
    if let Err(error) = request.as_reader().take(BODY_MAX + 1).read_to_string(&mut body) {
        return Answer::error(400, &format!("{error}\n"));
    }
    if body.len() as u64 > BODY_MAX {
        return Answer::error(413, "the request is too large\n");
    }
    match serde_json::from_str(&body).map_err(|error| error.to_string()).and_then(act) {
        Ok(()) => Answer::ok(JSON, "{}".to_owned()),
        Err(error) => Answer::error(400, &format!("{error}\n")),
    }
}

/// Returns the headers of every answer: the page is shown nowhere else, keeps its address for itself, and is not kept.
fn headers(kind: &str) -> Vec<Header> {
    let named = [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "SAMEORIGIN"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ];
    named.into_iter().filter_map(|(name, value)| Header::from_bytes(name, value).ok()).collect()
}
