//! Campaigns: ddfuzz beside LibAFL, AFL++ and libFuzzer.
//!
//! `cargo bench --bench campaigns [-- OPTIONS]`; `-- --help` shows the options. Six tables:
//! *finding* (in which run a planted bug happens first), *speed* (runs per second of CPU time),
//! *share* (what inline minimization costs), *workers* (what a second worker brings), *loops*
//! (what a loop without end costs) and *guidance* (what campaigns on unmodified programs reach with
//! coverage and without). Each says what is promised, what was measured, and whether it
//! is kept; none of them fails.
//!
//! `cargo test` only sees whether a campaign of ddfuzz is counted and its end noticed.

mod asked;
mod builds;
#[path = "../cost/mod.rs"]
mod cost;
mod counted;
mod finding;
mod guidance;
mod loops;
mod options;
mod planted;
#[path = "../promise/mod.rs"]
mod promise;
mod shares;
mod speed;
mod tools;
mod watched;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use builds::Builds;
use options::{Asked, Options};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Try) => return attempt(),
        Ok(Asked::Help) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    match run(&options, true) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("skipped: {why}");
            ExitCode::SUCCESS
        }
    }
}

/// One bug, one seed, ddfuzz alone: whether it still works.
fn attempt() -> ExitCode {
    let options = Options {
        tables: vec!["finding".to_owned()],
        tools: vec!["ddfuzz".to_owned()],
        bugs: vec!["vault_door".to_owned()],
        seeds: 1,
        runs: 500,
        cpu: 20,
        ..Options::full()
    };
    if let Err(why) = run(&options, false) {
        println!("skipped: {why}");
    }
    ExitCode::SUCCESS
}

fn run(options: &Options, with_peers: bool) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    watched::adopt_orphans().map_err(text)?;
    let folder = tempfile::tempdir().map_err(text)?;
    // Targets that are run as somebody else, too, open files in it.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).map_err(text)?;
    let with_peers =
        with_peers && PEERED.iter().any(|table| options.wants(table)) && options.chooses_libafl();
    let builds = Builds::new(folder.path(), peers(with_peers));
    type Table = fn(&Options, &Builds, &Path) -> Result<(), String>;
    let tables: [(&str, Table); 6] = [
        ("finding", finding::table),
        ("speed", speed::table),
        ("share", shares::share),
        ("workers", shares::workers),
        ("loops", loops::table),
        ("guidance", |options, _, folder| {
            guidance::table(options, folder)
        }),
    ];
    for (name, table) in tables {
        if !options.wants(name) {
            continue;
        }
        if let Err(why) = table(options, &builds, folder.path()) {
            let figure = format!("campaigns, table {name}");
            println!("{name}: {}", promise::not_measured(&figure, &why));
        }
    }
    Ok(())
}

/// The tables that LibAFL's fuzzers are in.
const PEERED: [&str; 2] = ["finding", "speed"];

/// Where LibAFL's fuzzers are; `None`, and said so, where they cannot be built.
fn peers(wanted: bool) -> Option<std::path::PathBuf> {
    if !wanted {
        return None;
    }
    let peers = builds::peers();
    if let Err(why) = &peers {
        eprintln!("LibAFL's fuzzers cannot be built: {why}");
    }
    peers.ok()
}
