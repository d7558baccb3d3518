//! The fuzz study of ISSTA 2000 (Hildebrandt and Zeller, section 5) on the bundled targets.
//!
//! `cargo bench --bench issta [-- --markdown FILE] [--seconds N]`: each of six targets is run on
//! sixteen random inputs, and each that fails is minimized by `ddmin` and by `full`, for N seconds
//! at most (20 unless said). Ends with status 1 where a result is another failure than the one it
//! was made of.
//!
//! `cargo test` only sees that it is built; `tests/campaign` runs the short inputs.

mod study;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use study::{Row, Study, TARGETS, inputs};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    // Cargo says so when it is to measure.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let behind = |option: &str| {
        let at = arguments.iter().position(|argument| argument == option)?;
        arguments.get(at + 1)
    };
    let seconds = behind("--seconds").map_or(Ok(20), |text| text.parse());
    let Ok(seconds) = seconds else {
        return fail("--seconds takes a whole number");
    };
    let rows = match run(seconds) {
        Ok(rows) => rows,
        Err(why) => return fail(&why),
    };
    let text = table::page(&rows, seconds);
    println!("{text}");
    if let Some(file) = behind("--markdown") {
        let written = ddfuzz::files::atomic::write(&PathBuf::from(file), text.as_bytes());
        if let Err(error) = written {
            return fail(&format!("--markdown: {error}"));
        }
    }
    match rows.iter().find(|row| !row.is_same_failure()) {
        Some(row) => fail(&format!("{} {}: another failure", row.target, row.input)),
        None => ExitCode::SUCCESS,
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

fn run(seconds: u64) -> Result<Vec<Row>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let study = Study {
        ddfuzz: &PathBuf::from(env!("CARGO_BIN_EXE_ddfuzz")),
        folder: folder.path(),
        seconds,
    };
    let mut rows = Vec::new();
    for target in TARGETS {
        for input in inputs(u64::MAX) {
            let row = study.row(target, input)?;
            eprintln!("{}", table::line(&row));
            rows.push(row);
        }
    }
    Ok(rows)
}
