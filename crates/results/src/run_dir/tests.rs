//! Run directories that are made, killed, resumed, damaged and merged.

use super::*;
use plimsoll_units::{Span, Time};

use crate::digest::Digest;
use crate::outcome::{Counters, ExtraLoad, Observation, ProcessorTotals};
use crate::summary::Options;
use crate::synthetic::{self, Shape};

fn small() -> Shape {
    Shape { requests: 40, transfers: 10, queries: 5, intervals: 12, load: 0.5 }
}

fn points() -> Vec<PointOutcome> {
    synthetic::experiment(&small(), &["TCP", "HULL, paced \"hard\""], &[0.2, 0.4], 2, 7)
}

fn plan_of(points: &[PointOutcome]) -> RunPlan {
    RunPlan {
        title: "a test".into(),
        description: "of a run".into(),
        carrier: SIMULATOR.into(),
        version: "0.1.0".into(),
        commit: None,
        command: "plimsoll run test.toml --seed 7".into(),
        seed: 7,
        scenario: "version = 1\n".into(),
        shard: None,
        points: points.iter().map(|p| PlannedPoint { key: p.key.clone(), seed: p.seed }).collect(),
        warnings: vec![],
        columns: Columns::Csv,
    }
}

fn create(path: &Path, points: &[PointOutcome], existing: Existing) -> Result<RunDir, Error> {
    RunDir::create(path, &plan_of(points), existing, 0)
}

#[test]
fn a_run_reads_back_to_the_last_digest() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("deep/run");
    let points = points();
    let run = create(&path, &points, Existing::Refuse).unwrap();
    points.iter().for_each(|point| run.write_point(point).unwrap());
    let summary = Summary::of(&points, &Options::default());
    run.write_summary(&summary).unwrap();
    run.finish().unwrap();
    drop(run);

    let run = RunDir::open(&path).unwrap();
    let read = run.read_points().unwrap();
    for (read, written) in read.iter().zip(&points) {
        assert_eq!(read.key, written.key);
        assert_eq!(Digest::of(&read.outcome), written.digest);
        assert_eq!(read.outcome.warnings, written.outcome.warnings);
        assert_eq!(read.outcome.counters, written.outcome.counters);
        assert_eq!(read.outcome.delivered, written.outcome.delivered);
    }
    assert!(Summary::of(&read, &Options::default()) == summary);
    assert!(run.read_summary().unwrap() == summary);
    assert!(run.manifest().points.iter().all(|point| point.digest.is_some()));
    assert_eq!(run.scenario().unwrap(), "version = 1\n");
}

#[test]
fn a_point_that_is_listed_twice_is_one_sample() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let twice: Vec<PointOutcome> = points.iter().chain(&points).cloned().collect();
    let expected = Summary::of(&points, &Options::default());
    let run = create(&place.path().join("planned"), &twice, Existing::Refuse).unwrap();
    twice.iter().for_each(|point| run.write_point(point).unwrap());
    assert!(Summary::of(&run.read_points().unwrap(), &Options::default()) == expected);
    // A plan with two equal points, as an earlier version wrote it.
    let mut manifest = run.manifest().clone();
    manifest.points.extend(run.manifest().points.clone());
    run.write_manifest(&manifest).unwrap();
    drop(run);
    let path = place.path().join("planned");
    let run = RunDir::open(&path).unwrap();
    assert_eq!((run.status().len(), run.missing().len()), (points.len(), 0));
    assert!(Summary::of(&run.read_points().unwrap(), &Options::default()) == expected);
    let merged = merge(&place.path().join("merged"), &[path.clone(), path], Columns::Csv).unwrap();
    assert!(Summary::of(&merged.read_points().unwrap(), &Options::default()) == expected);
}

