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

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Instant, SystemTime};

use serde_json::Value;

/// What `--help` prints.
const HELP: &str = "\
Measures the short form of all promises, and prints one table.

Usage: cargo bench --bench promises [-- [OPTIONS] [BENCH …]]

  BENCH            only the calls of these benches (core, tmin, campaigns, ways, cleanup)
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
    call("cleanup", &["cpp", "--files", "400"]),
    call(
        "cleanup",
        &[
            "bundled",
            "--files",
            "4000",
            "--tools",
            "off,merge,afl-cmin",
        ],
    ),
    call("cleanup", &["scale", "--scale", "100000"]),
    call("campaigns", &["share", "--rounds", "1", "--seconds", "15"]),
    call(
        "campaigns",
        &[
            "speed",
            "--quick",
            "--tools",
            "ddfuzz,libfuzzer,libfuzzer-fork,ddfuzz-persistent,afl-fuzz",
        ],
    ),
    call("tmin", &[]),
    call("ways", &["afl"]),
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
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let record = folder.path().join("record");
    let name = |call: &Call| [&[call.bench], call.options].concat().join(" ");
    let mut figures: Vec<Vec<Value>> = CALLS
        .iter()
        .map(|call| vec![absent(&name(call), "not part of this run")])
        .collect();
    print!("{HEAD}");
    for (at, call) in CALLS.iter().enumerate() {
        if !options.benches.is_empty() && !options.benches.iter().any(|it| it == call.bench) {
            continue;
        }
        let began = Instant::now();
        figures[at] = recorded(call, &record, options.is_verbose, &name(call))?;
        eprintln!("{}: {:.0} s", name(call), began.elapsed().as_secs_f64());
        figures[at].iter().for_each(|it| print!("{}", row(it)));
        // After each call: a run that is cut off leaves what it has measured.
        if let Some(file) = &options.markdown {
            ddfuzz::files::atomic::write(file, page(&figures.concat()).as_bytes())
                .map_err(|error| format!("--markdown: {error}"))?;
        }
    }
    println!("\n{}", sum(&figures.concat()));
    Ok(())
}

/// Calls a bench; returns the figures that it has recorded, and why there are no more if it failed.
fn recorded(
    call: &Call,
    record: &Path,
    is_verbose: bool,
    name: &str,
) -> Result<Vec<Value>, String> {
    fs::write(record, "").map_err(|error| error.to_string())?;
    let ended = run(call, record, is_verbose);
    let lines = fs::read_to_string(record).map_err(|error| error.to_string())?;
    let mut found = figures(&lines);
    match ended {
        Ok(()) if found.is_empty() => found.push(absent(name, "it recorded no figure")),
        Ok(()) => {}
        Err(why) => found.push(absent(name, &why)),
    }
    Ok(found)
}

/// The page of the book.
fn page(figures: &[Value]) -> String {
    let rows: String = figures.iter().map(row).collect();
    format!("{PAGE}{}{HEAD}{rows}\n{}\n", conditions(), sum(figures))
}

fn sum(figures: &[Value]) -> String {
    let measured = figures.iter().filter(|figure| figure["why"].is_null());
    let met = figures.iter().filter(|figure| figure["met"] == true);
    let near = figures
        .iter()
        .filter(|it| it["met"] == false && it["near"] == true);
    format!(
        "{} of {} measured goals are met; {} more figures are at the floor.",
        met.count(),
        measured.count(),
        near.count()
    )
}

/// The recorded figures; one that is measured twice stands only once, as it was measured last.
fn figures(record: &str) -> Vec<Value> {
    let mut figures: Vec<Value> = Vec::new();
    for line in record.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        figures.retain(|earlier| earlier["figure"] != line["figure"]);
        figures.push(line);
    }
    figures
}

/// What stands in place of the figures of a call that has not measured them.
fn absent(figure: &str, why: &str) -> Value {
    serde_json::json!({ "figure": format!("`{figure}`"), "why": why })
}

/// The day of the measurement, and on what it was made.
fn conditions() -> String {
    let date = ddfuzz::store::rfc3339(SystemTime::now());
    let day = date.split('T').next().unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut overrides: Vec<String> = std::env::vars()
        .filter(|(name, _)| name.starts_with("CARGO_PROFILE_RELEASE_"))
        .map(|(name, value)| format!("`{name}={value}`"))
        .collect();
    overrides.sort();
    let build = match overrides.is_empty() {
        true => "the release profile".to_owned(),
        false => format!("the release profile with {}", overrides.join(", ")),
    };
    format!(
        "Measured on {day}, on a machine with {processors} processors ({}), by a build with {build}.\n\n",
        std::env::consts::ARCH
    )
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
    let status = command.status().map_err(|error| error.to_string())?;
    match status.success() {
        true => Ok(()),
        false => Err(status.to_string()),
    }
}

/// The row of a recorded figure.
fn row(line: &Value) -> String {
    let word = |name: &str| line[name].as_str().unwrap_or_default();
    if let Some(why) = line["why"].as_str() {
        let why = why.replace('|', "\\|").replace('\n', " ");
        return format!("| {} | – | | not measured: {why} |\n", word("figure"));
    }
    let unit = match word("unit") {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let number = |name: &str| number(line[name].as_f64().unwrap_or(f64::NAN));
    let floor = || format!("{}{unit}, {}", number("floor"), word("work"));
    let verdict = match (line["met"].as_bool(), line["near"].as_bool()) {
        (Some(true), _) => "met".to_owned(),
        (_, Some(true)) => format!("*at the floor*: {}", floor()),
        (_, Some(false)) => format!("**missed**; the floor: {}", floor()),
        (_, None) => "**missed**".to_owned(),
    };
    let (figure, goal, measured) = (word("figure"), word("goal"), number("measured"));
    format!("| {figure} | {measured}{unit} | {goal} | {verdict} |\n")
}

/// A figure with about three digits.
fn number(figure: f64) -> String {
    let digits = match figure.abs() {
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    format!("{figure:.digits$}")
}

/// The first lines of the table.
const HEAD: &str = "| figure | measured | goal | |\n|---|--:|--:|---|\n";

/// What stands above the table in the book.
const PAGE: &str = "\
# What is promised, and what is kept

```sh
cargo bench --bench promises -- --markdown docs/src/promises.md
```

The short form of all promises about speed and size, in one run: few rounds and seeds, so that a \
figure close to its goal is decided by its own bench ([Benchmarks](benchmarks.md)). `x` is a ratio: \
*CPU time of a peer* means how many times as much CPU time the peer takes as ddfuzz, *to a peer* means \
ddfuzz's figure divided by the peer's. *At the floor* means that a goal is missed, and the figure is \
within 1.3 times of what the same work costs with nothing around it, which is measured in the same \
run and stands beside it. Why figures stay missed: \
[decision 220](../decisions/0220-figures-that-stay-missed.md).

";
