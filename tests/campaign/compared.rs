//! What runs of real programs compare, as the mutators of the guided campaign use it.

use ddfuzz::campaign::ComparisonValues;
use ddfuzz::delta::Comparison;
use ddfuzz::exec::{Freshness, Way, observe};
use libafl::observers::cmp::CmpValues;
use libafl_bolts::ToSlice;

use crate::programs::{Compiled, compile, compile_by, patient};

/// What a run of the program that refuses its input by `how` has compared.
fn compared(how: &str, input: &[u8]) -> ComparisonValues {
    compared_by(
        &compile("compares", &["-O2", "-pthread"]),
        Way::Inject,
        how,
        input,
    )
}

fn compared_by(program: &Compiled, way: Way, how: &str, input: &[u8]) -> ComparisonValues {
    let mut target = patient(ddfuzz::exec::Program::Path(program.path.clone()));
    target.args = vec![how.into()];
    let mut observer = observe::start(&target, way, Freshness::Fresh)
        .unwrap()
        .unwrap();
    let (_, comparisons) = observer.observe(input).unwrap();
    ComparisonValues::of(&comparisons, input)
}

fn pair(left: &[u8], right: &[u8]) -> Comparison {
    Comparison {
        left: left.to_vec(),
        right: right.to_vec(),
    }
}

/// Values in either order.
fn has_u32(compared: &ComparisonValues, one: u32, other: u32) -> bool {
    let list = &compared.values.list;
    list.contains(&CmpValues::U32((one, other, false)))
        || list.contains(&CmpValues::U32((other, one, false)))
}

fn has_bytes(compared: &ComparisonValues, one: &[u8], other: &[u8]) -> bool {
    compared.values.list.iter().any(|value| match value {
        CmpValues::Bytes((left, right)) => {
            let pair = (left.to_slice(), right.to_slice());
            pair == (one, other) || pair == (other, one)
        }
        _ => false,
    })
}

#[test]
fn a_magic_number_is_a_value_of_its_width() {
    if !cfg!(target_arch = "x86_64") {
        return crate::needs::missing("x86-64", "instructions of other machines are not decoded");
    }
    let input = b"\x01\x02\x03\x04123456789";
    let compared = compared("crc32", input);
    let checksum = 0xcbf4_3926; // the check value of this checksum
    assert!(has_u32(&compared, 0x0403_0201, checksum), "{compared:?}");
}

#[test]
fn two_strings_are_bytes_and_what_is_missing_is_a_word() {
    let compared = compared("strcmp", b"the word");
    let common = b"the expected word".len().min(b"the word".len());
    assert!(
        has_bytes(&compared, b"the word", &b"the expected word"[..common]),
        "{compared:?}"
    );
    assert!(compared.words.contains(&b"the expected word".to_vec()));
    assert!(!compared.words.contains(&b"the word".to_vec()));
}

#[test]
fn compared_memory_is_bytes() {
    let compared = compared("memcmp", b"MAGIC-butter");
    assert!(
        has_bytes(&compared, b"MAGIC-butter", b"MAGIC-bytes!"),
        "{compared:?}"
    );
}

#[test]
fn programs_of_afl_tell_what_they_compare_and_not_what_its_runtime_does() {
    if crate::needs::program("afl-clang-fast").is_none() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let program = compile_by("afl-clang-fast", "compares", &["-pthread"]).unwrap();
    let input = b"\x01\x02\x03\x04123456789";
    let compared = compared_by(&program, Way::Forkserver, "crc32", input);
    assert!(has_u32(&compared, 0x0403_0201, 0xcbf4_3926), "{compared:?}");
    // Some others are compared by vectors, which nobody sees.
    let strings = compared_by(&program, Way::Forkserver, "strcasecmp", b"CONTENT");
    let expected = b"Content-Length".to_vec();
    assert!(strings.words.contains(&expected), "{strings:?}");
    assert!(strings.values.list.len() < 12, "{strings:?}");
}

#[test]
fn integers_stand_in_their_width_and_in_the_least_that_holds_both() {
    let list =
        |left: &[u8], right: &[u8]| ComparisonValues::of(&[pair(left, right)], b"").values.list;
    let wide = list(&[b'a', 0, 0, 0], &[b'b', 0, 0, 0]);
    let expected = [
        CmpValues::U8((b'a', b'b', false)),
        CmpValues::U32((97, 98, false)),
    ];
    assert_eq!(wide, expected);
    let negative = list(&[0xfe, 0xff, 0xff, 0xff], &[1, 0, 0, 0]);
    assert_eq!(negative[0], CmpValues::U8((0xfe, 1, false)));
    let long = list(&[1, 2, 3, 4, 0, 0, 0, 0], &[5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(long[0], CmpValues::U32((0x0403_0201, 5, false)));
    assert_eq!(long[1], CmpValues::U64((0x0403_0201, 5, false)));
    assert_eq!(
        list(&[1, 2], &[3, 4]),
        [CmpValues::U16((0x0201, 0x0403, false))]
    );
    assert_eq!(list(&[1], &[2]), [CmpValues::U8((1, 2, false))]);
}

#[test]
fn bytes_are_cut_alike_and_empty_ones_left_out() {
    let long = ComparisonValues::of(&[pair(&[b'x'; 64], &[b'y'; 50])], b"");
    assert!(has_bytes(&long, &[b'x'; 32], &[b'y'; 32]), "{long:?}");
    let prefix = ComparisonValues::of(&[pair(b"abc", b"abcdef"), pair(b"", b"word")], b"abc");
    assert_eq!(prefix.values.list, []);
    assert_eq!(prefix.words, [b"abcdef".to_vec(), b"word".to_vec()]);
    let twice = ComparisonValues::of(&[pair(b"one", b"two"), pair(b"one", b"two")], b"");
    assert_eq!((twice.values.list.len(), twice.words.len()), (1, 2));
}
