//! Speed: runs per second of CPU time, of all processes of a fuzzer together, on the same target.

use std::path::Path;

use crate::asked::{Made, made};
use crate::builds::{Builds, Kind, NO_BUG, Subject};
use crate::options::Options;
use crate::planted::seeds;
use crate::promise::{Goal, compare, not_measured};
use crate::tools::{Campaign, Tool};

/// Tools that run the same program, or one of the same instrumentation.
struct Class {
    title: &'static str,
    /// A campaign makes so many runs, in relation to `--scale`: one of so many.
    part: u64,
    ours: Tool,
    bare: Tool,
    others: &'static [Tool],
}

const CLASSES: [Class; 3] = [
    Class {
        title: "libFuzzer binary",
        part: 1,
        ours: Tool::Harness,
        bare: Tool::InProcess,
        others: &[Tool::LibFuzzer, Tool::LibFuzzerFork],
    },
    Class {
        title: "AFL++ program, persistent",
        part: 10,
        ours: Tool::Forkserver(Kind::AflPersistent),
        bare: Tool::BareForkserver(Kind::AflPersistent),
        others: &[Tool::Afl(Kind::AflPersistent)],
    },
    Class {
        title: "AFL++ program, a process a run",
        part: 100,
        ours: Tool::Forkserver(Kind::AflPlain),
        bare: Tool::BareForkserver(Kind::AflPlain),
        others: &[Tool::Afl(Kind::AflPlain)],
    },
];

/// Of bare LibAFL's rate, and of the others'.
const PROMISED: (f64, f64) = (0.9, 1.0);

/// Measures, and prints the table.
pub fn table(options: &Options, builds: &Builds, folder: &Path) -> Result<(), String> {
    println!(
        "\nSPEED: runs per second of CPU time, median of {} rounds",
        options.rounds
    );
    let subjects = [
        Subject::program("tiny"),
        Subject::parser("tree"),
        Subject::program("larger"),
    ];
    for class in &CLASSES {
        for subject in &subjects {
            println!("{}, {}", class.title, subject.name);
            rows(options, builds, folder, class, subject)?;
        }
    }
    Ok(())
}

fn rows(
    options: &Options,
    builds: &Builds,
    folder: &Path,
    class: &Class,
    subject: &Subject,
) -> Result<(), String> {
    let tools = [class.ours, class.bare].into_iter();
    let tools: Vec<Tool> = tools
        .chain(class.others.iter().copied())
        .filter(|tool| options.chooses_tool(tool.name()))
        .collect();
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); tools.len()];
    let mut failures: Vec<Option<String>> = vec![None; tools.len()];
    // A round of all tools at a time, so that what else the machine does meets all of them.
    for round in 1..=options.rounds {
        for ((tool, rates), failure) in tools.iter().zip(&mut rates).zip(&mut failures) {
            let work = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
            let campaign = Campaign {
                subject,
                only: NO_BUG,
                seed: round as u64,
                runs: (options.scale / class.part).max(100),
                seeds: &seeds(subject.name),
                work: work.path(),
            };
            match made(*tool, builds, &campaign) {
                Ok(made) => rates.push(Made::per_cpu_second(made)),
                Err(why) => {
                    eprintln!("{}: {why}", tool.name());
                    *failure = Some(why);
                }
            }
        }
    }
    let medians: Vec<Option<f64>> = rates.iter_mut().map(|rates| median(rates)).collect();
    let ours = tools.iter().position(|tool| *tool == class.ours);
    let ours = ours.and_then(|at| medians[at]);
    for ((tool, rate), failure) in tools.iter().zip(&medians).zip(failures) {
        let promised = match tool {
            tool if *tool == class.ours => None,
            tool if *tool == class.bare => Some(PROMISED.0),
            _ => Some(PROMISED.1),
        };
        let rate = rate.ok_or(failure.unwrap_or_else(|| "no round was made".to_owned()));
        println!("  {}", line(subject, *tool, rate, ours, promised));
    }
    Ok(())
}

fn line(
    subject: &Subject,
    tool: Tool,
    rate: Result<f64, String>,
    ours: Option<f64>,
    promised: Option<f64>,
) -> String {
    let figure = format!(
        "guided runs a CPU second, {}, to {}",
        subject.name,
        tool.name()
    );
    let rate = match rate {
        Ok(rate) => rate,
        Err(why) => {
            let verdict = not_measured(&figure, &why);
            return format!("{:<20}{:>12}  {verdict}", tool.name(), "-");
        }
    };
    let verdict = match (ours, promised) {
        (Some(ours), Some(promised)) => {
            let ratio = ours / rate;
            let verdict = compare(&figure, ratio, "x", Goal::AtLeast(promised));
            format!("  ddfuzz {ratio:.2}x, {verdict}")
        }
        _ => String::new(),
    };
    format!("{:<20}{rate:>12.0}{verdict}", tool.name())
}

/// The middle one; `None` of none.
pub fn median(all: &mut [f64]) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}
