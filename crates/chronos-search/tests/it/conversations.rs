//! The server's answers, in tables, with one partition, many, or snapshots.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use crate::support::{NOW, SECRET, Wire, response};
use plimsoll_chronos::{Now, ServedInput, Service, SessionTransport};
use plimsoll_chronos_search::{Mode, SearchService, SearchSettings, Sets, load};
use serde_json::json;

const BAD_LINE: &str = "CLIENT_ERROR bad command line format\r\n";

#[test]
fn memcached_documents() {
    let long = "k".repeat(251);
    let large = format!("set big 0 0 1001\r\n{}\r\n", "x".repeat(1001));
    let cases = [
        ("set a 0 0 7\r\nsun Sun\r\n", "STORED\r\n"),
        ("set b 0 0 8\r\nsun moon\r\n", "STORED\r\n"),
        ("get sun\r\n", "VALUE sun 0 12\r\na 2 2\nb 1 2\n\r\nEND\r\n"),
        (
            "get moon none  sun\r\n",
            "VALUE moon 0 6\r\nb 1 2\n\r\nVALUE sun 0 12\r\na 2 2\nb 1 2\n\r\nEND\r\n",
        ),
        ("get Sun\r\n", "END\r\n"),
        ("set a 5 0 4 noreply\r\nmoon\r\nget moon\n", "VALUE moon 0 12\r\na 1 1\nb 1 2\n\r\nEND\r\n"),
        ("get sun\r\n", "VALUE sun 0 6\r\nb 1 2\n\r\nEND\r\n"),
        ("delete b\r\n", "DELETED\r\n"),
        ("delete b\r\n", "NOT_FOUND\r\n"),
        ("delete b 0\r\n", "NOT_FOUND\r\n"),
        ("delete b noreply\r\nget sun\r\n", "END\r\n"),
        ("set a 0 0 0\r\n\r\n", "STORED\r\n"),
        ("get moon\r\n", "END\r\n"),
        (&large, "SERVER_ERROR object too large for cache\r\n"),
        ("set a 0 60 1\r\nx\r\n", "CLIENT_ERROR nothing expires here: the expiry time must be 0\r\n"),
        ("set a 0 0 2\r\nxyz\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n"),
        ("set a 0 0 -1\r\n", BAD_LINE),
        ("set a 0 0 x\r\n", BAD_LINE),
        ("set a 0 0\r\n", BAD_LINE),
        ("set a 0 0 1 loudly\r\n", BAD_LINE),
        ("delete a 5\r\n", BAD_LINE),
        (&format!("get {long}\r\n"), BAD_LINE),
        (&format!("get sun {long} moon\r\n"), BAD_LINE),
        (&format!("delete {long}\r\n"), BAD_LINE),
        ("get\r\n", "ERROR\r\n"),
        ("get  \r\n", "ERROR\r\n"),
        ("set\r\n", "ERROR\r\n"),
        ("flush_all\r\n", "ERROR\r\n"),
        ("\r\n", "ERROR\r\n"),
        ("version\r\n", concat!("VERSION ", env!("CARGO_PKG_VERSION"), "\r\n")),
    ];
    for (name, mut wire) in Wire::all(Sets::Documents) {
        for (input, answer) in cases {
            assert_eq!(wire.send(input.as_bytes()), answer, "{name}: {input:?}");
        }
        let expected = "STAT documents 1\r\nSTAT document_words 0\r\nSTAT words 0\r\nSTAT postings 0\r\n";
        assert!(wire.send(b"stats\r\n").contains(expected), "{name}");
        assert_eq!(wire.serve(b"quit\r\nget sun\r\n").0, ServedInput { consumed: 0, close: true });
    }
}

#[test]
fn memcached_postings_as_in_the_paper() {
    let value = "p".repeat(999);
    for (name, mut wire) in Wire::all(Sets::Postings) {
        let set = format!("set 0123456789 3 0 999\r\n{value}\r\n");
        assert_eq!(wire.send(set.as_bytes()), "STORED\r\n", "{name}");
        let got = format!("VALUE 0123456789 3 999\r\n{value}\r\nEND\r\n");
        assert_eq!(wire.send(b"get 0123456789\r\n"), got, "{name}");
        assert_eq!(wire.send(b"set 0123456789 0 0 2\r\nab\r\n"), "STORED\r\n");
        assert_eq!(wire.send(b"get 0123456789\r\n"), "VALUE 0123456789 0 2\r\nab\r\nEND\r\n");
        assert!(wire.send(b"stats\r\n").contains("STAT opaque_bytes 2\r\n"));
        assert_eq!(wire.send(b"delete 0123456789\r\ndelete 0123456789\r\n"), "DELETED\r\nNOT_FOUND\r\n");
        assert_eq!(wire.send(b"get 0123456789\r\n"), "END\r\n");
    }
}

