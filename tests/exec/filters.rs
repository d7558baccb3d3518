//! Installed programs end alike by the injected runtime and by `execve`.

use ddfuzz::exec::{Freshness, Way, start};

use crate::conformance::inputs;
use crate::needs;
use crate::programs::patient;

/// Filters that every Debian system has, with their arguments.
const FILTERS: [(&str, &[&str]); 36] = [
    ("base32", &["-d"]),
    ("base64", &[]),
    ("base64", &["-d"]),
    ("cat", &["-A"]),
    ("cksum", &[]),
    ("comm", &["/etc/passwd", "-"]),
    ("csplit", &["-", "/a/"]),
    ("cut", &["-c", "2-5"]),
    ("dd", &["bs=7", "status=none"]),
    ("diff", &["-", "/etc/passwd"]),
    ("expand", &["-t", "3"]),
    ("factor", &[]),
    ("fmt", &["-w", "20"]),
    ("fold", &["-s", "-w", "10"]),
    ("grep", &["-c", "a[0-9]*"]),
    ("head", &["-n", "3"]),
    ("join", &["-", "/etc/passwd"]),
    ("md5sum", &[]),
    ("nl", &["-ba"]),
    ("od", &["-c"]),
    ("paste", &["-", "-"]),
    ("pr", &["-3"]),
    ("ptx", &[]),
    ("rev", &[]),
    ("sed", &["s/a/b/g"]),
    ("sha256sum", &["-c"]),
    ("shuf", &["-n", "2"]),
    ("sort", &["-n"]),
    ("split", &["-b", "100"]),
    ("sum", &[]),
    ("tac", &[]),
    ("tail", &["-c", "5"]),
    ("tr", &["a-z", "A-Z"]),
    ("tsort", &[]),
    ("uniq", &["-c"]),
    ("wc", &[]),
];

#[test]
fn installed_filters_end_alike_by_inject_and_by_command() {
    for (name, args) in FILTERS {
        let Some(path) = needs::program(name) else {
            continue;
        };
        let mut target = patient(ddfuzz::exec::Program::Path(path));
        target.args = args.iter().map(Into::into).collect();
        let executor = |way| {
            let started = start(&target, Some(way), Freshness::Fresh);
            started
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .executor
        };
        let (mut command, mut inject) = (executor(Way::Command), executor(Way::Inject));
        for (index, input) in inputs(36).enumerate() {
            let expected = command.run(&input).unwrap().ended;
            let ended = inject.run(&input).unwrap().ended;
            assert_eq!(ended, expected, "{name} {args:?}, input {index}");
        }
    }
}
