//! The process ends in the middle of an apply, at every moment that there is: a rollback restores the host.

use std::env;

use plimsoll_host::{Facts as _, Host, Kernel, Places};

use crate::snapshot::{assert_as_before, snapshot};
use crate::world::{EVERYTHING, World};

const END_AT: &str = "PLIMSOLL_TEST_END_AT";

/// All of it, and a pacer by a filter where this kernel can.
fn everything() -> String {
    let shapers = if Host.has_shapers() { "departure = 'tbf'\n" } else { "" };
    let pacer =
        format!("[pacer]\ndevice = 'near'\nrate = '1Gbps'\ncgroups = ['/{{world}}/paced']\n{shapers}");
    if Host.has_fq() || Host.has_shapers() { format!("{EVERYTHING}{pacer}") } else { EVERYTHING.to_owned() }
}

#[test]
fn a_rollback_restores_the_host_wherever_the_apply_ended() {
    let path = "crash::a_rollback_restores_the_host_wherever_the_apply_ended";
    let Some(world) = World::enter(path) else { return };
    let steps = world.plan(&everything()).steps.len();
    assert!(steps >= 9, "{steps} steps show little");
    let before = snapshot(&world);
    // On disk and nothing done; then begun and done for each step.
    for moment in 0..=2 * steps {
        let ended = world.again("crash::an_apply_that_ends", &[(END_AT, moment.to_string())]);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code().is_none(), "it was to be aborted at moment {moment}: {said}");
        let applied = world.status();
        assert_eq!(applied.complete, moment + 1 >= 2 * steps, "moment {moment}");
        let back = world.rollback().expect("it was applied in part");
        assert_eq!(back.left, Vec::<String>::new(), "moment {moment}");
        assert_as_before(&world, &before, &format!("the apply ended at moment {moment} of {}", 2 * steps));
        assert_eq!(world.rollback(), None);
    }
}

/// Not a test by itself: applies, and ends the process at a moment.
#[test]
#[ignore = "no test by itself: it ends its process, and another test starts it in one of its own"]
fn an_apply_that_ends() {
    let Ok(moment) = env::var(END_AT) else { return };
    let (world, moment): (World, usize) = (World::enter("").unwrap(), moment.parse().unwrap());
    let mut seen = 0;
    let plan = world.plan(&everything());
    let mut end = |_| {
        if seen == moment {
            std::process::abort();
        }
        seen += 1;
    };
    plimsoll_host::apply(&plan, &Places::default(), &mut Kernel, false, &mut end).unwrap();
}
