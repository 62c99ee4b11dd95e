//! [`Request`]: a request to a partition, as it is parsed and as it crosses from one thread to another.

use std::borrow::Cow;
use std::collections::HashSet;

use plimsoll_chronos::KeyHash;

use crate::document::Term;
use crate::rank::Mode;

/// A request to the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// A word's postings, as memcached's `get` answers.
    Get(Term<'a>),
    /// Sets the value of a word.
    Set {
        /// The word that is set.
        term: Term<'a>,
        /// The flags that the client gave.
        flags: u32,
        /// The value that the client gave.
        value: &'a [u8],
        /// True if it is answered.
        quiet: bool,
    },
    /// Removes the value of a word.
    Forget {
        /// The word that is removed.
        term: Term<'a>,
        /// True if it is answered.
        quiet: bool,
    },
    /// Returns the best documents of a query.
    Search(Query<'a>),
    /// The document with this number has changed in the catalogue.
    Apply {
        /// The number of the document.
        number: u32,
        /// The answer once all partitions have done it.
        answer: SuccessForm,
    },
    /// Counts words and postings.
    Count(SuccessForm),
}

/// The terms of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query<'a> {
    /// Which documents match.
    pub mode: Mode,
    /// The largest number of results.
    pub limit: u32,
    /// The form of the response.
    pub form: ResponseForm,
    /// The different words, each with its length before it (1 byte).
    pub words: Cow<'a, [u8]>,
}

/// The answer to a request whose only result is its success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SuccessForm {
    /// No answer (`noreply`).
    Quiet,
    /// The answer is memcached's: `STORED`, or statistics.
    Stored,
    /// The answer is memcached's DELETED.
    Deleted,
    /// The answer is an HTTP response.
    Http {
        /// The outcome for the document.
        result: Outcome,
        /// The form of the response.
        form: ResponseForm,
    },
}

/// The form of an HTTP response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResponseForm {
    /// The connection ends with the response.
    pub close: bool,
    /// The request was HEAD, so the response has the head alone of that to GET (RFC 9110, section 9.3.2).
    pub head_only: bool,
}

impl ResponseForm {
    /// Returns the form as two bits.
    fn code(self) -> u8 {
        u8::from(self.close) | u8::from(self.head_only) << 1
    }

    fn from_code(code: u8) -> ResponseForm {
        ResponseForm { close: code & 1 != 0, head_only: code & 2 != 0 }
    }
}

/// The outcome of a change of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The document did not exist before.
    Created,
    /// A document of its name existed.
    Replaced,
    /// The document was deleted.
    Deleted,
}

impl<'a> Query<'a> {
    /// The most different words of a query: ranking takes time for each.
    pub const WORDS_MAX: usize = 64;

    /// Creates a query for the different words of `text`; None if there are more than [`Query::WORDS_MAX`].
    pub fn new(text: &str, mode: Mode, limit: u32, form: ResponseForm) -> Option<Query<'static>> {
        let mut seen = HashSet::new();
        let mut words = Vec::new();
        for word in crate::words::words(text) {
            let start = words.len();
            words.push(u8::try_from(word.len()).expect("words are at most 250 bytes"));
            words.extend(word.as_bytes());
            if !seen.insert(word) {
                words.truncate(start);
            }
            if seen.len() > Query::WORDS_MAX {
                return None;
            }
        }
        Some(Query { mode, limit, form, words: Cow::Owned(words) })
    }

    /// Iterates over the words of the query.
    pub fn terms(&self, hash: &KeyHash) -> impl Iterator<Item = Term<'_>> {
        let mut rest = &self.words[..];
        std::iter::from_fn(move || {
            let (&length, after) = rest.split_first()?;
            let (word, after) = after.split_at(usize::from(length));
            rest = after;
            Some(Term::new(hash, word))
        })
    }
}

