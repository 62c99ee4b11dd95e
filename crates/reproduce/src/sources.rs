//! The sources of the studies, in one place: `studies/sources.toml` ──> the head of each page, and `CITATION.cff`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

use serde::Deserialize;

/// A publication that a study reproduces, or that describes something that is built in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Source {
    /// Its kind, by which references are written.
    pub kind: SourceKind,
    /// The authors, each as "family name, given names".
    pub authors: Vec<String>,
    /// The title of the publication.
    pub title: String,
    /// The conference with its year, the journal with its volume, the institution or the site.
    pub venue: String,
    /// The year of publication.
    pub year: Option<u16>,
    /// A remark about the date of a source without a year.
    pub undated: Option<String>,
    /// The Digital Object Identifier.
    pub doi: Option<String>,
    /// The address of a source without a DOI.
    pub url: Option<String>,
}

/// The kind of a publication, with the names of the Citation File Format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it all")]
pub enum SourceKind {
    Article,
    Blog,
    ConferencePaper,
    Report,
    Standard,
    Thesis,
}

/// Returns the source of this key in `studies/sources.toml`.
pub fn find(key: &str) -> Option<&'static Source> {
    SOURCES.get(key)
}

/// Returns the keys of all sources in `studies/sources.toml`.
pub fn keys() -> impl Iterator<Item = &'static str> {
    SOURCES.keys().map(String::as_str)
}

static SOURCES: LazyLock<BTreeMap<String, Source>> = LazyLock::new(|| {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/sources.toml"));
    toml::from_str(text).unwrap_or_else(|error| panic!("studies/sources.toml: {error}"))
});

impl Source {
    /// Returns the address of the publication: its DOI's, or the source's own.
    pub fn address(&self) -> String {
        match (&self.doi, &self.url) {
            (Some(doi), _) => format!("https://doi.org/{doi}"),
            (None, url) => url.clone().unwrap_or_default(),
        }
    }

    /// Returns the citation as Markdown: authors, title, venue, year and address.
    pub fn citation(&self) -> String {
        let names: Vec<String> = self.authors.iter().map(|author| in_order(author)).collect();
        let authors = match &names[..] {
            [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
            names => names.join(", "),
        };
        let year = self.year.map(|year| year.to_string()).filter(|year| !self.venue.contains(year));
        let date = year.or_else(|| self.undated.clone()).map_or_else(String::new, |date| format!(", {date}"));
        let shown = self.doi.as_ref().map_or_else(|| self.address(), |doi| format!("doi:{doi}"));
        format!("{authors}: *{}*. {}{date}. [{shown}]({})", self.title, self.venue, self.address())
    }
}

/// Returns a name as it is spoken: "Voelker, Geoffrey M." is Geoffrey M. Voelker.
fn in_order(author: &str) -> String {
    author.split_once(", ").map_or_else(|| author.to_owned(), |(family, given)| format!("{given} {family}"))
}

/// Returns the text of `CITATION.cff`: this software, and every source as a reference.
pub fn citation_file() -> String {
    let mut file = HEAD.replace("{version}", env!("CARGO_PKG_VERSION"));
    for source in SOURCES.values() {
        let Source { kind, authors, title, venue, year, undated, doi, url } = source;
        let (kind, venue_key) = match kind {
            SourceKind::Article => ("article", "journal"),
            SourceKind::Blog => ("blog", "publisher"),
            SourceKind::ConferencePaper => ("conference-paper", "conference"),
            SourceKind::Report => ("report", "institution"),
            SourceKind::Standard => ("standard", "institution"),
            SourceKind::Thesis => ("thesis", "institution"),
        };
        let mut line = |text: String| {
            let _ = writeln!(file, "{text}");
        };
        line(format!("  - type: {kind}"));
        line(format!("    title: {}", quoted(title)));
        line("    authors:".to_owned());
        for author in authors {
            let (family, given) = author.split_once(", ").unwrap_or((author, ""));
            line(format!("      - family-names: {}", quoted(family)));
            line(format!("        given-names: {}", quoted(given)));
        }
        match kind {
            "article" => line(format!("    {venue_key}: {}", quoted(venue))),
            _ => line(format!("    {venue_key}:\n      name: {}", quoted(venue))),
        }
        let optional = [
            ("year", year.map(|year| year.to_string())),
            ("notes", undated.as_deref().map(|date| quoted(&format!("Undated; {date}.")))),
            ("doi", doi.as_deref().map(quoted)),
            ("url", url.as_deref().map(quoted)),
        ];
        for (key, value) in optional {
            value.into_iter().for_each(|value| line(format!("    {key}: {value}")));
        }
    }
    file
}

/// Returns a YAML string, which JSON's strings are.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

/// The part of `CITATION.cff` about this software.
const HEAD: &str = r#"# Generated from studies/sources.toml: UPDATE=1 cargo test -p plimsoll-reproduce --test it sources
cff-version: 1.2.0
message: "If you use Plimsoll, please cite it with its version, and the sources of what you reproduce with it."
type: software
title: Plimsoll
abstract: >-
  Finds out how much load a data-center network carries before its tail latency violates an objective, and which
  mechanism raises that limit, by packet-level simulation, by emulation on a Linux kernel, and on real hosts.
authors:
  - name: "The maintainers of Plimsoll"
version: "{version}"
license:
  - MIT
  - Apache-2.0
keywords:
  - data-center networks
  - discrete-event simulation
  - tail latency
  - network emulation
references:
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_says_who_what_where_when_and_how_to_find_it() {
        for (key, source) in SOURCES.iter() {
            assert!(
                !source.authors.is_empty() && !source.title.is_empty() && !source.venue.is_empty(),
                "{key}"
            );
            for author in &source.authors {
                let parts = author.split_once(", ");
                assert!(
                    parts.is_some_and(|(family, given)| !family.is_empty() && !given.is_empty()),
                    "{key}: {author}"
                );
            }
            assert!(source.year.is_some() != source.undated.is_some(), "{key}: a year, or why there is none");
            assert!(source.doi.is_some() != source.url.is_some(), "{key}: a DOI, or else an address");
            assert!(source.doi.as_ref().is_none_or(|doi| doi.starts_with("10.")), "{key}: {:?}", source.doi);
            assert!(source.address().starts_with("https://"), "{key}: {}", source.address());
        }
    }

    #[test]
    fn a_citation_names_the_authors_as_they_are_spoken() {
        assert_eq!(
            find("chronos").map(Source::citation).as_deref(),
            Some(
                "Rishi Kapoor, George Porter, Malveeka Tewari, Geoffrey M. Voelker and Amin Vahdat: *Chronos: \
                 Predictable Low Latency for Data Center Applications*. ACM Symposium on Cloud Computing (SoCC 2012). \
                 [doi:10.1145/2391229.2391238](https://doi.org/10.1145/2391229.2391238)"
            )
        );
        let undated = find("hull-epfl").expect("it is a source").citation();
        assert!(undated.contains("EPFL (semester project), after October 2017"), "{undated}");
    }
}
