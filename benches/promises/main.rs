//! All promises about speed and size, in their short form: one table of figure, goal, and whether it
//! is met.
//!
//! `cargo bench --bench promises [-- OPTIONS] [BENCH …]`; `-- --help` shows the options. Each figure
//! is measured by the bench that has it in full, which is called with options that make it short.
//! These figures are of few rounds and seeds; where one is close to its goal, the whole bench decides.
//!
//! `cargo test` only sees that it is built.

#[path = "../promise/mod.rs"]
mod promise;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use serde_json::Value;

/// What `--help` prints.
const HELP: &str = "\
Measures the short form of all promises, and prints one table.

Usage: cargo bench --bench promises [-- [OPTIONS] [BENCH …]]

  BENCH            only the calls of these benches (core, tmin, campaigns, ways, cleanup, explain)
  --markdown FILE  write the table there, too; relative to the package's folder
  --verbose        show what the benches print

Example: cargo bench --bench promises -- --markdown docs/src/promises.md";

/// A bench, and the options that make it short.
struct Call {
    bench: &'static str,
    options: &'static [&'static str],
}

/// All calls. They take about ten minutes on two cores, builds aside.
const CALLS: [Call; 10] = [
    call("core", &["tests", "40"]),
    call("tmin", &[]),
    call(
        "campaigns",
        &[
            "speed",
            "--quick",
            "--tools",
            "ddfuzz,libfuzzer,libfuzzer-fork,ddfuzz-persistent,afl-fuzz",
        ],
    ),
    call("campaigns", &["share", "--rounds", "1", "--seconds", "15"]),
    call("campaigns", &["share", "--rounds", "1", "--seconds", "60"]),
    call(
        "campaigns",
        &[
            "finding",
            "--quick",
            "--seeds",
            "1",
            "--tools",
            "ddfuzz,libafl,afl-fuzz-c,libfuzzer-value",
        ],
    ),
    call("ways", &["afl"]),
    call("cleanup", &["cpp", "--files", "400"]),
    call(
        "cleanup",
        &["bundled", "--files", "4000", "--tools", "off,merge,cmin"],
    ),
    call("cleanup", &["scale", "--scale", "100000"]),
];

const fn call(bench: &'static str, options: &'static [&'static str]) -> Call {
    Call { bench, options }
}

/// What the command line asks for.
#[derive(Default)]
struct Options {
    benches: Vec<String>,
    markdown: Option<PathBuf>,
    is_verbose: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo says so when it is to measure.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let measured = parse(arguments).and_then(|options| match options {
        None => {
            println!("{HELP}");
            Ok(())
        }
        Some(options) => measure(&options),
    });
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The options; `None` where help is asked for.
fn parse(arguments: Vec<String>) -> Result<Option<Options>, String> {
    let mut options = Options::default();
    let mut arguments = arguments.into_iter().filter(|word| word != "--bench");
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(None),
            "--verbose" => options.is_verbose = true,
            "--markdown" => {
                let file = arguments.next();
                let file = file.ok_or("--markdown needs a file; see --help")?;
                options.markdown = Some(file.into());
            }
            bench if CALLS.iter().any(|call| call.bench == bench) => options.benches.push(word),
            _ => return Err(format!("no option or bench {word}; see --help")),
        }
    }
    Ok(Some(options))
}

fn measure(options: &Options) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(text)?;
    let wanted = |call: &&Call| {
        options.benches.is_empty() || options.benches.iter().any(|name| name == call.bench)
    };
    let mut table = String::from("| figure | measured | goal | |\n|---|--:|--:|---|\n");
    let (mut met, mut all) = (0, 0);
    print!("{table}");
    for call in CALLS.iter().filter(wanted) {
        let record = folder.path().join("record");
        fs::write(&record, "").map_err(text)?;
        let began = Instant::now();
        if let Err(why) = run(call, &record, options.is_verbose) {
            eprintln!("{}: {why}", call.bench);
        }
        eprintln!("{}: {:.0} s", call.bench, began.elapsed().as_secs_f64());
        let lines = fs::read_to_string(&record).map_err(text)?;
        for line in lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
        {
            let (row, is_met) = row(&line);
            print!("{row}");
            table.push_str(&row);
            all += 1;
            met += u32::from(is_met);
        }
    }
    let sum = format!("{met} of {all} goals are met.\n");
    print!("\n{sum}");
    if let Some(file) = &options.markdown {
        let page = format!("{PAGE}{table}\n{sum}");
        ddfuzz::files::atomic::write(file, page.as_bytes())
            .map_err(|error| format!("--markdown: {error}"))?;
    }
    Ok(())
}

/// Calls a bench, which appends its figures to `record`.
fn run(call: &Call, record: &Path, is_verbose: bool) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["bench", "--quiet", "--bench", call.bench, "--"])
        .args(call.options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env(promise::RECORD, record)
        .stdin(Stdio::null());
    if !is_verbose {
        command.stdout(Stdio::null());
    }
    let status = command.status();
    let status = status.map_err(|error| format!("{command:?}: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {status}")),
    }
}

/// The row of a recorded figure, and whether its goal is met.
fn row(line: &Value) -> (String, bool) {
    let word = |name: &str| line[name].as_str().unwrap_or_default();
    let measured = line["measured"].as_f64().unwrap_or(f64::NAN);
    let is_met = line["met"].as_bool().unwrap_or_default();
    let digits = match measured.abs() {
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    let unit = match word("unit") {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let verdict = if is_met { "met" } else { "**missed**" };
    let mut row = String::new();
    let _ = writeln!(
        row,
        "| {} | {measured:.digits$}{unit} | {} | {verdict} |",
        word("figure"),
        word("goal")
    );
    (row, is_met)
}

/// What stands above the table in the book.
const PAGE: &str = "\
# What is promised, and what is kept

```sh
cargo bench --bench promises -- --markdown docs/src/promises.md
```

The short form of all promises about speed and size, in one run: few rounds and seeds, so that a \
figure close to its goal is decided by its own bench ([Benchmarks](benchmarks.md)). `x` is a ratio: \
*CPU time of a peer* means how many times as much CPU time the peer takes as ddfuzz, *to a peer* means \
ddfuzz's figure divided by the peer's.

";
