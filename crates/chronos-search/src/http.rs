//! HTTP/1.1 with JSON: `GET /search?q=`, `PUT` and `DELETE /documents/ID`, `GET /stats`. Where GET is allowed, so is
//! HEAD (RFC 9110, section 9.1), and a target may be a path or an absolute URI (RFC 9112, section 3.2).

use std::borrow::Cow;

use httparse::Status as Parsed;
use percent_encoding::percent_decode_str;
use plimsoll_chronos::Step;
use serde::Deserialize;

use crate::answer::{HttpStatus, error};
use crate::budget::Full;
use crate::check_id;
use crate::document::About;
use crate::rank::Mode;
use crate::request::{Outcome, Query, Request, ResponseForm, SuccessForm};
use crate::service::{SearchService, Session};

/// Bytes of the longest request line and headers.
const HEAD_BYTES_MAX: usize = 1 << 14;
/// The largest number of headers of a request.
const HEADERS_MAX: usize = 64;
/// The default number of results, and the largest.
const LIMIT: (u32, u32) = (10, 1000);

/// The contents of a request's head.
struct HttpHead<'a> {
    method: &'a str,
    target: &'a str,
    bytes: usize,
    body_bytes: usize,
    json: bool,
    waits: bool,
    form: ResponseForm,
}

/// The reason that a request is refused.
struct RequestRefusal(HttpStatus, Cow<'static, str>);

/// Parses the next HTTP request of `input`.
pub fn parse<'a>(
    search: &SearchService,
    session: &mut Session,
    input: &'a [u8],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let head = match read_head(input) {
        Ok(Some(head)) => head,
        Ok(None) => {
            session.in_head = true;
            return Step::Incomplete { total: input.len() + 1 };
        }
        // The begin of the next request is unknown.
        Err(refusal) => return end(&refusal, reply),
    };
    if head.body_bytes > search.settings().document_bytes_max {
        let limit = search.settings().document_bytes_max;
        return end(&refuse(HttpStatus::TOO_LARGE, format!("more than {limit} bytes")), reply);
    }
    let total = head.bytes + head.body_bytes;
    let Some(body) = input.get(head.bytes..total) else {
        if head.waits && !session.continued {
            session.continued = true;
            reply.extend(b"HTTP/1.1 100 Continue\r\n\r\n");
            return Step::Done { consumed: 0 };
        }
        return Step::Incomplete { total };
    };
    session.continued = false;
    session.closing = head.form.close;
    route(search, &head, total, body, reply).unwrap_or_else(|RequestRefusal(status, message)| {
        error(status, head.form, &message, reply);
        Step::Done { consumed: total }
    })
}

fn route<'a>(
    search: &SearchService,
    head: &HttpHead<'_>,
    consumed: usize,
    body: &[u8],
    reply: &mut Vec<u8>,
) -> Result<Step<Request<'a>>, RequestRefusal> {
    let target = origin_form(head.target)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let form = head.form;
    match (head.method, path) {
        ("GET" | "HEAD", "/search") => {
            let query = read_query(query, form)?;
            Ok(search.step(consumed, Request::Search(query), reply))
        }
        ("GET" | "HEAD", "/stats") => {
            let answer = SuccessForm::Http { result: Outcome::Replaced, form };
            Ok(search.step(consumed, Request::Count(answer), reply))
        }
        (method, path) if let Some(id) = path.strip_prefix("/documents/") => {
            let id = percent_decode_str(id).decode_utf8();
            let id = id.map_err(|_| refuse(HttpStatus::BAD_REQUEST, "the document's name is not UTF-8"))?;
            check_id(&id).map_err(|wrong| refuse(HttpStatus::BAD_REQUEST, wrong.to_string()))?;
            match method {
                "PUT" => put(search, head, consumed, &id, body, reply),
                "DELETE" => {
                    let answer = SuccessForm::Http { result: Outcome::Deleted, form };
                    let deleted = search.delete(consumed, &id, answer, reply);
                    deleted.ok_or_else(|| refuse(HttpStatus::NOT_FOUND, "no such document"))
                }
                _ => {
                    Err(refuse(HttpStatus::method_not_allowed("PUT, DELETE"), "a document is put or deleted"))
                }
            }
        }
        (_, "/search" | "/stats") => {
            Err(refuse(HttpStatus::method_not_allowed("GET, HEAD"), "only GET and HEAD"))
        }
        _ => Err(refuse(HttpStatus::NOT_FOUND, "no such path; there are /search, /stats and /documents/ID")),
    }
}

fn put<'a>(
    search: &SearchService,
    head: &HttpHead<'_>,
    consumed: usize,
    id: &str,
    body: &[u8],
    reply: &mut Vec<u8>,
) -> Result<Step<Request<'a>>, RequestRefusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct PutDocument<'a> {
        #[serde(borrow)]
        text: Cow<'a, str>,
        title: Option<Box<str>>,
        url: Option<Box<str>>,
    }
    let bad = |message: String| refuse(HttpStatus::BAD_REQUEST, message);
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let body = if head.json {
        serde_json::from_slice(body).map_err(|wrong| bad(format!("not a document in JSON: {wrong}")))?
    } else {
        let text = str::from_utf8(body).map_err(|wrong| bad(format!("not UTF-8: {wrong}")))?;
        PutDocument { text: text.into(), title: None, url: None }
    };
    let about = About { id: id.into(), title: body.title, url: body.url };
    let form = head.form;
    let answer = move |new| {
        let result = if new { Outcome::Created } else { Outcome::Replaced };
        SuccessForm::Http { result, form }
    };
    let put = search.put(consumed, about, &body.text, answer, reply);
    put.map_err(|Full| refuse(HttpStatus::NO_STORAGE, "no memory is left for it (--memory-max)"))
}

