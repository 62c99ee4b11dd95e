//! GOAL: jobs as text, one operation a line (LogGOPSim, ATLAHS).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 100                             ns
//!   l2: send 4096b to 1 tag 3 cpu 0 nic 0
//!   l2 requires l1                           l2 begins when l1 has ended; irequires: when it has begun
//! }
//! rank 1 {
//!   recv 4096b from 0 tag 3
//! }
//! ```
//!
//! A tag or sender of -1 takes any; without a tag it is 0. `//` and `/* */` are comments. A file is read rank by rank,
//! and written operation by operation.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::ops::Range;

use super::graph::{
    BadGraph, GraphBuilder, JobGraph, Operation, OperationAction, OperationNumber, nanoseconds,
};
use crate::check::NumberedLine;

/// The reason for which a text cannot be read as a job, with the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadGoal {
    /// The bytes of `line` that are wrong, or of the text without it; none where the text as a whole is.
    pub at: Option<Range<usize>>,
    /// The line with the place, of a text that is not in memory; without its text, only its number is known.
    pub line: Option<NumberedLine>,
    /// The problem in words.
    pub problem: String,
    /// The words that are allowed there.
    pub allowed: Option<&'static str>,
}

/// The most ranks of a job.
const RANKS_MAX: u32 = 1 << 20;

const OPERATION: &str = "`calc NANOSECONDS`, `send BYTESb to RANK` or `recv BYTESb from RANK`";
const HEAD: &str = "`num_ranks N`, then `rank 0 {`";

/// Reads a job from its text.
///
/// # Errors
/// Fails at the first word that does not fit, and where operations wait for each other or messages lack a receive.
pub fn parse_goal(text: &str) -> Result<JobGraph, BadGoal> {
    read_goal(text.as_bytes())
}

/// Reads a job like [`parse_goal`], with one rank's text in memory at a time.
///
/// # Errors
/// Fails like [`parse_goal`], and if the file cannot be read.
pub fn read_goal(input: impl BufRead) -> Result<JobGraph, BadGoal> {
    let mut blocks = GoalBlocks { input, text: String::new(), line: 1, is_in_comment: false };
    let mut reader = None;
    while blocks.next()? {
        read_block(&mut reader, &blocks).map_err(|bad| blocks.located(bad))?;
    }
    let GoalReader { builder, lines, .. } = reader.ok_or_else(no_goal)?;
    builder.finish().map_err(|bad| match bad {
        BadGraph::WithoutCounterpart { operation, .. } => {
            let number = lines[operation as usize] as usize;
            BadGoal { line: Some(NumberedLine { number, text: String::new() }), ..BadGoal::from(bad) }
        }
        _ => BadGoal::from(bad),
    })
}

fn no_goal() -> BadGoal {
    BadGoal { at: None, line: None, problem: "it is no GOAL file".to_owned(), allowed: Some(HEAD) }
}

/// Reads a part of a file that ends with a rank; the first one has the head before it.
fn read_block<R>(reader: &mut Option<GoalReader>, block: &GoalBlocks<R>) -> Result<(), BadGoal> {
    let mut words = GoalWords { text: &block.text, at: 0, counted: 0, line: block.line };
    let reader = match reader {
        Some(reader) => reader,
        None => reader.insert(read_head(&mut words)?),
    };
    while let Some(word) = words.next()? {
        if word.text != "rank" {
            return Err(word.error(format!("`{}` outside a rank", word.text), "`rank NUMBER {`"));
        }
        let number = words.needed("the number of a rank")?;
        let rank = reader.rank(&number)?;
        if std::mem::replace(&mut reader.seen[rank as usize], true) {
            return Err(number.error(format!("rank {rank} comes twice"), "each rank once"));
        }
        words.expected("{")?;
        reader.read_rank(rank, &mut words)?;
    }
    Ok(())
}

fn read_head(words: &mut GoalWords<'_>) -> Result<GoalReader, BadGoal> {
    if words.next()?.is_none_or(|word| word.text != "num_ranks") {
        return Err(no_goal());
    }
    let count = words.needed(HEAD)?;
    let ranks: u32 = count.number("a number of ranks", HEAD)?;
    if !(1..=RANKS_MAX).contains(&ranks) {
        return Err(count.error(format!("{ranks} ranks"), "1 to 1048576 ranks"));
    }
    let seen = vec![false; ranks as usize];
    Ok(GoalReader { builder: GraphBuilder::new(ranks), ranks, seen, lines: Vec::new() })
}

