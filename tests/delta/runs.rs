//! The pass `runs`: records of which nothing tells where they begin.

use std::collections::HashSet;

use ddfuzz::delta::{Full, Outcome, Search, Structure};

use crate::stream::stream;

/// Minimizes by `fails`; gives the result, and how many texts were tested.
fn shrunk(text: &[u8], fails: impl Fn(&[u8]) -> bool) -> (Vec<u8>, usize) {
    assert!(fails(text) && !fails(b""));
    let mut search = Full::new(text);
    let mut best = text.to_vec();
    let mut texts = HashSet::new();
    while let Some(asked) = search.next() {
        let mut candidate = Vec::new();
        asked.write_into(text, &best, &mut candidate);
        texts.insert(candidate.clone());
        if fails(&candidate) {
            best = candidate;
            search.tell(Outcome::Fail);
        } else {
            search.tell(Outcome::Pass);
        }
    }
    (best, texts.len())
}

/// Records behind a head of two bytes: a tag, `0x90` with four bytes or `0xa0` with six, or `0xb0`
/// with a length and as many bytes. What is something else ends them; without the head there are none.
fn records(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = text.strip_prefix(b"\xfe\x01")?;
    let mut all = Vec::new();
    while let Some(tag) = rest.first() {
        let length = match tag {
            0x90 => 5,
            0xa0 => 7,
            0xb0 => 2 + rest.get(1).map_or(0, |length| usize::from(*length)),
            _ => break,
        };
        let Some((record, behind)) = rest.split_at_checked(length) else {
            break;
        };
        all.push(record);
        rest = behind;
    }
    Some(all)
}

/// 120 records, in which those with a `!` at their end are planted.
fn text(planted: [&[u8]; 2]) -> Vec<u8> {
    let mut text = b"\xfe\x01".to_vec();
    for seed in 0..120 {
        match seed {
            40 => text.extend(planted[0]),
            80 => text.extend(planted[1]),
            _ => {}
        }
        let mut bytes = stream(seed, 12);
        bytes.iter_mut().for_each(|byte| *byte |= 0x80);
        match seed % 3 {
            0 => text.extend([&[0x90], &bytes[..4]].concat()),
            1 => text.extend([&[0xa0], &bytes[..6]].concat()),
            _ => text.extend([&[0xb0, 12], &bytes[..12]].concat()),
        }
    }
    text
}

#[test]
fn records_of_unknown_structure_go_as_a_whole() {
    let text = text([b"\x90xyz!", b"\xa0uvwxyz"]);
    let fails = |text: &[u8]| {
        records(text).is_some_and(|all| {
            let first = all.iter().position(|one| one.starts_with(b"\x90xyz!"));
            let last = all.iter().rposition(|one| one.starts_with(b"\xa0uvwxyz"));
            matches!((first, last), (Some(first), Some(last)) if first < last)
        })
    };
    let (result, tests) = shrunk(&text, fails);
    assert_eq!(result, b"\xfe\x01\x90xyz!\xa0uvwxyz");
    assert!(tests < 12 * text.len(), "{tests} tests");
}

#[test]
fn what_a_length_tells_is_shortened_with_it() {
    let long = [&[0xb0, 40][..], b"!", &[0x85; 39]].concat();
    let text = text([&long, b""]);
    let fails = |text: &[u8]| {
        records(text).is_some_and(|all| {
            let is_planted = |one: &&[u8]| one[0] == 0xb0 && one.get(2) == Some(&b'!');
            all.iter().any(is_planted)
        })
    };
    let (result, _) = shrunk(&text, fails);
    assert_eq!(result, b"\xfe\x01\xb0\x01!");
}

#[test]
fn records_of_one_size_go_with_the_number_that_counts_them() {
    // All that the head counts must be there; a record of 24 bytes matters by where it begins.
    let fails = |text: &[u8]| {
        let count = text
            .get(40..42)
            .map(|two| usize::from(two[0]) | usize::from(two[1]) << 8);
        let all = text.get(48..).unwrap_or_default().chunks_exact(24);
        text.starts_with(b"\xfeTAB")
            && count.is_some_and(|count| {
                all.len() >= count && all.take(count).any(|one| one.starts_with(b"\xa0uvw"))
            })
    };
    let mut text = stream(3, 48 + 90 * 24);
    text[..4].copy_from_slice(b"\xfeTAB");
    text[40..42].copy_from_slice(&[90, 0]);
    text[48 + 61 * 24..][..4].copy_from_slice(b"\xa0uvw");
    let (result, _) = shrunk(&text, fails);
    assert!(result.len() <= 48 + 24, "{} bytes", result.len());
}

