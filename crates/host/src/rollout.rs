//! [`Rollout`] decides how a policy reaches many hosts: in waves, each of which is confirmed as a whole or rolled back
//! as a whole. It does no input or output: the caller runs its commands and reports their results.
//!
//! ```text
//! for each wave:   Apply at all ──all wait for a confirmation──> Confirm at all ──all confirmed──> next wave
//!                       │ one failed                                  │ one failed
//!                       └──────> RollBack at all of the wave <────────┘   and no further wave begins
//! ```
//!
//! At any time at most one wave has hosts that are neither as before nor confirmed. A host that cannot be reached for
//! its rollback is reported as in doubt; unless it was confirmed, it rolls back by itself at its deadline.

use std::ops::Range;

use serde::Serialize;

/// The progress of one host within a rollout, of which the last state is its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolloutState {
    /// Its wave has not begun; it is as before.
    Waiting,
    /// The policy is being applied.
    Applying,
    /// The policy is applied and waits for its confirmation.
    Applied,
    /// The policy could not be applied, as far as is known.
    Failed,
    /// The policy is being confirmed.
    Confirming,
    /// The policy is confirmed, or was in force already.
    Confirmed,
    /// The confirmation failed, as far as is known.
    Unconfirmed,
    /// The policy is being rolled back.
    RollingBack,
    /// The policy was rolled back.
    RolledBack,
    /// The rollback failed, or gave no reply.
    InDoubt,
}

/// A command for one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostCommand {
    /// Apply the policy, to be confirmed before a deadline.
    Apply,
    /// Confirm the policy that waits for it.
    Confirm,
    /// Undo this apply, whether it was confirmed or not.
    RollBack,
}

/// The result of a command at one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostReply {
    /// The apply succeeded, and waits for the confirmation.
    Applied,
    /// The policy is in force already, so that nothing was changed.
    Unchanged,
    /// The command succeeded: a confirmation or a rollback.
    Done,
    /// The command failed or gave no reply, so that its effect is not known.
    Failed,
}

/// The numbers of hosts in the waves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaveSizes {
    /// Hosts of the first wave, 1 or more.
    pub first: usize,
    /// Factor from one wave to the next, 1 or more.
    pub growth: usize,
}

/// A policy on its way to many hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rollout {
    hosts: Vec<RolloutState>,
    wave: Range<usize>,
    size: usize,
    growth: usize,
    has_failed: bool,
}

impl Rollout {
    /// Creates a rollout to `hosts` hosts, none of which has begun; [`Rollout::next_commands`] returns its first
    /// commands.
    pub fn new(hosts: usize, sizes: WaveSizes) -> Rollout {
        let (size, growth) = (sizes.first.max(1), sizes.growth.max(1));
        Rollout { hosts: vec![RolloutState::Waiting; hosts], wave: 0..0, size, growth, has_failed: false }
    }

    /// Returns the commands to run now, each once, with the indices of their hosts.
    pub fn next_commands(&mut self) -> Vec<(usize, HostCommand)> {
        let is = |state: RolloutState| self.hosts[self.wave.clone()].contains(&state);
        if is(RolloutState::Applying) || is(RolloutState::Confirming) || is(RolloutState::RollingBack) {
            return Vec::new();
        }
        if self.has_failed {
            let has_begun = |state| {
                !matches!(state, RolloutState::Waiting | RolloutState::RolledBack | RolloutState::InDoubt)
            };
            return self.command(HostCommand::RollBack, RolloutState::RollingBack, has_begun);
        }
        if is(RolloutState::Applied) {
            return self.command(HostCommand::Confirm, RolloutState::Confirming, |state| {
                state == RolloutState::Applied
            });
        }
        let begin = self.wave.end;
        if begin > 0 {
            self.size = self.size.saturating_mul(self.growth);
        }
        self.wave = begin..begin.saturating_add(self.size).min(self.hosts.len());
        self.command(HostCommand::Apply, RolloutState::Applying, |_| true)
    }

