//! Escapes texts for HTML and SVG.

use plimsoll_text::printable_lines;

/// Escapes a text for HTML, also inside a quoted attribute, and writes out characters that cannot be seen.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable_lines(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
