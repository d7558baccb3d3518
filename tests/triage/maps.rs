//! Memory maps, which are hostile input.

use std::path::Path;

use ddfuzz::triage::fault::{AddressClass, address_class, is_canonical};
use ddfuzz::triage::memory::Maps;
use proptest::prelude::*;

const MAPS: &[u8] = b"\
555555554000-555555555000 r--p 00000000 fe:00 12 /bin/a b (deleted)
555555555000-555555556000 r-xp 00001000 fe:00 12 /bin/a b (deleted)
nonsense
555555560000-555555570000 rw-p 00000000 00:00 0 [heap]
7ffff0000000-7ffff0001000 ---p 00000000 00:00 0
7ffff0001000-7ffff0011000 rw-p 00000000 00:00 0
7ffff7fc0000-7ffff7fc1000 r-xp 00000000 fe:00 13 /lib/new\\012line.so
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]
";

#[test]
fn lines_that_are_no_mapping_are_skipped() {
    assert_eq!(Maps::parse(MAPS).iter().count(), 7);
    assert_eq!(
        Maps::parse(b"5-4 r-xp 0 0:0 0 x\n\n-\n1-2\n")
            .iter()
            .count(),
        0
    );
}

#[test]
fn an_address_is_found_in_its_mapping_only() {
    let maps = Maps::parse(MAPS);
    let code = maps.find(0x5555_5555_5000).expect("a mapping");
    assert!(code.executable && code.readable && !code.writable && code.is_file());
    assert_eq!(code.offset, 0x1000);
    assert!(maps.find(0x5555_5555_6000).is_none());
    assert!(maps.find(0).is_none());
    assert!(maps.is_executable(0x5555_5555_5fff) && !maps.is_executable(0x5555_5555_4000));
}

#[test]
fn paths_may_hold_spaces_and_line_feeds() {
    let maps = Maps::parse(MAPS);
    let program = maps.find(0x5555_5555_4000).expect("a mapping");
    assert_eq!(program.file_path(), Path::new("/bin/a b"));
    assert_eq!(program.base_name(), "a b");
    assert_eq!(
        maps.find(0x7fff_f7fc_0000).expect("a mapping").base_name(),
        "new\nline.so"
    );
    assert_eq!(
        maps.find(0x7fff_f000_1000).expect("a mapping").base_name(),
        ""
    );
}

#[test]
fn addresses_have_the_class_of_what_lies_there() {
    let maps = Maps::parse(MAPS);
    let class = |address| address_class(address, 0x7fff_ffff_0000, &maps);
    assert_eq!(class(0), AddressClass::Null);
    assert_eq!(class(0xffff), AddressClass::Null);
    assert_eq!(class(0x4141_4141_4141_4141), AddressClass::NonCanonical);
    assert_eq!(class(0x5555_5556_0000), AddressClass::Heap);
    assert_eq!(class(0x5555_5555_4000), AddressClass::Image);
    assert_eq!(class(0x7fff_fffe_0000), AddressClass::Stack);
    assert_eq!(class(0x7fff_f000_1000), AddressClass::Anonymous);
    assert_eq!(class(0x7000_0000_0000), AddressClass::Unmapped);
}

#[test]
fn below_the_stack_and_near_its_pointer_is_an_overflow() {
    let maps = Maps::parse(MAPS);
    let near = 0x7fff_fffd_dff8;
    assert_eq!(
        address_class(near, 0x7fff_fffd_e010, &maps),
        AddressClass::NearSp
    );
    assert_eq!(address_class(near, near, &maps), AddressClass::NearSp);
    let thread = 0x7fff_f000_1010;
    assert_eq!(
        address_class(0x7fff_f000_0ff8, thread, &maps),
        AddressClass::NearSp,
        "a guard"
    );
    assert_eq!(address_class(thread, thread, &maps), AddressClass::Stack);
}

#[test]
fn above_the_stack_is_no_overflow() {
    let maps = Maps::parse(MAPS);
    let above = address_class(0x7fff_ffff_f000, 0x7fff_ffff_e000, &maps);
    assert_eq!(above, AddressClass::Unmapped);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn canonical_addresses_are_of_either_half() {
    assert!(is_canonical(0) && is_canonical(0x7fff_ffff_ffff) && is_canonical(u64::MAX));
    assert!(!is_canonical(0x8000_0000_0000) && !is_canonical(0xffff_0000_0000_0000));
}

proptest! {
    #![proptest_config(crate::fixed_cases(256))]

    #[test]
    fn no_text_makes_the_parser_panic(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        let maps = Maps::parse(&text);
        prop_assert!(maps.iter().all(|mapping| mapping.start < mapping.end));
    }

    #[test]
    fn no_change_to_a_map_makes_the_parser_panic(at in 0..MAPS.len(), byte in any::<u8>()) {
        let mut text = MAPS.to_vec();
        text[at] = byte;
        let maps = Maps::parse(&text);
        address_class(0x7fff_f000_1000, u64::MAX, &maps);
    }
}
