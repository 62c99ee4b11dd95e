//! A server without a network, and an index that is obviously right, for tests.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod server;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_chronos::{Direct, Now, ServedInput, Service, SessionTransport};
use plimsoll_chronos_search::{Mode, SearchService, SearchSettings, Session, Sets, words};
use serde_json::Value;

pub const NOW: Now = Now { since_start: Duration::ZERO, unix_seconds: 0 };
pub const SECRET: u64 = 7;

/// A server, and one connection to it.
pub struct Wire {
    pub direct: Direct<SearchService>,
    pub session: Session,
}

impl Wire {
    pub fn new(settings: SearchSettings, partitions: u32) -> Wire {
        Wire::of(SearchService::new(settings, partitions, SECRET), partitions)
    }

    pub fn of(search: SearchService, partitions: u32) -> Wire {
        let session = search.open(SessionTransport::Tcp);
        Wire { direct: Direct::new(search, partitions), session }
    }

    /// Returns all kinds of servers, by name: few and many partitions, and the baseline.
    pub fn all(sets: Sets) -> Vec<(&'static str, Wire)> {
        let settings = SearchSettings { sets, document_bytes_max: 1000, ..SearchSettings::default() };
        let snapshots = SearchSettings { snapshots: true, ..settings };
        vec![
            ("1 partition", Wire::new(settings, 1)),
            ("12 partitions", Wire::new(settings, 12)),
            ("snapshots", Wire::new(snapshots, 12)),
        ]
    }

    pub fn serve(&mut self, input: &[u8]) -> (ServedInput, Vec<u8>) {
        let mut reply = Vec::new();
        let served = self.direct.serve(&mut self.session, NOW, input, &mut reply);
        (served, reply)
    }

    /// Returns the answer to `input`, all of which must be consumed.
    pub fn send(&mut self, input: &[u8]) -> String {
        let (served, reply) = self.serve(input);
        let reply = String::from_utf8(reply).unwrap();
        assert_eq!(served, ServedInput { consumed: input.len(), close: false }, "{reply}");
        reply
    }

    /// Sends an HTTP request on a connection of its own, and returns status and body.
    pub fn http(&mut self, method: &str, target: &str, body: &str) -> (u16, Value) {
        response(&self.ask(method, target, body))
    }

    /// As [`Wire::http`], with the whole answer.
    fn ask(&mut self, method: &str, target: &str, body: &str) -> String {
        self.session = self.direct.service().open(SessionTransport::Tcp);
        let head = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        self.send(format!("{head}{body}").as_bytes())
    }

    pub fn put(&mut self, id: &str, text: &str) {
        let status = self.http("PUT", &format!("/documents/{id}"), text).0;
        assert!(matches!(status, 200 | 201), "{status}");
    }

    /// Returns the number of matches, and the results' names and scores.
    pub fn search(&mut self, query: &str, mode: Mode, limit: usize) -> (u64, Vec<(String, f64)>) {
        let mode = if mode == Mode::And { "and" } else { "or" };
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let text = self.ask("GET", &format!("/search?q={query}&mode={mode}&limit={limit}"), "");
        let (status, body) = response(&text);
        assert_eq!(status, 200, "{body}");
        // Of the text, since serde_json reads numbers to within the last bit only.
        let scores = text.split("\"score\":").skip(1);
        let scores = scores.map(|rest| rest.split([',', '}']).next().unwrap().parse().unwrap());
        let ids = body["results"].as_array().unwrap().iter();
        let ids = ids.map(|result| result["id"].as_str().unwrap().to_owned());
        (body["matches"].as_u64().unwrap(), ids.zip(scores).collect())
    }
}

/// Returns a response's status and body, whose length must match its header.
pub fn response(text: &str) -> (u16, Value) {
    let (head, body) = text.split_once("\r\n\r\n").expect(text);
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{text}");
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// Documents as lists of words, ranked by looking at each.
#[derive(Default)]
pub struct BruteForce {
    pub documents: BTreeMap<String, Vec<String>>,
}

impl BruteForce {
    pub fn put(&mut self, id: &str, text: &str) {
        self.documents.insert(id.to_owned(), words(text).collect());
    }

    /// Returns all documents that match, best first.
    pub fn search(&self, query: &str, mode: Mode) -> Vec<(String, f64)> {
        let mut asked: Vec<String> = Vec::new();
        for word in words(query) {
            if !asked.contains(&word) {
                asked.push(word);
            }
        }
        let has = |words: &[String], word: &String| words.contains(word);
        let with = |word| self.documents.values().filter(|words| has(words, word)).count() as f64;
        let weights: Vec<(&String, f64)> = asked.iter().map(|word| (word, with(word))).collect();
        let mut results = Vec::new();
        for (id, words) in &self.documents {
            let matches = match mode {
                Mode::And => !asked.is_empty() && asked.iter().all(|word| has(words, word)),
                Mode::Or => asked.iter().any(|word| has(words, word)),
            };
            if matches {
                results.push((id.clone(), self.score(words, &weights)));
            }
        }
        // Stable, so that equal scores stay in the order of names.
        results.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        results
    }

    fn score(&self, document: &[String], weights: &[(&String, f64)]) -> f64 {
        let all = self.documents.len() as f64;
        let mean = self.documents.values().map(Vec::len).sum::<usize>() as f64 / all;
        let (k1, b) = (1.2, 0.75);
        let one = |&(word, with): &(&String, f64)| {
            let f = document.iter().filter(|other| *other == word).count() as f64;
            let saturation = f * (k1 + 1.0) / (f + k1 * (1.0 - b + b * document.len() as f64 / mean));
            ((all - with + 0.5) / (with + 0.5) + 1.0).ln() * saturation
        };
        weights.iter().map(one).sum()
    }
}

/// Asserts that `wire` ranks as brute force does. Sums of other rounding may differ in the last digits, so that scores
/// that are equal within them may be in another order; scores that are equal to the last bit are in the order of names.
#[track_caller]
pub fn assert_same_ranking(wire: &mut Wire, right: &BruteForce, query: &str, mode: Mode, limit: usize) {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + b.abs());
    let expected = right.search(query, mode);
    let (matches, results) = wire.search(query, mode, limit);
    let context = format!("{query:?} {mode:?} {limit}: {results:?} instead of {expected:?}");
    assert_eq!(matches, expected.len() as u64, "{context}");
    assert_eq!(results.len(), expected.len().min(limit), "{context}");
    for ((id, score), (_, place_score)) in results.iter().zip(&expected) {
        let own = expected.iter().find(|(other, _)| other == id).expect(&context).1;
        assert!(near(*score, own) && near(*score, *place_score), "{context}");
    }
    for pair in results.windows(2) {
        assert!(pair[0].1 > pair[1].1 || pair[0].1 == pair[1].1 && pair[0].0 < pair[1].0, "{context}");
    }
}
