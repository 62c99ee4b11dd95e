//! Books on their way from an agent to its caller, with histograms in HdrHistogram's compressed form, in base64.

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use plimsoll_units::Span;

use super::SentBook;
use crate::book::Book;

impl SentBook {
    pub(super) fn of(book: &Book) -> SentBook {
        SentBook {
            counts: book.counts,
            latency: encode(&book.latency),
            given_up: encode(&book.given_up),
            lag: encode(&book.lag),
            examples: book.examples.clone(),
            busy_ps: book.busy.as_ps(),
            waited_ps: book.waited.as_ps(),
        }
    }

    /// Returns the book that was sent.
    ///
    /// # Errors
    /// Returns an error if a histogram cannot be decoded, or its bounds are not a book's.
    pub(super) fn open(&self) -> anyhow::Result<Book> {
        Ok(Book {
            counts: self.counts,
            latency: decode(&self.latency).context("latency")?,
            given_up: decode(&self.given_up).context("given-up")?,
            lag: decode(&self.lag).context("lag")?,
            examples: self.examples.clone(),
            busy: Span::from_ps(self.busy_ps),
            waited: Span::from_ps(self.waited_ps),
        })
    }
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a histogram of these bounds fits into memory");
    STANDARD.encode(bytes)
}

fn decode(text: &str) -> anyhow::Result<Histogram<u64>> {
    let bytes = STANDARD.decode(text).context("no base64")?;
    let found: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| anyhow::anyhow!("no histogram: {error}"))?;
    let ours = Book::default().latency;
    ensure!(
        (found.low(), found.high(), found.sigfig()) == (ours.low(), ours.high(), ours.sigfig()),
        "a histogram has other bounds"
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_arrives_as_it_was_sent() {
        let mut book = Book::default();
        for us in [1, 90, 1_000, 70_000_000] {
            Book::record(&mut book.latency, Span::from_us(us));
        }
        Book::record(&mut book.given_up, Span::from_ms(500));
        (book.counts.due, book.busy) = (5, Span::from_ms(7));
        book.examples.push("connection 1: closed".to_owned());
        let opened = SentBook::of(&book).open().unwrap();
        assert_eq!(opened.latency, book.latency);
        assert_eq!(opened.given_up, book.given_up);
        assert_eq!((opened.counts, opened.busy, opened.examples), (book.counts, book.busy, book.examples));
    }

    #[test]
    fn a_damaged_histogram_is_an_error() {
        let mut sent = SentBook::of(&Book::default());
        sent.lag = "AAAA".to_owned();
        assert!(format!("{:#}", sent.open().unwrap_err()).starts_with("lag: no histogram"));
        sent.lag = encode(&Histogram::new_with_bounds(1, 1_000, 2).unwrap());
        assert!(format!("{:#}", sent.open().unwrap_err()).contains("other bounds"));
    }
}
