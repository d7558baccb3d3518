//! Mutations of seeds.

use std::collections::HashSet;

use ddfuzz::campaign::{MutatedName, Mutation, Seeds, Source, Words};

const MAX_LEN: u64 = 64;

fn seeds() -> Seeds {
    Seeds::of(["", "a", "the second seed", "0123456789abcdef0123456789"])
}

fn words() -> Words {
    let mut words = Words::default();
    words.add(Source::Dictionary, ["<KEYWORD>"]);
    words
}

/// The mutations of every seed by these numbers.
fn all(mutation: &mut Mutation, numbers: impl Iterator<Item = u64>) -> Vec<Vec<u8>> {
    let seeds = seeds();
    let names = numbers.map(|number| MutatedName {
        hash: seeds.all()[number as usize % seeds.len()].hash.clone(),
        mutation: Some(number),
    });
    names.map(|name| mutation.build(&name).unwrap()).collect()
}

#[test]
fn a_mutation_depends_on_nothing_but_its_name() {
    let new = || Mutation::new(&seeds(), &words(), MAX_LEN);
    let forwards = all(&mut new(), 0..3000);
    let mut backwards = all(&mut new(), (0..3000).rev());
    backwards.reverse();
    assert_eq!(forwards, backwards);
    let elsewhere = std::thread::spawn(move || all(&mut new(), 0..3000));
    assert_eq!(elsewhere.join().unwrap(), forwards);
    let different: HashSet<_> = forwards.iter().collect();
    assert!(different.len() > 2000, "{}", different.len());
}

#[test]
fn the_mutations_of_a_number_never_change() {
    let mut mutation = Mutation::new(&seeds(), &words(), MAX_LEN);
    let mut hasher = blake3::Hasher::new();
    for input in all(&mut mutation, 0..3000) {
        hasher.update(&(input.len() as u64).to_le_bytes());
        hasher.update(&input);
    }
    // With another version of LibAFL they may: then no campaign of the earlier version goes on as
    // it began, which CHANGELOG.md has to say.
    assert_eq!(&hasher.finalize().to_hex()[..16], "e5d69413ba1f7ff4");
}

#[test]
fn mutations_are_no_longer_than_allowed_and_reach_words_and_other_seeds() {
    for max_len in [0, 1, 2, 3, 9, MAX_LEN, u64::MAX] {
        let mut mutation = Mutation::new(&seeds(), &words(), max_len);
        let inputs = all(&mut mutation, 0..4000);
        let longest = inputs.iter().map(|input| input.len() as u64).max();
        assert!(longest <= Some(max_len), "{longest:?}");
        if max_len == MAX_LEN {
            let holds = |part: &[u8]| {
                let mut inputs = inputs.iter().step_by(4); // those of one seed
                inputs.any(|input| input.windows(part.len()).any(|window| window == part))
            };
            assert!(holds(b"<KEYWORD>") && holds(b"the sec") && holds(b"456789a"));
        }
    }
}

#[test]
fn a_name_without_a_number_is_the_seed_itself() {
    let seeds = seeds();
    let mut mutation = Mutation::new(&seeds, &words(), MAX_LEN);
    for seed in seeds.all() {
        let name: MutatedName = format!("seed+{}", seed.hash).parse().unwrap();
        assert_eq!(mutation.build(&name).unwrap(), seed.bytes);
    }
    let unknown: MutatedName = "seed+0123456789abcdef:00000000000000ff".parse().unwrap();
    assert_eq!(mutation.build(&unknown), None);
}

#[test]
fn names_are_read_as_they_are_written() {
    for text in [
        "seed+0123456789abcdef",
        "seed+0123456789abcdef:00000000000000ff",
    ] {
        assert_eq!(text.parse::<MutatedName>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "seed+",
        "seed+0123456789abcde",
        "seed+0123456789ABCDEF",
        "seed+0123456789abcdef:",
        "seed+0123456789abcdef:ff",
        "0123456789abcdef",
        "seed+0123456789abcdef:00000000000000ff:1",
        "seed+0123456789abcdef:+0000000000000ff",
    ] {
        text.parse::<MutatedName>().unwrap_err();
    }
}
