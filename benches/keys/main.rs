//! How far the groups of crashes are from bugs: by our keys, and by the formulas of LibAFL,
//! honggfuzz and ClusterFuzz on the same frames, for each build of the programs with planted bugs
//! in `tests/ground_truth`.
//!
//! `cargo bench --bench keys` prints the tables; `cargo test --test ground_truth` holds what is
//! promised of them.

#[path = "../../tests/ground_truth/bugs.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod bugs;
#[path = "../../tests/ground_truth/builds.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod builds;
#[path = "../../tests/compiled/mod.rs"]
mod compiled;
#[path = "../../tests/ground_truth/formulas.rs"]
mod formulas;
#[path = "../../tests/needs/mod.rs"]
mod needs;
#[path = "../../tests/ground_truth/runs.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod runs;
#[path = "../../tests/ground_truth/score.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod score;
#[path = "../../tests/ground_truth/table.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod table;

use builds::{
    Build, CRASHING, GCC_O2, LEAKING, LOOPING, OTHER_PLAIN, OWNED, RUST, RUST_BUILDS, RUST_RELEASE,
    SANITIZED, SPINNING, STATIC_STRIPPED, STRIPPED, Source,
};
use ddfuzz::exec::Limits;

fn main() {
    // Cargo says so when it is to measure; else it only wants to see that it runs.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let all = [GCC_O2, STRIPPED, STATIC_STRIPPED];
    let all = all.into_iter().chain(OTHER_PLAIN).chain(SANITIZED);
    for build in all.take(if measures { usize::MAX } else { 1 }) {
        print(&build, &CRASHING, runs::generous());
    }
    if measures {
        RUST_BUILDS
            .iter()
            .for_each(|build| print(build, &RUST, runs::generous()));
        print(&GCC_O2, &LOOPING, runs::tight());
        print(&STRIPPED, &LOOPING, runs::tight());
        print(&RUST_RELEASE, &SPINNING, runs::tight());
        SANITIZED
            .iter()
            .for_each(|build| print(build, &OWNED, runs::generous()));
        print(&SANITIZED[0], &LEAKING, runs::tight());
    }
}

fn print(build: &Build, sources: &'static [Source], limits: Limits) {
    if build.possible() {
        let examine = |source| runs::examine(build, source, limits, |all| all);
        let seen: Vec<_> = sources.iter().flat_map(examine).collect();
        println!("{}", table::Table::of(build.name, &seen));
    }
}
