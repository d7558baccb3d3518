//! Values that are taken apart.

use ddfuzz::delta::{Argument, Arguments, Config};

/// The configuration that keeps these units.
fn config(units: &[usize]) -> Config {
    Config::from_ranges(units.iter().map(|unit| *unit..*unit + 1)).expect("ascending")
}

#[test]
fn the_units_of_a_string_are_its_characters() {
    let text = "aäb€c".to_owned();
    assert_eq!(Argument::units(&text), 5);
    assert_eq!(Argument::keep(&text, &config(&[1, 3, 4])), "ä€c");
    assert_eq!(Argument::keep(&text, &Config::all(5)), text);
    assert_eq!(Argument::keep(&text, &Config::empty()), "");
}

#[test]
fn the_units_of_a_list_are_its_items() {
    let list = vec!["-O2", "-g", "-Wall"];
    assert_eq!(Argument::units(&list), 3);
    assert_eq!(Argument::keep(&list, &config(&[0, 2])), ["-O2", "-Wall"]);
}

#[test]
fn numbers_have_no_units_and_stay() {
    assert_eq!(
        (Argument::units(&7), Argument::keep(&7, &Config::empty())),
        (0, 7)
    );
    assert_eq!(Argument::keep(&0.5, &Config::empty()), 0.5);
    assert_eq!(Argument::units(&'x') + Argument::units(&true), 0);
}

#[test]
fn arguments_are_kept_one_by_one() {
    let call = ("abc".to_owned(), 7, vec![1, 2, 3]);
    assert_eq!(Arguments::units(&call), [3, 0, 3]);
    let kept = call.keep(&[config(&[1]), Config::empty(), config(&[2])]);
    assert_eq!(kept, ("b".to_owned(), 7, vec![3]));
    assert_eq!(call.keep(&[]), call);
}
