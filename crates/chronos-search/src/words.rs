//! Words of a text by Unicode's word boundaries (UAX #29), in lower case.
//!
//! A word has a letter or a digit: "don't", "3.14" and "naïve" are words, "--" is not. The same letters in another
//! normalisation form are another word. Words of more than [`WORD_BYTES_MAX`] bytes are left out: no key of memcached
//! could ask for them.

use unicode_segmentation::UnicodeSegmentation;

/// Bytes of the longest word: memcached's longest key.
pub const WORD_BYTES_MAX: usize = 250;

/// Returns the words of `text`, in order, with repetitions.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.unicode_words().map(str::to_lowercase).filter(|word| word.len() <= WORD_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unicodes() {
        let long = "x".repeat(251);
        let cases: &[(&str, &[&str])] = &[
            (
                "The quick (\"brown\") fox can't jump 32.3 feet",
                &["the", "quick", "brown", "fox", "can't", "jump", "32.3", "feet"],
            ),
            ("ÄRGER straße ΣΟΦΟΣ", &["ärger", "straße", "σοφος"]),
            ("a-b_c  -- \u{0} ...", &["a", "b_c"]),
            ("日本", &["日", "本"]),
            (&long, &[]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text).collect::<Vec<_>>(), *expected, "{text:?}");
        }
    }
}
