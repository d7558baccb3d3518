//! ELF files, which are hostile input.

use std::sync::OnceLock;

use ddfuzz::triage::function_start_in;
use proptest::prelude::*;

use crate::programs::{PLAIN, STRIPPED};

fn image() -> &'static [u8] {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(|| std::fs::read(STRIPPED.path()).expect("a program"))
}

/// Addresses all over the program.
fn starts(image: &[u8]) -> Vec<Option<u64>> {
    (0..0x4000)
        .step_by(0x40)
        .map(|address| function_start_in(image, address))
        .collect()
}

#[test]
fn functions_are_found_without_symbols() {
    let plain = std::fs::read(PLAIN.path()).expect("a program");
    assert!(starts(image()).iter().flatten().count() > 10);
    assert_eq!(starts(image()), starts(&plain));
}

#[test]
fn functions_are_found_without_section_headers() {
    let mut image = image().to_vec();
    // e_shoff, and e_shnum with e_shstrndx.
    image[40..48].fill(0);
    image[60..64].fill(0);
    assert_eq!(starts(&image), starts(self::image()));
}

#[test]
fn what_is_no_elf_file_says_nothing() {
    assert_eq!(function_start_in(b"", 0), None);
    assert_eq!(function_start_in(b"#!/bin/sh", 0), None);
    assert_eq!(function_start_in(&image()[..100], 0), None);
}

proptest! {
    #![proptest_config(crate::fixed_cases(400))]

    #[test]
    fn no_damage_makes_the_reader_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
        in_head in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut image = image().to_vec();
        let range = if in_head { 0x400 } else { image.len() };
        for (at, byte) in &damage {
            image[at.index(range)] = *byte;
        }
        if damage.len() % 4 == 0 {
            image.truncate(cut.index(image.len()));
        }
        for address in [0, 0x1200, 0x1800, u64::MAX] {
            function_start_in(&image, address);
        }
    }
}
