//! The ledger follows from measured and published numbers, and from nothing else.

use std::collections::BTreeSet;

use plimsoll_reproduce::{Ledger, Reproduction, RowState, Study, StudyRow, every, page};

use crate::common;

fn pages() -> impl Iterator<Item = (&'static Study, Reproduction)> {
    every().iter().map(|study| (study, common::committed(study).1))
}

#[test]
fn the_committed_ledger_is_what_the_committed_rows_give() {
    let ledgers: Vec<(&Study, Ledger)> = pages().map(|(study, page)| (study, page.ledger())).collect();
    common::is_kept("ledger.md", &page::ledger(&ledgers), "ledger");
}

#[test]
fn every_committed_verdict_follows_from_measured_and_published() {
    for (study, committed) in pages() {
        let mut settled = committed.clone();
        settled.settle(study);
        for (kept, again) in committed.rows.iter().zip(&settled.rows) {
            assert_eq!(kept, again, "{}", study.id);
        }
        for row in &committed.rows {
            let ratio =
                row.published.filter(|published| *published != 0.0).map(|published| row.measured / published);
            assert_eq!(row.ratio, ratio, "{} {row:?}", study.id);
            if let (Some(ratio), Some(tolerance)) = (ratio, row.tolerance) {
                assert_eq!(
                    row.within,
                    Some(1.0 / tolerance <= ratio && ratio <= tolerance),
                    "{} {row:?}",
                    study.id
                );
            }
            let is_repeated = study.repeats.iter().any(|repeats| repeats.has(row));
            assert!(row.published.is_none() || row.state.is_some() != is_repeated, "{} {row:?}", study.id);
            assert!(row.state != Some(RowState::Held) || row.within == Some(true), "{} {row:?}", study.id);
        }
    }
}

/// A window that no row reaches explains nothing, and would let a later row pass unseen. Rows of runs for which the
/// machine was too slow count, for they are open whatever is said of them.
#[test]
fn every_explanation_accounts_for_a_row() {
    let mut idle = Vec::new();
    for (study, committed) in pages() {
        for explanation in study.explanations.iter().chain(&study.open) {
            let is_off = |row: &&StudyRow| matches!(row.state, Some(RowState::Explained | RowState::Open));
            if !committed.rows.iter().filter(is_off).any(|row| explanation.accounts_for(row)) {
                idle.push(format!("{}: {}", study.id, explanation.title));
            }
        }
    }
    assert!(idle.is_empty(), "{idle:#?}");
}

/// `--redraw`: rows that are computed from others are as before, and no measured row is lost.
#[test]
fn a_page_that_is_summed_up_anew_is_the_same() {
    for (study, committed) in pages() {
        let mut again = committed.clone();
        again.sum_up(study);
        assert_eq!(again.rows.len(), committed.rows.len(), "{}", study.id);
        assert_eq!(again.orderings, committed.orderings, "{}", study.id);
        for row in &committed.rows {
            assert!(again.rows.contains(row), "{}: {row:?}", study.id);
        }
    }
}

/// A row has one place: two of one name would be one point under another's.
#[test]
fn no_row_is_there_twice() {
    for (study, committed) in pages() {
        let mut names = BTreeSet::new();
        for StudyRow { figure, base, series, x, metric, flows, .. } in &committed.rows {
            let name = (figure, base, series, x, metric, flows);
            assert!(names.insert(name), "{}: {name:?}", study.id);
        }
    }
}

/// A chart's axis has numbers: where the places are words only, nothing would be drawn.
#[test]
fn no_chart_is_empty() {
    for (study, committed) in pages() {
        for figure in &study.figures {
            for metric in &figure.drawn {
                let is_drawn = |row: &&StudyRow| {
                    row.figure == figure.id && row.metric == *metric && row.x.parse::<f64>().is_ok()
                };
                let drawn = committed.rows.iter().filter(is_drawn).count();
                assert!(drawn > 0, "{} {} {metric}", study.id, figure.id);
            }
        }
    }
}
