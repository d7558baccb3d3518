//! The curves of the simulated case studies of ESEC 1999 in the book: tests against remaining changes,
//! drawn as `ddfuzz log show --svg` draws a log.

use ddfuzz::report::{MinimizationHistory, Reduction, TestPoint, svg};

use crate::simulation::{Program, ddd, gdb};

/// The course of a search as a log of it would tell it.
fn history(program: &Program, changes: usize) -> MinimizationHistory {
    let mut history = MinimizationHistory {
        search: "changes".to_owned(),
        unit: "change",
        size_before: changes as u64,
        size_after: changes as u64,
        tests: program.tests as u64,
        executed: program.tests as u64,
        ..MinimizationHistory::default()
    };
    for (at, (size, failed)) in program.points.iter().enumerate() {
        let (executed, size) = (at as u64 + 1, *size as u64);
        history.dots.push(TestPoint {
            executed,
            size,
            failed: *failed,
        });
        if *failed && size < history.size_after {
            history.size_after = size;
            history.steps.push(Reduction {
                i: at as u64,
                executed,
                rule: "changes".to_owned(),
                size,
            });
        }
    }
    history
}

#[test]
fn the_curves_in_the_book_are_those_of_the_simulations() {
    let seed = 1;
    for (name, mut program, changes) in [("ddd", ddd(seed).0, 344), ("gdb", gdb(seed), 8721)] {
        program.minimized();
        let history = history(&program, changes);
        let title = format!(
            "{} (simulated): {}, {} tests",
            name.to_uppercase(),
            history.sizes(),
            history.tests
        );
        let path = format!("{}/docs/src/changes-{name}.svg", env!("CARGO_MANIFEST_DIR"));
        let drawn = svg(&history, &title);
        if std::env::var_os("DDFUZZ_DRAW").is_some() {
            std::fs::write(&path, &drawn).unwrap();
        }
        let shown = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            shown == drawn,
            "draw {path} again: DDFUZZ_DRAW=1 cargo test --test changes curves"
        );
    }
}
