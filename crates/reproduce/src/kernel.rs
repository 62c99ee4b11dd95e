//! Runs between network namespaces: this kernel's TCP, and the simulator's fabric by the wall's clock.

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;

/// Checks that this system can carry `model`; the error names the missing part.
#[cfg(target_os = "linux")]
pub(crate) fn check(model: &Model) -> Result<(), String> {
    plimsoll_linux::check(model, &options()).map_err(|error| error.to_string())
}

/// Carries `model`, as `plimsoll emulate` does; `None` if it was cancelled.
#[cfg(target_os = "linux")]
pub(crate) fn carry(model: &Model, goes_on: &dyn Fn() -> bool) -> Result<Option<Outcome>, String> {
    let (mut asked, mut stopped) = (0u32, false);
    // Asked at every turn of the fabric's loop, which has no time for answers.
    let stops = || {
        asked = asked.wrapping_add(1);
        if asked.is_multiple_of(TURNS) {
            stopped |= !goes_on();
        }
        stopped
    };
    let emulated = plimsoll_linux::emulate(model, &options(), stops).map_err(|error| error.to_string())?;
    Ok((!stopped).then_some(emulated.outcome))
}

#[cfg(target_os = "linux")]
fn options() -> plimsoll_linux::Options {
    plimsoll_linux::Options { spin: SPIN, ..plimsoll_linux::Options::default() }
}

/// How long before a departure the fabric stops sleeping: the default of `plimsoll emulate`.
#[cfg(target_os = "linux")]
const SPIN: plimsoll_units::Span = plimsoll_units::Span::from_us(100);
/// Turns of the fabric's loop between two looks at whether to go on: some tenths of a second of traffic.
#[cfg(target_os = "linux")]
const TURNS: u32 = 1 << 12;

#[cfg(not(target_os = "linux"))]
pub(crate) fn check(_: &Model) -> Result<(), String> {
    Err("only Linux has the network namespaces that this needs".to_owned())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn carry(model: &Model, _: &dyn Fn() -> bool) -> Result<Option<Outcome>, String> {
    check(model).map(|()| None)
}
