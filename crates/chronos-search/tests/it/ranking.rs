//! Ranked results against brute force: random documents that are put, replaced and deleted, and texts of this machine.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use crate::support::{BruteForce, NOW, SECRET, Wire, assert_same_ranking};
use plimsoll_chronos::{Service, SessionTransport};
use plimsoll_chronos_search::{Mode, SearchService, SearchSettings, Sets, load};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Action {
    Put(u8, String),
    Delete(u8),
    Search(String, Mode, usize),
}

/// Few words, so that many documents are equal and lists are long.
fn text() -> impl Strategy<Value = String> {
    let word =
        prop::sample::select(vec!["one", "Two", "two", "three", "four", "five", "--", "don't", "größe"]);
    prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

fn action() -> impl Strategy<Value = Action> {
    let mode = prop::sample::select(vec![Mode::And, Mode::Or]);
    prop_oneof![
        6 => (0..30_u8, text()).prop_map(|(id, text)| Action::Put(id, text)),
        2 => (0..30_u8).prop_map(Action::Delete),
        3 => (text(), mode, 1..20_usize).prop_map(|(query, mode, limit)| Action::Search(query, mode, limit)),
    ]
}

proptest! {
    #[test]
    fn random_documents_rank_as_by_brute_force(actions in prop::collection::vec(action(), 0..60)) {
        for (_, mut wire) in Wire::all(Sets::Documents) {
            let mut right = BruteForce::default();
            for action in &actions {
                match action {
                    Action::Put(id, text) => {
                        wire.put(&format!("d{id}"), text);
                        right.put(&format!("d{id}"), text);
                    }
                    Action::Delete(id) => {
                        let status = wire.http("DELETE", &format!("/documents/d{id}"), "").0;
                        let known = right.documents.remove(&format!("d{id}")).is_some();
                        prop_assert_eq!(status, if known { 200 } else { 404 });
                    }
                    Action::Search(query, mode, limit) => {
                        assert_same_ranking(&mut wire, &right, query, *mode, *limit);
                    }
                }
            }
            assert_same_ranking(&mut wire, &right, "one two three", Mode::Or, 100);
        }
    }
}

#[test]
fn texts_of_this_machine_rank_as_by_brute_force() {
    // Of Debian's base-files.
    let folder = Path::new("/usr/share/common-licenses");
    if !folder.is_dir() {
        return plimsoll_testing::skipped!("no {} (Debian package base-files)", folder.display());
    }
    let mut right = BruteForce::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
        right.put(&entry.file_name().into_string().unwrap(), &text);
    }
    let mut vocabulary: Vec<String> = right.documents.values().flatten().cloned().collect();
    vocabulary.sort_unstable();
    vocabulary.dedup();
    assert!(vocabulary.len() > 1000, "the licenses have {} words", vocabulary.len());
    for snapshots in [false, true] {
        let search =
            SearchService::new(SearchSettings { snapshots, ..SearchSettings::default() }, 12, SECRET);
        let loaded = load(&search, folder).unwrap();
        assert_eq!((loaded.documents, loaded.left_out), (right.documents.len() as u64, 0));
        let mut wire = Wire::of(search, 12);
        for (index, word) in vocabulary.iter().enumerate().step_by(41) {
            let far = &vocabulary[index * 7 % vocabulary.len()];
            assert_same_ranking(&mut wire, &right, word, Mode::And, 5);
            assert_same_ranking(&mut wire, &right, &format!("{far} {word} license"), Mode::Or, 7);
            assert_same_ranking(&mut wire, &right, &format!("the {word} of"), Mode::And, 1000);
        }
    }
}

/// Four threads change the same few documents at once. Whatever their order was, the index matches the documents that
/// are left.
#[test]
fn changes_at_the_same_time_leave_one_version() {
    const PARTITIONS: u32 = 8;
    for snapshots in [false, true] {
        let settings = SearchSettings { snapshots, ..SearchSettings::default() };
        let search = Arc::new(SearchService::new(settings, PARTITIONS, SECRET));
        let ids = (0..PARTITIONS).map(plimsoll_chronos::PartitionId);
        let partitions: Arc<Vec<_>> =
            Arc::new(ids.map(|id| std::sync::Mutex::new(search.partition(id))).collect());
        let threads: Vec<_> = (0..4_usize)
            .map(|thread| {
                let (search, partitions) = (search.clone(), partitions.clone());
                std::thread::spawn(move || change_documents(&search, &partitions, thread))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        for document in search.catalogue().all() {
            for (word, frequency) in document.terms.all() {
                let mut reply = Vec::new();
                let mut session = search.open(SessionTransport::Tcp);
                let input = [b"get ", word, b"\r\n"].concat();
                if let plimsoll_chronos::Step::Run { partition, request, .. } =
                    search.parse(&mut session, NOW, &input, &mut reply)
                {
                    let mut partition = partitions[partition.0 as usize].lock().unwrap();
                    search.execute(&mut partition, &request, NOW, &mut reply);
                }
                let reply = String::from_utf8(reply).unwrap();
                let line = format!("{} {frequency} {}\n", document.about.id, document.terms.words());
                assert!(reply.contains(&line), "{reply}\nhas not {line}");
                assert_eq!(reply.matches(&format!("{} ", document.about.id)).count(), 1, "{reply}");
            }
        }
    }
}

fn change_documents(
    search: &SearchService,
    partitions: &[std::sync::Mutex<plimsoll_chronos_search::Partition>],
    thread: usize,
) {
    for round in 0..500 {
        let id = format!("d{}", round % 5);
        let text = format!("all t{thread} r{} {}", round % 7, "more ".repeat(round % 3));
        let input = if round % 11 == thread {
            format!("delete {id}\r\n")
        } else {
            format!("set {id} 0 0 {}\r\n{text}\r\n", text.len())
        };
        let (mut session, mut reply) = (search.open(SessionTransport::Tcp), Vec::new());
        if let plimsoll_chronos::Step::Everywhere { request, .. } =
            search.parse(&mut session, NOW, input.as_bytes(), &mut reply)
        {
            // Each thread in another order, as requests cross threads.
            for step in 0..partitions.len() {
                let mut partition = partitions[(thread * 3 + step) % partitions.len()].lock().unwrap();
                search.execute(&mut partition, &request, NOW, &mut reply);
            }
        }
    }
}
