//! GOAL's binary form (LogGOPSim), little-endian:
//!
//! ```text
//! u64 4223, u32 ranks, u8 cpus, u8 nics; of each rank (u64 start, u64 end) in the file
//! rank: u32 nodes, u32 roots, the roots, nodes of 39 bytes, then the dependents of all nodes (u32 each)
//! node: u32 waits; i8 1 send, 2 receive, 3 computation; u32 peer; u64 size or ns; u32 tag; u8 cpu; u8 nic;
//!       (u32 count, u32 first) of those that wait for its end, and of those that wait for its beginning
//! ```

use std::io::{self, Read, Seek, SeekFrom};

use super::goal::BadGoal;
use super::graph::{GraphBuilder, JobGraph, OperationAction, OperationNumber, nanoseconds};

/// The first number of a file.
const MAGIC: u64 = 4_223;
const NODE: usize = 39;
/// The bytes before the table of ranks.
const HEAD: u64 = 14;
/// The peer or tag that stands for any.
const ANY: u32 = u32::MAX;

/// Returns whether a file is in the binary form.
pub fn is_goal_binary(bytes: &[u8]) -> bool {
    bytes.get(..8) == Some(&MAGIC.to_le_bytes())
}

/// Reads a job from its file, a rank at a time.
///
/// # Errors
/// Names the first byte that does not fit, and fails where operations wait for each other or messages lack a receive.
pub fn read_goal_binary(mut input: impl Read + Seek) -> Result<JobGraph, BadGoal> {
    let failed =
        |error: io::Error| BadGoal { at: None, line: None, problem: error.to_string(), allowed: None };
    let length = input.seek(SeekFrom::End(0)).map_err(failed)?;
    let mut part = |start: u64, end: u64| {
        input.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&mut input).take(end.saturating_sub(start)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let head = part(0, HEAD).map_err(failed)?;
    let mut head = BinaryGoal { bytes: &head, before: 0, at: 8 };
    let ranks = head.u32()?;
    head.skip(2)?;
    let table = HEAD + u64::from(ranks) * 16;
    if table > length {
        return Err(head.error(format!("a table of {ranks} ranks, and the file is shorter")));
    }
    let table = part(HEAD, table).map_err(failed)?;
    let mut table = BinaryGoal { bytes: &table, before: HEAD, at: 0 };
    let mut builder = GraphBuilder::new(ranks);
    for rank in 0..ranks {
        let (start, end) = (table.u64()?, table.u64()?);
        if start > length || end > length {
            return Err(table.error(format!("rank {rank} is from byte {start} to {end}, outside the file")));
        }
        let bytes = part(start, end).map_err(failed)?;
        read_rank(&mut builder, rank, BinaryGoal { bytes: &bytes, before: start, at: 0 }, ranks)?;
    }
    builder.finish().map_err(BadGoal::from)
}

fn read_rank(
    builder: &mut GraphBuilder,
    rank: u32,
    mut from: BinaryGoal<'_>,
    ranks: u32,
) -> Result<(), BadGoal> {
    let (nodes, roots) = (from.u32()? as usize, from.u32()? as usize);
    from.skip(roots.saturating_mul(4))?;
    let appendix = from.at.saturating_add(nodes.saturating_mul(NODE));
    if appendix > from.bytes.len() {
        return Err(from.error(format!("{nodes} operations of rank {rank}, and the file is shorter")));
    }
    let first: OperationNumber = builder.len() as u32;
    let mut edges = Vec::new();
    for number in 0..nodes as u32 {
        let at = from.at;
        from.u32()?;
        let (kind, peer, size, tag) = (from.u8()?, from.u32()?, from.u64()?, from.u32()?);
        let (stream, nic) = (from.u8()?, from.u8()?);
        let bad = |problem: String| BinaryGoal { at, ..from }.error(problem);
        let is_peer = |peer: u32| peer < ranks && peer != rank;
        let action = match kind {
            1 if is_peer(peer) => OperationAction::Send { to: peer, bytes: size.max(1), tag },
            2 if peer == ANY || is_peer(peer) => OperationAction::Receive {
                from: Some(peer).filter(|peer| *peer != ANY),
                bytes: size.max(1),
                tag: Some(tag).filter(|tag| *tag != ANY),
            },
            3 => OperationAction::Compute(nanoseconds(size)),
            1 | 2 => {
                return Err(bad(format!("operation {number} of rank {rank} has peer {peer} of {ranks}")));
            }
            other => return Err(bad(format!("operation {number} of rank {rank} is of type {other}"))),
        };
        builder.on(stream, nic).add(rank, action);
        for on_begin in [false, true] {
            let (count, place) = (from.u32()?, from.u32()?);
            edges.push((number, count, place, on_begin));
        }
    }
    for (earlier, count, place, on_begin) in edges {
        let mut list = BinaryGoal { at: appendix.saturating_add((place as usize).saturating_mul(4)), ..from };
        for _ in 0..count {
            let dependent = list.u32()?;
            if dependent as usize >= nodes {
                return Err(list
                    .error(format!("operation {dependent} of {nodes} waits for {earlier} at rank {rank}")));
            }
            match on_begin {
                false => builder.after(first + dependent, first + earlier),
                true => builder.after_begin(first + dependent, first + earlier),
            }
        }
    }
    Ok(())
}

/// A part of a file, with a place in it.
#[derive(Clone, Copy)]
struct BinaryGoal<'a> {
    bytes: &'a [u8],
    /// The bytes of the file before the part.
    before: u64,
    at: usize,
}