#[test]
fn observations_and_extra_load_read_back() {
    let place = tempfile::tempdir().unwrap();
    let mut point = points().remove(0);
    let begun = Time::ZERO + Span::from_ms(20);
    let seen = |index, us| Observation { workload: 0, index, host: 3, begun, value: Span::from_us(us) };
    point.outcome.workloads[0].observed = Some("clock offset".into());
    point.outcome.observations = vec![seen(0, 7), seen(1, 9)];
    point.outcome.extra = vec![ExtraLoad { workload: 1, retries: 2, replicas: 3, bytes: 4 }];
    point.digest = Digest::of(&point.outcome);
    let points = vec![point];
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    let read = run.read_point(&points[0].key).unwrap();
    assert_eq!((read.outcome.observations.len(), &read.outcome.extra), (2, &points[0].outcome.extra));
    let summary = Summary::of(&[read], &Options::default());
    assert!(Summary::of(&points, &Options::default()) == summary);
    let observed = summary.cells[0].workloads[0].observed.as_ref().unwrap();
    assert_eq!((observed.what.as_str(), observed.us.min, observed.us.max), ("clock offset", 7.0, 9.0));
    assert_eq!(summary.cells[0].workloads[0].waited_us().unwrap().mean.value, 8.0);
    assert_eq!(summary.quantity("small"), "Clock offset");
    assert_eq!(summary.cells[0].workloads[1].extra.unwrap().bytes, 4);
    let text = fs::read_to_string(place.path().join(COLUMNS)).unwrap();
    assert!(text.contains("## observations.csv"));
}

#[test]
fn what_processors_did_reads_back() {
    let place = tempfile::tempdir().unwrap();
    let mut point = points().remove(0);
    let totals = |host| ProcessorTotals {
        host,
        busy: vec![Span::from_us(7), Span::from_ps(3)],
        frames_received: 5,
        frames_sent: 4,
        ring_drops: 2,
    };
    point.outcome.processors = vec![totals(0), totals(1)];
    point.digest = Digest::of(&point.outcome);
    let points = vec![point];
    let run = create(&place.path().join("run"), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    run.finish().unwrap();
    let read = run.read_points().unwrap();
    assert_eq!(read[0].digest, points[0].digest);
    assert_eq!(read[0].outcome.processors, points[0].outcome.processors);
}

#[test]
fn circuits_and_their_weeks_read_back() {
    let place = tempfile::tempdir().unwrap();
    let mut point = points().remove(0);
    let before = Digest::of(&point.outcome);
    synthetic::with_circuits(&mut point.outcome, 4, 12);
    point.digest = Digest::of(&point.outcome);
    assert_ne!(point.digest, before);
    let points = vec![point];
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    let read = run.read_point(&points[0].key).unwrap();
    assert_eq!(read.outcome.circuits, points[0].outcome.circuits);
    assert_eq!(read.outcome.circuit_weeks, points[0].outcome.circuit_weeks);
    assert_eq!(read.outcome.circuit_weeks[0].made, None);
    let summary = Summary::of(&[read], &Options::default());
    assert!(Summary::of(&points, &Options::default()) == summary);
    assert_eq!(summary.cells[0].circuits.unwrap().configurations_per_week, 2.0);
    let text = fs::read_to_string(place.path().join(COLUMNS)).unwrap();
    assert!(text.contains("## circuits.csv") && text.contains("## circuit_weeks.csv"));
}

#[test]
fn operations_of_jobs_and_the_places_of_waiting_read_back() {
    let place = tempfile::tempdir().unwrap();
    let mut point = points().remove(0);
    synthetic::with_job(&mut point.outcome, 3);
    point.digest = Digest::of(&point.outcome);
    let points = vec![point];
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    let read = run.read_point(&points[0].key).unwrap();
    assert_eq!(read.outcome.operations, points[0].outcome.operations);
    assert_eq!(read.outcome.path_waits, points[0].outcome.path_waits);
    let summary = Summary::of(&[read], &Options::default());
    let places = summary.cells[0].jobs[0].places.iter().map(|place| (place.at.as_str(), place.waited_us));
    let expected =
        [("leaf0 -> spine0", 30.0), ("h1 -> leaf0", 10.0), ("h2 -> leaf0", 5.0), ("spine0 -> leaf1", 5.0)];
    assert_eq!(places.collect::<Vec<_>>(), expected);
}

#[test]
fn a_killed_run_goes_on_where_it_stopped() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    run.write_point(&points[3]).unwrap();
    // Killed inside the next one: a folder without its mark, under a name of its own.
    let half = place.path().join(POINTS).join(".unfinished-x-1");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("messages.csv"), "variant,repl").unwrap();
    drop(run);

    assert!(matches!(create(place.path(), &points, Existing::Refuse), Err(Error::Exists { .. })));
    let run = create(place.path(), &points, Existing::Resume).unwrap();
    assert!(!half.exists());
    let missing: Vec<PointKey> = run.missing().into_iter().cloned().collect();
    assert_eq!(missing.len(), points.len() - 2);
    assert!(!missing.contains(&points[0].key) && !missing.contains(&points[3].key));
    // More replicates than before are no conflict: the run grows.
    drop(run);
    let more = synthetic::experiment(&small(), &["TCP", "HULL, paced \"hard\""], &[0.2, 0.4], 3, 7);
    let run = create(place.path(), &more, Existing::Resume).unwrap();
    assert_eq!(run.missing().len(), more.len() - 2);
}

