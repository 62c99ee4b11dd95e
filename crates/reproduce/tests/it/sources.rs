//! Every page names the sources of its study, and `CITATION.cff` has all sources.

use std::fs;
use std::path::Path;

use plimsoll_reproduce::{every, sources};

use crate::common;

#[test]
fn every_page_names_its_sources_below_its_title() {
    for study in every() {
        let (folder, _) = common::committed(study);
        let page = fs::read_to_string(folder.join(format!("{}.md", study.id))).unwrap();
        let head: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("# ")).take(10).collect();
        let mut of = vec![study.sources.of];
        of.extend(&study.sources.papers);
        for (line, source) in head[2..].iter().zip(of) {
            let of_source = [
                source.authors[0].split(", ").next().unwrap_or_default().to_owned(),
                source.title.clone(),
                source.venue.clone(),
                source.year.map_or_else(String::new, |year| year.to_string()),
                source.address(),
            ];
            let missing = of_source.iter().find(|part| !line.contains(part.as_str()));
            assert_eq!(missing, None, "docs/reproductions/{}.md: {line}", study.id);
        }
        let title = head[0];
        let of = &study.sources.of.authors;
        let is_named = of.iter().any(|author| title.contains(author.split(", ").next().unwrap_or(author)));
        assert!(
            is_named,
            "docs/reproductions/{}.md: the title says whose evaluation it is: {title}",
            study.id
        );
    }
}

#[test]
fn the_citation_file_has_every_source() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CITATION.cff");
    let made = sources::citation_file();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == made,
        "CITATION.cff is out of date; run `UPDATE=1 cargo test -p plimsoll-reproduce --test it sources`"
    );
    for key in sources::keys() {
        let source = sources::find(key).unwrap();
        assert!(made.contains(&source.title.replace('"', "\\\"")), "{key}");
    }
}
