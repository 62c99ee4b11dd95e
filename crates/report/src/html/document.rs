//! [`MarkdownPage`]: a page of Markdown whose pictures are figures, with the style of a report.

use std::collections::BTreeMap;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::{Figure, ended, page, rules};
use crate::chart::Schemes;
use crate::escape::escape;

/// A page of Markdown with the texts around it.
#[derive(Clone, Copy, Debug)]
pub struct MarkdownPage<'a> {
    /// The kind of page: `Plimsoll study`.
    pub kind: &'a str,
    /// The text; its first heading is the title.
    pub markdown: &'a str,
    /// The figures by the paths of the pictures that they take the place of.
    pub figures: &'a BTreeMap<String, Figure>,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The version of plimsoll that made the page.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
}

/// Renders a page. It needs no network, no library and no server.
pub fn document(document: &MarkdownPage<'_>) -> String {
    let DocumentBody { title, contents, html } = body(document);
    let mut out = page::head(&page::PageHead {
        kind: document.kind,
        is_served: false,
        title: &title,
        description: "",
        found: &[],
        warnings: &[],
        sections: &[],
        schemes: &Schemes::default(),
        rules: &rules(document.figures.values()),
    });
    let entry = |(id, name): &(String, String)| format!("<li><a href=\"#{id}\">{}</a></li>\n", escape(name));
    let contents: String = contents.iter().map(entry).collect();
    out.push_str(&format!(
        "<section class=\"prose\">\n<ul class=\"contents\">\n{contents}</ul>\n{html}</section>\n"
    ));
    let again = page::again(&page::Again {
        command: document.command,
        seed: None,
        version: document.version,
        commit: document.commit,
        runs: String::new(),
        more: String::new(),
        scenario: "",
    });
    out.push_str(&page::section("repeat", "How to repeat this", "", &again));
    ended(out)
}

/// A text as HTML, with its title and its sections: their ids and names.
struct DocumentBody {
    title: String,
    contents: Vec<(String, String)>,
    html: String,
}

fn body(document: &MarkdownPage<'_>) -> DocumentBody {
    let mut title = String::new();
    let mut contents: Vec<(String, String)> = Vec::new();
    // The section at the end of the page has this one.
    let mut ids = vec!["repeat".to_owned()];
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut parser = Parser::new_ext(document.markdown, Options::ENABLE_TABLES);
    while let Some(event) = parser.next() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let inside: Vec<Event<'_>> = parser
                    .by_ref()
                    .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
                    .collect();
                let name = text_of(&inside);
                if level == HeadingLevel::H1 && title.is_empty() {
                    title = name;
                    continue;
                }
                let id = unique(&name, &ids);
                ids.push(id.clone());
                if level == HeadingLevel::H2 {
                    contents.push((id.clone(), name));
                }
                let (id, classes, attrs) = (Some(CowStr::from(id)), Vec::new(), Vec::new());
                events.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
                events.extend(inside);
                events.push(Event::End(TagEnd::Heading(level)));
            }
            Event::Start(Tag::Image { ref dest_url, .. }) => {
                let Some(figure) = document.figures.get(dest_url.as_ref()) else {
                    events.push(event);
                    continue;
                };
                parser.by_ref().find(|event| matches!(event, Event::End(TagEnd::Image)));
                // A figure cannot be inside a paragraph.
                let alone = matches!(events.last(), Some(Event::Start(Tag::Paragraph)));
                if alone {
                    events.pop();
                    parser.by_ref().find(|event| matches!(event, Event::End(TagEnd::Paragraph)));
                }
                events.push(Event::Html(figure.render().into()));
            }
            Event::Start(Tag::Table(_)) => {
                events.push(Event::Html("<div class=\"scroll\">".into()));
                events.push(event);
            }
            Event::End(TagEnd::Table) => {
                events.push(event);
                events.push(Event::Html("</div>\n".into()));
            }
            // The page of another study is beside this one in both forms.
            Event::Start(Tag::Link { link_type, ref dest_url, ref title, ref id })
                if dest_url.ends_with(".md") && !dest_url.contains('/') =>
            {
                let dest_url = CowStr::from(dest_url.replace(".md", ".html"));
                let (title, id) = (title.clone(), id.clone());
                events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
            }
            other => events.push(other),
        }
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    DocumentBody { title, contents, html: out }
}

/// Returns the text of a heading without its markup.
fn text_of(events: &[Event<'_>]) -> String {
    let text = events.iter().filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        Event::SoftBreak | Event::HardBreak => Some(" "),
        _ => None,
    });
    text.collect()
}

/// Makes the id of a heading from its words, different from all earlier ones.
fn unique(name: &str, taken: &[String]) -> String {
    let words = name.to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let id: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
    let numbered = (1..).map(|n| format!("{id}-{n}"));
    std::iter::once(id.clone()).chain(numbered).find(|id| !taken.contains(id)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Body as ChartBody, Chart, ChartLine, Color, Lines, Read};

    #[test]
    fn pictures_are_figures_and_headings_are_the_contents() {
        let line = ChartLine::new("TCP", Color::Scheme(0), vec![1.0, 2.0], vec![3.0, 4.0]);
        let lines = Lines {
            x: Axis::default(),
            y: Axis::default(),
            series: vec![line],
            read: Read::AtX,
            tail_view: false,
        };
        let (title, note) = ("Queue".to_owned(), "One line.".to_owned());
        let chart = Chart { title, note, body: ChartBody::Lines(lines) };
        let figure = Figure::new("queue".to_owned(), chart, Vec::new());
        let markdown = "# A *study*\n\nSee [another](hull.md) and [a guide](../line.md).\n\n## What `it` is\n\n\
                        ![Queue](s/queue.svg)\n\n| a | b |\n|---|--:|\n| 1 | <2 |\n\n## What `it` is\n";
        let html = document(&MarkdownPage {
            kind: "Plimsoll study",
            markdown,
            figures: &BTreeMap::from([("s/queue.svg".to_owned(), figure)]),
            command: "plimsoll reproduce s",
            version: "0.1.0",
            commit: None,
        });
        for part in [
            "<h1>A study</h1>",
            "<a href=\"hull.html\">another</a> and <a href=\"../line.md\">",
            "<li><a href=\"#what-it-is-1\">What it is</a></li>",
            "<h2 id=\"what-it-is\">What <code>it</code> is</h2>\n<figure class=\"card\" id=\"queue\">",
            "<div class=\"scroll\"><table>",
            "&lt;2",
            "<pre><code>plimsoll reproduce s</code></pre>",
        ] {
            assert!(html.contains(part), "no {part} in {html}");
        }
        assert!(!html.contains("<img") && !html.contains("<p><figure"), "{html}");
    }
}