fn read_query(query: &str, form: ResponseForm) -> Result<Query<'static>, RequestRefusal> {
    let bad = |message: String| refuse(HttpStatus::BAD_REQUEST, message);
    let (mut text, mut mode, mut limit) = (None, Mode::And, LIMIT.0);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "q" => text = Some(value),
            "mode" => {
                mode = match &*value {
                    "and" => Mode::And,
                    "or" => Mode::Or,
                    _ => return Err(bad(format!("mode: {value:?} is not allowed; and, or"))),
                }
            }
            "limit" => {
                let number = value.parse().ok().filter(|limit| (1..=LIMIT.1).contains(limit));
                let wrong = || bad(format!("limit: {value:?} is not allowed; 1 to {} are", LIMIT.1));
                limit = number.ok_or_else(wrong)?;
            }
            _ => return Err(bad(format!("{name:?} is not known; there are q, mode, limit"))),
        }
    }
    let text = text.ok_or_else(|| bad("q is missing: the words to search for".to_owned()))?;
    Query::new(&text, mode, limit, form)
        .ok_or_else(|| bad(format!("q: more than {} different words", Query::WORDS_MAX)))
}

/// Returns None if it is not complete.
fn read_head(input: &[u8]) -> Result<Option<HttpHead<'_>>, RequestRefusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let bytes = match request.parse(input) {
        Ok(Parsed::Complete(bytes)) if bytes <= HEAD_BYTES_MAX => bytes,
        Ok(Parsed::Partial) if input.len() <= HEAD_BYTES_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            let limits = format!("more than {HEAD_BYTES_MAX} bytes or {HEADERS_MAX} fields");
            return Err(refuse(HttpStatus::HEADERS_TOO_LARGE, limits));
        }
        Err(wrong) => return Err(refuse(HttpStatus::BAD_REQUEST, format!("not HTTP/1.1: {wrong}"))),
    };
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Ok(None);
    };
    let form = ResponseForm { close: version == 0, head_only: method == "HEAD" };
    let mut head = HttpHead { method, target, bytes, body_bytes: 0, json: false, waits: false, form };
    let (mut length, mut hosts) = (None, 0);
    for header in request.headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let value = header.value.trim_ascii();
        if is("content-length") {
            let digits =
                str::from_utf8(value).ok().filter(|digits| digits.bytes().all(|d| d.is_ascii_digit()));
            let number = digits.and_then(|digits| digits.parse::<usize>().ok());
            if number.is_none() || length.is_some_and(|before| Some(before) != number) {
                return Err(refuse(HttpStatus::BAD_REQUEST, "Content-Length is not one number"));
            }
            length = number;
        } else if is("transfer-encoding") {
            return Err(refuse(HttpStatus::NOT_IMPLEMENTED, "Transfer-Encoding: send a Content-Length"));
        } else if is("host") {
            hosts += 1;
        } else if is("content-type") {
            head.json = value.to_ascii_lowercase().starts_with(b"application/json");
        } else if is("expect") {
            head.waits = value.eq_ignore_ascii_case(b"100-continue");
        } else if is("connection") {
            let mut options = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            head.form.close |= options.any(|option| option.eq_ignore_ascii_case(b"close"));
        }
    }
    // RFC 9112, section 3.2. HTTP/1.0 has requests without one.
    if hosts > 1 || (hosts == 0 && version == 1) {
        return Err(refuse(HttpStatus::BAD_REQUEST, format!("HTTP/1.1 has one Host, not {hosts}")));
    }
    if method == "PUT" && length.is_none() {
        return Err(refuse(HttpStatus::LENGTH_REQUIRED, "a document needs a Content-Length"));
    }
    head.body_bytes = length.unwrap_or(0);
    Ok(Some(head))
}

/// Returns the path and query of a target, which may be an absolute URI (RFC 9112, section 3.2.2).
fn origin_form(target: &str) -> Result<&str, RequestRefusal> {
    if target.starts_with('/') {
        return Ok(target);
    }
    let absolute = plimsoll_http::absolute(target).map(|(_, path)| path);
    absolute.ok_or_else(|| refuse(HttpStatus::BAD_REQUEST, "the target is neither a path nor an http:// URI"))
}

fn refuse(status: HttpStatus, message: impl Into<Cow<'static, str>>) -> RequestRefusal {
    RequestRefusal(status, message.into())
}

fn end<'a>(RequestRefusal(status, message): &RequestRefusal, reply: &mut Vec<u8>) -> Step<Request<'a>> {
    error(*status, ResponseForm { close: true, head_only: false }, message, reply);
    Step::Close
}
