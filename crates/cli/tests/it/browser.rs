//! A headless Chromium, driven by its debugging protocol over a pair of pipes: no port, no driver program.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::Place;

/// A page in a browser of its own.
pub struct Browser {
    program: Child,
    to: File,
    from: BufReader<File>,
    session: Option<String>,
    last: u64,
}

impl Browser {
    /// Opens a page of `width` by `height` pixels; `None` without Chromium.
    pub fn open(place: &Place, url: &str, (width, height): (u32, u32)) -> Option<Browser> {
        Command::new("chromium").arg("--version").output().ok().filter(|output| output.status.success())?;
        for pipe in ["to", "from"] {
            assert!(Command::new("mkfifo").arg(place.path(pipe)).status().unwrap().success());
        }
        // The browser reads from descriptor 3 and writes to 4.
        let line = format!(
            "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
            --window-size={width},{height} \
             --user-data-dir=profile --remote-debugging-pipe about:blank 3<to 4>from"
        );
        let program = Command::new("sh")
            .args(["-c", &line])
            .current_dir(place.path("."))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(place.path("to")).unwrap();
        let from = BufReader::new(File::open(place.path("from")).unwrap());
        let mut browser = Browser { program, to, from, session: None, last: 0 };
        let target = browser.call("Target.createTarget", &json!({ "url": url }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        Some(browser)
    }

    /// Calls a method of the protocol.
    #[track_caller]
    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.ask(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method of the protocol, which may fail.
    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser is there");
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == json!(self.last) {
                let error = &answer["error"];
                return if error.is_null() { Ok(answer["result"].clone()) } else { Err(error.clone()) };
            }
        }
    }

    /// Returns the value of an expression of the page's script.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let began = Instant::now();
        // The answer comes once the page has had a turn. A page that is being loaded has no elements, or no script.
        let guarded = format!("try {{ done(Boolean({expression})); }} catch {{ done(false); }}");
        let later = format!("new Promise((done) => setTimeout(() => {{ {guarded} }}, 20))");
        let asked = json!({ "returnByValue": true, "awaitPromise": true, "expression": later });
        while !self
            .ask("Runtime.evaluate", &asked)
            .is_ok_and(|answer| answer["result"]["value"] == json!(true))
        {
            assert!(began.elapsed() < Duration::from_secs(60), "{expression} is never true");
        }
    }

    /// Loads the page again.
    pub fn reload(&mut self) {
        self.call("Page.reload", &json!({}));
    }

    /// Presses a key and releases it.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", &json!({ "type": kind, "key": key, "code": key }));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
