//! A campaign to show.

use std::time::Duration;

use ddfuzz::campaign::{Phase, Progress};
use ddfuzz::cli::ui::campaign::{Heading, Palette, ScreenModel, draw};
use ddfuzz::report::{GroupView, Trace};
use ddfuzz::store::{Kind, Minimized, Proved};
use ddfuzz::triage::{Class, Key, Severity};
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use serde_json::json;

/// A group that has not been minimized: the first `size` bytes are left of 40,000.
pub fn view(class: &str, size: usize) -> GroupView {
    let (major, minor) = (Key::of([class.as_bytes()]), Key::of([b"minor".as_slice()]));
    let folder = format!(
        "out/crashes/{}/{}/0123456789abcdef",
        major.short(),
        minor.short()
    );
    GroupView {
        kind: Kind::Crash,
        major,
        minor,
        class: Class(class.to_owned()),
        severity: Severity::High,
        severity_reason: "a write to a wild address".to_owned(),
        place: Some("parse_line at ul.c:40".to_owned()),
        trace: Trace::of_message(Some("free(): invalid pointer".to_owned())),
        flaky: None,
        source: None,
        runs_seen: 1234,
        size_before: 40_000,
        reproducer: (0..size).map(|at| (at % 251) as u8).collect(),
        minimized: None,
        file: format!("/{folder}/minimized").into(),
        log: Some(format!("/{folder}/log.jsonl").into()),
        script: None,
        has_gdb: false,
        explanation: None,
        place_now: None,
        known_as: None,
        status: None,
        checked: None,
        utility: None,
        variants: Vec::new(),
    }
}

/// The same at the end of its minimization.
pub fn minimized(class: &str, size: usize) -> GroupView {
    let claim = Minimized {
        claim: "1-minimal".to_owned(),
        size_before: 40_000,
        size_after: size as u64,
        tests: json!({"executed": 47}),
        proved: Proved { done: 6, of: 6 },
        minor_after: None,
        debug: None,
        any_input: false,
        untried: 0,
        flaky: None,
        given_up: None,
    };
    GroupView {
        minimized: Some(claim),
        ..view(class, size)
    }
}

/// The campaign after so many seconds: it becomes slower, and finds new edges ever more rarely.
pub fn progress(seconds: u64, covered: bool) -> Progress {
    let runs = 2000 * seconds - seconds * seconds / 2;
    let edges = (f64::from(seconds as u32).sqrt() * 60.0) as u64;
    Progress {
        phase: Phase::Fuzzing,
        time_ms: seconds * 1000,
        runs,
        runs_per_s: runs as f64 / seconds.max(1) as f64,
        corpus: if covered { edges / 3 } else { 0 },
        groups: 3,
        crashes: seconds * 3,
        hangs: 2,
        ooms: 1,
        minimizing: 2,
        edges: covered.then_some(edges),
        edges_of: covered.then_some(8192),
        stability: covered.then_some(0.998),
        minimizer_share: 0.042,
    }
}

/// An empty screen.
pub fn course() -> ScreenModel {
    let heading = Heading {
        target: "ul -t xterm".to_owned(),
        way: "harness".to_owned(),
        engine: "classic generator".to_owned(),
        seed: Some(7),
        out: "ddfuzz-out".to_owned(),
    };
    ScreenModel::new(heading, Palette::new(false))
}

/// A campaign of twelve minutes, with three groups: minimized, shrinking, and waiting.
pub fn busy(covered: bool) -> ScreenModel {
    let mut course = course();
    for seconds in 0..=724 {
        course.progress(&progress(seconds, covered));
        match seconds {
            3 => course.group(&view("segv", 40_000)),
            4 => course.minimized(&minimized("segv", 6)),
            600 => course.group(&view("asan:heap-buffer-overflow", 40_000)),
            601 => course.group(&view("asan:heap-buffer-overflow", 317)),
            700 => course.group(&view("abrt", 12)),
            710 => course.note("the disk is full: waiting for room"),
            _ => {}
        }
    }
    course.at(Duration::from_secs(724));
    course
}

/// What stands on a terminal of this size, line by line, without blanks at their ends.
pub fn shown(course: &ScreenModel, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(course, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..height {
        let line: String = (0..width)
            .map(|column| buffer[(column, row)].symbol())
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