    /// Records the reply of host `host` to `command`. A reply to a command that another one has followed is ignored: an
    /// apply also ends when it is rolled back.
    pub fn on_reply(&mut self, host: usize, command: HostCommand, reply: HostReply) {
        let Some(state) = self.hosts.get_mut(host) else { return };
        let awaited = match state {
            RolloutState::Applying | RolloutState::Applied => HostCommand::Apply,
            RolloutState::Confirming => HostCommand::Confirm,
            RolloutState::RollingBack => HostCommand::RollBack,
            _ => return,
        };
        if command != awaited {
            return;
        }
        *state = match (*state, reply) {
            (RolloutState::Applying, HostReply::Applied) => RolloutState::Applied,
            (RolloutState::Applying, HostReply::Unchanged) => RolloutState::Confirmed,
            (RolloutState::Applying, _) => RolloutState::Failed,
            // The host has rolled back, or its connection ended, before it was confirmed.
            (RolloutState::Applied, HostReply::Failed) => RolloutState::Failed,
            (RolloutState::Confirming, HostReply::Done) => RolloutState::Confirmed,
            (RolloutState::Confirming, HostReply::Failed) => RolloutState::Unconfirmed,
            (RolloutState::RollingBack, HostReply::Done) => RolloutState::RolledBack,
            (RolloutState::RollingBack, HostReply::Failed) => RolloutState::InDoubt,
            _ => return,
        };
        self.has_failed |= matches!(*state, RolloutState::Failed | RolloutState::Unconfirmed);
    }

    /// Ends the rollout with the present wave, which is rolled back.
    pub fn stop(&mut self) {
        self.has_failed = true;
    }

    /// Returns whether no command is under way and none follows.
    pub fn is_over(&self) -> bool {
        let settled = |state: &RolloutState| match state {
            RolloutState::Confirmed => !self.has_failed,
            RolloutState::RolledBack | RolloutState::InDoubt => true,
            _ => false,
        };
        let wave = &self.hosts[self.wave.clone()];
        wave.iter().all(settled) && (self.has_failed || self.wave.end == self.hosts.len())
    }

    /// Returns whether every host is confirmed.
    pub fn has_succeeded(&self) -> bool {
        self.hosts.iter().all(|state| *state == RolloutState::Confirmed)
    }

    /// Returns the states of all hosts, in order.
    pub fn hosts(&self) -> &[RolloutState] {
        &self.hosts
    }

    /// Returns the indices of the present wave's hosts.
    pub fn wave(&self) -> Range<usize> {
        self.wave.clone()
    }