#[test]
fn a_damaged_point_is_run_again() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    let file = place.path().join(POINTS).join(point_id(&points[0].key)).join("messages.csv");
    let text = fs::read_to_string(&file).unwrap();

    // Cut short: seen by its length.
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert!(matches!(run.status()[0].1, Status::Cut(_)));
    assert_eq!(run.missing().len(), points.len());
    // One digit changed: seen by the checksum, which is looked at on demand, and whenever it is read.
    fs::write(&file, text.replacen("37600000", "37600001", 1)).unwrap();
    assert!(matches!(run.status()[0].1, Status::Done(_)));
    let Status::Damaged(what) = &run.verify()[0].1 else { panic!("it is not seen") };
    assert!(what.contains("messages.csv is damaged: its checksum is"), "{what}");
    assert!(matches!(run.read_point(&points[0].key), Err(Error::Damaged { .. })));
    // Run again.
    run.write_point(&points[0]).unwrap();
    assert_eq!(run.read_point(&points[0].key).unwrap().digest, points[0].digest);
}

/// Every file of a folder and of the folders below it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The result of a reader of a run directory, or the error.
fn all_that_is_read(path: &Path) -> Result<String, Error> {
    let run = RunDir::open(path)?;
    let scenario = run.scenario()?;
    let points = run.read_points()?;
    let summary = serde_json::to_string(&Summary::of(&points, &Options::default())).unwrap();
    Ok(format!("{scenario}{:?}{summary}", run.manifest()))
}

#[test]
fn no_cut_and_no_flipped_bit_goes_unseen_and_a_repair_brings_back_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    let points = synthetic::experiment(&small(), &["TCP", "=HULL \u{1b}[31m"], &[0.2], 1, 7);
    let finish = |existing| {
        let run = create(path, &points, existing).unwrap();
        let done: Vec<bool> = run.verify().iter().map(|(_, s)| matches!(s, Status::Done(_))).collect();
        let bad = points.iter().zip(&done).filter(|(_, done)| !**done);
        bad.for_each(|(point, _)| run.write_point(point).unwrap());
        run.finish().unwrap();
        done.into_iter().filter(|done| !done).count()
    };
    assert_eq!(finish(Existing::Refuse), 2);
    let whole = all_that_is_read(path).unwrap();
    let files = files_below(path);
    let bytes: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let mut seen = 0;
    for (file, good) in files.iter().zip(&bytes) {
        let name = file.file_name().unwrap().to_str().unwrap();
        // Places from all regions of the file, with a step that meets all bits.
        let step = (good.len() / 8).max(1) | 1;
        for at in (0..good.len()).step_by(step) {
            let mut flipped = good.clone();
            flipped[at] ^= 1 << (at % 8);
            for bad in [flipped, good[..at].to_vec()] {
                fs::write(file, &bad).unwrap();
                let read = all_that_is_read(path);
                let verified = RunDir::open(path)
                    .ok()
                    .map(|run| run.verify().into_iter().all(|(_, status)| matches!(status, Status::Done(_))));
                if name == COLUMNS || name == LOCK {
                    assert_eq!(read.unwrap(), whole, "{name} at {at}");
                } else {
                    seen += 1;
                    // A mark without its last brace is one that was cut, also where that byte has flipped.
                    let cut = bad.len() < good.len() || name == point_files::MARK && at + 1 == good.len();
                    // A point that is cut short counts as missing, and everything else is an error with a name.
                    match &read {
                        Ok(other) => assert!(cut && *other != whole, "{name} at {at} of {}", good.len()),
                        Err(error) => assert!(error.to_string().contains(name), "{name} at {at}: {error}"),
                    }
                    assert!(verified != Some(true) || name == SCENARIO, "{name} at {at}");
                }
                let again = finish(Existing::Repair);
                assert_eq!(again, usize::from(file.parent().unwrap() != path), "{name} at {at}");
                for (file, good) in files.iter().zip(&bytes) {
                    assert!(fs::read(file).unwrap() == *good, "{} after {name} at {at}", file.display());
                }
            }
        }
    }
    assert!(seen > 150, "{seen} tries");
}

