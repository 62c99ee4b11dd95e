//! [`Gravity`]: how much each pair of hosts exchanges, from what each host sends and receives.
//!
//! The gravity model has the rate `s_i r_j` from host i to another host j. Iterative proportional fitting finds the r
//! with which each host receives its measured traffic, while each sends exactly its measured traffic:
//!
//! ```text
//! T_ij = sent_i r_j / (sum r - r_i)      r_j <- r_j received_j / sum_i T_ij
//! ```

use std::fmt::Write as _;

use plimsoll_text::csv_cell;

use crate::found::HostRates;

/// The weights of hosts as senders and receivers, with rates in bits per second.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Gravity {
    /// The number of each host, the rate that it sends, and its weight as a receiver.
    hosts: Vec<(u32, f64, f64)>,
    /// The rate that all hosts send.
    pub(super) total: f64,
    /// The files have the rates at which hosts send, and at which they receive.
    known: [bool; 2],
    /// The rate that all hosts receive, by the files, over that which they send.
    ratio: f64,
    /// The largest difference between the rate that a host receives by the model and by the files, over the total.
    misfit: f64,
}

/// The fit ends when the difference over the total is this small, or one round makes it no smaller than by this share,
/// since no pairs have these rates.
const ENOUGH: f64 = 1e-6;
const STILL: f64 = 0.001;
/// Differences below these are not worth a word.
const SAME_TOTAL: f64 = 0.01;
const SAME_RATE: f64 = 0.001;

/// Returns the rate at which all hosts send, or receive where the files lack that.
pub(super) fn total(all: &[HostRates]) -> f64 {
    let sums = [|of: &HostRates| of.sent, |of: &HostRates| of.received].map(|rate| sum(all, rate));
    sums[0].or(sums[1]).unwrap_or(0.0)
}

fn sum(all: &[HostRates], rate: fn(&HostRates) -> Option<f64>) -> Option<f64> {
    all.iter().filter_map(rate).reduce(|sum, rate| sum + rate)
}

impl Gravity {
    /// Fits the model between all `hosts`. Hosts whose rate the files do not have share the rest of the total.
    pub(super) fn of(all: &[HostRates], hosts: usize) -> Gravity {
        let (sent, received) = (sum(all, |of| of.sent), sum(all, |of| of.received));
        let total = total(all);
        let rates = |rate: fn(&HostRates) -> Option<f64>| -> Vec<f64> {
            let mut known = vec![None; hosts];
            all.iter().for_each(|of| known[of.host as usize] = rate(of));
            let rest = (total - known.iter().flatten().sum::<f64>()).max(0.0);
            let alike = rest / known.iter().filter(|rate| rate.is_none()).count().max(1) as f64;
            known.into_iter().map(|rate| rate.unwrap_or(alike)).collect()
        };
        let (rows, mut columns) = (rates(|of| of.sent), rates(|of| of.received));
        let ratio = columns.iter().sum::<f64>() / total;
        columns.iter_mut().for_each(|rate| *rate /= ratio);
        let (weights, misfit) = if received.is_some() { fit(&rows, &columns, total) } else { (columns, 0.0) };
        let weight = weights.iter().sum::<f64>();
        // A host that alone receives has no other to send to.
        let sends = |(row, own): (f64, &f64)| if weight - own > weight * 1e-12 { row } else { 0.0 };
        let rows: Vec<f64> = rows.into_iter().zip(&weights).map(sends).collect();
        if rows.iter().all(|row| *row == 0.0) && received.is_some() {
            let sent: Vec<HostRates> = all.iter().map(|of| HostRates { received: None, ..*of }).collect();
            return Gravity::of(&sent, hosts);
        }
        let hosts = (0..).zip(rows).zip(weights).map(|((host, row), weight)| (host, row, weight)).collect();
        Gravity { hosts, total, known: [sent.is_some(), received.is_some()], ratio, misfit }
    }

    /// Returns the file of weights.
    pub(super) fn text(&self, names: &[String]) -> String {
        let mut text = "host,send,receive\n".to_owned();
        for (host, send, receive) in &self.hosts {
            let [send, receive] = [send, receive].map(|rate| rate.ceil());
            let _ = writeln!(text, "{},{send}bps,{receive}bps", csv_cell(&names[*host as usize]));
        }
        text
    }

    /// Describes the assumptions.
    pub(super) fn sentence(&self) -> String {
        let mut text = match self.known {
            [true, true] => {
                "a gravity model: hosts send and receive their own rates, and a sender has each receiver \
                             in proportion to what that receives"
                    .to_owned()
            }
            [true, false] => {
                "hosts send their own rates, and each receiver is as likely as another".to_owned()
            }
            _ => "hosts receive their own rates, and each sender is as likely as another".to_owned(),
        };
        if (self.ratio - 1.0).abs() > SAME_TOTAL {
            let percent = 100.0 * self.ratio;
            let _ = write!(
                text,
                "; together they receive {percent:.0} % of what they send, to which it is scaled"
            );
        }
        if self.misfit > SAME_RATE && self.known == [true, true] {
            let percent = 100.0 * self.misfit;
            let _ =
                write!(text, "; a host receives {percent:.1} % of the load more or less than its own rate");
        }
        text
    }
}

