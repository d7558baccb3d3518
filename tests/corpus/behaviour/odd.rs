//! Targets that are not as most are, and machines that refuse something.

use ddfuzz::corpus::behaviour::Aspect;
use ddfuzz::exec::{Ended, Target, Way};
use ddfuzz::minimize::log::ContentHash;

use super::measured;
use crate::places::{manners, target};
use crate::refused::without_ptrace;

/// A shell that runs this script.
fn script(text: &str) -> Target {
    Target {
        args: vec!["-c".into(), text.into()],
        ..target("/bin/sh".into())
    }
}

#[test]
fn where_tracing_is_refused_classes_go_without_stacks_and_say_so() {
    let inputs: [&[u8]; 4] = [b"labc", b"rabc", b"oxyz", b"oxya"];
    let (of, classes) = without_ptrace(|| measured(&target(manners(&[])), Way::Inject, &inputs));
    assert_eq!(of[inputs[0]].lacks, [Aspect::Stacks]);
    assert_eq!(of[inputs[0]].class(), of[inputs[1]].class());
    assert_eq!(classes.len(), 3);
    assert_eq!(
        classes.lacks().iter().collect::<Vec<_>>(),
        [&Aspect::Stacks]
    );
}

#[test]
fn a_flood_of_output_takes_no_room_and_all_of_it_counts() {
    let flood = script("read -r last; head -c 4000000 /dev/zero; printf %s \"$last\"");
    let inputs: [&[u8]; 3] = [b"a\n", b"b\n", b"a\n\n"];
    let (of, _) = measured(&flood, Way::Command, &inputs);
    let bytes = |at: usize| of[inputs[at]].stdout.map(|output| output.bytes);
    assert_eq!([0, 1, 2].map(bytes), [Some(4_000_001); 3]);
    assert_eq!(of[inputs[0]].stdout, of[inputs[2]].stdout);
    assert_ne!(of[inputs[0]].stdout, of[inputs[1]].stdout);
}

#[test]
fn what_descendants_write_and_read_counts_as_well() {
    let family = script("(cat; echo end >&2) | tr a-z A-Z; exit 3");
    let inputs: [&[u8]; 2] = [b"abc", b"abd"];
    let (of, classes) = measured(&family, Way::Command, &inputs);
    let one = &of[inputs[0]];
    assert_eq!(one.stdout.unwrap().hash, ContentHash::of(b"ABC"));
    assert_eq!(one.stderr.unwrap().hash, ContentHash::of(b"end\n"));
    assert_eq!((one.ended, one.read), (Ended::Exit(3), Some(3)));
    assert_eq!(classes.len(), 2);
}

#[test]
fn nothing_of_one_run_counts_for_the_next() {
    // The first of each pair leaves a process that goes on writing.
    let leaves =
        script("read -r how; if [ $how = a ]; then (while :; do echo x; done) & fi; echo y");
    let texts: Vec<Vec<u8>> = (1..=6)
        .flat_map(|at| [b"a", b"b"].map(|how| [&how[..], &b"\n".repeat(at)].concat()))
        .collect();
    let inputs: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let (of, _) = measured(&leaves, Way::Command, &inputs);
    for quiet in inputs.iter().skip(1).step_by(2) {
        let written = of[*quiet].stdout.unwrap();
        assert_eq!(written.hash, ContentHash::of(b"y\n"), "{of:#?}");
    }
}

#[test]
fn an_empty_input_is_an_input() {
    let (of, classes) = measured(&target(manners(&[])), Way::Inject, &[b"", b"b"]);
    assert_eq!(of[&b""[..]].read, Some(0));
    assert_eq!(classes.len(), 2);
    assert_eq!(classes.kept(), [b"".as_slice(), b"b"].map(ContentHash::of));
}

#[test]
fn many_reads_from_one_place_are_one_stack_however_many_they_are() {
    let texts = [300, 500, 20_000].map(|length| [b"b".as_slice(), &vec![b'x'; length]].concat());
    let inputs: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let (of, _) = measured(&target(manners(&[])), Way::Inject, &inputs);
    let stacks = |at: usize| of[inputs[at]].stacks;
    assert!(stacks(0).is_some());
    assert_eq!(stacks(0), stacks(1));
    assert_eq!(stacks(0), stacks(2));
    assert_eq!(of[inputs[2]].read, Some(20_001));
}