/// The text of a file in parts, each of which ends with the line that ends a rank.
struct GoalBlocks<R> {
    input: R,
    text: String,
    /// The number of the first line of `text`, from 1 on.
    line: usize,
    is_in_comment: bool,
}

impl<R: BufRead> GoalBlocks<R> {
    /// Reads the next part; false at the end of the file.
    fn next(&mut self) -> Result<bool, BadGoal> {
        self.line += self.text.matches('\n').count();
        self.text.clear();
        loop {
            let start = self.text.len();
            match self.input.read_line(&mut self.text) {
                Ok(0) => return Ok(!self.text.is_empty()),
                Ok(_) if self.ends_rank(start) => return Ok(true),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(no_goal()),
                Err(error) => return Err(BadGoal { problem: error.to_string(), ..no_goal() }),
            }
        }
    }

    /// Returns whether the line that begins at `start` ends a rank, and nothing begins behind it.
    fn ends_rank(&mut self, start: usize) -> bool {
        let mut rest = &self.text[start..];
        let mut ends = false;
        loop {
            if self.is_in_comment {
                let Some(end) = rest.find("*/") else { return false };
                self.is_in_comment = false;
                rest = &rest[end + 2..];
            }
            let Some(at) = rest.find(['{', '}', '/']) else { return ends };
            let after = &rest[at + 1..];
            match (&rest[at..=at], after.chars().next()) {
                ("/", Some('/')) => return ends,
                ("/", Some('*')) => {
                    self.is_in_comment = true;
                    rest = &after[1..];
                    continue;
                }
                ("{", _) => ends = false,
                ("}", _) => ends = true,
                _ => {}
            }
            rest = after;
        }
    }

    /// Returns an error in `text` with its line.
    fn located(&self, bad: BadGoal) -> BadGoal {
        let Some(Range { start, end }) = bad.at else { return bad };
        let before = &self.text[..start];
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let text = self.text[begin..].lines().next().unwrap_or_default().to_owned();
        let line = NumberedLine { number: self.line + before.matches('\n').count(), text };
        BadGoal { at: Some(start - begin..end - begin), line: Some(line), ..bad }
    }
}

struct GoalReader {
    builder: GraphBuilder,
    ranks: u32,
    seen: Vec<bool>,
    /// The line of each operation.
    lines: Vec<u32>,
}

impl GoalReader {
    fn rank(&self, word: &GoalWord<'_>) -> Result<u32, BadGoal> {
        let rank: u32 = word.number("a rank", "the number of a rank, from 0 on")?;
        if rank >= self.ranks {
            return Err(
                word.error(format!("rank {rank} of {}", self.ranks), "a rank from 0 on, below num_ranks")
            );
        }
        Ok(rank)
    }

    fn read_rank(&mut self, rank: u32, words: &mut GoalWords<'_>) -> Result<(), BadGoal> {
        let mut labels: BTreeMap<&str, OperationNumber> = BTreeMap::new();
        loop {
            let word = words.needed("`}` after the operations of a rank")?;
            match word.text {
                "}" => return Ok(()),
                "calc" | "send" | "recv" => {
                    self.operation(rank, &word, words)?;
                }
                label => {
                    let next = words.needed("`:` and an operation, or `requires LABEL`")?;
                    match next.text {
                        ":" => {
                            let what = words.needed(OPERATION)?;
                            let number = self.operation(rank, &what, words)?;
                            if labels.insert(label, number).is_some() {
                                return Err(
                                    word.error(format!("`{label}` comes twice"), "a label once a rank")
                                );
                            }
                        }
                        "requires" | "irequires" => {
                            let earlier = words.needed("the label of an operation")?;
                            let [one, other] = [&word, &earlier].map(|word| {
                                labels.get(word.text).copied().ok_or_else(|| {
                                    word.error(
                                        format!("no operation before it is called `{}`", word.text),
                                        "a label of this rank, above",
                                    )
                                })
                            });
                            match next.text {
                                "requires" => self.builder.after(one?, other?),
                                _ => self.builder.after_begin(one?, other?),
                            }
                        }
                        other => {
                            return Err(next.error(
                                format!("`{other}` after `{label}`"),
                                "`:` and an operation, or `requires LABEL`",
                            ));
                        }
                    }
                }
            }
        }
    }

