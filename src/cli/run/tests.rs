//! Tests of the options of `ddfuzz run`.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    run: RunArgs,
}

#[test]
fn a_resumed_call_that_names_the_target_keeps_the_limits_of_the_campaign() {
    let root = tempfile::tempdir().expect("a directory");
    let out = root.path().join("out");
    let named = |words: &str| {
        let words = format!("run -o {} {words}", out.display());
        let line = Line::try_parse_from(words.split(' ')).expect("the options are parsed");
        line.run.named_target().expect("a target")
    };
    let begun = named("--timeout 7s --memory 3G -- /bin/true x");
    let request = StoreRequest {
        out: &out,
        resume: false,
        seed: None,
    };
    drop(open_store(&request, &begun, Way::Command).expect("a campaign"));
    assert_eq!(named("--resume -- /bin/true x").limits, begun.limits);
    let longer = named("--resume --timeout 9s -- /bin/true x").limits;
    assert_eq!(longer.memory, begun.limits.memory);
    assert!(longer.cpu > begun.limits.cpu);
    for other in ["-- /bin/true x", "--resume -- /bin/true y"] {
        assert_ne!(named(other).limits, begun.limits, "{other}");
    }
}
