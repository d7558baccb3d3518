//! ddfuzz and other minimizers on the same failing inputs.
//!
//! `cargo bench --bench minimizers [-- OPTIONS]`; `-- --help` shows the options. For each case a
//! program is compiled, an input is made that it crashes on, and each tool minimizes it. Printed
//! are the tests (runs of the target, counted by the target itself for other tools), the size of
//! the result, whether it is 1-minimal (found out by trying), the time, and for the searches of
//! ddfuzz whether the figures hold that are promised.
//!
//! `cargo test` only sees whether it still runs, on one small case.

mod bounds;
#[path = "../cost/mod.rs"]
mod cost;
#[allow(
    dead_code,
    unused_imports,
    reason = "the bench of the core uses more of it"
)]
mod families;
mod job;
mod markdown;
mod measure;
mod options;
mod peers;
mod programs;
mod row;
mod table;

use std::process::ExitCode;

use families::{Case, cases};
use options::{Asked, Options};
use peers::Peer;
use row::Measured;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Help) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(why) => return fail(&why),
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

fn run(options: &Options) -> Result<(), String> {
    measure::adopt_orphans()?;
    let tools = peers::choose(options)?;
    let mut sets = Vec::new();
    for &set in &options.sets {
        println!(
            "\n== {} cases, limit {:?} a tool and case",
            set.name(),
            options.limit
        );
        sets.push((set, Vec::new()));
        let chosen = |case: &Case| options.chooses(case.family);
        for case in cases(set).into_iter().filter(chosen) {
            let measured = measure_case(case, options, &tools)?;
            sets.last_mut().expect("it was pushed").1.push(measured);
            // Hours of measuring are not lost with the last case.
            if let Some(file) = &options.markdown {
                let text = markdown::page(&sets, options);
                ddfuzz::files::atomic::write(file, text.as_bytes())
                    .map_err(|error| format!("--markdown: {error}"))?;
            }
        }
    }
    for (set, rows) in &sets {
        println!("\n{}", table::summary(*set, rows));
    }
    let all = sets.iter().flat_map(|(_, rows)| rows);
    let failures: Vec<String> = all.flat_map(Measured::failures).collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("ddfuzz failed:\n  {}", failures.join("\n  "))),
    }
}

fn measure_case(
    case: Case,
    options: &Options,
    tools: &[Box<dyn Peer>],
) -> Result<Measured, String> {
    print!("{}", table::head(&case));
    let mut measured = Measured::new(case);
    for tool in tools {
        let row = job::measure(&measured.case, tool.as_ref(), options.limit)?;
        println!("{}", table::line(&measured.case, &row));
        measured.rows.push(row);
    }
    print!("{}", table::foot(&measured));
    Ok(measured)
}
