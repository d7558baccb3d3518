//! Which subjects are compared on which program, and what is promised of them.

use std::path::Path;

use ddfuzz::exec::{Freshness, Program, Target, Way};

use crate::programs::Programs;
use crate::sheet::{Promise, Sheet};
use crate::subjects::{Subject, afl_fuzz::AflFuzz, floor, test::InterestingnessTest, way::ByWay};

/// The least that a program can do: the cost of a way is nearly all there is.
pub fn tiny(programs: &Programs) -> Sheet {
    let path = programs.tiny();
    let mut sheet = Sheet::new("a tiny program, which reads its input and ends");
    sheet.add(floor::spawn(programs, &path));
    sheet.add(floor::fork(programs.tiny_fork_floor()));
    add_ways(&mut sheet, &Target::new(Program::Path(path.clone())));
    let anew = "interestingness test, executed anew";
    sheet.add(InterestingnessTest::new(anew, &path, Freshness::Fresh));
    sheet.add(InterestingnessTest::new(TEST, &path, Freshness::Shared));
    sheet.promise(Promise::micros(TEST, 40.0));
    sheet.promise(Promise::times("inject", "floor: posix_spawn", 4.0));
    sheet.promise(Promise::times("inject", "floor: fork", 0.8));
    sheet.promise(Promise::times(SNAPSHOTS, "floor: fork", 8.0));
    sheet
}

/// A small real one.
pub fn ul(programs: &Programs) -> Sheet {
    let mut sheet = Sheet::new("the bundled `ul`");
    sheet.add(floor::spawn(programs, &programs.ul()));
    sheet.add(floor::fork(programs.ul_fork_floor()));
    add_ways(&mut sheet, &Target::new(Program::Bundled("ul".to_owned())));
    sheet.promise(Promise::times("inject", "floor: posix_spawn", 2.5));
    sheet
}

/// A program of AFL++ that runs each input in a process of its own.
pub fn afl_plain(programs: &Programs) -> Sheet {
    let mut sheet = Sheet::new("`afl_plain.c` by afl-clang-fast, a fork a run");
    sheet.lengthen(4);
    add_fork_servers(&mut sheet, programs, "afl_plain", 1.0);
    sheet
}

/// One that runs many in the same process.
pub fn afl_persistent(programs: &Programs) -> Sheet {
    let mut sheet = Sheet::new("`afl_persistent.c` by afl-clang-fast, 10 000 runs a process");
    sheet.lengthen(25);
    add_fork_servers(&mut sheet, programs, "afl_persistent", 1.05);
    sheet
}

/// Whatever else somebody wants to know it of.
pub fn other(programs: &Programs, path: &Path) -> Sheet {
    let mut sheet = Sheet::new(&path.display().to_string());
    sheet.add(floor::spawn(programs, path));
    add_ways(&mut sheet, &Target::new(Program::Path(path.to_owned())));
    sheet
}

/// The subject of an interestingness test as a search runs it.
const TEST: &str = "interestingness test";
/// The subject of many inputs a request.
const SNAPSHOTS: &str = "snapshot, 64 at once";

fn add_ways(sheet: &mut Sheet, target: &Target) {
    let ways = [
        (Way::Command, Freshness::Shared, "command"),
        (Way::Inject, Freshness::Shared, "inject"),
        (Way::Snapshot, Freshness::Shared, "snapshot"),
        (Way::Snapshot, Freshness::Shared, SNAPSHOTS),
        (Way::Harness, Freshness::Fresh, "harness, fresh"),
        (Way::Harness, Freshness::Shared, "harness, shared"),
    ];
    for (way, freshness, name) in ways {
        let at_once = if name == SNAPSHOTS { 64 } else { 1 };
        match ByWay::new(name, target, way, freshness) {
            Ok(subject) => sheet.add(subject.with_inputs(at_once, usize::MAX)),
            Err(error) => sheet.note(format!("{name}: {error}")),
        }
    }
}

/// AFL++'s own use of the fork server in that program of this bench, and ours, which is to make
/// `times` as many runs.
fn add_fork_servers(sheet: &mut Sheet, programs: &Programs, name: &str, times: f64) {
    let path = match programs.instrumented(name) {
        Ok(path) => path,
        Err(why) => return sheet.note(format!("afl-fuzz, forkserver: {why}")),
    };
    match AflFuzz::new(&path) {
        Ok(subject) => sheet.add(subject),
        Err(why) => sheet.note(format!("afl-fuzz: {why}")),
    }
    let target = Target::new(Program::Path(path.clone()));
    match ByWay::new("forkserver", &target, Way::Forkserver, Freshness::Shared) {
        Ok(subject) => sheet.add(subject),
        Err(error) => sheet.note(format!("forkserver: {error}")),
    }
    sheet.add(floor::afl(programs, &path, name == "afl_persistent"));
    sheet.promise(Promise::times("forkserver", "afl-fuzz", times).with_floor(floor::AFL));
}

impl Sheet {
    fn add(&mut self, subject: impl Subject + 'static) {
        self.add_boxed(Box::new(subject));
    }
}
