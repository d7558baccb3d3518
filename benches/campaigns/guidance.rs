//! Guidance: how many blocks of unmodified programs of the system, and how many groups of failures,
//! campaigns reach with coverage and without, in the same CPU time.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use ddfuzz::campaign::{Plan, RunInput, Seeds};
use ddfuzz::exec::{CoverageReporting, Executor, Freshness, Program, Sandbox, Target, start};

use crate::options::Options;
use crate::promise::{Goal, compare, not_measured};
use crate::tools::binary;
use crate::watched::{Watched, end_orphans};

/// Programs and their arguments; each reads a language or a format from stdin. They run in the
/// sandbox, since some of these languages start programs and write files, and with a frozen start,
/// without which `jq` and `troff` make some 60 runs a second.
const PROGRAMS: [(&str, &[&str]); 12] = [
    ("bc", &["-q"]),
    ("dash", &["-n"]),
    ("file", &["-b", "-"]),
    ("jq", &["."]),
    ("mawk", &["-f", "-"]),
    ("readelf", &["-a", "/dev/stdin"]),
    ("sed", &["--sandbox", "-n", "-f", "-", "/etc/passwd"]),
    ("sqlite3", &[":memory:"]),
    ("tbl", &[]),
    ("tidy", &["-q"]),
    ("troff", &[]),
    ("xmllint", &["--noout", "-"]),
];

/// Greatest length of an input, in bytes.
const MAX_LEN: u64 = 4096;

/// What a campaign has reached.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    runs: u64,
    blocks: u64,
    blocks_of: u64,
    groups: u64,
}

