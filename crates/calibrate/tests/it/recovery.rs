//! Hidden parameters are found at an idle load, and predict another load.

use plimsoll_calibrate::{CalibrateError, Calibration, Check, CheckVerdict};

use crate::{bench, measured, scenario};

const IDLE: &str = "workload.bulk.load=0.01";
const QUIET: &str = "workload.get.load=20Mbps";
const LOADED: &str = "workload.get.load=200Mbps";
const LONG: &str = "run.duration=2s";

#[test]
fn hidden_parameters_are_found_and_predict_a_load_that_was_not_fitted() {
    let hidden = ["workload.get.service.mean=14us", "host.processor={ interrupt = '3us' }"];
    let set = |load| [&[IDLE, LONG, load][..], &hidden].concat();
    let [idle, _] = measured(&set(QUIET));
    let scenario = scenario(&[IDLE, LONG, QUIET], None);
    let calibration = Calibration::new(&scenario, None, "get", bench()).unwrap();
    let fit = calibration.fit(&idle, &[]).unwrap();
    println!("{fit:?}");
    assert_eq!(fit.merged, [""; 0]);
    for ((fitted, key), us) in
        fit.fitted.iter().zip(["workload.get.service.mean", "host.processor.interrupt"]).zip([14.0, 3.0])
    {
        assert_eq!(fitted.key, key);
        assert!((fitted.us - us).abs() < 0.1 * us, "{key}: {} and not {us}", fitted.us);
    }
    let [loaded, _] = measured(&set(LOADED));
    let check = Check::of(&loaded, &calibration.run(&fit.set, &[LOADED.to_owned()]).unwrap(), 0.15);
    println!("{check:?}");
    assert_eq!(check.verdict, CheckVerdict::Pass);
    // The same input gives the same values.
    assert_eq!(calibration.fit(&idle, &[]).unwrap().set, fit.set);
}

#[test]
fn a_wrong_distribution_of_the_service_fails_the_check() {
    let [idle, _] = measured(&[IDLE, LONG, QUIET]);
    let scenario = scenario(&[IDLE, LONG, QUIET, "workload.get.service=5us"], None);
    let calibration = Calibration::new(&scenario, None, "get", bench()).unwrap();
    let fit = calibration.fit(&idle, &["workload.get.service".to_owned()]).unwrap();
    let [loaded, _] = measured(&[IDLE, LONG, LOADED]);
    let check = Check::of(&loaded, &calibration.run(&fit.set, &[LOADED.to_owned()]).unwrap(), 0.15);
    println!("{fit:?} {check:?}");
    assert_eq!(check.verdict, CheckVerdict::Fail);
}

#[test]
fn a_constant_service_and_the_stack_are_fitted_as_their_sum() {
    let hidden = ["workload.get.service=12us", "host.processor={ interrupt = '2us' }"];
    let [idle, _] = measured(&[&[IDLE, QUIET][..], &hidden].concat());
    let scenario = scenario(&[IDLE, QUIET, "workload.get.service=5us"], None);
    let calibration = Calibration::new(&scenario, None, "get", bench()).unwrap();
    let fit = calibration.fit(&idle, &[]).unwrap();
    println!("{fit:?}");
    assert_eq!(fit.fitted.len(), 1);
    assert!(fit.merged[0].contains("host.processor.interrupt cannot be told from workload.get.service"));
    // A request meets two interrupts: its own at the server, and its response's at the client.
    assert!((fit.fitted[0].us - 16.0).abs() < 0.1, "{}", fit.fitted[0].us);
}

#[test]
fn what_cannot_be_fitted_is_an_error() {
    let [idle, _] = measured(&[IDLE, QUIET]);
    let scenario = scenario(&[IDLE, QUIET], None);
    let calibration = Calibration::new(&scenario, None, "get", bench()).unwrap();
    let unknown = calibration.fit(&idle, &["workload.get.servic".to_owned()]);
    assert!(unknown.is_err_and(|error| error.to_string().contains("workload.get.servic")));
    let twice = calibration
        .fit(&idle, &["workload.get.service.mean".to_owned(), "workload.get.service.mean".to_owned()]);
    assert!(twice.is_err_and(|error| {
        error.to_string().starts_with("--fit workload.get.service.mean: the key is given twice")
    }));
    let without_count = plimsoll_models::measured::MeasuredLatencies { samples: None, ..idle };
    let found = calibration.fit(&without_count, &[]);
    assert!(matches!(found, Err(CalibrateError::TooFew(..))));
}
