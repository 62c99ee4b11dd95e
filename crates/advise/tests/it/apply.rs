//! The programs can read the files that turn a candidate on.

use plimsoll_advise::CandidateFiles;
use plimsoll_host::{ExampleHost, Policy};

use super::*;

#[test]
fn the_files_of_every_candidate_are_read_by_what_they_are_for() {
    let scenario = shipped("quickstart", &[]);
    let watch = Calls { most: Some(1), ..Calls::default() };
    let (prepared, advice) = ask(&scenario, &question("p99(small) < 1ms", 200), &watch);
    let mut policies = 0;
    for one in &advice.ranking {
        let Some(applied) = CandidateFiles::one(&prepared, &advice, one) else { continue };
        if let Some(policy) = &applied.policy {
            let parsed = Policy::parse(policy, "advised");
            assert!(parsed.is_ok(), "{}: {}\n{policy}", one.name, parsed.unwrap_err());
            // As `plimsoll host POLICY` has it, without root.
            let planned = ExampleHost::plan(&parsed.unwrap());
            assert!(planned.as_ref().is_ok_and(|plan| !plan.steps.is_empty()), "{}: {planned:?}", one.name);
            policies += 1;
        }
        let made = Scenario::parse("best.toml", &applied.scenario, Path::new("."));
        let made = made.unwrap_or_else(|errors| panic!("{}: {}", one.name, errors[0]));
        assert_eq!(made.points().len(), 1);
        assert_eq!(made.points()[0].model.run.duration, scenario.points()[0].model.run.duration);
        let texts = format!("{}{}", applied.settings, applied.policy.unwrap_or_default());
        for section in ["port", "host", "topology", "transport"] {
            assert!(!texts.contains(&format!("<{section}.")), "{}: a key has no value\n{texts}", one.name);
        }
    }
    assert_eq!(policies, 4, "dctcp, hull, qjump and phantom queues have a part at hosts");
}
