//! Overwritten return addresses: named by the function that had one, wherever its return leads.

use ddfuzz::triage::Triager;

use crate::programs::{OVERWRITTEN, OVERWRITTEN_STRIPPED};
use crate::start::Starter;
use crate::{crash, keys, triager};

/// What the functions of the program are called, by the byte that chooses one.
const WAYS: [(u8, &str); 3] = [(b'f', "fills"), (b'l', "lends"), (b'k', "reads")];

/// No code, and what the processor refuses as an address.
const ADDRESSES: [u64; 4] = [0, 0x1337_0000, 0x4141_4141_4141_4141, 0x7000_0000_0008];

/// An input that overwrites `words` words of the stack with `address`.
fn overwriting(way: u8, address: u64, words: usize) -> Vec<u8> {
    let mut input = vec![way];
    (0..words).for_each(|_| input.extend(address.to_le_bytes()));
    input
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_has_one_key_whatever_its_return_address_is_overwritten_with() {
    for variant in [&OVERWRITTEN, &OVERWRITTEN_STRIPPED] {
        let mut triager = triager(variant);
        let mut at_random = Triager::new(Box::new(Starter {
            always_random: true,
            ..Starter::new(variant.path())
        }));
        let mut majors = Vec::new();
        for (way, _) in WAYS {
            let inputs = ADDRESSES.iter().flat_map(|address| {
                let words = [8, 12, 20].iter();
                words.map(move |words| overwriting(way, *address, *words))
            });
            let all: Vec<_> = inputs.map(|input| keys(&mut triager, &input)).collect();
            assert!(
                all.iter().all(|it| it.0 == "smash" && *it == all[0]),
                "{all:?}"
            );
            let random = keys(&mut at_random, &overwriting(way, ADDRESSES[1], 8));
            assert_eq!(random, all[0]);
            majors.push(all[0].1);
        }
        majors.sort_unstable();
        majors.dedup();
        assert_eq!(majors.len(), WAYS.len());
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_function_whose_return_address_is_overwritten_is_named() {
    for ((way, name), address) in WAYS.into_iter().zip([0, 0x1337_0000, 0x1337_0000]) {
        let crash = crash(&OVERWRITTEN, &overwriting(way, address, 8));
        let innermost = crash.innermost_own().expect("an own frame");
        assert_eq!(innermost.name.as_deref(), Some(name));
    }
}
