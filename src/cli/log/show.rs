//! `ddfuzz log show`: shows how the input shrank, as a table and a curve.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::read;
use crate::cli::output::print_bytes;
use crate::cli::results::{file_or_stdin, is_same_file, is_standard};
use crate::cli::{Exit, Failure, Output, ui};
use crate::files::atomic;
use crate::minimize::Claim;
use crate::minimize::log::{OsText, StartLine};
use crate::report::text::printable;
use crate::report::{MinimizationHistory, Pass, Reduction, curve, passes_table, size, svg};

/// Maximum number of reductions (candidates that became the new best) that `ddfuzz log show` lists
/// without `-v`.
const LISTED: usize = 20;

/// Options of `ddfuzz log show`, which shows a minimization from its log.
#[derive(clap::Args)]
pub struct LogShowArgs {
    /// The minimization log; - is stdin
    #[arg(value_parser = file_or_stdin())]
    log: PathBuf,
    /// Also draw the curve of sizes into this SVG file; - is stdout
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Overwrite the SVG file
    #[arg(long, requires = "svg")]
    force: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    start: &'a StartLine,
    steps: &'a [Reduction],
    passes: &'a [Pass],
    tests: u64,
    executed: u64,
    claim: Option<Claim>,
    svg: Option<OsText>,
}

pub fn run(args: &LogShowArgs, output: &Output) -> Result<Exit, Failure> {
    let (log, start) = read(&args.log, Exit::Usage)?;
    let lines = log.lines.iter().map(|(_, line)| line);
    let shrinking = MinimizationHistory::of(&start, lines);
    let name = args.log.display().to_string();
    let svg = args.svg.as_deref().filter(|file| !is_standard(file));
    let output = match args.svg.is_some() && svg.is_none() {
        true => &output.beside_bytes()?,
        false => output,
    };
    if let Some(file) = &args.svg {
        draw(&shrinking, &args.log, file, args.force)?;
    }
    let shown = Shown {
        start: &start,
        steps: &shrinking.steps,
        passes: &shrinking.passes,
        tests: shrinking.tests,
        executed: shrinking.executed,
        claim: shrinking.claim,
        svg: svg.map(|file| {
            let absolute = std::path::absolute(file);
            OsText(absolute.unwrap_or_else(|_| file.to_owned()).into())
        }),
    };
    output.result(&text(&name, &shrinking, output), &shown);
    Ok(Exit::Done)
}

fn title(name: &str, shrinking: &MinimizationHistory) -> String {
    let sizes = shrinking.sizes();
    let claim = match shrinking.claim {
        Some(claim) => claim.to_string(),
        None => "unfinished".to_owned(),
    };
    let search = printable(&shrinking.search);
    format!("{name}: {search}, {sizes}, {claim}")
}

fn draw(
    shrinking: &MinimizationHistory,
    log: &Path,
    file: &Path,
    force: bool,
) -> Result<(), Failure> {
    if is_same_file(log, file) {
        let message = format!("{} is the log, which is only read", file.display());
        return Err(Failure::usage(message)
            .path(file)
            .hint("give another file with --svg"));
    }
    let name = log.file_name().unwrap_or(log.as_os_str());
    let drawing = svg(shrinking, &title(&name.to_string_lossy(), shrinking));
    if is_standard(file) {
        print_bytes(drawing.as_bytes());
        return Ok(());
    }
    let exists = !force && file.exists();
    let written = match force {
        true => atomic::write(file, drawing.as_bytes()),
        false => atomic::create_new(file, drawing.as_bytes()),
    };
    written.map_err(|error| match exists {
        true => Failure::new(Exit::Usage, "exists", "it exists already")
            .path(file)
            .hint("overwrite it with --force"),
        false => Failure::unwritten(file, error).or_hint("give another file"),
    })
}

fn text(name: &str, shrinking: &MinimizationHistory, output: &Output) -> String {
    let width = ui::stdout_width();
    let mut text = format!(
        "{} with {}, {}\n\n{}",
        printable(name),
        printable(&shrinking.search),
        shrinking.sizes(),
        curve(shrinking, width)
    );
    if !shrinking.steps.is_empty() {
        text.push_str(&steps(shrinking, output.verbose));
    }
    if !shrinking.passes.is_empty() {
        text.push_str(&format!("\n{}\n", passes_table(shrinking, width)));
    }
    let tests = format!(
        "{}, {} of them run",
        size::counted(shrinking.tests, "test"),
        size::grouped(shrinking.executed)
    );
    text.push_str(&match shrinking.claim {
        Some(claim) => format!("{tests}: {claim}"),
        None => format!("{tests} so far: unfinished"),
    });
    text
}

/// Formats the reductions of a minimization (candidates that became the new best) as a table: the
/// number of the test, the size, and the rule that proposed the candidate. `all`: whether all are
/// listed; else only the last 20 are.
fn steps(shrinking: &MinimizationHistory, all: bool) -> String {
    let steps = &shrinking.steps;
    let skipped = match all {
        true => 0,
        false => steps.len().saturating_sub(LISTED),
    };
    let mut text = format!("\n{:>10}  {:>10}  rule\n", "test", shrinking.units());
    if skipped > 0 {
        let earlier = size::counted(skipped as u64, "earlier reduction");
        text.push_str(&format!("{:>10}  {earlier}; -v lists all\n", "…"));
    }
    for step in &steps[skipped..] {
        text.push_str(&format!(
            "{:>10}  {:>10}  {}\n",
            step.i,
            step.size,
            printable(&step.rule)
        ));
    }
    text
}
