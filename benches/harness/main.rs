//! What the way `harness` costs with libFuzzer binaries, beside libFuzzer itself, in one run.
//!
//! `cargo bench --bench harness`. Three tables: passing runs against libFuzzer's own `-runs`;
//! failing runs against a bare fork of the same process; and minimization against libFuzzer's
//! `-minimize_crash=1` and `cargo fuzz tmin`. CPU time is that of all processes of a subject, and
//! each ratio is of figures from the same run.
//!
//! `cargo test` only sees whether each of them runs, with a few runs that measure nothing.

mod build;
#[path = "../cost/mod.rs"]
mod cost;
mod failing;
mod passing;
mod shrinking;

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Passing runs of one round.
    pub passing: usize,
    /// Failing runs of one round.
    pub failing: usize,
    /// How many rounds a median is of.
    pub rounds: usize,
    /// Seconds that a peer may minimize for.
    pub seconds: u64,
}

const MEASURE: Plan = Plan {
    passing: 1_000_000,
    failing: 1000,
    rounds: 5,
    seconds: 60,
};
const TRY: Plan = Plan {
    passing: 1000,
    failing: 5,
    rounds: 1,
    seconds: 2,
};

fn main() {
    // Cargo says so when it is to measure.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let plan = if measures { MEASURE } else { TRY };
    let folder = tempfile::tempdir().expect("a temporary directory");
    if let Err(why) = tables(&plan, folder.path(), measures) {
        println!("skipped: {why}");
    }
}

fn tables(plan: &Plan, folder: &std::path::Path, measures: bool) -> Result<(), String> {
    let binaries = build::all(folder)?;
    passing::table(plan, &binaries)?;
    failing::table(plan, &binaries)?;
    // A peer that has only a moment shows nothing.
    if measures {
        shrinking::table(plan, folder, &binaries)?;
    }
    Ok(())
}
