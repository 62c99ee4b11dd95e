//! The answers, in memcached's protocol and in HTTP.

use std::io::Write;

use serde::Serialize;

use crate::budget::MemoryBudget;
use crate::index::{Counts, Posting, Postings};
use crate::rank::{Collection, Ranking};
use crate::request::{Outcome, ResponseForm, SuccessForm};

/// Appends `VALUE`: a word's postings. A document is a line: its name, the number of times that it has the word, and
/// its number of words. `name` appends the name of a posting's document; false leaves out a document that is being
/// removed.
pub fn value(
    word: &[u8],
    postings: &Postings,
    name: impl Fn(&Posting, &mut Vec<u8>) -> bool,
    reply: &mut Vec<u8>,
) {
    match postings {
        Postings::Opaque { flags, value } => put_value(word, *flags, value, reply),
        Postings::Documents(postings) => {
            let mut lines = Vec::with_capacity(postings.len() * 32);
            for posting in postings {
                if name(posting, &mut lines) {
                    text(&mut lines, format_args!(" {} {}\n", posting.frequency, posting.words));
                }
            }
            put_value(word, 0, &lines, reply);
        }
    }
}

/// Ends a request whose only result is its success.
pub fn done(answer: SuccessForm, reply: &mut Vec<u8>) {
    match answer {
        SuccessForm::Quiet => {}
        SuccessForm::Stored => reply.extend(b"STORED\r\n"),
        SuccessForm::Deleted => reply.extend(b"DELETED\r\n"),
        SuccessForm::Http { result, form } => {
            let (status, result) = match result {
                Outcome::Created => (HttpStatus::CREATED, "created"),
                Outcome::Replaced => (HttpStatus::OK, "replaced"),
                Outcome::Deleted => (HttpStatus::OK, "deleted"),
            };
            json(status, form, &serde_json::json!({ "result": result }), reply);
        }
    }
}

/// Appends statistics as memcached's `STAT` lines or as JSON; `shed` is the number of connections closed for the memory
/// that they held.
pub fn statistics(
    answer: SuccessForm,
    collection: Collection,
    counts: Counts,
    budget: &MemoryBudget,
    shed: u64,
    reply: &mut Vec<u8>,
) {
    let version = env!("CARGO_PKG_VERSION");
    let mut numbers = vec![
        ("documents", collection.documents),
        ("document_words", collection.words),
        ("words", counts.words),
        ("postings", counts.postings),
        ("opaque_bytes", counts.opaque_bytes),
        ("memory_bytes", budget.taken()),
        ("connections_shed", shed),
    ];
    numbers.extend(budget.limit().map(|limit| ("memory_bytes_max", limit)));
    if let SuccessForm::Http { form, .. } = answer {
        let mut object: serde_json::Map<_, _> =
            numbers.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        object.insert("version".to_owned(), version.into());
        return json(HttpStatus::OK, form, &object, reply);
    }
    text(reply, format_args!("STAT version {version}\r\n"));
    for (name, value) in numbers {
        text(reply, format_args!("STAT {name} {value}\r\n"));
    }
    reply.extend(b"END\r\n");
}

/// Appends the results of a query, as JSON.
pub fn results(ranking: &Ranking, form: ResponseForm, reply: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct ResultsBody<'a> {
        matches: usize,
        results: Vec<ResultLine<'a>>,
    }
    #[derive(Serialize)]
    struct ResultLine<'a> {
        id: &'a str,
        score: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<&'a str>,
    }
    let results = ranking.best.iter().map(|(score, document)| {
        let about = &document.about;
        ResultLine { id: &about.id, score: *score, title: about.title.as_deref(), url: about.url.as_deref() }
    });
    let body = ResultsBody { matches: ranking.matches, results: results.collect() };
    json(HttpStatus::OK, form, &body, reply);
}

/// A status of HTTP, and the header that it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HttpStatus(pub u16, pub &'static str, pub &'static str);

impl HttpStatus {
    /// The request succeeded (200).
    pub const OK: HttpStatus = HttpStatus(200, "OK", "");
    /// The document is new (201).
    pub const CREATED: HttpStatus = HttpStatus(201, "Created", "");
    /// The request is malformed (400).
    pub const BAD_REQUEST: HttpStatus = HttpStatus(400, "Bad Request", "");
    /// The path or the document does not exist (404).
    pub const NOT_FOUND: HttpStatus = HttpStatus(404, "Not Found", "");
    /// The request has a body without a length (411).
    pub const LENGTH_REQUIRED: HttpStatus = HttpStatus(411, "Length Required", "");
    /// The document is too large (413).
    pub const TOO_LARGE: HttpStatus = HttpStatus(413, "Content Too Large", "");
    /// The headers are too large (431).
    pub const HEADERS_TOO_LARGE: HttpStatus = HttpStatus(431, "Request Header Fields Too Large", "");
    /// The budget has no memory for the document (507).
    pub const NO_STORAGE: HttpStatus = HttpStatus(507, "Insufficient Storage", "");
    /// The method is not implemented (501).
    pub const NOT_IMPLEMENTED: HttpStatus = HttpStatus(501, "Not Implemented", "");

    /// Returns 405, with the methods that are allowed.
    pub const fn method_not_allowed(allow: &'static str) -> HttpStatus {
        HttpStatus(405, "Method Not Allowed", allow)
    }
}

/// Appends an error, as JSON.
pub fn error(status: HttpStatus, form: ResponseForm, message: &str, reply: &mut Vec<u8>) {
    json(status, form, &serde_json::json!({ "error": message }), reply);
}

fn json(
    HttpStatus(code, reason, allow): HttpStatus,
    form: ResponseForm,
    body: &impl Serialize,
    reply: &mut Vec<u8>,
) {
    let mut body = serde_json::to_vec(body).expect("strings and numbers are JSON");
    body.push(b'\n');
    text(reply, format_args!("HTTP/1.1 {code} {reason}\r\nContent-Type: application/json\r\n"));
    if !allow.is_empty() {
        text(reply, format_args!("Allow: {allow}\r\n"));
    }
    if form.close {
        reply.extend(b"Connection: close\r\n");
    }
    text(reply, format_args!("Content-Length: {}\r\n\r\n", body.len()));
    if !form.head_only {
        reply.extend(body);
    }
}

fn put_value(word: &[u8], flags: u32, value: &[u8], reply: &mut Vec<u8>) {
    reply.reserve(word.len() + value.len() + 40);
    reply.extend(b"VALUE ");
    reply.extend(word);
    // This runs on every `get`, where the cost of format_args! shows.
    let mut digits = itoa::Buffer::new();
    reply.push(b' ');
    reply.extend(digits.format(flags).as_bytes());
    reply.push(b' ');
    reply.extend(digits.format(value.len()).as_bytes());
    reply.extend(b"\r\n");
    reply.extend(value);
    reply.extend(b"\r\n");
}

fn text(reply: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    reply.write_fmt(text).expect("a vector takes everything");
}
