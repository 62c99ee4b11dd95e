//! Mutations that know TOML.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// A number below `bound`; 0 where that is 0.
pub fn below(rng: &mut Pcg64Mcg, bound: usize) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}

/// Fragments that mean something to the parser, to the merge rules or to the checks.
const WORDS: &[&str] = &[
    "\"off\"",
    "{}",
    "[]",
    "0",
    "-1",
    "1e300",
    "nan",
    "inf",
    "18446744073709551616",
    "\"0s\"",
    "\"0bps\"",
    "\"0B\"",
    "\"client\"",
    "\"h1..h9\"",
    "\"h9999999\"",
    "true",
    "1979-05-27",
    "\"unlimited\"",
    "\"0 packets\"",
    "{ cdf = \"websearch\" }",
    "{ kind = \"pareto\", min = \"1us\", shape = 0.0 }",
    "[variant.X]\n",
    "[sweep]\n",
    "\"a.b\" = [1]\n",
    "kind = ",
    ".",
    "\"",
    "'''",
    "\n",
    "=",
    "[[",
    "]]",
    "\u{fffd}",
    "\u{1f6a2}",
    "\t",
    "\\",
    "include = \"quickstart.toml\"\n",
    "\"18446744s\"",
    "\"1Tbps\"",
    "k = 4294967294\n",
    "port.switch.phantom_queue.drain = 0.5\n",
    "preset = \"hull\"\n",
    "\"99999999TB\"",
];

/// `text` with a few lines or words of them changed, some by parts of `others`, of which there is at least one.
pub fn mutate(text: &str, others: &[String], rng: &mut Pcg64Mcg) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=below(rng, 4) {
        let at = below(rng, lines.len());
        match below(rng, 8) {
            0 if !lines.is_empty() => drop(lines.remove(at)),
            1 if !lines.is_empty() => lines.insert(at, lines[below(rng, lines.len())].clone()),
            2 => {
                let other = &others[below(rng, others.len())];
                let line = other.lines().nth(below(rng, other.lines().count())).unwrap_or("").to_owned();
                lines.insert(at.min(lines.len()), line);
            }
            3 if !lines.is_empty() => {
                let line = &lines[at];
                lines[at] = match line.split_once('=') {
                    Some((key, _)) => format!("{key}= {}", WORDS[below(rng, WORDS.len())]),
                    None => WORDS[below(rng, WORDS.len())].to_owned(),
                };
            }
            _ if !lines.is_empty() => {
                let mut chars: Vec<char> = lines[at].chars().collect();
                let place = below(rng, chars.len() + 1);
                match below(rng, 3) {
                    0 if place < chars.len() => drop(chars.remove(place)),
                    1 if place < chars.len() => chars[place] = char::from(32 + below(rng, 95) as u8),
                    _ => {
                        let word: Vec<char> = WORDS[below(rng, WORDS.len())].chars().collect();
                        chars.splice(place..place, word);
                    }
                }
                lines[at] = chars.into_iter().collect();
            }
            _ => lines.push(WORDS[below(rng, WORDS.len())].to_owned()),
        }
    }
    lines.join("\n")
}