    /// Puts the hosts of the wave in such a state into `state`, and returns the command for each.
    fn command(
        &mut self,
        command: HostCommand,
        state: RolloutState,
        is_for: impl Fn(RolloutState) -> bool,
    ) -> Vec<(usize, HostCommand)> {
        let mut commands = Vec::new();
        for index in self.wave.clone() {
            if is_for(self.hosts[index]) {
                self.hosts[index] = state;
                commands.push((index, command));
            }
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes(first: usize, growth: usize) -> WaveSizes {
        WaveSizes { first, growth }
    }

    /// Runs a rollout in which host `at` answers the command `fails` with a failure.
    fn run(
        hosts: usize,
        sizes: WaveSizes,
        fails: Option<(usize, HostCommand)>,
    ) -> (Rollout, Vec<Vec<usize>>) {
        let mut rollout = Rollout::new(hosts, sizes);
        let mut waves = Vec::new();
        while !rollout.is_over() {
            let commands = rollout.next_commands();
            if commands.iter().any(|(_, command)| *command == HostCommand::Apply) {
                waves.push(commands.iter().map(|(host, _)| *host).collect());
            }
            for (host, command) in commands {
                let reply = match command {
                    _ if fails == Some((host, command)) => HostReply::Failed,
                    HostCommand::Apply => HostReply::Applied,
                    HostCommand::Confirm | HostCommand::RollBack => HostReply::Done,
                };
                rollout.on_reply(host, command, reply);
            }
        }
        (rollout, waves)
    }

    #[test]
    fn waves_grow_by_their_factor() {
        let (rollout, waves) = run(7, sizes(1, 2), None);
        assert_eq!(waves, [vec![0], vec![1, 2], vec![3, 4, 5, 6]]);
        assert!(rollout.has_succeeded());
        assert_eq!(run(5, sizes(2, 1), None).1, [vec![0, 1], vec![2, 3], vec![4]]);
        assert!(run(0, sizes(2, 1), None).0.has_succeeded());
    }

    #[test]
    fn a_failed_confirmation_takes_its_whole_wave_back_and_no_other() {
        use RolloutState::{Confirmed, RolledBack, Waiting};
        let (rollout, _) = run(6, sizes(2, 1), Some((3, HostCommand::Confirm)));
        assert_eq!(rollout.hosts(), [Confirmed, Confirmed, RolledBack, RolledBack, Waiting, Waiting]);
        let (rollout, _) = run(3, sizes(2, 1), Some((0, HostCommand::Apply)));
        assert_eq!(rollout.hosts(), [RolledBack, RolledBack, Waiting]);
    }

    #[test]
    fn an_apply_that_ends_by_its_rollback_is_no_failure_of_the_rollback() {
        let mut rollout = Rollout::new(2, sizes(2, 1));
        rollout.next_commands();
        rollout.on_reply(0, HostCommand::Apply, HostReply::Applied);
        rollout.on_reply(1, HostCommand::Apply, HostReply::Failed);
        assert_eq!(rollout.next_commands().len(), 2);
        rollout.on_reply(0, HostCommand::Apply, HostReply::Failed);
        rollout.on_reply(0, HostCommand::RollBack, HostReply::Done);
        assert_eq!(rollout.hosts()[0], RolloutState::RolledBack);
    }

    proptest! {
        /// Whatever hosts reply, in whatever order, and whenever the rollout is stopped: hosts that are neither as
        /// before nor confirmed are of one wave; a rollout ends; and then a failed wave has no host with the policy,
        /// except one whose rollback failed.
        #[test]
        fn one_wave_is_in_doubt_and_a_failed_one_is_taken_back(
            hosts in 0_usize..20,
            first in 0_usize..5,
            growth in 0_usize..4,
            draws in prop::collection::vec((any::<usize>(), 0_u8..20), 100),
            stop_at in 0_usize..150,
        ) {
            let mut rollout = Rollout::new(hosts, sizes(first, growth));
            let mut open: Vec<(usize, HostCommand)> = Vec::new();
            let mut draws = draws.into_iter();
            for turn in 0.. {
                prop_assert!(turn < 200, "it does not end: {:?}", rollout);
                if turn == stop_at {
                    rollout.stop();
                }
                open.extend(rollout.next_commands());
                let wave = rollout.wave();
                for (host, state) in rollout.hosts().iter().enumerate() {
                    let is_settled = matches!(state, RolloutState::Waiting | RolloutState::Confirmed);
                    prop_assert!(is_settled || wave.contains(&host), "host {} of another wave: {:?}", host, state);
                }
                if rollout.is_over() {
                    break;
                }
                prop_assert!(!open.is_empty(), "nothing is under way: {:?}", rollout);
                let (which, luck) = draws.next().unwrap_or((0, 9));
                let (host, command) = open.swap_remove(which % open.len());
                rollout.on_reply(host, command, match (luck, command) {
                    (0, _) => HostReply::Failed,
                    (1, HostCommand::Apply) => HostReply::Unchanged,
                    (_, HostCommand::Apply) => HostReply::Applied,
                    (_, HostCommand::Confirm | HostCommand::RollBack) => HostReply::Done,
                });
            }
            prop_assert!(open.is_empty());
            if !rollout.has_succeeded() {
                let settled = |state: &RolloutState| matches!(state, RolloutState::RolledBack | RolloutState::InDoubt);
                prop_assert!(rollout.hosts()[rollout.wave()].iter().all(settled), "{:?}", rollout);
            }
        }
    }
}