/// Returns the weights of receivers, and the largest difference from `columns` over the total.
fn fit(rows: &[f64], columns: &[f64], total: f64) -> (Vec<f64>, f64) {
    let mut weights = columns.to_vec();
    let mut misfit = f64::MAX;
    loop {
        let all = weights.iter().sum::<f64>();
        let share = |(row, own): (&f64, &f64)| if all - own > all * 1e-12 { row / (all - own) } else { 0.0 };
        let shares: Vec<f64> = rows.iter().zip(&weights).map(share).collect();
        let every = shares.iter().sum::<f64>();
        let before = std::mem::replace(&mut misfit, 0.0);
        for ((weight, share), column) in weights.iter_mut().zip(&shares).zip(columns) {
            let received = *weight * (every - share);
            misfit = misfit.max((received - column).abs() / total);
            *weight *= if received > 0.0 { column / received } else { 0.0 };
        }
        if misfit < ENOUGH || misfit > (1.0 - STILL) * before {
            return (weights, misfit);
        }
        // Only ratios count: the weights stay as large as the rates.
        let scale = total / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        weights.iter_mut().for_each(|weight| *weight *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(all: &[(Option<f64>, Option<f64>)]) -> Vec<HostRates> {
        (0..)
            .zip(all)
            .map(|(host, (sent, received))| HostRates { host, sent: *sent, received: *received })
            .collect()
    }

    fn of(all: &[HostRates]) -> Gravity {
        Gravity::of(all, all.len())
    }

    /// Returns the model's rates of each host: sent, and received.
    fn sums(gravity: &Gravity) -> Vec<(f64, f64)> {
        let all: f64 = gravity.hosts.iter().map(|(.., weight)| weight).sum();
        let to = |to: usize| {
            let pairs = gravity.hosts.iter().enumerate().filter(|(from, _)| *from != to);
            pairs.map(|(_, (_, sent, own))| sent * gravity.hosts[to].2 / (all - own)).sum()
        };
        (0..gravity.hosts.len()).map(|host| (gravity.hosts[host].1, to(host))).collect()
    }

    #[test]
    fn hosts_send_and_receive_their_own_rates() {
        let known = [(6e9, 1e9), (2e9, 5e9), (1e9, 3e9), (0.0, 1e9), (2e9, 1e9)];
        let all = rates(&known.map(|(sent, received)| (Some(sent), Some(received))));
        let gravity = of(&all);
        for ((sent, received), (row, column)) in known.into_iter().zip(sums(&gravity)) {
            assert!((sent - row).abs() < 1.0 && (received - column).abs() < 1e5, "{row} {column}");
        }
        assert!(gravity.sentence().starts_with("a gravity model") && !gravity.sentence().contains(';'));
        let half = rates(&known.map(|(sent, received)| (Some(sent), Some(received / 2.0))));
        assert!(of(&half).sentence().contains("they receive 50 % of what they send"));
    }

    #[test]
    fn hosts_are_alike_in_a_direction_that_the_files_lack() {
        let sent = of(&rates(&[(Some(3e9), None), (Some(1e9), None), (Some(2e9), None)]));
        assert_eq!(sums(&sent).iter().map(|sum| sum.0).collect::<Vec<_>>(), [3e9, 1e9, 2e9]);
        assert!(sent.sentence().contains("each receiver is as likely as another"));
        let received = of(&rates(&[(None, Some(2e9)), (None, Some(1e9)), (None, Some(1e9))]));
        assert!(sums(&received).iter().zip([2e9, 1e9, 1e9]).all(|(sum, rate)| (sum.1 - rate).abs() < 1e5));
    }

    /// One host sends most and receives half, which the others together do not send.
    #[test]
    fn a_fit_that_cannot_be_ends_and_is_said() {
        let all = [(8e9, 5e9), (1e9, 4e9), (1e9, 1e9)].map(|(sent, received)| (Some(sent), Some(received)));
        let gravity = of(&rates(&all));
        assert!(gravity.sentence().contains("; a host receives 3"), "{}", gravity.sentence());
        assert!(
            gravity
                .text(&["a", "b", "c"].map(str::to_owned))
                .lines()
                .skip(1)
                .all(|line| !line.contains(",0bps"))
        );
    }

    /// The only receiver cannot send to itself, and one that sends more than the others receive misses its own rate.
    #[test]
    fn rates_that_no_pairs_have_are_said() {
        let alone = of(&rates(&[(Some(1e9), Some(2e9)), (Some(1e9), Some(0.0))]));
        assert_eq!(alone.hosts.iter().map(|(_, sent, _)| *sent).collect::<Vec<_>>(), [0.0, 1e9]);
        // A host without a rate receives the rest.
        let rest = of(&rates(&[(Some(1e9), Some(2e9)), (Some(2e9), Some(5e8)), (Some(1e9), None)]));
        assert!((sums(&rest)[2].1 - 1.5e9).abs() < 1e5, "{:?}", sums(&rest));
        let none = of(&rates(&[(Some(1e9), Some(1e9)), (None, None)]));
        assert_eq!(sums(&none), [(1e9, 0.0), (0.0, 1e9)], "a class of one host sends to the others");
        assert!(alone.sentence().contains("more or less than its own rate"), "{}", alone.sentence());
    }
}
