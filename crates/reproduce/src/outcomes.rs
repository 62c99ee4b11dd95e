//! The outcomes of a study's scenarios in today's simulator, as the committed table of digests has them.
//!
//! A test holds the table to the simulator, so a change of results changes its rows. A finished run keeps the digest of
//! the rows of its scenario: where they have changed since, the run counts no more, and a page with its numbers is old.

use plimsoll_results::digest::Digest;

use crate::journal;
use crate::study::Base;

/// Returns the digest of the outcomes that the table has of a scheme of a scenario, of the scenario on that base, and
/// of the base itself; none if the table has no row of them.
pub(crate) fn of(study: &str, scenario: &str, base: Base, series: &str) -> Option<String> {
    of_table(TABLE, study, scenario, base, series)
}

fn of_table(table: &str, study: &str, scenario: &str, base: Base, series: &str) -> Option<String> {
    let base = base.name();
    let files =
        [scenario.to_owned(), scenario.replace(".toml", &format!("-{base}.toml")), format!("{base}.toml")];
    let outcomes: Vec<&str> = table
        .lines()
        .filter_map(|line| {
            let (file, rest) = line.strip_prefix(study)?.strip_prefix('/')?.split_once(',')?;
            let (label, outcome) = (rest.split(',').next()?, rest.rsplit(',').next()?);
            let variant = label.split(';').next()?;
            (files.iter().any(|known| known == file) && variant == series).then_some(outcome)
        })
        .collect();
    (!outcomes.is_empty()).then(|| journal::text(Digest::of_text(&outcomes.join("\n")).low()))
}

/// The table that `digests_of_inputs_and_outcomes_are_those_of_the_table` holds to the simulator.
const TABLE: &str = include_str!("../tests/it/digests.csv");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_outcome_of_the_scheme_or_of_its_base_is_seen_and_no_other() {
        let table = "scenario,point,input,settings,outcome\n\
                     hull/static.toml,TCP; workload.bulk.from = h1..h2,1,2,aa\n\
                     hull/static.toml,DCTCP,1,2,bb\n\
                     hull/standard.toml,TCP,1,2,cc\n\
                     hull-kernel/static.toml,TCP,1,2,dd\n";
        let of = |table: &str, base| of_table(table, "hull", "static.toml", base, "TCP");
        let before = [Base::Source, Base::Standard].map(|base| of(table, base));
        assert!(before.iter().all(Option::is_some) && before[0] != before[1], "{before:?}");
        for (from, to, changed) in [
            (",aa", ",ab", [true, true]),
            (",bb", ",bc", [false, false]),
            (",cc", ",cd", [false, true]),
            (",dd", ",de", [false, false]),
            (",1,2,aa", ",3,4,aa", [false, false]),
        ] {
            let table = table.replace(from, to);
            let after = [Base::Source, Base::Standard].map(|base| of(&table, base));
            assert_eq!([0, 1].map(|at| before[at] != after[at]), changed, "{from}");
        }
        assert_eq!(of_table(table, "hull", "static.toml", Base::Source, "HULL"), None);
    }
}
