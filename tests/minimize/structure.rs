//! Structures in the log: they are recorded, predicted tests are counted and prove nothing, and logs
//! with and without a structure are resumed and replayed.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::{Log, NO_STRUCTURE, Source, StartLine};
use ddfuzz::minimize::{Claim, MinimizeError, Options, replay, usual_language};

use crate::failures::without_times;
use crate::scripted::{outcomes, resume_with, run_with, start_by};

const PROGRAM: &[u8] =
    b"int one(int a) { return a + 1; }\nint two(char *b) { one(2); return *b; }\n\
    int three(void) { if (one(3)) { crash(one(4), 5); } return 0; }\n";

/// Fails if the text has balanced brackets and calls `crash`.
fn fails(text: &[u8]) -> Outcome {
    let has = text.windows(6).any(|bytes| bytes == b"crash(");
    let count = |wanted: u8| text.iter().filter(|byte| **byte == wanted).count();
    match has && count(b'(') == count(b')') && count(b'{') == count(b'}') {
        true => Outcome::Fail,
        false => Outcome::Pass,
    }
}

fn start(chosen: Option<&str>) -> StartLine {
    let mut start = start_by(PROGRAM, "full");
    start.structure = ddfuzz::minimize::structure_name("full", PROGRAM);
    start.use_structure(chosen);
    start
}

fn minimized(start: StartLine) -> (ddfuzz::minimize::Minimized, Vec<u8>) {
    let mut oracle = outcomes(fails);
    let (result, log) = run_with(PROGRAM, start, &mut oracle, &mut Options::default());
    (result.expect("a result"), log)
}

#[test]
fn predicted_tests_are_counted_and_prove_nothing() {
    let (result, log) = minimized(start(None));
    let parsed = Log::parse(&log).expect("a log");
    let structure = parsed
        .start
        .as_ref()
        .and_then(|start| start.structure.as_deref());
    assert_eq!(structure, Some("c"));
    assert_eq!(result.text, b"crash()");
    assert_eq!(result.claim, Claim::OneMinimal);
    assert!(result.counts.predicted > 0);
    let predicted = parsed.lines.iter().filter(|(_, line)| {
        matches!(line, ddfuzz::minimize::log::Line::Test(test) if test.source == Source::Predicted)
    });
    assert_eq!(predicted.count() as u64, result.counts.predicted);
    let replayed = replay(PROGRAM, &parsed).expect("it holds");
    assert_eq!(replayed.minimized, Some(result));
}

#[test]
fn logs_with_and_without_a_structure_are_resumed_to_the_same_log() {
    for chosen in [None, Some(NO_STRUCTURE), Some("text"), Some("javascript")] {
        let (result, whole) = minimized(start(chosen));
        for part in 1..12 {
            let cut = whole.len() * part / 12;
            // The log decides, whatever is recognized or chosen now.
            let (resumed, log) = resume_with(
                PROGRAM,
                start(None),
                &whole[..cut],
                &mut outcomes(fails),
                &mut Options::default(),
            );
            assert_eq!(
                resumed.expect("a result").text,
                result.text,
                "{chosen:?} {part}"
            );
            assert_eq!(
                without_times(&log),
                without_times(&whole),
                "{chosen:?} {part}"
            );
        }
    }
}

#[test]
fn an_unknown_structure_is_an_error() {
    let mut oracle = outcomes(fails);
    let start = start(Some("klingon"));
    let (result, _) = run_with(PROGRAM, start, &mut oracle, &mut Options::default());
    match result {
        Err(MinimizeError::UnknownStructure(unknown)) => {
            assert!(unknown.to_string().contains("klingon") && unknown.to_string().contains("png"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn texts_of_a_target_are_parsed_by_the_language_of_most_seeds() {
    let seeds: [&[u8]; 4] = [PROGRAM, b"no program", PROGRAM, PROGRAM];
    let usual = usual_language(seeds.into_iter());
    assert_eq!(usual.as_deref(), Some("c"));
    assert_eq!(usual_language(seeds[..2].iter().copied()), None);
    assert_eq!(usual_language([].into_iter()), None);
    for (input, structure) in [
        (&b"int f( crash(1) { {{ }"[..], Some("c")),
        (b"\x00\x01\x02", Some("binary")),
        (
            b"[1, {\"a\": [true, null]}, 2, 3, \"b\", \"c\", [4, 5, 6]]",
            Some("json"),
        ),
    ] {
        let mut start = start_by(input, "full");
        start.structure = ddfuzz::minimize::structure_name("full", input);
        start.use_language(usual.as_deref());
        assert_eq!(start.structure.as_deref(), structure);
    }
    let mut start = start_by(b"int f( crash(1)", "ddmin");
    start.use_language(usual.as_deref());
    assert_eq!(start.structure, None, "only `full` uses structures");
}