    /// Reads what follows the word of an operation.
    fn operation(
        &mut self,
        rank: u32,
        what: &GoalWord<'_>,
        words: &mut GoalWords<'_>,
    ) -> Result<OperationNumber, BadGoal> {
        let size = words.needed(OPERATION)?;
        let mut action = match what.text {
            "calc" => {
                OperationAction::Compute(nanoseconds(size.number("a time in ns", "whole nanoseconds")?))
            }
            "send" | "recv" => {
                let digits =
                    GoalWord { text: size.text.strip_suffix('b').unwrap_or(size.text), ..size.clone() };
                let bytes = digits.number::<u64>("a size", "bytes, such as 4096b")?.max(1);
                words.expected(if what.text == "send" { "to" } else { "from" })?;
                let peer = words.needed("the number of a rank")?;
                match what.text {
                    "send" => {
                        let to = self.rank(&peer)?;
                        if to == rank {
                            return Err(peer.error(format!("rank {rank} sends to itself"), "another rank"));
                        }
                        OperationAction::Send { to, bytes, tag: 0 }
                    }
                    _ => {
                        let from = if peer.text == "-1" { None } else { Some(self.rank(&peer)?) };
                        OperationAction::Receive { from, bytes, tag: Some(0) }
                    }
                }
            }
            other => return Err(what.error(format!("`{other}` is no operation"), OPERATION)),
        };
        let (mut stream, mut nic) = (0, 0);
        while let Some(word) = words.next_if(|word| matches!(word, "tag" | "cpu" | "nic"))? {
            let value = words.needed("a number")?;
            match (word.text, &mut action) {
                ("cpu", _) => stream = value.number("a stream", "0 to 255")?,
                ("nic", _) => nic = value.number("a NIC", "0 to 255")?,
                (_, OperationAction::Receive { tag, .. }) if value.text == "-1" => *tag = None,
                (_, OperationAction::Receive { tag, .. }) => {
                    *tag = Some(value.number("a tag", "0 to 4294967295")?)
                }
                (_, OperationAction::Send { tag, .. }) => *tag = value.number("a tag", "0 to 4294967295")?,
                _ => return Err(word.error("a computation has no tag", "`cpu N`")),
            }
        }
        self.lines.push(words.line_of(what.at.start));
        Ok(self.builder.on(stream, nic).add(rank, action))
    }
}

/// A word with its place.
#[derive(Clone, Debug)]
struct GoalWord<'a> {
    text: &'a str,
    at: Range<usize>,
}

impl GoalWord<'_> {
    fn error(&self, problem: impl Into<String>, allowed: &'static str) -> BadGoal {
        BadGoal { at: Some(self.at.clone()), line: None, problem: problem.into(), allowed: Some(allowed) }
    }

    fn number<T: std::str::FromStr>(&self, what: &str, allowed: &'static str) -> Result<T, BadGoal> {
        self.text.parse().map_err(|_| self.error(format!("`{}` is not {what}", self.text), allowed))
    }
}

/// The words of a text: `{`, `}` and `:` are words of their own.
struct GoalWords<'a> {
    text: &'a str,
    at: usize,
    /// The byte up to which lines are counted, and the number of the line there.
    counted: usize,
    line: usize,
}

impl<'a> GoalWords<'a> {
    /// Returns the number of the line with a byte, which is not before that of the last call.
    fn line_of(&mut self, at: usize) -> u32 {
        self.line += self.text[self.counted..at].matches('\n').count();
        self.counted = at;
        u32::try_from(self.line).unwrap_or(u32::MAX)
    }

