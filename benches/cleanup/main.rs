//! What corpus cleanup costs and leaves: `ddfuzz clean` beside `afl-cmin`, libFuzzer's `-merge=1`
//! and `cargo fuzz cmin`, on corpora that ddfuzz's own campaigns have made.
//!
//! `cargo bench --bench cleanup [-- OPTIONS]`; `-- --help` shows the options. Each tool is given
//! the same files, one after the other on one machine. What the kept files reach is counted by
//! one ruler for all: the counters of one program, as ddfuzz's executor reads them. Each table says
//! what is promised and whether it is kept; none of them fails.
//!
//! `cargo test` only sees that it is built.

mod builds;
mod corpora;
#[path = "../cost/mod.rs"]
mod cost;
mod options;
#[path = "../promise/mod.rs"]
mod promise;
mod ruler;
mod scale;
mod subjects;
mod table;
mod tools;
#[path = "../campaigns/watched.rs"]
#[allow(dead_code, reason = "the tools of this bench end by themselves")]
mod watched;

use std::process::ExitCode;

use builds::Builds;
use options::{Asked, Options};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Try) => return ExitCode::SUCCESS,
        Ok(Asked::Help) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(why) = run(&options) {
        println!("skipped: {why}");
    }
    ExitCode::SUCCESS
}

fn run(options: &Options) -> Result<(), String> {
    watched::adopt_orphans().map_err(|error| error.to_string())?;
    let builds = Builds::new(options.ddfuzz.clone())?;
    for (name, subject) in subjects::ALL {
        if !options.wants(name) {
            continue;
        }
        let measured =
            subject(&builds).and_then(|subject| table::measure(options, &builds, &subject));
        if let Err(why) = measured {
            let figure = format!("cleanup, table {name}");
            println!("{name}: {}", promise::not_measured(&figure, &why));
        }
    }
    if options.wants("scale")
        && let Err(why) = scale::measure(options, &builds)
    {
        let verdict = promise::not_measured("cleanup, table scale", &why);
        println!("scale: {verdict}");
    }
    Ok(())
}
