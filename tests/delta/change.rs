//! The changes between two texts.

use ddfuzz::delta::{Change, apply, changes, lines, tokens};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::stream::stream;

/// The length of a longest common subsequence, by the definition: O(n·m).
fn longest(first: &[u8], second: &[u8]) -> usize {
    let mut row = vec![0; second.len() + 1];
    for one in first {
        let mut diagonal = 0;
        for (index, other) in second.iter().enumerate() {
            let above = row[index + 1];
            row[index + 1] = match one == other {
                true => diagonal + 1,
                false => above.max(row[index]),
            };
            diagonal = above;
        }
    }
    row[second.len()]
}

fn size(changes: &[Change]) -> usize {
    changes.iter().map(Change::size).sum()
}

fn applied<'a>(
    passing: &[u8],
    failing: &[u8],
    changes: impl IntoIterator<Item = &'a Change>,
) -> Vec<u8> {
    let mut text = b"what stood here before".to_vec();
    apply(passing, failing, changes, &mut text);
    text
}

/// Whether changes ascend, each changes something, and no two touch.
fn are_apart(changes: &[Change]) -> bool {
    changes.iter().all(|change| change.size() > 0)
        && changes
            .windows(2)
            .all(|two| two[0].at.end < two[1].at.start && two[0].with.end < two[1].with.start)
}

proptest! {
    #![proptest_config(Config {
        rng_seed: RngSeed::Fixed(1975),
        failure_persistence: None,
        cases: 400,
        ..Config::default()
    })]

    #[test]
    fn all_changes_give_the_one_text_and_none_the_other_with_as_few_bytes_as_can_be(
        passing in prop::collection::vec(prop::sample::select(b"abc\n".as_slice()), 0..200),
        failing in prop::collection::vec(prop::sample::select(b"abcd\n".as_slice()), 0..200),
    ) {
        let found = changes(&passing, &failing);
        prop_assert!(are_apart(&found));
        prop_assert_eq!(applied(&passing, &failing, &found), failing.clone());
        prop_assert_eq!(applied(&passing, &failing, []), passing.clone());
        let fewest = passing.len() + failing.len() - 2 * longest(&passing, &failing);
        prop_assert_eq!(size(&found), fewest);
    }

    #[test]
    fn single_bytes_of_changes_give_the_same_as_the_changes(
        passing in prop::collection::vec(any::<u8>(), 0..60),
        failing in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let found = changes(&passing, &failing);
        let bytes: Vec<Change> = found.iter().flat_map(Change::bytes).collect();
        prop_assert_eq!(bytes.len(), size(&found));
        prop_assert_eq!(applied(&passing, &failing, &bytes), failing.clone());
    }

    #[test]
    fn lines_and_tokens_make_up_the_text(text in prop::collection::vec(any::<u8>(), 0..80)) {
        prop_assert_eq!(lines(&text).concat(), text.clone());
        prop_assert_eq!(tokens(&text).concat(), text);
    }
}

/// Lines of random letters, of 26 bytes on average.
fn random_lines(seed: u64, length: usize) -> Vec<u8> {
    let letter = |byte: u8| match byte % 26 {
        0 => b'\n',
        other => b'a' + other,
    };
    stream(seed, length).into_iter().map(letter).collect()
}

#[test]
fn few_changes_in_a_large_text_are_found_to_the_byte() {
    let passing = random_lines(64, 300_000);
    let mut failing = passing.clone();
    for at in [200_000, 120_000, 70] {
        failing[at] = b'#';
    }
    failing.drain(150_000..150_003);
    let found = changes(&passing, &failing);
    assert!(are_apart(&found));
    assert_eq!(applied(&passing, &failing, &found), failing);
    assert_eq!((found.len(), size(&found)), (4, 9));
}

#[test]
fn large_texts_that_are_nothing_alike_are_compared_piece_by_piece() {
    let (passing, failing) = (stream(65, 70_000), stream(66, 20_000));
    let found = changes(&passing, &failing);
    assert!(are_apart(&found));
    assert_eq!(applied(&passing, &failing, &found), failing);
    assert!(size(&found) < 90_000, "something is alike");
}

#[test]
fn nothing_and_everything_differ_in_one_change() {
    let large = vec![b'x'; 100_000];
    for (passing, failing) in [(&b""[..], &b"abc"[..]), (b"abc", b""), (b"", &large)] {
        let found = changes(passing, failing);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, 0..passing.len());
        assert_eq!(found[0].with, 0..failing.len());
    }
    assert_eq!(changes(&large, &large), []);
}
