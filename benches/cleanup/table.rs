//! The table of one corpus: what each tool keeps of it, what that reaches, and what it took.

use std::path::Path;
use std::time::Duration;

use ddfuzz::exec::{CoverageReporting, ExecError, Freshness, Program, Target, start};

use crate::builds::Builds;
use crate::corpora::{corpus, files};
use crate::cost::{self, Cost};
use crate::options::Options;
use crate::promise::{Floor, Goal, compare, compare_to_floor, not_measured};
use crate::ruler::{self, Measured};
use crate::subjects::Subject;
use crate::tools::{Tool, Trim};

/// CPU time without trimming, in relation to the best peer's, from so many files on and below.
/// libFuzzer's own count is part of that time.
const CPU: (u64, f64, f64) = (1000, 0.5, 1.0);
/// Bytes with trimming, in relation to the best peer's.
const BYTES: f64 = 0.5;
/// CPU time that trimming adds, in seconds for each 8 KiB that are kept without it.
const TRIM: (f64, f64) = (1.0, 8192.0);

/// Bare runs that are asked for at once.
const AT_ONCE: usize = 64;

/// A tool's row.
struct Row {
    tool: Tool,
    kept: Measured,
    cost: Cost,
    /// Features of the corpus that it has lost.
    lost: usize,
}

/// Measures all tools on one corpus, and prints its table.
///
/// # Errors
/// Where there is no corpus. A tool that fails has no row, and it is said why.
pub fn measure(options: &Options, builds: &Builds, subject: &Subject) -> Result<(), String> {
    let corpus = corpus(builds, subject, options.files)?;
    let before = ruler::measure(subject, &corpus)?;
    println!("\n{}: {}", subject.name, subject.title);
    println!(
        "{:<26}{:>8}{:>10}{:>10}{:>7}{:>9}{:>9}{:>10}{:>10}",
        "by", "files", "bytes", "features", "lost", "cov", "ft", "CPU s", "wall s"
    );
    println!(
        "{:<26}{:>8}{:>10}{:>10}{:>7}{}",
        "(before)",
        before.amount.files,
        before.amount.bytes,
        before.features.len(),
        "",
        own(&before)
    );
    let ours = [Trim::Off, Trim::Signature, Trim::Worth].map(Tool::Ddfuzz);
    let peers = subject.peers.iter().cloned().map(Tool::Peer);
    let mut rows = Vec::new();
    for tool in ours.into_iter().chain(peers) {
        if !options.chooses(tool.name()) {
            continue;
        }
        let work = tempfile::tempdir().map_err(|error| error.to_string())?;
        let cleaned = tool
            .clean(builds, subject, &corpus, work.path())
            .and_then(|(folder, cost)| Ok((ruler::measure(subject, &folder)?, cost)));
        match cleaned {
            Ok((kept, cost)) => {
                let lost = before.features.less(&kept.features).len();
                let row = Row {
                    tool,
                    kept,
                    cost,
                    lost,
                };
                print(&row);
                rows.push(row);
            }
            Err(why) => {
                let figure = format!("cleanup ({}): {}", subject.name, tool.name());
                println!("{:<26} {}", tool.name(), not_measured(&figure, &why));
            }
        }
    }
    judge(subject, &corpus, before.amount.files, &rows);
    Ok(())
}

fn print(row: &Row) {
    println!(
        "{:<26}{:>8}{:>10}{:>10}{:>7}{}{:>10.2}{:>10.2}",
        row.tool.name(),
        row.kept.amount.files,
        row.kept.amount.bytes,
        row.kept.features.len(),
        row.lost,
        own(&row.kept),
        row.cost.cpu.as_secs_f64(),
        row.cost.wall.as_secs_f64(),
    );
}

/// What libFuzzer counts, as two columns.
fn own(measured: &Measured) -> String {
    match measured.own {
        Some(own) => format!("{:>9.1}{:>9.1}", own.cov, own.ft),
        None => format!("{:>9}{:>9}", "", ""),
    }
}

/// What is promised, beside the best of the peers in each respect. One that has lost features has
/// not done the same work: it counts only where all have.
fn judge(subject: &Subject, corpus: &Path, size: u64, rows: &[Row]) {
    let mut peers: Vec<&Row> = rows.iter().filter(|row| !row.tool.is_ours()).collect();
    if peers.iter().any(|row| row.lost == 0) {
        peers.retain(|row| row.lost == 0);
    }
    let best = |of: fn(&Row) -> f64| peers.iter().map(|row| of(row)).min_by(f64::total_cmp);
    let count: fn(&Row) -> f64 = |row| row.kept.amount.files as f64;
    let bytes: fn(&Row) -> f64 = |row| row.kept.amount.bytes as f64;
    let cpu: fn(&Row) -> f64 = |row| row.cost.cpu.as_secs_f64();
    let most_cpu = if size >= CPU.0 { CPU.1 } else { CPU.2 };
    let promises = [
        ("files, --trim off", Trim::Off, count, 1.0),
        ("bytes, --trim off", Trim::Off, bytes, 1.0),
        ("CPU time, --trim off", Trim::Off, cpu, most_cpu),
        ("bytes, --trim signature", Trim::Signature, bytes, BYTES),
        ("bytes, --trim worth", Trim::Worth, bytes, BYTES),
    ];
    let name = format!("cleanup of {size} files ({})", subject.name);
    for (what, trim, of, promised) in promises {
        if let (Some(ours), Some(best)) = (ours(rows, trim), best(of)) {
            let ratio = of(ours) / best.max(f64::MIN_POSITIVE);
            let figure = format!("{name}: {what}, to the best peer");
            let goal = Goal::AtMost(promised);
            let is_cpu = what.starts_with("CPU");
            let bare = is_cpu.then(|| shared_runs(subject, corpus).ok()).flatten();
            let verdict = match bare {
                Some(bare) => {
                    let floor = Floor {
                        work: "reading each file, and a bare run of it",
                        measured: bare.cpu.as_secs_f64() / best.max(f64::MIN_POSITIVE),
                    };
                    compare_to_floor(&figure, ratio, "x", goal, floor)
                }
                None => compare(&figure, ratio, "x", goal),
            };
            println!("  {what}: {ratio:.2} of the best peer's, {verdict}");
        }
    }
    judge_by_libfuzzer(&name, rows);
    judge_trimming(subject, &name, rows);
    for row in rows.iter().filter(|row| row.tool.is_ours()) {
        let figure = format!("{name}: features lost, {}", row.tool.name());
        let verdict = compare(&figure, row.lost as f64, "", Goal::AtMost(0.0));
        println!(
            "  features, {}: {} lost, {verdict}",
            row.tool.name(),
            row.lost
        );
    }
}

