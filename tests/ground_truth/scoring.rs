//! Each build has its table, and what is promised of it holds.

use crate::bugs::first_of_each_route;
use crate::builds::{
    Build, CRASHING, GCC_O0, GCC_O2, LEAKING, LOOPING, OTHER_PLAIN, OWNED, RUST, RUST_BUILDS,
    RUST_RELEASE, SANITIZED, SPINNING, STATIC_STRIPPED, STRIPPED, Source,
};
use crate::pending::promises;
use crate::runs::{Seen, examine, examine_leaks, generous, looping, tight};
use crate::table::Table;
use ddfuzz::exec::Limits;

/// Largest share of groups too many, in percent of the bugs.
const PLAIN_OVER: f64 = 15.0;
/// Largest share of bugs lost.
const PLAIN_LOST: f64 = 5.0;
/// The first of the two for the minor key under sanitizers.
const SANITIZED_OVER: f64 = 17.0;
/// Bugs that may be lost in a static program without symbols: 3 of 42.
const STATIC_STRIPPED_LOST: f64 = 100.0 * 3.0 / 42.0;

type Promise = (String, bool, String);

/// The table of a build, printed; `None` where its compiler is missing.
fn table(build: &Build, sources: &'static [Source], limits: Limits) -> Option<Table> {
    if !build.possible() {
        return None;
    }
    let seen: Vec<_> = sources
        .iter()
        .flat_map(|source| examine(build, source, limits, |all| all))
        .collect();
    let table = Table::of(build.name, &seen);
    println!("{table}");
    Some(table)
}

fn promised(build: &str, what: &str, held: bool, figures: String) -> Promise {
    (format!("{build}: {what}"), held, figures)
}

fn all_crash(build: &str, table: &Table) -> Promise {
    let missed = table.missed.join(", ");
    promised(
        build,
        "each input crashes",
        table.missed.is_empty(),
        format!("no crash: {missed}"),
    )
}

/// Ours is better than each of the others on over + 3 × lost.
fn best(build: &str, table: &Table, ours: usize) -> Promise {
    let least = table.others.iter().min_by_key(|(_, score)| score.sum());
    let (name, score) = least.expect("there are others");
    promised(
        build,
        "better than all others",
        ours < score.sum(),
        format!("{ours}, and {name} {}", score.sum()),
    )
}

fn plain(build: &Build) {
    let Some(table) = table(build, &CRASHING, generous()) else {
        return;
    };
    let (name, major) = (build.name, &table.major);
    promises(&[
        all_crash(name, &table),
        best(name, &table, major.sum()),
        promised(
            name,
            "no bug lost by minor",
            table.minor.lost.is_empty(),
            format!("{:?}", table.minor.lost),
        ),
        promised(
            name,
            "few groups too many",
            major.over_percent() <= PLAIN_OVER,
            format!("{:.1} %", major.over_percent()),
        ),
        promised(
            name,
            "few bugs lost",
            major.lost_percent() <= PLAIN_LOST,
            format!("{:.1} %: {:?}", major.lost_percent(), major.lost),
        ),
    ]);
}

#[test]
fn an_optimized_program_is_grouped_by_bug() {
    plain(&GCC_O2);
}

#[test]
fn a_stripped_program_is_grouped_by_bug() {
    plain(&STRIPPED);
}

#[test]
fn other_plain_builds_are_grouped_better_than_by_others() {
    for build in &OTHER_PLAIN {
        let Some(table) = table(build, &CRASHING, generous()) else {
            continue;
        };
        let best = best(build.name, &table, table.major.sum());
        promises(&[all_crash(build.name, &table), best]);
    }
}

#[test]
fn a_static_program_without_symbols_loses_few_bugs() {
    let build = &STATIC_STRIPPED;
    let table = table(build, &CRASHING, generous()).expect("gcc is there");
    promises(&[
        all_crash(build.name, &table),
        best(build.name, &table, table.major.sum()),
        promised(
            build.name,
            "few bugs lost",
            table.major.lost_percent() <= STATIC_STRIPPED_LOST,
            format!("{:?}", table.major.lost),
        ),
    ]);
}