/// Measures, and prints the table.
pub fn table(options: &Options, folder: &Path) -> Result<(), String> {
    println!(
        "\nGUIDANCE: blocks reached in {} s of CPU time, median of {} seeds (least–greatest); groups \
         of failures in all of them\n",
        options.cpu, options.seeds
    );
    println!("AFL++ in QEMU mode: {}\n", *QEMU_MODE);
    println!(
        "| program | blocks | guided | without | ratio | groups, guided | without | runs, guided \
         | without |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut ratios = Vec::new();
    for (name, args) in PROGRAMS {
        if !options.chooses_bug(name) {
            continue;
        }
        match row(options, folder, name, args) {
            Ok(ratio) => ratios.push(ratio),
            Err(why) => println!("| {name} | not measured: {why} | | | | | | | |"),
        }
    }
    let figure = "blocks reached by guided campaigns, to those without guidance, median program";
    ratios.sort_by(f64::total_cmp);
    match ratios.get(ratios.len() / 2) {
        Some(median) => {
            let verdict = compare(figure, *median, "x", Goal::AtLeast(1.0));
            println!("\nguided reaches {median:.2} times the blocks: {verdict}");
        }
        None => println!("\n{}", not_measured(figure, "no program is installed")),
    }
    Ok(())
}

/// Whether `afl-fuzz -Q` can be run here.
static QEMU_MODE: LazyLock<&str> = LazyLock::new(|| {
    let found = Command::new("afl-qemu-trace").arg("-version").output();
    match found {
        Ok(_) => "there is an afl-qemu-trace, which this table does not measure yet",
        Err(_) => "not measured, for there is no afl-qemu-trace",
    }
});

/// Measures one program; prints its line, and returns the ratio of the medians of blocks.
fn row(options: &Options, folder: &Path, name: &str, args: &[&str]) -> Result<f64, String> {
    let mut target = Target::new(Program::Path(name.into()));
    target.args = args.iter().map(Into::into).collect();
    target.sandbox = Sandbox::On;
    target.freeze_start = true;
    let text = |error: std::io::Error| error.to_string();
    let mut all = [Vec::new(), Vec::new()];
    for seed in 1..=options.seeds {
        for (generator, reached) in ["guided", "classic"].into_iter().zip(&mut all) {
            let out = folder.join(format!("{name}-{generator}-{seed}"));
            let mut command = Command::new(binary());
            command.args(["run", "-q", "--jobs", "1", "--minimize", "off", "--sandbox"]);
            command.arg("--freeze-start");
            command.args(["--generator", generator, "--seed", &seed.to_string()]);
            command
                .args(["--max-len", &MAX_LEN.to_string(), "-o"])
                .arg(&out);
            command.args(["--", name]).args(args);
            let most = Duration::from_secs(options.cpu);
            let watched = Watched::start(&mut command).map_err(text)?;
            watched.until(|spent| Ok(spent >= most)).map_err(text)?;
            end_orphans().map_err(text)?;
            reached.push(reached_by(&out, &target, generator, seed)?);
            std::fs::remove_dir_all(&out).map_err(text)?;
        }
    }
    let [guided, without] = &mut all;
    let sum = |all: &[Reached], of: fn(&Reached) -> u64| all.iter().map(of).sum::<u64>();
    let cells = [guided, without].map(|all| {
        all.sort_by_key(|reached| reached.blocks);
        let median = all[all.len() / 2];
        let range = format!(
            "{} ({}–{})",
            median.blocks,
            all[0].blocks,
            all[all.len() - 1].blocks
        );
        (
            median,
            range,
            sum(all, |it| it.groups),
            sum(all, |it| it.runs) / options.seeds,
        )
    });
    let [
        (guided, blocks, groups, runs),
        (without, other_blocks, other_groups, other_runs),
    ] = cells;
    let ratio = guided.blocks as f64 / without.blocks.max(1) as f64;
    println!(
        "| {name} | {} | {blocks} | {other_blocks} | {ratio:.2} | {groups} | {other_groups} \
         | {runs} | {other_runs} |",
        guided.blocks_of
    );
    Ok(ratio)
}

/// What the campaign in the output directory `out` has reached.
fn reached_by(out: &Path, target: &Target, generator: &str, seed: u64) -> Result<Reached, String> {
    let runs = runs_of(out)?;
    let groups = std::fs::read_dir(out.join("crashes")).map_or(0, |all| all.count() as u64);
    let (blocks, blocks_of) = match generator {
        "guided" => recorded(out)?,
        _ => replayed(target, seed, runs)?,
    };
    Ok(Reached {
        runs,
        blocks,
        blocks_of,
        groups,
    })
}

/// The number of runs, of the last line of `stats.jsonl`.
fn runs_of(out: &Path) -> Result<u64, String> {
    let path = out.join("stats.jsonl");
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let last = text.lines().next_back().unwrap_or_default();
    let last: serde_json::Value = serde_json::from_str(last).map_err(|error| error.to_string())?;
    last["runs"].as_u64().ok_or("no number of runs".to_owned())
}

/// Blocks that a guided campaign has recorded as reached, and how many there are.
fn recorded(out: &Path) -> Result<(u64, u64), String> {
    let path = out.join("code.json");
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let code: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let files = code["files"].as_array().ok_or("no files of code")?;
    let sum = |field: &str| files.iter().filter_map(|file| file[field].as_u64()).sum();
    Ok((sum("blocks"), sum("blocks_of")))
}

/// Blocks that the first `runs` inputs of the campaign without guidance reach: they are made and run
/// again, which is no part of the campaign's time.
fn replayed(target: &Target, seed: u64, runs: u64) -> Result<(u64, u64), String> {
    let text = |error: ddfuzz::exec::ExecError| error.to_string();
    let mut executor = start(target, None, Freshness::Shared)
        .map_err(text)?
        .executor;
    let places = executor.cover_blocks().map_err(text)??;
    executor.report_coverage(CoverageReporting::Novel);
    let code = executor.code().ok_or("no code is covered")?;
    let mut reached: Vec<bool> = code.at_start().to_vec();
    reached.resize(places, false);
    // The same functions as in the record of a guided campaign.
    let functions = code.functions();
    let plan = Plan {
        seed,
        max_len: MAX_LEN,
    };
    let mut run = 0;
    while run < runs {
        let inputs: Vec<Vec<u8>> = (run..runs.min(run + 64))
            .map(|run| input(&plan, run))
            .collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        run += add_reached(executor.as_mut(), &inputs, &mut reached)?;
    }
    let blocks = functions.into_iter().flat_map(|function| function.blocks);
    let blocks: Vec<bool> = blocks.map(|block| reached[block]).collect();
    let count = blocks.iter().filter(|is_reached| **is_reached).count();
    Ok((count as u64, blocks.len() as u64))
}

fn input(plan: &Plan, run: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let RunInput::Generated(name) = plan.draw(run, &Seeds::default()) {
        name.write_into(&mut bytes);
    }
    bytes
}

/// Runs some of the inputs, and returns how many.
fn add_reached(
    executor: &mut dyn Executor,
    inputs: &[&[u8]],
    reached: &mut [bool],
) -> Result<u64, String> {
    let runs = executor
        .run_some(inputs)
        .map_err(|error| error.to_string())?;
    for of_run in executor.covered() {
        for (known, count) in reached.iter_mut().zip(&of_run.counters) {
            *known |= *count > 0;
        }
    }
    Ok(runs.len() as u64)
}
