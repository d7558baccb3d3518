//! What tells classes apart, and what does not.

use ddfuzz::corpus::behaviour::Aspect;
use ddfuzz::exec::{Ended, Way};
use ddfuzz::minimize::log::ContentHash;

use super::measured;
use crate::places::{manners, target};

/// By each way that runs an unmodified program.
const WAYS: [Way; 2] = [Way::Command, Way::Inject];

#[test]
fn inputs_on_which_nothing_differs_are_one_class() {
    for way in WAYS {
        let inputs: [&[u8]; 3] = [b"babc", b"bxyz", b"bab"];
        let (of, classes) = measured(&target(manners(&[])), way, &inputs);
        assert_eq!(of[inputs[0]], of[inputs[1]], "{way}");
        assert_eq!(of[inputs[0]].varies, [], "{way}");
        assert_eq!(of[inputs[0]].lacks, [], "{way}");
        assert_eq!(of[inputs[0]].read, Some(4), "{way}");
        assert_ne!(of[inputs[0]].class(), of[inputs[2]].class(), "{way}");
        assert_eq!(classes.len(), 2, "{way}");
        let least = *inputs[..2]
            .iter()
            .min_by_key(|it| ContentHash::of(it).to_string())
            .unwrap();
        let kept = [b"bab", least].map(ContentHash::of);
        assert_eq!(classes.kept(), kept, "{way}");
        let class = of[inputs[0]].class();
        assert_eq!(
            classes.of(class),
            Some((ContentHash::of(least), 2)),
            "{way}"
        );
    }
}

#[test]
fn outputs_and_statuses_tell_classes_apart() {
    for way in WAYS {
        let inputs: [&[u8]; 6] = [b"oxy", b"oyx", b"exy", b"x1", b"x2", b"s12345"];
        let (of, classes) = measured(&target(manners(&[])), way, &inputs);
        assert_eq!(classes.len(), inputs.len(), "{way}: {of:#?}");
        let out = of[inputs[0]].stdout.unwrap();
        assert_eq!((out.bytes, out.hash), (2, ContentHash::of(b"xy")), "{way}");
        let err = of[inputs[2]].stderr.unwrap();
        assert_eq!((err.bytes, err.hash), (2, ContentHash::of(b"xy")), "{way}");
        assert_eq!(of[inputs[3]].ended, Ended::Exit(1), "{way}");
        assert_eq!(of[inputs[5]].read, Some(3), "{way}");
    }
}

#[test]
fn the_places_that_read_tell_classes_apart() {
    for flags in [&[][..], &["-s"], &["-static"]] {
        let inputs: [&[u8]; 4] = [b"labc", b"rabc", b"lxyz", b"rxyz"];
        let (of, classes) = measured(&target(manners(flags)), Way::Command, &inputs);
        assert_eq!(classes.len(), 2, "{flags:?}: {of:#?}");
        assert_eq!(of[inputs[0]].class(), of[inputs[2]].class(), "{flags:?}");
        assert_ne!(of[inputs[0]].stacks, of[inputs[1]].stacks, "{flags:?}");
        assert_eq!(of[inputs[0]].read, of[inputs[1]].read, "{flags:?}");
    }
}

#[test]
fn what_is_another_each_time_does_not_count() {
    let inputs: [&[u8]; 7] = [
        b"pabc", b"pxyz", b"tabc", b"txyz", b"aabc", b"axyz", b"babc",
    ];
    let (of, classes) = measured(&target(manners(&["-pie", "-fPIE"])), Way::Command, &inputs);
    for pair in inputs[..6].chunks(2) {
        assert_eq!(of[pair[0]].varies, [Aspect::Stdout], "{pair:?}");
        assert_eq!(of[pair[0]].stdout, None, "{pair:?}");
        assert_eq!(of[pair[0]].class(), of[pair[1]].class(), "{pair:?}");
    }
    assert_eq!(of[inputs[6]].varies, []);
    assert_eq!(
        classes.varies().iter().collect::<Vec<_>>(),
        [&Aspect::Stdout]
    );
}

#[test]
fn what_does_not_end_well_says_so_and_is_run_once() {
    let inputs: [&[u8]; 4] = [b"h", b"c", b"m", b"b"];
    let (of, _) = measured(&target(manners(&[])), Way::Inject, &inputs);
    assert_eq!(of[inputs[0]].ended, Ended::Timeout);
    assert_eq!(of[inputs[1]].ended, Ended::Signal(11));
    assert_eq!(of[inputs[2]].ended, Ended::OutOfMemory);
    assert_eq!(of[inputs[3]].ended, Ended::Exit(0));
}

#[test]
fn inputs_in_files_are_followed_as_well() {
    let Some(cut) = crate::needs::program("cut") else {
        return;
    };
    let target = ddfuzz::exec::Target {
        args: vec!["-c1".into(), "@@".into()],
        ..target(cut)
    };
    let inputs: [&[u8]; 3] = [b"abc\n", b"axy\n", b"bcd\n"];
    let (of, classes) = measured(&target, Way::Command, &inputs);
    assert_eq!(of[inputs[0]].lacks, [Aspect::Read]);
    assert!(of[inputs[0]].stacks.is_some());
    assert_eq!(classes.len(), 2);
    assert_eq!(classes.lacks().iter().collect::<Vec<_>>(), [&Aspect::Read]);
}

#[test]
fn a_target_that_is_fed_in_memory_goes_without_stacks() {
    let bundled = ddfuzz::exec::Program::Bundled("crtplot".to_owned());
    let target = ddfuzz::exec::Target::new(bundled);
    let (of, _) = measured(&target, Way::Harness, &[b"move 1 2\n"]);
    let of = &of[&b"move 1 2\n"[..]];
    assert_eq!(of.lacks, [Aspect::Read, Aspect::Stacks]);
    assert!(of.ended.is_exit());
}
