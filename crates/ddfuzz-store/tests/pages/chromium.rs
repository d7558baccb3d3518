//! Chromium without a window, driven by its DevTools protocol over a pipe: one process for all pages
//! of a test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::needs;

/// Longest time until an answer of Chromium, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// How a page is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Width of the window, in pixels.
    pub width: u32,
    pub dark: bool,
    pub print: bool,
}

pub struct Chromium {
    process: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<Value>,
    /// Events that came while an answer was awaited.
    events: Vec<Value>,
    last: u64,
    session: Option<Value>,
    folder: tempfile::TempDir,
}

impl Chromium {
    /// Starts Chromium; `None`, and said so, where it is not installed.
    pub fn start() -> Option<Chromium> {
        let program = needs::program("chromium")?;
        let folder = tempfile::tempdir().expect("a directory");
        // The protocol is spoken on the descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
            ])
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--disable-breakpad",
                "--remote-debugging-pipe",
            ])
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .arg("about:blank")
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("chromium");
        let requests = process.stdin.take();
        let answers = read(process.stdout.take().expect("a pipe"));
        let (events, last, session) = (Vec::new(), 0, None);
        let mut chromium = Chromium {
            process,
            requests,
            answers,
            events,
            last,
            session,
            folder,
        };
        let made = chromium.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": made["targetId"], "flatten": true});
        chromium.session =
            Some(chromium.call("Target.attachToTarget", attach)["sessionId"].clone());
        for domain in ["Page", "Network", "Runtime"] {
            chromium.call(&format!("{domain}.enable"), json!({}));
        }
        chromium.call(
            "Emulation.setFocusEmulationEnabled",
            json!({"enabled": true}),
        );
        Some(chromium)
    }

    /// Sends a request of the protocol, and returns its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut request = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = session.clone();
        }
        let pipe = self.requests.as_mut().expect("a pipe");
        pipe.write_all(format!("{request}\0").as_bytes())
            .expect("a request");
        loop {
            let mut message = self.answers.recv_timeout(PATIENCE).expect("an answer");
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    /// Shows a page, and waits until it is loaded.
    pub fn show(&mut self, page: &str, look: Look, scripts: bool) {
        let file = self.folder.path().join("page.html");
        fs::write(&file, page).expect("a file");
        let (width, dark) = (look.width, if look.dark { "dark" } else { "light" });
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let media = if look.print { "print" } else { "" };
        let scheme = json!([{"name": "prefers-color-scheme", "value": dark}]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"media": media, "features": scheme}),
        );
        self.call(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": !scripts}),
        );
        self.events.clear();
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", file.display())}),
        );
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let event = self.answers.recv_timeout(PATIENCE).expect("a loaded page");
            self.events.push(event);
        }
    }

    /// Returns the addresses that the page has asked for, the first of which is its own.
    pub fn requested(&self) -> Vec<&str> {
        let sent = self.events.iter();
        let sent = sent.filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str())
            .collect()
    }

    /// Evaluates an expression in the page; the page's policy and switched off scripts do not hinder
    /// that.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true});
        let mut told = self.call("Runtime.evaluate", params);
        assert!(told["exceptionDetails"].is_null(), "{told}");
        told["result"]["value"].take()
    }

    /// Presses and releases a key as a user does: `Tab` or `Enter`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = if key == "Tab" { (9, "") } else { (13, "\r") };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
                "text": text, "unmodifiedText": text});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Writes a picture of the window into the directory of temporary files of Cargo.
    pub fn picture(&mut self, name: &str) {
        let height = self.evaluate("Math.min(document.documentElement.scrollHeight, 3000)");
        let width = self.evaluate("document.documentElement.clientWidth");
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let shot = self.call("Page.captureScreenshot", json!({}));
        let bytes: ddfuzz_minimize::log::Base64 =
            serde_json::from_value(shot["data"].clone()).expect("base64");
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png"));
        assert!(bytes.0.starts_with(b"\x89PNG"), "{name}");
        fs::write(file, bytes.0).expect("a picture");
    }
}

/// Reads messages of the protocol, each of which ends with a zero byte, in a thread.
fn read(pipe: ChildStdout) -> Receiver<Value> {
    let (send, messages) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(pipe);
        let mut message = Vec::new();
        while from.read_until(0, &mut message).is_ok_and(|read| read > 0) {
            message.pop();
            let whole: Value = serde_json::from_slice(&message).expect("JSON");
            message.clear();
            if send.send(whole).is_err() {
                return;
            }
        }
    });
    messages
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It ends when its pipe does.
        drop(self.requests.take());
        for _ in 0..500 {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
