//! The examples say what `docs/extending.md` says they do.

use std::process::Command;

#[test]
fn the_results_are_those_of_the_page() {
    let page = include_str!("../../docs/extending.md");
    for program in
        [env!("CARGO_BIN_EXE_codel"), env!("CARGO_BIN_EXE_vegas"), env!("CARGO_BIN_EXE_two_choices")]
    {
        let output = Command::new(program).output().expect("an example starts");
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success() && !said.is_empty(), "{program}: {}", output.status);
        for line in said.lines() {
            assert!(page.lines().any(|other| other == line), "{program}: {line}");
        }
    }
}
