//! Tests that the script of `plimsoll sbatch` runs all points and merges them, with a script instead of Slurm's sbatch.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::{Place, SWEEP};

/// Runs a submitted script at once: each job of its array, or the one job; an array's jobs in the wrong order.
const SBATCH: &str = r#"#!/bin/sh
echo "$@" >> calls
cat > job
tasks=$(sed -n 's/^#SBATCH --array=1-//p' job)
task=${tasks:-1}
while [ "$task" -ge 1 ]; do
  SLURM_ARRAY_TASK_ID=$task sh job > "log-$task" 2>&1 || { cat "log-$task" >&2; exit 1; }
  task=$((task - 1))
done
echo "17;cluster"
"#;

#[test]
fn the_script_gives_the_result_of_one_machine() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    let short = ["sweep.toml", "--set", "run.duration=0.05s"];
    let whole =
        place.plimsoll(&[&["run"], &short[..], &["--format", "json", "--out", "one"]].concat()).json();
    let printed =
        place.plimsoll(&[&["sbatch"], &short[..], &["--points-per-task", "3", "--out", "of/it"]].concat());
    place.write("submit.sh", &printed.ends_with(0).stdout);
    place.write("sbatch", SBATCH);
    std::fs::set_permissions(place.path("sbatch"), std::fs::Permissions::from_mode(0o755)).unwrap();

    let programs = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let submitted = std::process::Command::new("sh")
        .arg("submit.sh")
        .env("PATH", format!("{}:{}:{path}", place.path("").display(), programs.display()))
        .current_dir(place.path(""))
        .output()
        .unwrap();
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    assert_eq!(place.read("calls"), "--parsable\n--dependency=afterok:17 --kill-on-invalid-dep=yes\n");
    // Of eight points, three shards have three, three and two.
    for task in ["1", "2", "3"] {
        assert!(place.path(&format!("of/it-shard-{task}-of-3/manifest.json")).is_file(), "{task}");
    }
    let again = place.plimsoll(&[&["run"], &short[..], &["--format", "json", "--out", "of/it"]].concat());
    let again = again.says("8 of 8 points are finished already").json();
    assert_eq!(again["digest"], whole["digest"]);
}

#[test]
fn an_array_that_slurm_refuses_by_default_has_a_warning_with_the_remedy() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    let many = ["sbatch", "sweep.toml", "--replicates", "200", "--points-per-task", "1", "--", "--time=10"];
    let ran = place.plimsoll(&many).ends_with(0);
    let ran = ran
        .says("an array of 1600 jobs is longer than Slurm's default of 1000")
        .says("`--points-per-task 2`");
    ran.prints("#SBATCH --array=1-1600").prints("#SBATCH --time=10");
    place.plimsoll(&["sbatch", "sweep.toml"]).ends_with(2).says("--points-per-task").prints_nothing();
}