#[test]
fn a_repair_refuses_where_nothing_says_whose_points_these_are() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    create(place.path(), &points, Existing::Refuse).unwrap().write_point(&points[0]).unwrap();
    fs::write(place.path().join(MANIFEST), "{").unwrap();
    let error = create(place.path(), &points, Existing::Resume).unwrap_err();
    assert!(error.to_string().contains("manifest.json is damaged"), "{error}");
    fs::write(place.path().join(SCENARIO), "version = 1 # another\n").unwrap();
    // Advice to repair could not work, so it is not given: neither where the manifest is damaged nor where it is
    // missing.
    for existing in [Existing::Resume, Existing::Repair, Existing::Resume] {
        let error = create(place.path(), &points, existing).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{existing:?}: {error}");
        if existing == Existing::Repair {
            fs::remove_file(place.path().join(MANIFEST)).unwrap();
        }
    }
    drop(create(place.path(), &points, Existing::Replace).unwrap());
}

#[test]
fn a_run_of_the_format_without_checksums_is_read() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    run.finish().unwrap();
    drop(run);
    let folder = place.path().join(POINTS).join(point_id(&points[0].key));
    for file in [place.path().join(MANIFEST), folder.join(point_files::MARK)] {
        let text = fs::read_to_string(&file).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let json = json.as_object_mut().unwrap();
        json.remove("checksum");
        json.insert("format".into(), 2.into());
        if let Some(files) = json.get_mut("files").and_then(serde_json::Value::as_object_mut) {
            files.values_mut().for_each(|file| *file = file["bytes"].clone());
        }
        fs::write(&file, serde_json::to_string_pretty(json).unwrap()).unwrap();
    }
    let run = RunDir::open(place.path()).unwrap();
    assert!(matches!(run.verify()[0].1, Status::Done(_)), "{:?}", run.verify()[0].1);
    assert_eq!(run.read_points().unwrap()[0].digest, points[0].digest);
}

#[test]
fn a_mark_names_no_file_outside_its_folder() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    let mark = place.path().join(POINTS).join(point_id(&points[0].key)).join(point_files::MARK);
    let text = fs::read_to_string(&mark).unwrap().replacen("messages.csv", "/dev/zero", 1);
    let zeros = "0".repeat(32);
    let at = text.rfind("\"checksum\": \"").unwrap() + 13;
    let text = format!("{}{zeros}{}", &text[..at], &text[at + 32..]);
    fs::write(&mark, seal::sealed(&text)).unwrap();
    let Status::Damaged(what) = &run.verify()[0].1 else { panic!() };
    assert!(what.contains("/dev/zero"), "{what}");
}

