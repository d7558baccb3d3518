//! Which subjects are compared on which program, and what is promised of them.

use std::path::Path;

use ddfuzz::exec::{Freshness, Program, Target, Way};

use crate::programs::Programs;
use crate::sheet::{Promise, Sheet};
use crate::subjects::{Subject, floor, way::ByWay};

/// The least that a program can do: the cost of a way is nearly all there is.
pub fn tiny(programs: &Programs) -> Sheet {
    let path = programs.tiny();
    let mut sheet = Sheet::new("a tiny program, which reads its input and ends");
    sheet.add(floor::spawn(programs, &path));
    sheet.add(floor::fork(programs.tiny_fork_floor()));
    add_ways(&mut sheet, &Target::new(Program::Path(path)));
    sheet.promise(Promise::times("inject", "floor: posix_spawn", 4.0));
    sheet.promise(Promise::times("inject", "floor: fork", 0.8));
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

/// Whatever else somebody wants to know it of.
pub fn other(programs: &Programs, path: &Path) -> Sheet {
    let mut sheet = Sheet::new(&path.display().to_string());
    sheet.add(floor::spawn(programs, path));
    add_ways(&mut sheet, &Target::new(Program::Path(path.to_owned())));
    sheet
}

fn add_ways(sheet: &mut Sheet, target: &Target) {
    let ways = [
        (Way::Command, Freshness::Shared, "command"),
        (Way::Inject, Freshness::Shared, "inject"),
        (Way::Harness, Freshness::Fresh, "harness, fresh"),
        (Way::Harness, Freshness::Shared, "harness, shared"),
    ];
    for (way, freshness, name) in ways {
        match ByWay::new(name, target, way, freshness) {
            Ok(subject) => sheet.add(subject),
            Err(error) => sheet.note(format!("{name}: {error}")),
        }
    }
}

impl Sheet {
    fn add(&mut self, subject: impl Subject + 'static) {
        self.add_boxed(Box::new(subject));
    }
}
