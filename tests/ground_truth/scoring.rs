use crate::builds::*;
use crate::runs::{examine, generous};
use crate::table::Table;

#[test]
fn all_builds_print_tables() {
    for build in [GCC_O2, STRIPPED, STATIC_STRIPPED].into_iter().chain(OTHER_PLAIN).chain(SANITIZED) {
        let began = std::time::Instant::now();
        let seen: Vec<_> = CRASHING.iter().flat_map(|source| examine(&build, source, generous(), |all| all)).collect();
        println!("{} {:?}", Table::of(build.name, &seen), began.elapsed());
    }
}