#[test]
fn a_finished_point_is_on_the_disk_before_it_has_its_name() {
    use disk::{STEPS, Step};
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    STEPS.with_borrow_mut(Vec::clear);
    run.write_point(&points[0]).unwrap();
    let steps = STEPS.with_borrow_mut(std::mem::take);
    let folder = place.path().join(POINTS).join(point_id(&points[0].key));
    let (named, _) =
        steps.iter().enumerate().find(|(_, step)| **step == (Step::Rename, folder.clone())).unwrap();
    let unfinished = |path: &Path| path.to_string_lossy().contains(UNFINISHED);
    // Each file, then the folder that lists them, then its name, then the folder that has it.
    let (files, listed) = (&steps[..named - 1], &steps[named - 1]);
    assert!(files.iter().all(|(step, path)| *step == Step::SyncFile && unfinished(path)), "{steps:?}");
    let names: Vec<_> = files.iter().filter_map(|(_, path)| path.file_name()).collect();
    for entry in fs::read_dir(&folder).unwrap() {
        assert!(names.contains(&entry.unwrap().file_name().as_os_str()), "{names:?}");
    }
    assert_eq!(names.last().and_then(|name| name.to_str()), Some(point_files::MARK), "the mark comes last");
    assert!(listed.0 == Step::SyncFolder && unfinished(&listed.1), "{steps:?}");
    assert_eq!(steps[named + 1..], [(Step::SyncFolder, place.path().join(POINTS))]);

    // A file of the run itself: its bytes, its name, its folder.
    run.finish().unwrap();
    let steps: Vec<Step> = STEPS.with_borrow_mut(std::mem::take).into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, [Step::SyncFile, Step::Rename, Step::SyncFolder]);
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_link_is_neither_read_nor_written() {
    let place = tempfile::tempdir().unwrap();
    let (path, elsewhere) = (place.path().join("run"), place.path().join("elsewhere"));
    let points = points();
    let run = create(&path, &points, Existing::Refuse).unwrap();
    points.iter().for_each(|point| run.write_point(point).unwrap());
    drop(run);
    let first = path.join(POINTS).join(point_id(&points[0].key));
    fs::rename(&first, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &first).unwrap();
    let why = "it is no folder but a symbolic link";
    let run = RunDir::open(&path).unwrap();
    assert!(
        matches!(&run.status()[0].1, Status::Damaged(what) if what.contains(why)),
        "{:?}",
        run.status()[0]
    );
    assert!(run.read_point(&points[0].key).unwrap_err().to_string().contains(why));
    // A repair puts the point in the place of the link, also where the link leads nowhere.
    for target in [elsewhere.as_path(), Path::new("nowhere")] {
        fs::remove_dir_all(&first).unwrap();
        std::os::unix::fs::symlink(target, &first).unwrap();
        create(&path, &points, Existing::Repair).unwrap().write_point(&points[0]).unwrap();
        assert!(first.symlink_metadata().unwrap().is_dir() && elsewhere.join("point.json").exists());
    }

    for name in [POINTS, "pcap"] {
        let folder = path.join(name);
        let _ = fs::remove_dir_all(&folder);
        std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
        let error = create(&path, &points, Existing::Resume).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(name), "{error}");
        assert_eq!(RunDir::open(&path).is_err(), name == POINTS);
        create(&path, &points, Existing::Replace).unwrap();
        assert!(!folder.is_symlink() && elsewhere.join("point.json").exists(), "{name}");
    }
}

#[test]
fn a_lock_that_is_another_name_of_a_file_leaves_its_content() {
    let place = tempfile::tempdir().unwrap();
    let (path, elsewhere) = (place.path().join("run"), place.path().join("elsewhere"));
    fs::create_dir(&path).unwrap();
    fs::write(&elsewhere, "text").unwrap();
    fs::hard_link(&elsewhere, path.join(LOCK)).unwrap();
    create(&path, &points(), Existing::Refuse).unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "text");
}

#[test]
fn two_writers_do_not_share_a_directory() {
    let place = tempfile::tempdir().unwrap();
    let _held = create(place.path(), &points(), Existing::Refuse).unwrap();
    assert!(matches!(create(place.path(), &points(), Existing::Resume), Err(Error::Busy { .. })));
    assert!(RunDir::open(place.path()).is_ok(), "reading needs no lock");
}

#[test]
fn another_scenario_carrier_seed_or_version_is_a_conflict() {
    let place = tempfile::tempdir().unwrap();
    drop(create(place.path(), &points(), Existing::Refuse).unwrap());
    let changes: [fn(&mut RunPlan); 4] = [
        |plan| plan.scenario.push('#'),
        |plan| plan.carrier = "this kernel".into(),
        |plan| plan.seed = 8,
        |plan| plan.version = "0.2.0".into(),
    ];
    for change in changes {
        let mut plan = plan_of(&points());
        change(&mut plan);
        let error = RunDir::create(place.path(), &plan, Existing::Resume, 0).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
        RunDir::create(place.path(), &plan, Existing::Replace, 0).unwrap();
        drop(create(place.path(), &points(), Existing::Replace).unwrap());
    }
}

