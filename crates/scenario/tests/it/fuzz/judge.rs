//! What holds for the errors of any text.

use plimsoll_scenario::ScenarioError;

/// The name under which a fuzzer's text is parsed.
pub const FILE: &str = "fuzz.toml";

/// There is an error, and each has a place. One in the text itself or in an override shows its line; a file that the
/// scenario names may be of any kind, of which nothing is shown.
pub fn judge_errors(errors: &[ScenarioError]) {
    assert!(!errors.is_empty());
    for error in errors {
        assert!(error.line > 0 && error.column > 0 && !error.file.is_empty(), "{error:?}");
        let is_named = ![FILE, "--set"].contains(&error.file.as_str());
        assert!(error.underlined > 0 || (is_named && error.source_line.is_empty()), "{error:?}");
        assert!(error.to_string().contains("-->"));
    }
}
