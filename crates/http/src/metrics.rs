//! OpenMetrics text ([`Exposition`]), in the format of the specification 1.0.0, and a server of it at `GET /metrics`,
//! on threads of its own. Nothing is authenticated.

mod exposition;
mod process;

use std::io;
use std::thread;

use crate::{HttpAnswer, Limits, Listener, PATIENCE, Request};

pub use exposition::{Exposition, MetricKind};
pub use process::process;

/// Serves metrics as [`serve`] does, on a thread that ends with the process.
///
/// # Errors
/// Returns an error if the system has no thread.
pub fn spawn(
    listener: Listener,
    text: impl Fn() -> Result<String, String> + Send + Sync + 'static,
) -> io::Result<()> {
    let serving = move || {
        // Without the listener there are no metrics; the server keeps running.
        let _ = serve(&listener, &text);
    };
    thread::Builder::new().name("metrics".to_owned()).spawn(serving).map(drop)
}

/// Answers requests for `/metrics` with the result of `text`, until the listener fails.
///
/// # Errors
/// Returns the error of the listener.
pub fn serve(listener: &Listener, text: &(dyn Fn() -> Result<String, String> + Sync)) -> io::Result<()> {
    crate::serve(listener, LIMITS, &|request| answer(request, text))
}

fn answer(request: &Request, text: &dyn Fn() -> Result<String, String>) -> HttpAnswer {
    if request.path() != "/metrics" {
        return HttpAnswer::text("404 Not Found", "GET /metrics\n");
    }
    if !["GET", "HEAD"].contains(&request.method()) {
        let headers = &[("Allow", "GET, HEAD")];
        return HttpAnswer { headers, ..HttpAnswer::text("405 Method Not Allowed", "GET /metrics\n") };
    }
    match text() {
        Ok(body) => HttpAnswer { kind: OPEN_METRICS, ..HttpAnswer::text("200 OK", body) },
        Err(error) => HttpAnswer::text("500 Internal Server Error", format!("{error}\n")),
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// A scrape has no body; a client that sends one gets an error.
const LIMITS: Limits = Limits { body: 8 * 1024, connections: 8, patience: PATIENCE };

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
