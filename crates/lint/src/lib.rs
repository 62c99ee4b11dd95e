//! Rules for the repository's files: the English of its prose, its links, the recipes of CONTRIBUTING, and the
//! directions between crates and between files. All of them are tests, which `make lint` runs in seconds; nothing else
//! of the repository is compiled for them.

#![forbid(unsafe_code)]

/// Returns a text without its blocks and spans of code, in which nothing is a link.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let outside = line.split('`').step_by(2);
            out.push_str(&outside.collect::<Vec<_>>().join("code"));
            out.push('\n');
        }
    }
    out
}

/// Returns the destinations of the links and pictures of a text.
pub fn links(text: &str) -> Vec<String> {
    let text = without_code(text);
    let inline = text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split_once(')'));
    let inline = inline.map(|(to, _)| to.split_whitespace().next().unwrap_or("").to_owned());
    let attributes = ["src=\"", "srcset=\"", "href=\""];
    let html = attributes.iter().flat_map(|start| text.split(start).skip(1));
    let html = html.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    inline.chain(html).collect()
}