#[test]
fn http_documents_and_queries() {
    for (name, mut wire) in Wire::all(Sets::Documents) {
        let moon = r#"{"text": "The moon, the moon", "title": "Moon", "url": "https://example.org/m"}"#;
        let put = "PUT /documents/m%C3%B6on HTTP/1.1\r\nHost: x\r\ncontent-type: application/json; charset=utf-8\r\n";
        let input = format!("{put}content-length: {}\r\n\r\n{moon}", moon.len());
        assert_eq!(response(&wire.send(input.as_bytes())), (201, json!({"result": "created"})), "{name}");
        // The same with a byte order mark, which some editors write.
        let input = format!("{put}content-length: {}\r\n\r\n\u{feff}{moon}", moon.len() + 3);
        assert_eq!(response(&wire.send(input.as_bytes())), (200, json!({"result": "replaced"})), "{name}");
        wire.put("sun", "the sun");
        let (status, body) = wire.http("GET", "/search?q=the+moon", "");
        assert_eq!((status, &body["matches"]), (200, &json!(1)), "{name}");
        let result = &body["results"][0];
        assert_eq!((&result["id"], &result["title"]), (&json!("möon"), &json!("Moon")));
        assert_eq!(result["url"], "https://example.org/m");
        let (_, body) = wire.http("GET", "/search?q=moon%20sun&mode=or", "");
        assert_eq!(body["matches"], 2);
        assert!(body["results"][1].get("title").is_none());
        assert_eq!(wire.http("GET", "/search?q=--", "").1, json!({"matches": 0, "results": []}));
        assert_eq!(wire.http("DELETE", "/documents/m%C3%B6on", "").0, 200);
        let (_, stats) = wire.http("GET", "/stats", "");
        assert_eq!((&stats["documents"], &stats["words"]), (&json!(1), &json!(2)), "{name}");
    }
}

#[test]
fn a_query_may_have_64_words_as_often_as_it_likes() {
    for (name, mut wire) in Wire::all(Sets::Documents) {
        wire.put("some", "w0 w63");
        wire.put("one", "w5");
        let words: Vec<String> = (0..64).map(|number| format!("w{number}")).collect();
        let (matches, results) = wire.search(&vec![words.join(" "); 3].join(" "), Mode::Or, 10);
        assert_eq!((matches, &*results[0].0, &*results[1].0), (2, "some", "one"), "{name}");
    }
}