#[test]
fn of_bytes_that_are_all_needed_no_runs_are_tried() {
    let text = stream(7, 300);
    let (result, tests) = shrunk(&text, |candidate| candidate == text);
    assert_eq!(result, text);
    assert!(tests <= 325, "{tests} tests");
}

/// Records of a length, a type, a payload and the exclusive or of the payload; `None` where one of
/// them is wrong.
fn checked_records(text: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut rest = text.strip_prefix(b"RECS")?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let length = usize::from(*rest.first()?) | usize::from(*rest.get(1)?) << 8;
        let payload = rest.get(3..3 + length)?;
        let sum = payload.iter().fold(0, |all, byte| all ^ byte);
        if *rest.get(3 + length)? != sum {
            return None;
        }
        all.push((rest[2], payload));
        rest = &rest[4 + length..];
    }
    Some(all)
}

#[test]
fn records_with_checksums_go_as_a_whole_and_lose_bytes() {
    let mut text = b"RECS".to_vec();
    for seed in 0..24_u8 {
        let (kind, payload): (u8, &[u8]) = match seed {
            9 => (1, b"hello"),
            15 => (1, b"world!"),
            _ => (
                2 + seed % 8,
                &stream(u64::from(seed), usize::from(seed) % 13 + 3),
            ),
        };
        let sum = payload.iter().fold(0, |all, byte| all ^ byte);
        text.extend([&[payload.len() as u8, 0, kind], payload, &[sum]].concat());
    }
    let fails = |text: &[u8]| {
        checked_records(text).is_some_and(|all| {
            let ones = all.iter().filter(|(kind, it)| *kind == 1 && it.len() >= 2);
            ones.count() == 2 && all.iter().any(|(kind, _)| *kind == 9)
        })
    };
    let (result, tests) = shrunk(&text, fails);
    assert_eq!(result.len(), 20, "{result:?}");
    assert!(tests <= 200, "{tests} tests");
}

#[test]
fn short_texts_without_control_characters_are_not_observed() {
    let observed = |text: &[u8]| {
        let mut search = Full::structured(text, Structure::Text);
        let mut observed = 0;
        while let Some(candidate) = search.next() {
            observed += usize::from(candidate.observed);
            search.tell(Outcome::Pass);
        }
        observed
    };
    assert_eq!(observed(b"all of it is needed"), 0);
    assert!(observed(b"all of it is needed, and it may have a length") > 0);
    assert!(observed(b"all of it\x01is needed\x02\x03") > 0);
}