fn ours(rows: &[Row], trim: Trim) -> Option<&Row> {
    let is_it = |row: &&Row| matches!(row.tool, Tool::Ddfuzz(own) if own == trim);
    rows.iter().find(is_it)
}

/// By libFuzzer's own count none of ours is to come to less than any peer, but for a thousandth,
/// which is chance where coverage is flaky.
fn judge_by_libfuzzer(name: &str, rows: &[Row]) {
    let peers = rows.iter().filter(|row| !row.tool.is_ours());
    let best = peers.filter_map(|row| row.kept.own.map(|own| own.ft));
    let Some(best) = best.max_by(f64::total_cmp) else {
        return;
    };
    for row in rows.iter().filter(|row| row.tool.is_ours()) {
        if let Some(own) = row.kept.own {
            let (by, ratio) = (row.tool.name(), own.ft / best);
            let figure = format!("{name}: libFuzzer's ft, {by}, to the best peer");
            let verdict = compare(&figure, ratio, "x", Goal::AtLeast(0.999));
            println!("  ft, {by}: {ratio:.4} of the best peer's, {verdict}");
        }
    }
}

/// What trimming adds to the CPU time of a cleanup without it. Each byte that stays is proved by a
/// run in a process of its own, and these runs alone are the floor.
fn judge_trimming(subject: &Subject, name: &str, rows: &[Row]) {
    let (Some(without), Some(with)) = (ours(rows, Trim::Off), ours(rows, Trim::Signature)) else {
        return;
    };
    let blocks = without.kept.amount.bytes as f64 / TRIM.1;
    let each_block = |cost: Duration| cost.as_secs_f64() / blocks.max(f64::MIN_POSITIVE);
    let seconds = each_block(with.cost.cpu.saturating_sub(without.cost.cpu));
    let figure = format!("{name}: CPU time that trimming adds for each 8 KiB");
    let goal = Goal::AtMost(TRIM.0);
    let verdict = match fresh_runs(subject, with.kept.amount.bytes) {
        Ok(cost) => {
            let floor = Floor {
                work: "a bare run in a new process for each byte that stays",
                measured: each_block(cost.cpu),
            };
            compare_to_floor(&figure, seconds, "s", goal, floor)
        }
        Err(_) => compare(&figure, seconds, "s", goal),
    };
    println!("  trimming adds {seconds:.2} CPU s for each 8 KiB, {verdict}");
}

/// What so many runs cost by a bare executor, each in a new process.
fn fresh_runs(subject: &Subject, runs: u64) -> Result<Cost, ExecError> {
    let target = Target::new(Program::Path(subject.program.clone()));
    let inputs = vec![b"".as_slice(); AT_ONCE];
    let (made, cost) = cost::measure(|| {
        let mut executor = start(&target, Some(subject.way), Freshness::Fresh)?.executor;
        let mut left = usize::try_from(runs).unwrap_or(usize::MAX);
        while left > 0 {
            left -= executor.run_some(&inputs[..left.min(AT_ONCE)])?.len();
        }
        Ok(())
    });
    made.map(|()| cost)
}

/// What it costs to read each file of a corpus and to run it once by a bare executor, whose runs
/// share processes.
fn shared_runs(subject: &Subject, corpus: &Path) -> Result<Cost, String> {
    let target = Target::new(Program::Path(subject.program.clone()));
    let paths = files(corpus)?;
    let (made, cost) = cost::measure(|| {
        let started = start(&target, Some(subject.way), Freshness::Shared);
        let mut executor = started.map_err(|error| error.to_string())?.executor;
        executor.report_coverage(CoverageReporting::Every);
        for paths in paths.chunks(AT_ONCE) {
            let inputs: Result<Vec<_>, _> = paths.iter().map(std::fs::read).collect();
            let inputs = inputs.map_err(|error| error.to_string())?;
            let mut left: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            while !left.is_empty() {
                let runs = executor
                    .run_some(&left)
                    .map_err(|error| error.to_string())?;
                left.drain(..runs.len());
            }
        }
        Ok(())
    });
    made.map(|()| cost)
}
