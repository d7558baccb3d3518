//! Programs of the system.

use ddfuzz::exec::{Target, Way};

use super::measured;
use crate::needs;
use crate::places::target;

#[test]
fn utilities_have_few_classes_and_nothing_varies() {
    let texts: Vec<Vec<u8>> = (0..12)
        .map(|at| format!("{}\n", "ab ".repeat(1 + at % 3)).into_bytes())
        .chain((0..6).map(|at| vec![b'x'; at % 2 + 1]))
        .collect();
    let mut inputs: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    inputs.sort();
    inputs.dedup();
    for (name, args, classes) in [
        ("wc", vec![], 5),
        ("sort", vec![], 5),
        ("tr", vec!["-d", "a-z"], 5),
    ] {
        let Some(program) = needs::program(name) else {
            continue;
        };
        let target = Target {
            args: args.into_iter().map(Into::into).collect(),
            ..target(program)
        };
        let (of, found) = measured(&target, Way::Inject, &inputs);
        assert!(
            of.values().all(|one| one.varies.is_empty()),
            "{name}: {of:#?}"
        );
        assert!(
            of.values().all(|one| one.lacks.is_empty()),
            "{name}: {of:#?}"
        );
        assert_eq!(found.len(), classes, "{name}");
    }
}