impl BinaryGoal<'_> {
    fn error(&self, problem: String) -> BadGoal {
        let problem = format!("byte {}: {problem}", self.before + self.at as u64);
        BadGoal { at: None, line: None, problem, allowed: None }
    }

    fn skip(&mut self, count: usize) -> Result<(), BadGoal> {
        if count > self.bytes.len().saturating_sub(self.at) {
            return Err(self.error("the file ends here".to_owned()));
        }
        self.at += count;
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadGoal> {
        let start = self.at;
        self.skip(N)?;
        let mut taken = [0; N];
        taken.copy_from_slice(&self.bytes[start..start + N]);
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, BadGoal> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, BadGoal> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadGoal> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::goal::parse_goal;
    use super::*;

    fn parse(bytes: &[u8]) -> Result<JobGraph, BadGoal> {
        read_goal_binary(Cursor::new(bytes))
    }

    /// The first text of the format's description: rank 0 computes and sends, rank 1 receives.
    fn file() -> Vec<u8> {
        let node = |waits: u32, kind: u8, peer: u32, size: u64, tag: u32, dependents: [u32; 4]| {
            let mut node = waits.to_le_bytes().to_vec();
            node.push(kind);
            node.extend(peer.to_le_bytes());
            node.extend(size.to_le_bytes());
            node.extend(tag.to_le_bytes());
            node.extend([0, 0]);
            dependents.iter().for_each(|number| node.extend(number.to_le_bytes()));
            assert_eq!(node.len(), NODE);
            node
        };
        let rank = |nodes: &[Vec<u8>], appendix: &[u32]| {
            let mut rank = [nodes.len() as u32, 1, 0].map(u32::to_le_bytes).concat();
            rank.extend(nodes.concat());
            appendix.iter().for_each(|number| rank.extend(number.to_le_bytes()));
            rank
        };
        let first = rank(&[node(0, 3, 0, 100, 0, [1, 0, 0, 0]), node(1, 1, 1, 4_096, 3, [0, 1, 0, 1])], &[1]);
        let second = rank(&[node(0, 2, 0, 4_096, 3, [0; 4])], &[]);
        let mut file = MAGIC.to_le_bytes().to_vec();
        file.extend(2_u32.to_le_bytes());
        file.extend([1, 1]);
        let start = file.len() as u64 + 32;
        let middle = start + first.len() as u64;
        for at in [start, middle, middle, middle + second.len() as u64] {
            file.extend(at.to_le_bytes());
        }
        [file, first, second].concat()
    }

    #[test]
    fn the_binary_form_is_the_same_job_as_the_text() {
        let text = "num_ranks 2\nrank 0 {\nl1: calc 100\nl2: send 4096b to 1 tag 3\nl2 requires l1\n}\n\
                    rank 1 {\nrecv 4096b from 0 tag 3\n}\n";
        assert!(is_goal_binary(&file()) && !is_goal_binary(text.as_bytes()));
        assert_eq!(parse(&file()).unwrap(), parse_goal(text).unwrap());
    }

    #[test]
    fn every_cut_and_every_wrong_number_is_an_error() {
        let whole = file();
        for length in 8..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "{length}");
        }
        for place in 8..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0xff;
            // No number makes it panic or take memory without end.
            let _ = parse(&bytes);
        }
    }
}
