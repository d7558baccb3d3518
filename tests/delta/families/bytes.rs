//! Families of plain bytes.

use ddfuzz::delta::Outcome;

use super::count::Case;
use super::random::Random;

pub fn fails_if(fails: bool) -> Outcome {
    match fails {
        true => Outcome::Fail,
        false => Outcome::Pass,
    }
}

/// Whether `needle`'s bytes occur in this order.
pub fn has_in_order(text: &[u8], needle: &[u8]) -> bool {
    let mut bytes = text.iter();
    needle.iter().all(|wanted| bytes.any(|byte| byte == wanted))
}

pub fn contains(text: &[u8], needle: &[u8]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}

/// A run of bytes that are no newline, somewhere among random bytes.
pub fn long_line(seed: u64, size: usize, run: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = random.bytes(size);
    let at = random.below(size - run);
    input[at..at + run].iter_mut().for_each(|byte| {
        if *byte == b'\n' {
            *byte = b'x';
        }
    });
    Case::new(input, move |text| {
        fails_if(
            text.split(|byte| *byte == b'\n')
                .any(|line| line.len() >= run),
        )
    })
}

/// Printable bytes before a newline.
pub fn printable_line(seed: u64, size: usize, run: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = random.bytes(size);
    let at = random.below(size - run - 1);
    for byte in &mut input[at..at + run] {
        *byte = b' ' + *byte % 95;
    }
    input[at + run] = b'\n';
    Case::new(input, move |text| {
        let mut printable = 0;
        fails_if(text.iter().any(|byte| {
            let overflow = *byte == b'\n' && printable >= run;
            printable = match byte {
                b' '..=b'~' => printable + 1,
                _ => 0,
            };
            overflow
        }))
    })
}

/// Certain bytes far apart, which must occur in order.
pub fn scattered(seed: u64, size: usize, needed: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = random.bytes(size);
    let rare: Vec<u8> = (0..needed as u8).map(|at| 0xe0 + at).collect();
    for byte in &mut input {
        if rare.contains(byte) {
            *byte = b'.';
        }
    }
    for (at, byte) in random.positions(needed, size).into_iter().zip(&rare) {
        input[at] = *byte;
    }
    Case::new(input, move |text| fails_if(has_in_order(text, &rare)))
}

/// All bytes are needed.
pub fn all_needed(seed: u64, size: usize) -> Case {
    let input = Random::new(seed).bytes(size);
    let whole = input.clone();
    Case::new(input, move |text| fails_if(text == whole))
}

/// Every other byte is needed.
pub fn every_other(seed: u64, size: usize) -> Case {
    let input = Random::new(seed).bytes(size);
    let needle: Vec<u8> = input.iter().copied().step_by(2).collect();
    Case::new(input, move |text| fails_if(has_in_order(text, &needle)))
}

/// A header line and one of many lines.
pub fn header_and_line(seed: u64, lines: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = b"HEAD\n".to_vec();
    let bad = random.below(lines);
    for line in 0..lines {
        match line == bad {
            true => input.extend_from_slice(b"crash me\n"),
            false => {
                let words = 5 + random.below(30);
                input.extend(random.letters(words));
                input.push(b'\n');
            }
        }
    }
    Case::new(input, |text| {
        fails_if(text.starts_with(b"HEAD\n") && contains(&text[5..], b"crash me\n"))
    })
}

/// Two bugs: two bytes with an even size are the one, with an odd size the other.
pub fn two_bugs_by_size(seed: u64, size: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = random.letters(size);
    let at = random.positions(2, size);
    (input[at[0]], input[at[1]]) = (b'<', b'>');
    let even = size % 2;
    Case::new(input, move |text| match has_in_order(text, b"<>") {
        true if text.len() % 2 == even => Outcome::Fail,
        true => Outcome::Unresolved,
        false => Outcome::Pass,
    })
}

/// Two bugs: which one depends on whether the position of a byte is even.
pub fn two_bugs_by_position(seed: u64, size: usize) -> Case {
    let mut random = Random::new(seed);
    let mut input = random.letters(size);
    let at = random.positions(2, size);
    let (even, odd) = (at[0] & !1, 0);
    (input[even], input[at[1]]) = (b'<', b'>');
    Case::new(input, move |text| {
        let Some(first) = text.iter().position(|byte| *byte == b'<') else {
            return Outcome::Pass;
        };
        match text[first..].contains(&b'>') {
            false => Outcome::Pass,
            true if first % 2 == odd => Outcome::Fail,
            true => Outcome::Unresolved,
        }
    })
}

/// The example of the ISSTA paper.
pub fn select() -> Case {
    let input = b"<SELECT NAME=\"priority\" MULTIPLE SIZE=7>".to_vec();
    Case::new(input, |text| fails_if(has_in_order(text, b"<SELECT>")))
}

/// The same, where the tag must be in one piece.
pub fn select_in_one_piece() -> Case {
    let input = b"<SELECT NAME=\"priority\" MULTIPLE SIZE=7>".to_vec();
    Case::new(input, |text| {
        fails_if(
            contains(text, b"<SELECT>") || { contains(text, b"<SELECT ") && text.ends_with(b">") },
        )
    })
}