#[test]
fn sanitized_programs_are_grouped_by_bug() {
    for build in &SANITIZED {
        let Some(table) = table(build, &CRASHING, generous()) else {
            continue;
        };
        let (name, minor) = (build.name, &table.minor);
        promises(&[
            all_crash(name, &table),
            best(name, &table, minor.sum().min(table.major.sum())),
            promised(
                name,
                "few groups too many by minor",
                minor.over_percent() <= SANITIZED_OVER,
                format!("{:.1} %", minor.over_percent()),
            ),
            promised(
                name,
                "no two bugs in one group by minor",
                minor.under == 0,
                format!("under {}", minor.under),
            ),
            promised(
                name,
                "no bug lost by minor",
                minor.lost.is_empty(),
                format!("{:?}", minor.lost),
            ),
        ]);
    }
}

#[test]
fn bugs_in_one_helper_are_told_apart_by_the_objects_of_reports() {
    for build in &SANITIZED {
        let Some(table) = table(build, &OWNED, generous()) else {
            continue;
        };
        let (name, major) = (build.name, &table.major);
        let of = |formula: &str| {
            let found = table.of_objects.iter().find(|(name, _)| *name == formula);
            found.expect("it is scored").1.sum()
        };
        let others = ["nothing", "function", "overflow"];
        let least = others
            .map(|other| of(&format!("major, {other}")))
            .into_iter()
            .min();
        promises(&[
            all_crash(name, &table),
            promised(
                name,
                "the major key takes in of objects what tells most",
                Some(major.sum()) <= least,
                format!("{}, not {least:?}", major.sum()),
            ),
            // Two whose memory is taken by one function.
            promised(
                name,
                "few bugs of one helper are lost",
                major.lost.len() <= 1,
                format!("{:?}", major.lost),
            ),
            promised(
                name,
                "no bug of one helper is lost by minor",
                table.minor.lost.is_empty(),
                format!("{:?}", table.minor.lost),
            ),
        ]);
    }
}

#[test]
fn panics_are_grouped_by_bug() {
    for build in &RUST_BUILDS {
        let table = table(build, &RUST, generous()).expect("rustc is there");
        let major = &table.major;
        promises(&[
            all_crash(build.name, &table),
            promised(
                build.name,
                "panics are bugs one to one",
                (major.over, major.under, major.lost.len()) == (0, 0, 0),
                format!("{major:?}"),
            ),
        ]);
    }
}

/// Of what neither crashes nor ends: all groups right.
fn all_right(build: &Build, what: &str, seen: &[Seen]) {
    let table = Table::of(build.name, seen);
    println!("{table}");
    let major = &table.major;
    promises(&[promised(
        build.name,
        what,
        table.missed.is_empty() && major.over == 0 && major.under == 0,
        format!("{major:?}; no record: {:?}", table.missed),
    )]);
}

#[test]
fn hangs_and_memory_limits_are_grouped_by_bug() {
    let _alone = crate::alone_with_hangs();
    let looping_in_c = [GCC_O2, STRIPPED, GCC_O0].map(|build| (build, &LOOPING[0]));
    let spinning = RUST_BUILDS.map(|build| (build, &SPINNING[0]));
    for (build, source) in looping_in_c.into_iter().chain(spinning) {
        // That two inputs of one route are one bug shows in one build of each language.
        let two = [GCC_O2.name, RUST_RELEASE.name].contains(&build.name);
        let inputs = if two { 2 } else { 1 };
        let look = || -> Vec<_> {
            // Each takes as long as it may.
            looping(first_of_each_route(&source.planted(), inputs), tight())
                .into_iter()
                .flat_map(|(planted, limits)| examine(&build, source, limits, |_| planted))
                .collect()
        };
        let mut seen = look();
        // Of a process that is starved for its whole wall limit only the place where it stood is
        // known: on a machine so busy all are asked once more.
        if Table::of(build.name, &seen).major.over > 0 {
            seen = look();
        }
        all_right(&build, "hangs are bugs one to one", &seen);
    }
}

#[test]
fn leaks_are_grouped_by_bug() {
    for build in &SANITIZED[..2] {
        if build.possible() {
            let seen = examine_leaks(build, &LEAKING[0]);
            all_right(build, "leaks are bugs one to one", &seen);
        }
    }
}
