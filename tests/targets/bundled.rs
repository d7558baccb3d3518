//! The list of bundled programs.

use ddfuzz::exec::bundled;
use object::{Object, ObjectSymbol};

use crate::running::TARGETS;

#[test]
fn each_target_is_there_with_its_fixed_variant_behind_all_targets() {
    let fixed = TARGETS.map(|target| format!("{target}-fixed"));
    let expected: Vec<&str> = TARGETS
        .into_iter()
        .chain(fixed.iter().map(String::as_str))
        .collect();
    assert_eq!(bundled::names(), expected);
}

#[test]
fn each_program_has_a_summary() {
    let list = bundled::list();
    assert_eq!(list.len(), bundled::names().len());
    assert!(list.iter().all(|bundled| !bundled.summary.is_empty()));
}

#[test]
fn each_program_has_its_in_process_entry_as_a_global_symbol() {
    for name in bundled::names() {
        let program = bundled::program(name).expect("it is listed");
        let file = object::File::parse(program).expect("it is an ELF file");
        let entry = file
            .symbol_by_name("target_main")
            .expect("it has the entry");
        assert!(entry.is_global() && entry.address() > 0, "{name}");
    }
}

#[test]
fn there_is_no_program_of_another_name() {
    assert_eq!(bundled::program("cat"), None);
    assert_eq!(bundled::program(""), None);
}