#[test]
fn points_of_another_commit_are_told() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let resume = |commit: &str| {
        let plan = RunPlan { commit: Some(commit.into()), ..plan_of(&points) };
        RunDir::create(place.path(), &plan, Existing::Resume, 0).unwrap()
    };
    drop(resume("aaaa"));
    let run = resume("bbbb");
    assert_eq!(run.other_build(), None, "nothing was there");
    run.write_point(&points[0]).unwrap();
    drop(run);
    assert_eq!(resume("bbbb").other_build(), None);
    let warning = "some points were run by a build of bbbb, and others by one of cccc";
    assert!(resume("cccc").other_build().unwrap().starts_with(warning));
    let again = resume("cccc");
    assert_eq!(again.other_build(), None, "said once");
    assert!(again.manifest().warnings[0].starts_with(warning), "and kept for the page");
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_the_run() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = create(&file.join("run"), &points(), Existing::Refuse).unwrap_err();
    assert!(error.to_string().contains("file/run"), "{error}");

    let error = RunDir::create(place.path(), &plan_of(&points()), Existing::Refuse, 0).unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");

    let full = place.path().join("full");
    let error = RunDir::create(&full, &plan_of(&points()), Existing::Refuse, u64::MAX).unwrap_err();
    assert!(error.to_string().starts_with("no room on the disk of"), "{error}");

    let error = RunDir::open(place.path()).unwrap_err();
    assert!(error.to_string().contains("is not a run directory"), "{error}");
}

#[test]
fn shards_merge_into_the_run_that_they_are_parts_of() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let shards: Vec<PathBuf> = (0..2).map(|i| place.path().join(format!("shard{i}"))).collect();
    for (number, shard) in shards.iter().enumerate() {
        let mut plan = plan_of(&points);
        plan.command.push_str(&format!(" --shard {}/2", number + 1));
        plan.shard = Some((number as u32 + 1, 2));
        let run = RunDir::create(shard, &plan, Existing::Refuse, 0).unwrap();
        let mine = points.iter().skip(number).step_by(2);
        mine.for_each(|point| run.write_point(point).unwrap());
    }
    let merged = merge(&place.path().join("all"), &shards, Columns::Csv).unwrap();
    assert_eq!(merged.missing(), Vec::<&PointKey>::new());
    assert_eq!(merged.manifest().command, "plimsoll run test.toml --seed 7");
    let digests = |points: &[PointOutcome]| points.iter().map(|p| p.digest).collect::<Vec<_>>();
    assert_eq!(digests(&merged.read_points().unwrap()), digests(&points));

    // The same point with another result is not silently overwritten.
    let mut other = points[0].clone();
    other.outcome.counters.marks += 1;
    other.digest = Digest::of(&other.outcome);
    RunDir::create(&shards[0], &plan_of(&points), Existing::Resume, 0).unwrap().write_point(&other).unwrap();
    drop(merged);
    let error = merge(&place.path().join("all"), &shards, Columns::Csv).unwrap_err();
    assert!(error.to_string().contains("has digest"), "{error}");
}

#[test]
fn columns_are_named_once_and_documented() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let run = create(place.path(), &points, Existing::Refuse).unwrap();
    run.write_point(&points[0]).unwrap();
    let documented = fs::read_to_string(place.path().join(COLUMNS)).unwrap();
    let folder = place.path().join(POINTS).join(point_id(&points[0].key));
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let header = text.lines().next().unwrap();
            assert!(header.starts_with("variant,replicate,workload.background.load,"), "{header}");
            for column in header.split(',').skip(3) {
                assert!(documented.contains(&format!("`{column}`")), "{column} is not documented");
            }
            let width = header.split(',').count();
            assert!(text.lines().all(|line| line.split(',').count() == width), "{}", path.display());
        }
    }
    assert_eq!(files, 7);

    // A missing threshold is empty, and an estimate that is whole is still not an integer.
    let column = |file: &str, name: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let at = rows.next().unwrap().iter().position(|column| column == name).unwrap();
        rows.map(|row| row[at].clone()).collect()
    };
    assert_eq!(column("series.csv", "ssthresh_bytes")[..2], ["", "9500"]);
    for (file, name) in [("series.csv", "alpha"), ("queues.csv", "mean_bytes")] {
        assert!(column(file, name).iter().all(|value| value.contains(['.', 'e'])), "{name}");
    }
    assert!(column("goodput.csv", "length_ps").iter().all(|length| length == "10000000000"));
}