/// What a reader of sections says of a picture: two sections behind a head, each behind its length;
/// the first one has records, the second one a bad byte. A wrong length is another failure.
fn read_sections(text: &[u8]) -> Outcome {
    let section = |text: &mut &[u8]| {
        let (length, rest) = text.split_first_chunk::<4>()?;
        let (section, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        *text = rest;
        Some(section.to_vec())
    };
    let read = || {
        let mut rest = text
            .get(6..)
            .filter(|_| text.starts_with(b"8BPS\x00\x01"))?;
        let mut records = &section(&mut rest)?[..];
        let layers = section(&mut rest)?;
        while let Some((length, rest)) = records.split_first() {
            records = rest.get(usize::from(*length)..)?;
        }
        Some(layers.contains(&0xee) && rest.len() >= 2)
    };
    match (text.len(), read()) {
        (0..6, _) => Outcome::Pass,
        (_, Some(true)) => Outcome::Fail,
        (_, Some(false)) => Outcome::Pass,
        (_, None) => Outcome::Unresolved,
    }
}

#[test]
fn a_block_in_the_middle_goes_with_its_length() {
    let mut records = Vec::new();
    for seed in 0..200_u8 {
        let payload = stream(u64::from(seed), 40 + usize::from(seed) % 90);
        records.extend([&[payload.len() as u8][..], &payload].concat());
    }
    let mut layers = stream(500, 900)
        .iter()
        .map(|byte| byte % 0xe0)
        .collect::<Vec<_>>();
    layers[700] = 0xee;
    let length = |bytes: &[u8]| (bytes.len() as u32).to_be_bytes();
    let text = [
        b"8BPS\x00\x01",
        &length(&records)[..],
        &records,
        &length(&layers),
        &layers,
        &stream(9, 300),
    ]
    .concat();
    let (best, tests) = minimized(&text, read_sections);
    assert_eq!(best.len(), 6 + 4 + 4 + 1 + 2, "{best:?}");
    assert!(tests <= 400, "{tests} tests");
}

/// Minimizes a binary text; returns the result and the number of different texts that were tested
/// before its proof.
fn minimized(text: &[u8], test: impl Fn(&[u8]) -> Outcome) -> (Vec<u8>, usize) {
    assert_eq!(test(text), Outcome::Fail);
    let mut search = Full::structured(text, Structure::Binary);
    let (mut best, mut texts) = (text.to_vec(), HashSet::new());
    while let Some(asked) = search.next() {
        let mut candidate = Vec::new();
        asked.write_into(text, &best, &mut candidate);
        let outcome = test(&candidate);
        if asked.rule.name() != "mutations" {
            texts.insert(candidate.clone());
        }
        search.tell(outcome);
        if outcome == Outcome::Fail {
            best = candidate;
        }
    }
    (best, texts.len())
}

/// What a reader says of a file of resources: a head that is mostly zeros, and a section behind its
/// length, of records that begin with `sign`, a length and an even number of bytes; one of them has
/// a bad byte. All else is another failure.
fn read_resources(text: &[u8], sign: &[u8]) -> Outcome {
    let read = || {
        let head = [0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0];
        let rest = text.strip_prefix(b"RSRC")?.strip_prefix(&head)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (mut section, _) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let mut is_bad = false;
        while !section.is_empty() {
            let (length, rest) = section.strip_prefix(sign)?.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (content, rest) = rest.split_at_checked(length.next_multiple_of(2))?;
            is_bad |= content.contains(&0xee);
            section = rest;
        }
        Some(is_bad)
    };
    match (text.len(), read()) {
        (0..8, _) => Outcome::Pass,
        (_, Some(true)) => Outcome::Fail,
        (_, Some(false)) => Outcome::Pass,
        (_, None) => Outcome::Unresolved,
    }
}

/// Makes a file of resources: a long text, and records of noise, one of which has a bad byte.
fn resources(sign: &[u8], seed: u64) -> Vec<u8> {
    let noise = |record: u64| -> Vec<u8> {
        let size = 10 + (record * seed % 37) as usize;
        let bytes = stream(seed * 100 + record, size);
        bytes.iter().map(|byte| byte % 0xe0).collect()
    };
    let mut contents: Vec<Vec<u8>> = (0..30).map(noise).collect();
    contents[7] = b"<description of the=\"picture\"/>\n".repeat(300);
    let bad = 8 + seed as usize % 20;
    contents[bad][4] = 0xee;
    let records = contents.iter().map(|content| {
        let length = (content.len() as u16).to_be_bytes();
        let padding = vec![0; content.len() % 2];
        [sign, &length, content, &padding].concat()
    });
    let section = records.collect::<Vec<_>>().concat();
    let head = [0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0];
    let length = (section.len() as u32).to_be_bytes();
    [b"RSRC", &head[..], &length, &section, &stream(9, 300)].concat()
}

#[test]
fn records_in_a_block_go_with_its_length() {
    for sign in [&b"8BIM"[..], b"Rec", b"#@"] {
        for seed in 1..=4 {
            let text = resources(sign, seed);
            let (best, tests) = minimized(&text, |text| read_resources(text, sign));
            let least = 4 + 20 + 4 + sign.len() + 2 + 2;
            assert!(best.len() <= least + 2, "{} bytes: {best:?}", best.len());
            assert!(tests <= 900, "{tests} tests");
        }
    }
}
