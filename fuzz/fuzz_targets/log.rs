//! Minimization logs. The first two bytes are the lengths of a passing and a failing input, which
//! follow them; the rest is the log. What was read is written again and read back; then the result
//! is rebuilt from it, as if it were a log of just these inputs.
#![no_main]

use ddfuzz::minimize::log::{ContentHash, Line, Log};
use ddfuzz::minimize::{isolate, replay};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [passing, failing, rest @ ..] = data else {
        return;
    };
    let (passing, rest) = rest.split_at(rest.len().min(usize::from(*passing)));
    let (failing, text) = rest.split_at(rest.len().min(usize::from(*failing)));
    let Ok(mut log) = Log::parse(text) else {
        return;
    };
    assert!(log.whole <= text.len() as u64);
    read_back(&log);
    let Some(start) = &mut log.start else { return };
    // A hash cannot be guessed, and everything behind it is to be reached.
    start.input_blake3 = ContentHash::of(failing);
    start.size = failing.len() as u64;
    let Some(difference) = &mut start.difference else {
        if let Ok(replayed) = replay(failing, &log) {
            assert!(replayed.text.len() <= failing.len());
        }
        return;
    };
    if let Some(record) = &mut difference.passing {
        record.blake3 = ContentHash::of(passing);
    }
    let _ = isolate::replay_sides(passing, failing, &log);
});

/// Writes a log and reads it again: it must be the same.
fn read_back(log: &Log) {
    let start = log.start.clone().map(|start| Line::Start(Box::new(start)));
    let lines = log.lines.iter().map(|(_, line)| line.clone());
    let mut text = Vec::new();
    for line in start.into_iter().chain(lines) {
        text.extend(line.to_json().expect("what was read can be written"));
    }
    let again = Log::parse(&text).expect("what was written can be read");
    assert_eq!(again.start, log.start);
    let lines =
        |log: &Log| -> Vec<Line> { log.lines.iter().map(|(_, line)| line.clone()).collect() };
    assert_eq!(lines(&again), lines(log));
}
