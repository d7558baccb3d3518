//! Building a candidate's text.

use ddfuzz::delta::{Candidate, Config, Edit, Replacement, Rule};

fn text(edit: Edit, original: &[u8], best: &[u8]) -> Vec<u8> {
    let mut text = b"left over".to_vec();
    Candidate {
        rule: Rule::Pass("test"),
        edit,
        config: None,
        observed: false,
    }
    .write_into(original, best, &mut text);
    text
}

#[test]
fn a_cut_removes_ranges_of_the_current_best() {
    assert_eq!(
        text(Edit::Cut(vec![0..2, 4..5]), b"0123456789", b"abcdefg"),
        b"cdfg"
    );
}

#[test]
fn a_keep_takes_ranges_of_the_original() {
    let kept = Config::from_ranges([1..3, 8..10]).expect("ascending");
    assert_eq!(text(Edit::Keep(kept), b"0123456789", b"abc"), b"1289");
}

#[test]
fn a_set_replaces_ranges_of_the_current_best() {
    let edit = Edit::Set(vec![
        Replacement {
            at: 0..1,
            with: b"00".to_vec(),
        },
        Replacement {
            at: 3..3,
            with: b"+".to_vec(),
        },
        Replacement {
            at: 5..7,
            with: Vec::new(),
        },
    ]);
    assert_eq!(text(edit, b"", b"abcdefg"), b"00bc+de");
}

#[test]
fn rules_are_named_as_in_the_log() {
    let names = [Rule::Subset, Rule::Complement, Rule::Pass("ends")].map(Rule::name);
    assert_eq!(names, ["subset", "complement", "ends"]);
}