    fn next(&mut self) -> Result<Option<GoalWord<'a>>, BadGoal> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = &rest[blank..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    let at = self.at..self.at + 2;
                    let problem = "a comment without an end".to_owned();
                    return Err(BadGoal {
                        at: Some(at),
                        line: None,
                        problem,
                        allowed: Some("`*/` behind it"),
                    });
                };
                self.at += end + 2;
            } else {
                let is_end = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ':');
                let mut end = rest.find(is_end).unwrap_or(rest.len());
                end = rest[..end].find("//").unwrap_or(end);
                end = rest[..end].find("/*").unwrap_or(end);
                if end == 0 {
                    end = rest.chars().next().map_or(0, char::len_utf8);
                }
                let at = self.at..self.at + end;
                self.at += end;
                return Ok((end > 0).then(|| GoalWord { text: &rest[..end], at }));
            }
        }
    }

    fn next_if(&mut self, fits: impl Fn(&str) -> bool) -> Result<Option<GoalWord<'a>>, BadGoal> {
        let before = self.at;
        let word = self.next()?.filter(|word| fits(word.text));
        if word.is_none() {
            self.at = before;
        }
        Ok(word)
    }

    fn needed(&mut self, allowed: &'static str) -> Result<GoalWord<'a>, BadGoal> {
        let end = self.text.trim_end().len();
        let missing = || BadGoal {
            at: Some(end.saturating_sub(1)..end),
            line: None,
            problem: "the file ends here".to_owned(),
            allowed: Some(allowed),
        };
        self.next()?.ok_or_else(missing)
    }

    fn expected(&mut self, expected: &'static str) -> Result<(), BadGoal> {
        let word = self.needed(expected)?;
        if word.text == expected {
            return Ok(());
        }
        Err(word.error(
            format!("`{}` in place of `{expected}`", word.text),
            "the words of a GOAL file in their order",
        ))
    }
}

