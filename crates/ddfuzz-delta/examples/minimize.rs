//! Minimizes a failing text by a closure: first by lines, then by bytes.
//!
//! ```text
//! cargo run -p ddfuzz-delta --example minimize
//! ```

use ddfuzz_delta::{Full, NotFailing, Outcome, Search, ddmin, lines};

const CONFIG: &[u8] =
    b"name = demo\n\n[server]\nport = 80800\nhost = localhost\n\n[log]\nlevel = 3\n";

/// Parses the port number in a configuration; `None` if it has none. The bug: a number above 65535
/// is an error.
fn port(text: &[u8]) -> Result<Option<u16>, std::num::ParseIntError> {
    let text = String::from_utf8_lossy(text);
    let found = text.lines().find_map(|line| line.strip_prefix("port = "));
    found.map(str::parse).transpose()
}

/// Returns the outcome of testing a text: FAIL if its port number is too large, UNRESOLVED after
/// another parse error.
fn test(text: &[u8]) -> Outcome {
    match port(text).map_err(|error| *error.kind()) {
        Err(std::num::IntErrorKind::PosOverflow) => Outcome::Fail,
        Err(_) => Outcome::Unresolved,
        Ok(_) => Outcome::Pass,
    }
}

/// Minimizes a failing configuration text byte by byte, by driving the search as a step machine:
/// runs each test that the search asks for, and prints each reduction. Returns the smallest failing
/// text.
fn minimize_bytes(input: &[u8]) -> Vec<u8> {
    let mut search = Full::new(input);
    let (mut best, mut candidate_text) = (input.to_vec(), Vec::new());
    while let Some(candidate) = search.next() {
        candidate.write_into(input, &best, &mut candidate_text);
        let outcome = test(&candidate_text);
        if outcome == Outcome::Fail {
            println!("  {}: {}", candidate.rule, candidate_text.escape_ascii());
            best.clone_from(&candidate_text);
        }
        search.tell(outcome);
    }
    best
}

fn main() -> Result<(), NotFailing> {
    let kept = ddmin(&lines(CONFIG), |kept| test(&kept.concat()))?.concat();
    println!("by lines: {}", kept.escape_ascii());
    println!("by bytes: {}", minimize_bytes(&kept).escape_ascii());
    Ok(())
}