#[test]
fn every_cell_is_of_its_columns_kind() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    create(place.path(), &points, Existing::Refuse).unwrap().write_point(&points[0]).unwrap();
    let folder = place.path().join(POINTS).join(point_id(&points[0].key));
    let mut kinds = Vec::new();
    for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let text = fs::read_to_string(&entry).unwrap();
        let header = csv::reader(&text).headers().unwrap().clone();
        for row in csv::reader(&text).into_records().map(Result::unwrap) {
            for (name, cell) in header.iter().zip(&row).filter(|(_, cell)| !cell.is_empty()) {
                let kind = columns::column_kind(name);
                let is_number = cell.parse::<f64>().is_ok();
                let fits = match kind {
                    columns::ColumnKind::Text => !is_number || name.starts_with("workload."),
                    columns::ColumnKind::Integer => cell.parse::<i64>().is_ok(),
                    columns::ColumnKind::Float => is_number && cell.contains(['.', 'e']),
                };
                assert!(fits, "{}: {name} has `{cell}`, which is not {kind:?}", entry.display());
                kinds.push(kind);
            }
        }
    }
    for kind in [columns::ColumnKind::Text, columns::ColumnKind::Integer, columns::ColumnKind::Float] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
}

#[test]
fn a_query_that_no_server_has_answered_has_no_fastest_one() {
    let place = tempfile::tempdir().unwrap();
    let mut points = points();
    points.truncate(1);
    points[0].outcome.queries[0].response_min = Span::MAX;
    points[0].digest = Digest::of(&points[0].outcome);
    for &columns in Columns::HERE {
        let folder = place.path().join(format!("{columns:?}"));
        let run =
            RunDir::create(&folder, &RunPlan { columns, ..plan_of(&points) }, Existing::Refuse, 0).unwrap();
        run.write_point(&points[0]).unwrap();
        let read = run.read_point(&points[0].key).unwrap();
        assert_eq!(read.outcome.queries, points[0].outcome.queries, "{columns:?}");
    }
    let point = place.path().join("Csv").join(POINTS).join(point_id(&points[0].key));
    let text = fs::read_to_string(point.join("queries.csv")).unwrap();
    assert!(text.lines().nth(1).unwrap().ends_with(','), "{text}");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_names_the_feature() {
    let place = tempfile::tempdir().unwrap();
    let plan = RunPlan { columns: Columns::Parquet, ..plan_of(&points()) };
    let error =
        RunDir::create(&place.path().join("run"), &plan, Existing::Refuse, 0).unwrap_err().to_string();
    assert!(error.contains("--features parquet") && !place.path().join("run").exists(), "{error}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_reads_back_to_the_same_digests_and_merges_with_csv() {
    let place = tempfile::tempdir().unwrap();
    let points = points();
    let folders = [place.path().join("csv"), place.path().join("parquet")];
    for (folder, columns) in folders.iter().zip([Columns::Csv, Columns::Parquet]) {
        let run =
            RunDir::create(folder, &RunPlan { columns, ..plan_of(&points) }, Existing::Refuse, 0).unwrap();
        let of_the_shard = points.iter().skip(usize::from(columns == Columns::Csv)).step_by(2);
        of_the_shard.for_each(|point| run.write_point(point).unwrap());
        run.finish().unwrap();
    }
    let folder = folders[1].join(POINTS).join(point_id(&points[0].key));
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name == "messages.parquet"), "{names:?}");
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".csv")), "{names:?}");

    for columns in [Columns::Csv, Columns::Parquet] {
        let merged = merge(&place.path().join(format!("{columns:?}")), &folders, columns).unwrap();
        let digests =
            |points: &[PointOutcome]| points.iter().map(|p| Digest::of(&p.outcome)).collect::<Vec<_>>();
        assert_eq!(digests(&merged.read_points().unwrap()), digests(&points));
    }

    // A file that something else has changed is damaged, in the middle or in its length.
    let file = folder.join("messages.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let run = RunDir::open(&folders[1]).unwrap();
    assert!(matches!(run.verify()[0].1, Status::Damaged(_)), "{:?}", run.verify()[0].1);
    fs::write(&file, &bytes[..middle]).unwrap();
    assert!(matches!(run.verify()[0].1, Status::Cut(_)), "{:?}", run.verify()[0].1);
}