/// Returns a job as text. Times are rounded to whole nanoseconds.
pub fn goal_text(graph: &JobGraph) -> String {
    let mut text = Vec::new();
    // Memory takes whatever is written to it, and all of it is ASCII.
    let _ = write_goal(graph, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Writes a job as text. Times are rounded to whole nanoseconds.
///
/// # Errors
/// Fails if `out` does.
pub fn write_goal(graph: &JobGraph, out: &mut dyn Write) -> io::Result<()> {
    let operations = graph.operations();
    let mut counts = vec![0; graph.ranks() as usize];
    let count = |operation: &Operation| {
        counts[operation.rank as usize] += 1;
        counts[operation.rank as usize]
    };
    let place: Vec<u32> = operations.iter().map(count).collect();
    let of_rank = Grouped::new(&counts, (0..).zip(operations).map(|(number, one)| (one.rank, number)));
    let waits = Grouped::new(
        graph.waits(),
        graph.edges().map(|(operation, earlier, on_begin)| (operation, (earlier, on_begin))),
    );
    writeln!(out, "num_ranks {}", graph.ranks())?;
    for rank in 0..graph.ranks() {
        writeln!(out, "rank {rank} {{")?;
        for &number in of_rank.of(rank) {
            let Operation { action, stream, nic, .. } = operations[number as usize];
            write!(out, "l{}: {action}", place[number as usize])?;
            for (word, value) in [("cpu", stream), ("nic", nic)] {
                if value > 0 {
                    write!(out, " {word} {value}")?;
                }
            }
            writeln!(out)?;
        }
        // Labels have to be known, and operations may wait for later ones.
        for &number in of_rank.of(rank) {
            for &(earlier, on_begin) in waits.of(number) {
                let word = if on_begin { "irequires" } else { "requires" };
                writeln!(out, "l{} {word} l{}", place[number as usize], place[earlier as usize])?;
            }
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

/// Items by the number of their group, in the order in which they came.
struct Grouped<T> {
    /// Where the items of each group end.
    ends: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Default> Grouped<T> {
    fn new(counts: &[u32], items: impl Iterator<Item = (u32, T)>) -> Grouped<T> {
        let mut total = 0;
        let begin = |count: &u32| {
            total += count;
            total - count
        };
        let mut ends: Vec<u32> = counts.iter().map(begin).collect();
        let mut grouped = vec![T::default(); total as usize];
        for (group, item) in items {
            let end = &mut ends[group as usize];
            grouped[*end as usize] = item;
            *end += 1;
        }
        Grouped { ends, items: grouped }
    }

    fn of(&self, group: u32) -> &[T] {
        let begin = group.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.items[begin as usize..self.ends[group as usize] as usize]
    }
}

impl From<BadGraph> for BadGoal {
    fn from(bad: BadGraph) -> BadGoal {
        let allowed = match bad {
            BadGraph::WithoutCounterpart { .. } => {
                Some("a send and a receive of the same ranks and tag for each message")
            }
            _ => None,
        };
        BadGoal { at: None, line: None, problem: bad.to_string(), allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
num_ranks 2 // both
rank 0 {
  l1: calc 100
  l2: send 4096b to 1 tag 3 nic 1 /* after
  the computation */
  l2 requires l1
  l3: calc 5 cpu 2
  l3 irequires l2
}
rank 1 {
  recv 4096b from -1 tag -1
}
";

    #[test]
    fn a_job_is_read_and_written() {
        let graph = parse_goal(TEXT).unwrap();
        assert_eq!(graph.to_string(), "2 ranks, 4 operations, 1 message");
        let Operation { rank, action, nic, .. } = graph.operations()[1];
        assert_eq!((rank, action, nic), (0, OperationAction::Send { to: 1, bytes: 4_096, tag: 3 }, 1));
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(1, 0, false), (2, 1, true)]);
        let text = goal_text(&graph);
        assert_eq!(parse_goal(&text).unwrap(), graph, "{text}");
    }

    #[test]
    fn a_rank_ends_where_its_text_does() {
        let graph = parse_goal(TEXT).unwrap();
        let text = TEXT
            .replace("l3: calc 5", "/* } */ l3: calc 5 // }\n/* }\n} */")
            .replace("}\nrank 1 {", "} /* { */ rank 1 {")
            + "// }";
        assert_eq!(parse_goal(&text), Ok(graph), "{text}");
        assert_eq!(parse_goal("").unwrap_err(), no_goal());
        assert_eq!(read_goal([0xff, b'}'].as_slice()).unwrap_err(), no_goal());
    }

    #[test]
    fn errors_say_where() {
        for (from, to, wrong, problem) in [
            ("calc 100", "calc ten", "ten", "`ten` is not a time in ns"),
            ("to 1 tag", "to 2 tag", "2", "rank 2 of 2"),
            ("to 1 tag", "to 0 tag", "0", "rank 0 sends to itself"),
            ("rank 1 {", "rank 0 {", "0", "rank 0 comes twice"),
            ("l2 requires l1", "l2 requires l9", "l9", "no operation before it is called `l9`"),
            ("l3: calc", "l2: calc", "l2", "`l2` comes twice"),
            ("send 4096b to", "send 4096b from", "from", "`from` in place of `to`"),
            ("l1: calc", "l1: wait", "wait", "`wait` is no operation"),
            ("cpu 2", "tag 2", "tag", "a computation has no tag"),
            ("computation */", "computation", "/*", "a comment without an end"),
        ] {
            let text = TEXT.replace(from, to);
            let bad = parse_goal(&text).unwrap_err();
            let line = bad.line.unwrap();
            assert_eq!((&line.text[bad.at.unwrap()], bad.problem.as_str()), (wrong, problem), "{to}");
            assert_eq!(text.lines().nth(line.number - 1), Some(line.text.as_str()), "{to}");
        }
        let cut = parse_goal(&TEXT[..TEXT.len() - 3]).unwrap_err();
        assert_eq!(cut.problem, "the file ends here");
        assert_eq!(parse_goal("<html>").unwrap_err().problem, "it is no GOAL file");
        let text = "num_ranks 2\nrank 0 {\nsend 1b to 1\nsend 1b to 1 tag 7 }\n\n\
                    rank 1 {\nrecv 1b from 0\nrecv 1b from 0\n}\n";
        let alone = parse_goal(text).unwrap_err();
        assert_eq!(
            (alone.line.unwrap().number, alone.problem.as_str()),
            (
                4,
                "1 send and 1 receive without a counterpart, for which the job would wait for ever; the first is `send \
                 1b to 1 tag 7` of rank 0"
            )
        );
    }
}
