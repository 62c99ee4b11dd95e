//! [`Table`] prints the tries and losses of each attack as Markdown.

use std::fmt;
use std::time::Duration;

use crate::attacks::Attack;
use crate::trial::Broken;

/// The number of losses after which an attack is not tried again: more of the same would show nothing new.
const LOSSES_MAX: u64 = 3;

#[derive(Debug)]
struct AttackRow {
    attack: &'static Attack,
    tries: u64,
    losses: u64,
    time: Duration,
    /// The longest time that the kernel took to return to its initial state.
    restored: Duration,
    not_tried: Option<String>,
}

/// The results of all trials so far, one row an attack.
#[derive(Debug)]
pub struct Table(Vec<AttackRow>);

impl Table {
    pub fn new(attacks: &[&'static Attack]) -> Table {
        let row = |attack: &&'static Attack| AttackRow {
            attack,
            tries: 0,
            losses: 0,
            time: Duration::ZERO,
            restored: Duration::ZERO,
            not_tried: None,
        };
        Table(attacks.iter().map(row).collect())
    }

    /// Counts one trial of the attack in this row, and the time that the kernel took to return to its initial state.
    pub fn count(&mut self, row: usize, outcome: Result<Duration, Broken>, time: Duration) {
        let row = &mut self.0[row];
        row.time += time;
        match outcome {
            Ok(restored) => (row.tries, row.restored) = (row.tries + 1, row.restored.max(restored)),
            Err(Broken::Lost(_)) => (row.tries, row.losses) = (row.tries + 1, row.losses + 1),
            Err(Broken::NotTried(why)) => row.not_tried = Some(why),
        }
    }

    /// Returns whether the attack in this row is not tried again.
    pub fn gives_up(&self, row: usize) -> bool {
        let row = &self.0[row];
        row.losses >= LOSSES_MAX || row.not_tried.is_some()
    }

    /// Returns the losses of all attacks together.
    pub fn losses(&self) -> u64 {
        self.0.iter().map(|row| row.losses).sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| attack | what must hold | tries | losses | time | kernel as before within |")?;
        writeln!(f, "|---|---|--:|--:|--:|--:|")?;
        for AttackRow { attack, tries, losses, time, restored, not_tried } in &self.0 {
            let Attack { name, promise, .. } = attack;
            match not_tried {
                Some(why) => {
                    writeln!(f, "| {name} | {promise} | {tries}, then not tried: {why} | {losses} | |")?
                }
                None => {
                    let (time, restored) = (time.as_secs(), restored.as_secs_f64());
                    writeln!(f, "| {name} | {promise} | {tries} | {losses} | {time} s | {restored:.2} s |")?;
                }
            }
        }
        let tries: u64 = self.0.iter().map(|row| row.tries).sum();
        writeln!(f, "\n{tries} tries, {} losses", self.losses())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attacks::ATTACKS;

    #[test]
    fn losses_are_counted_and_end_an_attack() {
        let mut table = Table::new(&[&ATTACKS[0], &ATTACKS[1]]);
        table.count(0, Ok(Duration::from_millis(250)), Duration::from_secs(2));
        assert!(!table.gives_up(0) && table.losses() == 0);
        for _ in 0..LOSSES_MAX {
            table.count(0, Err(Broken::Lost("bytes".to_owned())), Duration::from_secs(1));
        }
        table.count(1, Err(Broken::NotTried("not root".to_owned())), Duration::ZERO);
        assert!(table.gives_up(0) && table.gives_up(1));
        assert_eq!(table.losses(), 3);
        let text = table.to_string();
        assert!(text.contains("| 4 | 3 | 5 s | 0.25 s |"), "{text}");
        assert!(text.contains("not tried: not root") && text.ends_with("4 tries, 3 losses\n"), "{text}");
    }
}
