//! [`Gate`]: the checks that a request to this server has to pass.
//!
//! The server is for the browser of the user who started it. It listens on loopback, where every other user and every
//! web page that the browser has open can reach it too, so a request needs three things:
//!
//! * the token of this start, which only the printed address has: 128 random bits, compared in constant time;
//! * a `Host` that names loopback, so that a page under a foreign name that resolves to this machine (DNS rebinding)
//!   reads nothing;
//! * if it changes something, an `Origin` that is this server, so that no other page can send it.

use subtle::ConstantTimeEq as _;

/// The token and the port of one server, which distinguish its own page from all other clients.
#[derive(Clone, Debug)]
pub struct Gate {
    token: String,
    port: u16,
}

/// The headers of a request that name its source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
    pub token: Option<&'a str>,
    /// Whether the request changes something; it then needs an `Origin` header that is this page.
    pub changes: bool,
}

/// The check that a request fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    Token,
    Host,
    Origin,
}

impl Refusal {
    /// Returns the text of the refusal, which names the remedy.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::Token => {
                "the token is missing or wrong: open the address that `plimsoll explore` has printed\n"
            }
            Refusal::Host => {
                "the host is not this machine: open the address that `plimsoll explore` has printed\n"
            }
            Refusal::Origin => "the request is from another page\n",
        }
    }
}

impl Gate {
    /// Makes the rules of a server on `port`, with a new token.
    ///
    /// # Errors
    /// Returns an error if the system gives no random numbers.
    pub fn new(port: u16) -> Result<Gate, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Gate { token: bytes.iter().map(|byte| format!("{byte:02x}")).collect(), port })
    }

    /// Returns the address of the page.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Checks a request.
    ///
    /// # Errors
    /// Returns the first reason to refuse it.
    pub fn check(&self, request: Credentials<'_>) -> Result<(), Refusal> {
        let is_ours = |host: &str| self.hosts().any(|ours| ours == host);
        if !request.host.is_some_and(is_ours) {
            return Err(Refusal::Host);
        }
        // A request from one of our own pages has our own origin, and a request without an origin is not from a page.
        let origin = request.origin.map(|origin| origin.strip_prefix("http://").is_some_and(is_ours));
        if origin == Some(false) || request.changes && origin.is_none() {
            return Err(Refusal::Origin);
        }
        let token = request.token.unwrap_or_default();
        if !bool::from(token.as_bytes().ct_eq(self.token.as_bytes())) {
            return Err(Refusal::Token);
        }
        Ok(())
    }

    fn hosts(&self) -> impl Iterator<Item = String> + '_ {
        ["127.0.0.1", "localhost", "[::1]"].into_iter().map(|name| format!("{name}:{}", self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_needs_token_host_and_origin() {
        let gate = Gate { token: "0123456789abcdef".to_owned(), port: 8080 };
        let ours = Credentials {
            host: Some("127.0.0.1:8080"),
            token: Some("0123456789abcdef"),
            ..Default::default()
        };
        let post = Credentials { origin: Some("http://127.0.0.1:8080"), changes: true, ..ours };
        let cases = [
            (ours, Ok(())),
            (Credentials { host: Some("localhost:8080"), ..ours }, Ok(())),
            (Credentials { host: Some("[::1]:8080"), ..ours }, Ok(())),
            (Credentials { host: None, ..ours }, Err(Refusal::Host)),
            (Credentials { host: Some("127.0.0.1"), ..ours }, Err(Refusal::Host)),
            (Credentials { host: Some("127.0.0.1:80"), ..ours }, Err(Refusal::Host)),
            (Credentials { host: Some("evil.example:8080"), ..ours }, Err(Refusal::Host)),
            (Credentials { token: None, ..ours }, Err(Refusal::Token)),
            (Credentials { token: Some(""), ..ours }, Err(Refusal::Token)),
            (Credentials { token: Some("0123456789abcdee"), ..ours }, Err(Refusal::Token)),
            (Credentials { token: Some("0123456789abcdef0"), ..ours }, Err(Refusal::Token)),
            (Credentials { origin: Some("http://evil.example"), ..ours }, Err(Refusal::Origin)),
            (post, Ok(())),
            (Credentials { origin: None, ..post }, Err(Refusal::Origin)),
            (Credentials { origin: Some("null"), ..post }, Err(Refusal::Origin)),
            (Credentials { origin: Some("http://127.0.0.1:9090"), ..post }, Err(Refusal::Origin)),
            (Credentials { origin: Some("https://127.0.0.1:8080"), ..post }, Err(Refusal::Origin)),
        ];
        for (request, expected) in cases {
            assert_eq!(gate.check(request), expected, "{request:?}");
        }
    }

    #[test]
    fn every_start_has_another_token() {
        let tokens = [Gate::new(1), Gate::new(1)].map(|gate| gate.unwrap().token);
        assert!(tokens[0] != tokens[1] && tokens.iter().all(|token| token.len() == 32), "{tokens:?}");
    }
}
