//! How many units the builds of a search compile, against a build from scratch for each test.
//!
//! The compiler of the generated programs notes the file and the checksum of each unit that it
//! compiles. The different notes are the units that the tested versions have: no build compiles fewer.

use std::collections::HashSet;

use crate::repositories::{File, create, settings};
use crate::{changes, executed, needs, places, result};

/// Number of units of a generated program.
const UNITS: u64 = 25;

/// Compiles each part to an object, and notes what it compiles in the file `COUNT`.
const MAKEFILE: &str = "all: $(patsubst %.conf,%.o,$(wildcard part*/*.conf))\n\
    %.o: %.conf\n\t@cksum $< >>$(COUNT)\n\t@cp $< $@\n";

/// What the builds of a search have compiled.
#[derive(Debug)]
struct Compiled {
    /// Number of units that were compiled.
    units: u64,
    /// Number of different units that the tested versions have.
    different: u64,
    /// Number of units that a build from scratch for each test, the checks of both versions and of the
    /// result among them, would compile.
    naive: u64,
}

impl Compiled {
    fn percent(&self, units: u64) -> u64 {
        (100 * units).div_ceil(self.naive)
    }
}

/// Searches a generated program with these sizes (commits, hunks); `None` without `make`.
fn compiled(seed: u64, sizes: (usize, usize), causes: usize, options: &[&str]) -> Option<Compiled> {
    needs::program("make")?;
    let mut case = settings(seed, sizes.0, sizes.1, causes);
    for commit in &mut case.commits {
        commit
            .files
            .insert(b"Makefile".to_vec(), File::from(MAKEFILE));
    }
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("repository"), &case.commits);
    let notes = folder.path().join("notes");
    let (build, test) = (
        format!("make -s COUNT={}", notes.display()),
        case.test.replace(".conf", ".o"),
    );
    let words = crate::by_build(&build, &test);
    let found = result(changes(folder.path(), &words).args(options));
    let mut found_places = places(&found);
    found_places.sort();
    assert_eq!(found_places, case.causes, "seed {seed}");
    let notes = std::fs::read_to_string(notes).unwrap();
    let tests = executed(&found) + found["tests"]["checks"].as_u64().unwrap();
    let compiled = Compiled {
        units: notes.lines().count() as u64,
        different: notes.lines().collect::<HashSet<_>>().len() as u64,
        naive: UNITS * tests,
    };
    println!(
        "{causes} causes {sizes:?} {options:?} seed {seed}: {tests} tests, {compiled:?}, {} %, at least {} %",
        compiled.percent(compiled.units),
        compiled.percent(compiled.different)
    );
    Some(compiled)
}

#[test]
fn without_a_history_a_seventh_is_compiled() {
    let Some(compiled) = compiled(81, (5, 214), 1, &["--no-history"]) else {
        return;
    };
    assert!(compiled.percent(compiled.units) <= 15, "{compiled:?}");
}

#[test]
fn along_a_history_hardly_more_is_compiled_than_the_versions_differ() {
    for (seed, causes) in [(90, 1), (92, 2)] {
        let Some(compiled) = compiled(seed, (50, 214), causes, &[]) else {
            return;
        };
        assert!(3 * compiled.units <= 4 * compiled.different, "{compiled:?}");
    }
}