#[test]
fn http_refuses_with_reasons() {
    let words: Vec<String> = (0..65).map(|number| format!("w{number}")).collect();
    let too_many = format!("/search?mode=or&q={}", words.join("+"));
    let cases = [
        ("GET", &*too_many, "", 400, "q: more than 64 different words"),
        ("GET", "/search", "", 400, "q is missing"),
        ("GET", "/search?q=x&mode=xor", "", 400, "and, or"),
        ("GET", "/search?q=x&limit=0", "", 400, "1 to 1000"),
        ("GET", "/search?q=x&limt=1", "", 400, "q, mode, limit"),
        ("GET", "/", "", 404, "/documents/ID"),
        ("GET", "/documents/a", "", 405, "put or deleted"),
        ("POST", "/search", "", 405, "only GET and HEAD"),
        ("GET", "ftp://x/stats", "", 400, "neither a path nor an http:// URI"),
        ("GET", "*", "", 400, "neither a path nor an http:// URI"),
        ("DELETE", "/documents/a", "", 404, "no such document"),
        ("PUT", "/documents/", "x", 400, "0 bytes"),
        ("PUT", "/documents/a%20b", "x", 400, "spaces"),
        ("PUT", "/documents/%ff", "x", 400, "UTF-8"),
    ];
    for (method, target, body, status, reason) in cases {
        let mut wire = Wire::new(SearchSettings::default(), 4);
        let (answered, body) = wire.http(method, target, body);
        let message = body["error"].as_str().unwrap();
        assert!(answered == status && message.contains(reason), "{method} {target}: {answered} {message}");
        assert_eq!(wire.http("GET", "/stats", "").0, 200, "the connection goes on");
    }
    let ends = [
        ("GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
        ("PUT /documents/a HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 411),
        (
            "PUT /documents/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
                .to_owned(),
            400,
        ),
        ("PUT /documents/a HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n".to_owned(), 400),
        ("PUT /documents/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n".to_owned(), 413),
        ("PUT /documents/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), 501),
        ("GET /stats HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        ("GET /stats HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET http://x/stats HTTP/1.1\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nHost: x\r\na: {}\r\n\r\n", "x".repeat(20_000)), 431),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(65)), 431),
    ];
    for (input, status) in ends {
        let mut wire = Wire::new(SearchSettings { document_bytes_max: 1000, ..SearchSettings::default() }, 4);
        let (served, reply) = wire.serve(input.as_bytes());
        assert!(served.close, "{input}");
        assert_eq!(response(&String::from_utf8(reply).unwrap()).0, status, "{input}");
    }
}

#[test]
fn http_connections_end_when_they_are_asked_to() {
    for head in ["GET /stats HTTP/1.0\r\n", "GET /stats HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n"] {
        let mut wire = Wire::new(SearchSettings::default(), 4);
        let (served, reply) =
            wire.serve(format!("{head}\r\nGET /stats HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        let reply = String::from_utf8(reply).unwrap();
        assert!(served.close && reply.contains("Connection: close\r\n"), "{reply}");
        assert_eq!(reply.matches("HTTP/1.1 200").count(), 1);
    }
}

/// RFC 9110, section 9.3.2, and RFC 9112, section 3.2.2.
#[test]
fn head_and_absolute_targets_are_those_of_get_and_of_the_path() {
    for (name, mut wire) in Wire::all(Sets::Documents) {
        wire.put("a", "sun");
        for path in ["/stats", "/search?q=sun", "/search", "/nowhere"] {
            let get = wire.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
            for target in ["http://x", "HTTP://x:11212"] {
                let absolute = format!("GET {target}{path} HTTP/1.1\r\nHost: x\r\n\r\n");
                assert_eq!(wire.send(absolute.as_bytes()), get, "{name}: {absolute}");
            }
            // The head alone, with the length of the body that GET has; the next request follows it at once.
            let head = wire.send(format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
            assert_eq!(head, get[..get.find("\r\n\r\n").unwrap() + 4], "{name}: {path}");
        }
        let both = wire
            .send(b"HEAD /stats HTTP/1.1\r\nHost: x\r\n\r\nGET http://x/stats HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(
            (both.matches("HTTP/1.1 200").count(), both.matches("\"documents\"").count()),
            (2, 1),
            "{both}"
        );
        assert_eq!(wire.http("GET", "http://x", "").0, 404, "a URI without a path is the root");
    }
}

/// A head, or a line of memcached's protocol, has one deadline from its first byte on, however many bytes come before
/// it; bodies and connections between requests have none.
#[test]
fn a_head_has_a_deadline_from_its_first_byte() {
    let get = "GET /stats HTTP/1.1\r\nHost: x\r\n\r\n";
    let put = "PUT /documents/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n";
    for (sent, is_head) in [
        ("GE", true),
        ("GET /stats HTTP/1.1\r\nHost: x\r\n", true),
        ("get su", true),
        (&format!("{get}GET"), true),
        ("version\r\nversion", true),
        ("", false),
        (get, false),
        (put, false),
        (&format!("{put}su"), false),
        ("get sun\r\n", false),
        ("set a 0 0 3\r\nsu", false),
    ] {
        for head_seconds in [0, 5] {
            let mut wire = Wire::new(SearchSettings { head_seconds, ..SearchSettings::default() }, 4);
            let at = |seconds| Now { since_start: Duration::from_secs(seconds), ..NOW };
            let mut consumed = 0;
            for (second, end) in [(10, sent.len().saturating_sub(1)), (12, sent.len())] {
                let rest = &sent.as_bytes()[consumed..end];
                consumed += wire.direct.serve(&mut wire.session, at(second), rest, &mut Vec::new()).consumed;
            }
            for (second, is_kept) in [(14, true), (15, !is_head || head_seconds == 0)] {
                let service = wire.direct.service();
                let found = service.tick(&mut wire.session, at(second), &mut Vec::new());
                assert_eq!(found, is_kept, "{sent:?}, {head_seconds} s, at {second}");
            }
        }
    }
}

#[test]
fn http_says_when_to_go_on() {
    let mut wire = Wire::new(SearchSettings::default(), 4);
    let head = "PUT /documents/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let (served, reply) = wire.serve(head.as_bytes());
    assert_eq!((served.consumed, &reply[..]), (0, &b"HTTP/1.1 100 Continue\r\n\r\n"[..]));
    assert_eq!(response(&wire.send(format!("{head}sun").as_bytes())).0, 201);
}

#[test]
fn files_become_documents() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    };
    write("a b.txt", b"sun");
    write("deep/er", b"moon \xff sun");
    write("picture", b"sun\0");
    let lines = write(
        "more.jsonl",
        b"{\"id\": 7, \"text\": \"sun\\n\", \"lang\": \"en\"}\n\n{\"id\": \"x\", \"text\": \"moon\"}\n",
    );
    let search = SearchService::new(SearchSettings::default(), 4, SECRET);
    let loaded = load(&search, folder.path()).unwrap();
    assert_eq!((loaded.documents, loaded.left_out), (4, 1));
    assert_eq!(load(&search, &lines).unwrap().documents, 2);
    // Some editors write a byte order mark.
    let marked = write(
        "marked.jsonl",
        b"\xef\xbb\xbf{\"id\":\"a\",\"text\":\"alpha beta\"}\n{\"id\":\"b\",\"text\":\"gamma\"}\n",
    );
    assert_eq!(load(&search, &marked).unwrap().documents, 2);
    let text = write("marked.txt", b"\xef\xbb\xbfdelta");
    assert_eq!(load(&search, &text).unwrap().documents, 1);
    let mut wire = Wire::of(search, 4);
    assert!(wire.send(b"get delta\r\n").contains("marked.txt 1 1\n"));
    assert_eq!(wire.send(b"get moon\r\n"), "VALUE moon 0 18\r\ndeep/er 1 2\nx 1 1\n\r\nEND\r\n");
    assert!(wire.send(b"get sun\r\n").contains("a%20b.txt 1 1\n"));

    let errors: [(&str, &[u8], &str); 5] = [
        ("wide.jsonl", b"\xff\xfe{\0}\0", "wide.jsonl: it begins with the byte order mark of UTF-16"),
        (
            "wider.jsonl",
            b"\0\0\xfe\xff\0\0\0{",
            "wider.jsonl: it begins with the byte order mark of UTF-16 or UTF-32",
        ),
        ("id.jsonl", b"{\"id\": \"a b\", \"text\": \"\"}\n", "id.jsonl:1: a document's name has ' '"),
        ("text.jsonl", b"\n{\"id\": \"a\"}\n", "text.jsonl:2: not a document: missing field `text`"),
        ("none.jsonl", b"nothing\n", "none.jsonl:1: not a document: "),
    ];
    for (name, bytes, message) in errors {
        let error = load(wire.direct.service(), &write(name, bytes)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert!(load(wire.direct.service(), &folder.path().join("nowhere")).is_err());
}

#[test]
fn a_reader_leaves_a_partition_as_it_is() {
    let mut wire = Wire::new(SearchSettings::default(), 1);
    wire.send(b"set a 0 0 3\r\nsun\r\n");
    let search = SearchService::new(SearchSettings::default(), 1, SECRET);
    for (input, reads) in [(&b"get sun\r\n"[..], true), (b"delete a\r\n", false), (b"stats\r\n", true)] {
        let mut session = search.open(SessionTransport::Tcp);
        let (mut refused, mut reply) = (Vec::new(), Vec::new());
        match search.parse(&mut session, NOW, input, &mut refused) {
            plimsoll_chronos::Step::Run { request, .. }
            | plimsoll_chronos::Step::Everywhere { request, .. } => {
                assert_eq!(search.look(&wire.direct.partitions()[0], &request, &mut reply), reads);
            }
            _ => assert_eq!(refused, b"NOT_FOUND\r\n"),
        }
    }
}
