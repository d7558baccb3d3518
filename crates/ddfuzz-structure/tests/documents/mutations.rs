//! Mutation of inputs by their structure.

use std::collections::BTreeSet;

use ddfuzz_structure::{MutationParser, MutationSource};

use crate::samples;

/// Random numbers of a seed; bytes are mutated by one byte each.
struct Source(u64);

impl MutationSource for Source {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }

    fn mutate_bytes(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let value = self.below(256) as u8;
        match self.below(3) {
            0 if at < bytes.len() => bytes[at] = value,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.insert(at, value),
        }
    }
}

/// Makes mutants of a text, with itself as the donor.
fn mutants(structure: &str, text: &[u8], count: u64) -> Vec<Vec<u8>> {
    let parser = MutationParser::named(structure).expect("a known structure");
    let input = parser.parse(text).expect("an input of the structure");
    let mutant = |seed| input.mutate(&input, &mut Source(seed));
    (0..count).filter_map(mutant).collect()
}

/// Returns the types of the chunks of a picture whose lengths and checksums are right; `None` if any
/// is wrong.
fn chunks(png: &[u8]) -> Option<Vec<[u8; 4]>> {
    let mut kinds = Vec::new();
    let mut rest = png.get(8..)?;
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let (chunk, after) = after.split_at_checked(4 + length)?;
        let (sum, after) = after.split_first_chunk::<4>()?;
        if u32::from_be_bytes(*sum) != samples::crc32(chunk) {
            return None;
        }
        kinds.push(*chunk.first_chunk()?);
        rest = after;
    }
    Some(kinds)
}

#[test]
fn chunks_of_mutants_have_right_lengths_and_checksums() {
    let png = samples::png();
    let before = chunks(&png).expect("a right picture");
    let mut orders = BTreeSet::new();
    let all = mutants("png", &png, 300);
    assert!(all.len() > 200, "{} mutants", all.len());
    for mutant in all {
        orders.insert(chunks(&mutant).expect("lengths and checksums agree"));
    }
    assert!(orders.iter().any(|order| order.len() > before.len()));
    assert!(orders.iter().any(|order| order.len() < before.len()));
    let known: BTreeSet<[u8; 4]> = before.into_iter().collect();
    assert!(
        orders.iter().flatten().any(|kind| !known.contains(kind)),
        "types of chunks change, too"
    );
}

#[test]
fn members_are_copied_with_their_entries_in_the_directory() {
    let zip = samples::zip(&[("a", b"one", false), ("b", b"two", false)]);
    let entries = |text: &[u8]| {
        text.windows(4)
            .filter(|four| *four == b"PK\x01\x02")
            .count()
    };
    let members = |text: &[u8]| {
        text.windows(4)
            .filter(|four| *four == b"PK\x03\x04")
            .count()
    };
    let all = mutants("zip", &zip, 300);
    assert!(all.iter().any(|one| members(one) == 3 && entries(one) == 3));
}

#[test]
fn programs_are_mutated_by_their_syntax() {
    let text = br#"{"rows": [{"size": 1}, {"size": 22}], "gap": 3}"#;
    let parser = MutationParser::named("json").expect("a grammar");
    let all = mutants("json", text, 300);
    let right = all.iter().filter(|mutant| {
        let structure = ddfuzz_structure::structure_named("json");
        matches!(structure, Some(ddfuzz_delta::Structure::Syntax(json)) if json.errors(mutant) == Some(0))
    });
    let right = right.count();
    assert!(
        right * 2 > all.len(),
        "{right} of {} mutants are JSON",
        all.len()
    );
    let input = parser.parse(text).expect("JSON");
    let donor = parser.parse(b"[777, 888]").expect("JSON");
    let spliced = (0..100).filter_map(|seed| input.mutate(&donor, &mut Source(seed)));
    let has = |mutant: &Vec<u8>| mutant.windows(3).any(|three| three == b"777");
    assert!(
        spliced.filter(has).count() > 0,
        "numbers of the donor are used"
    );
}

#[test]
fn a_seed_always_gives_the_same_mutants() {
    for (name, text) in samples::all() {
        assert_eq!(mutants(name, &text, 30), mutants(name, &text, 30), "{name}");
    }
    let text = b"let a = [1, 2];\nprint (a)\n";
    assert_eq!(mutants("text", text, 30), mutants("text", text, 30));
    assert!(MutationParser::named("binary").is_none());
    assert!(
        MutationParser::named("text").is_some_and(|text| text.parse(&[b'('; 1 << 17]).is_none())
    );
    let empty = MutationParser::named("text").and_then(|text| text.parse(b""));
    let mutant = empty.and_then(|input| input.mutate(&input, &mut Source(1)));
    assert_eq!(mutant, None, "nothing is there to mutate");
}