impl Request<'_> {
    /// Appends the request to `message`.
    pub fn encode(&self, message: &mut Vec<u8>) {
        match self {
            Request::Get(term) => {
                message.push(GET);
                message.extend(term.word);
            }
            Request::Set { term, flags, value, quiet } => {
                message.extend([SET, u8::from(*quiet)]);
                message.extend(flags.to_le_bytes());
                message.push(u8::try_from(term.word.len()).expect("keys are at most 250 bytes"));
                message.extend(term.word);
                message.extend(*value);
            }
            Request::Forget { term, quiet } => {
                message.extend([FORGET, u8::from(*quiet)]);
                message.extend(term.word);
            }
            Request::Search(query) => {
                message.extend([SEARCH, u8::from(query.mode == Mode::Or), query.form.code()]);
                message.extend(query.limit.to_le_bytes());
                message.extend(&*query.words);
            }
            Request::Apply { number, answer } => {
                message.extend([APPLY, answer.code()]);
                message.extend(number.to_le_bytes());
            }
            Request::Count(answer) => message.extend([COUNT, answer.code()]),
        }
    }
}

impl<'a> Request<'a> {
    /// Returns the request that [`Request::encode`] wrote; None for anything else.
    pub fn decode(message: &'a [u8], hash: &KeyHash) -> Option<Request<'a>> {
        let (&kind, rest) = message.split_first()?;
        Some(match kind {
            GET => Request::Get(Term::new(hash, rest)),
            SET => {
                let (&quiet, rest) = rest.split_first()?;
                let (flags, rest) = rest.split_first_chunk()?;
                let (&length, rest) = rest.split_first()?;
                let (word, value) = rest.split_at_checked(usize::from(length))?;
                let (term, flags) = (Term::new(hash, word), u32::from_le_bytes(*flags));
                Request::Set { term, flags, value, quiet: quiet != 0 }
            }
            FORGET => {
                let (&quiet, word) = rest.split_first()?;
                Request::Forget { term: Term::new(hash, word), quiet: quiet != 0 }
            }
            SEARCH => {
                let (&[or, form], rest) = rest.split_first_chunk()?;
                let (limit, words) = rest.split_first_chunk()?;
                Request::Search(Query {
                    mode: if or != 0 { Mode::Or } else { Mode::And },
                    limit: u32::from_le_bytes(*limit),
                    form: ResponseForm::from_code(form),
                    words: Cow::Borrowed(words),
                })
            }
            APPLY => {
                let (&answer, number) = rest.split_first()?;
                let number = u32::from_le_bytes(*number.first_chunk()?);
                Request::Apply { number, answer: SuccessForm::from_code(answer)? }
            }
            COUNT => Request::Count(SuccessForm::from_code(*rest.first()?)?),
            _ => return None,
        })
    }
}

impl SuccessForm {
    fn code(self) -> u8 {
        match self {
            SuccessForm::Quiet => 0,
            SuccessForm::Stored => 1,
            SuccessForm::Deleted => 2,
            SuccessForm::Http { result, form } => {
                let result = match result {
                    Outcome::Created => 4,
                    Outcome::Replaced => 8,
                    Outcome::Deleted => 12,
                };
                result | form.code()
            }
        }
    }

    fn from_code(code: u8) -> Option<SuccessForm> {
        let result = match code & !3 {
            4 => Outcome::Created,
            8 => Outcome::Replaced,
            12 => Outcome::Deleted,
            _ => {
                return match code {
                    0 => Some(SuccessForm::Quiet),
                    1 => Some(SuccessForm::Stored),
                    2 => Some(SuccessForm::Deleted),
                    _ => None,
                };
            }
        };
        Some(SuccessForm::Http { result, form: ResponseForm::from_code(code) })
    }
}

const GET: u8 = 0;
const SET: u8 = 1;
const FORGET: u8 = 2;
const SEARCH: u8 = 3;
const APPLY: u8 = 4;
const COUNT: u8 = 5;