#[test]
fn ids_of_points_are_readable_and_differ() {
    let key = |variant: &str, value: &str| PointKey {
        variant: variant.into(),
        sweep: vec![("load".into(), value.into())],
        replicate: 0,
    };
    assert!(point_id(&key("HULL", "0.2")).starts_with("HULL-0.2-r0-"));
    assert_ne!(point_id(&key("a/b", "1")), point_id(&key("a_b", "1")));
    assert!(!point_id(&key("../..", "1")).contains('/'));
    assert!(!point_id(&key(".hidden", "1")).starts_with('.'));
}

/// Not a test by itself: the child of the next one, which ends it by SIGKILL.
#[test]
#[ignore = "the next test runs it as its child"]
fn writes_until_killed() {
    let path = std::env::var("PLIMSOLL_TEST_WRITE_TO").expect("the next test says where");
    let points = synthetic::experiment(&small(), &["TCP"], &[], 400, 7);
    let run = create(Path::new(&path), &points, Existing::Refuse).unwrap();
    for point in &points {
        run.write_point(point).unwrap();
        println!("kept {}", point_id(&point.key));
    }
}

#[test]
fn a_kill_at_any_moment_loses_no_finished_point() {
    use std::io::{BufRead, BufReader};
    let place = tempfile::tempdir().unwrap();
    let points = synthetic::experiment(&small(), &["TCP"], &[], 400, 7);
    for round in 0..5 {
        let path = place.path().join(format!("run{round}"));
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "run_dir::tests::writes_until_killed", "--ignored", "--nocapture"])
            .env("PLIMSOLL_TEST_WRITE_TO", &path)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let kept = lines.filter_map(|line| Some(line.split_once("kept ")?.1.to_owned()));
        // Another moment in each round: the child is somewhere inside the next point.
        let seen: Vec<String> = kept.take(3 + 17 * round).collect();
        child.kill().unwrap();
        child.wait().unwrap();

        let run = create(&path, &points, Existing::Resume).unwrap();
        let done: Vec<&str> = run
            .status()
            .into_iter()
            .filter_map(|(point, status)| match status {
                Status::Done(_) => Some(point.id.as_str()),
                Status::Missing => None,
                Status::Cut(what) | Status::Damaged(what) => panic!("{} is damaged: {what}", point.id),
            })
            .collect();
        assert!(seen.iter().all(|id| done.contains(&id.as_str())), "{seen:?} against {done:?}");
        assert_eq!(run.read_points().unwrap().len(), done.len());
    }
}

#[test]
fn counters_are_written_by_name_and_a_later_one_only_where_it_has_counted() {
    let json = |counters: &Counters| serde_json::to_string(counters).unwrap();
    let text = "{\"packets_sent\":4,\"packets_delivered\":0,\"nic_drops\":0,\"switch_drops\":0,\"link_drops\":0,\
                \"no_route_drops\":0,\"circuit_drops\":0,\"packets_in_flight\":0,\"marks\":0,\"packet_hops\":0,\
                \"events\":0,\"retransmissions\":0,\"timeouts\":0}";
    let none = Counters { packets_sent: 4, ..Counters::default() };
    assert_eq!(json(&none), text);
    assert_eq!(serde_json::from_str::<Counters>(text).unwrap(), none);
    let one = Counters { host_drops: 1, ..none };
    assert!(json(&one).contains("\"packets_delivered\":0,\"host_drops\":1,\"nic_drops\""), "{}", json(&one));
    assert_eq!(serde_json::from_str::<Counters>(&json(&one)).unwrap(), one);
    let about = documentation();
    for counter in Counters::ALL {
        assert!(about.contains(&format!("* `{}`: {}\n", counter.name, counter.about.trim())), "{about}");
    }
}
