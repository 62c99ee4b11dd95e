//! [`events`]: the tags and texts of an XML document, as far as an export of a graph needs them.
//!
//! Comments, declarations and processing instructions are skipped; entities of a document type are not expanded.

use std::borrow::Cow;

/// A part of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum XmlEvent<'a> {
    /// The start of an element, without its prefix, with its attributes.
    Start(&'a str, Vec<(&'a str, String)>),
    /// The end of an element, without its prefix.
    End(&'a str),
    /// Text between tags that is not white space alone.
    Text(String),
}

/// Returns the parts of a document; the error is the byte at which it is not XML.
pub(super) fn events(text: &str) -> Result<Vec<XmlEvent<'_>>, usize> {
    let mut events = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(content) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            let found = rest[..end].trim();
            if !found.is_empty() {
                events.push(XmlEvent::Text(unescaped(found).into_owned()));
            }
            at += end;
            continue;
        };
        let skipped = [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>"), ("!", ">")]
            .into_iter()
            .find(|(start, _)| content.starts_with(start));
        if let Some((start, end)) = skipped {
            let length = content.find(end).ok_or(at)?;
            if start == "![CDATA[" {
                events.push(XmlEvent::Text(content[start.len()..length].trim().to_owned()));
            }
            at += 1 + length + end.len();
            continue;
        }
        let length = tag_length(content).ok_or(at)?;
        tag(&content[..length], &mut events).ok_or(at)?;
        at += length + 2;
    }
    Ok(events)
}

/// Returns the bytes of a tag up to its `>`, which may also occur in quotes before.
fn tag_length(content: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in content.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

fn tag<'a>(tag: &'a str, events: &mut Vec<XmlEvent<'a>>) -> Option<()> {
    if let Some(name) = tag.strip_prefix('/') {
        events.push(XmlEvent::End(local(name.trim())));
        return Some(());
    }
    let is_empty = tag.ends_with('/');
    let tag = tag.strip_suffix('/').unwrap_or(tag);
    let end = tag.find(char::is_whitespace).unwrap_or(tag.len());
    let name = local(&tag[..end]);
    let mut attributes = Vec::new();
    let mut rest = tag[end..].trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        attributes.push((key.trim(), unescaped(value).into_owned()));
        rest = after.trim_start();
    }
    if name.is_empty() {
        return None;
    }
    events.push(XmlEvent::Start(name, attributes));
    if is_empty {
        events.push(XmlEvent::End(name));
    }
    Some(())
}

/// Returns a name without its prefix.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// Returns a text with the five entities of XML and the numbers of characters replaced.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        let known = rest.split_once(';').and_then(|(name, after)| Some((character(name)?, after)));
        match known {
            Some((c, after)) => {
                out.push(c);
                rest = after;
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let hexadecimal = number.strip_prefix('x').map(|digits| u32::from_str_radix(digits, 16));
            char::from_u32(hexadecimal.unwrap_or_else(|| number.parse()).ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read() {
        let text = "<?xml version='1.0'?>\n<!-- a > b --><g:graph a=\"1 &gt; 0\"\n \
                    b='x'><node/>A &amp; B&#x41;<![CDATA[<x>]]></g:graph>";
        let start = |name, attributes: &[(&'static str, &str)]| {
            XmlEvent::Start(name, attributes.iter().map(|(key, value)| (*key, (*value).to_owned())).collect())
        };
        assert_eq!(
            events(text).unwrap(),
            [
                start("graph", &[("a", "1 > 0"), ("b", "x")]),
                start("node", &[]),
                XmlEvent::End("node"),
                XmlEvent::Text("A & BA".to_owned()),
                XmlEvent::Text("<x>".to_owned()),
                XmlEvent::End("graph"),
            ]
        );
        for (text, at) in [("<a", 0), ("<a><b c></b>", 3), ("<!-- open", 0), ("x<>", 1), ("<a b=c>", 0)] {
            assert_eq!(events(text), Err(at), "{text}");
        }
    }
}
