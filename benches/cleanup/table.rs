//! The table of one corpus: what each tool keeps of it, what that reaches, and what it took.

use crate::builds::Builds;
use crate::corpora::corpus;
use crate::cost::Cost;
use crate::options::Options;
use crate::ruler::{self, Measured};
use crate::subjects::Subject;
use crate::tools::{Tool, Trim};

/// In relation to the best peer: CPU time without trimming, and bytes with it. libFuzzer's own
/// count is part of that time.
const PROMISED: (f64, f64) = (3.0, 0.5);

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
            Err(why) => println!("{:<26} failed: {why}", tool.name()),
        }
    }
    judge(&rows);
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
fn judge(rows: &[Row]) {
    let mut peers: Vec<&Row> = rows.iter().filter(|row| !row.tool.is_ours()).collect();
    if peers.iter().any(|row| row.lost == 0) {
        peers.retain(|row| row.lost == 0);
    }
    let best = |of: fn(&Row) -> f64| peers.iter().map(|row| of(row)).min_by(f64::total_cmp);
    let ours = |trim: Trim| {
        rows.iter()
            .find(|row| matches!(row.tool, Tool::Ddfuzz(own) if own == trim))
    };
    let files: fn(&Row) -> f64 = |row| row.kept.amount.files as f64;
    let bytes: fn(&Row) -> f64 = |row| row.kept.amount.bytes as f64;
    let cpu: fn(&Row) -> f64 = |row| row.cost.cpu.as_secs_f64();
    let promises = [
        ("files, --trim off", Trim::Off, files, 1.0),
        ("bytes, --trim off", Trim::Off, bytes, 1.0),
        ("CPU time, --trim off", Trim::Off, cpu, PROMISED.0),
        (
            "bytes, --trim signature",
            Trim::Signature,
            bytes,
            PROMISED.1,
        ),
        ("bytes, --trim worth", Trim::Worth, bytes, PROMISED.1),
    ];
    for (what, trim, of, promised) in promises {
        if let (Some(ours), Some(best)) = (ours(trim), best(of)) {
            let ratio = of(ours) / best.max(f64::MIN_POSITIVE);
            println!(
                "  {what}: {ratio:.2} of the best peer's, promised <= {promised:.2}: {}",
                verdict(ratio <= promised)
            );
        }
    }
    judge_by_libfuzzer(rows);
    for row in rows.iter().filter(|row| row.tool.is_ours()) {
        println!(
            "  features, {}: {} lost, promised 0: {}",
            row.tool.name(),
            row.lost,
            verdict(row.lost == 0)
        );
    }
}

/// By libFuzzer's own count none of ours is to come to less than any peer, but for a thousandth,
/// which is chance where coverage is flaky.
fn judge_by_libfuzzer(rows: &[Row]) {
    let peers = rows.iter().filter(|row| !row.tool.is_ours());
    let best = peers.filter_map(|row| row.kept.own.map(|own| own.ft));
    let Some(best) = best.max_by(f64::total_cmp) else {
        return;
    };
    for row in rows.iter().filter(|row| row.tool.is_ours()) {
        if let Some(own) = row.kept.own {
            println!(
                "  ft, {}: {:.4} of the best peer's, promised >= 0.999: {}",
                row.tool.name(),
                own.ft / best,
                verdict(own.ft >= best * 0.999)
            );
        }
    }
}

/// Whether a promise is kept, in words.
pub fn verdict(is_kept: bool) -> &'static str {
    if is_kept { "kept" } else { "not kept" }
}
