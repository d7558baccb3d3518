//! A few needed bytes, or one run of them, in many that do not matter.

use super::stream::Lcg;
use super::{Case, Set};

/// Length of the long line (flex of the fuzz studies).
const LONG: usize = 2121;
/// Length of the printed line (ul of the fuzz studies).
const PRINTED: usize = 516;

/// The families from `run-100k` to `scattered`.
pub fn cases(set: Set) -> Vec<Case> {
    let mut cases = vec![
        run(set, "run-100k", "newline", 100_000, 0),
        run(set, "run-100k", "control", 100_000, 1),
        run(set, "run-1m", "newline", 1_000_000, 0),
        line(set, "adjacent", 0),
        line(set, "in its line", 1),
    ];
    let few = ["one-byte", "two-bytes", "scattered"];
    cases.extend(few.iter().flat_map(|family| few_bytes(family, set)));
    cases
}

/// The cases of one of the families in which a few bytes are needed, wherever they stand.
pub fn few_bytes(family: &str, set: Set) -> Vec<Case> {
    match family {
        "one-byte" => vec![one_byte(set)],
        "two-bytes" => [("in order", 1), ("any order", 2)]
            .map(|(variant, number)| two_bytes(set, variant, number))
            .to_vec(),
        "two-bugs" => two_bugs(set),
        "scattered" => ["rare", "frequent"]
            .map(|variant| scattered(set, variant))
            .to_vec(),
        _ => Vec::new(),
    }
}

fn printable() -> Vec<u8> {
    (b' '..0x7f).collect()
}

/// A long line in random bytes, whose own lines are shorter.
fn run(set: Set, family: &'static str, variant: &'static str, size: usize, number: usize) -> Case {
    let mut stream = set.stream(100 + size as u64 + number as u64);
    let size = set.size(size, &mut stream);
    let ends: Vec<u8> = match number {
        0 => vec![b'\n'],
        _ => (0..b' ').collect(),
    };
    let length = LONG + stream.below(300);
    let mut input = stream.bytes(size, &[]);
    // No second run: where chance made one that is too long, it is ended half way.
    let mut since = 0;
    for byte in &mut input {
        since = if ends.contains(byte) { 0 } else { since + 1 };
        if since == LONG / 2 {
            (*byte, since) = (b'\n', 0);
        }
    }
    let at = 1 + stream.below(size - length - 2);
    let run = stream.bytes(length, &ends);
    input[at..at + length].copy_from_slice(&run);
    (input[at - 1], input[at + length]) = (b'\n', b'\n');
    Case {
        family,
        variant,
        source: "long_run.c",
        defines: vec![("VARIANT", number.to_string())],
        bug: "line_overruns_buffer",
        input,
        minimum: vec![b'0'; LONG],
        is_text: false,
        ending: "",
    }
}

/// A line of printable bytes in random ones.
fn line(set: Set, variant: &'static str, number: usize) -> Case {
    let mut stream = set.stream(200 + number as u64);
    let size = set.size(100_000, &mut stream);
    let length = PRINTED + stream.below(60);
    let at = 1 + stream.below(size - length - 2);
    let mut input = stream.bytes(size, &[]);
    // In variant 1 all printable bytes of a line count: keep the other lines short.
    let mut since = 0;
    for byte in &mut input {
        since = if *byte == b'\n' { 0 } else { since + 1 };
        if since == PRINTED / 2 {
            (*byte, since) = (b'\n', 0);
        }
    }
    let mut text = stream.letters(length, &printable());
    if number == 1 {
        // Other bytes in between, which are not stored.
        for _ in 0..40 {
            let place = stream.below(text.len());
            text.splice(place..place, stream.letters(1, &[1, 2, 3, 0x80, 0xff]));
        }
    }
    text.push(b'\n');
    input.splice(at..at + text.len().min(size - at), text);
    input[at - 1] = b'\n';
    Case {
        family: "line",
        variant,
        source: "printable_line.c",
        defines: vec![("VARIANT", number.to_string())],
        bug: "flush_overruns_line",
        input,
        minimum: [vec![b'0'; PRINTED], vec![b'\n']].concat(),
        is_text: false,
        ending: "",
    }
}

fn one_byte(set: Set) -> Case {
    let mut stream = set.stream(300);
    let size = set.size(1_000_000, &mut stream);
    let needed = stream.below(256) as u8;
    let mut input = stream.bytes(size, &[needed]);
    input[stream.below(size)] = needed;
    Case {
        family: "one-byte",
        variant: "",
        source: "far_bytes.c",
        defines: vec![("VARIANT", "0".into()), ("FIRST", needed.to_string())],
        bug: "bytes_meet",
        input,
        minimum: vec![needed],
        is_text: false,
        ending: "",
    }
}

fn two_bytes(set: Set, variant: &'static str, number: usize) -> Case {
    let mut stream = set.stream(400 + number as u64);
    let size = set.size(1_000_000, &mut stream);
    let first = stream.below(128) as u8;
    let second = first + 1 + stream.below(100) as u8;
    let mut input = stream.bytes(size, &[first, second]);
    let near = stream.below(size / 4);
    input[near] = first;
    input[size - 1 - stream.below(size / 4)] = second;
    Case {
        family: "two-bytes",
        variant,
        source: "far_bytes.c",
        defines: vec![
            ("VARIANT", number.to_string()),
            ("FIRST", first.to_string()),
            ("SECOND", second.to_string()),
        ],
        bug: "bytes_meet",
        input,
        minimum: vec![first, second],
        is_text: false,
        ending: "",
    }
}

/// Eight bytes in order; `rare` are not among the others, `frequent` are.
fn scattered(set: Set, variant: &'static str) -> Case {
    const NEEDED: usize = 8;
    let mut stream = set.stream(500 + variant.len() as u64);
    let size = set.size(20_000, &mut stream);
    let seed = stream.next() as u32;
    let mut lcg = Lcg(seed);
    // Frequent ones are found in order in many ways, so that other bytes can take their place.
    let (base, span, without) = match variant {
        "rare" => (b'A', 26, (b'A'..=b'Z').collect::<Vec<u8>>()),
        _ => (0, 255, Vec::new()),
    };
    let needed: Vec<u8> = (0..NEEDED).map(|_| base + lcg.next() % span).collect();
    let mut input = stream.bytes(size, &without);
    let mut at = 0;
    for (index, byte) in needed.iter().enumerate() {
        let room = (size - at) / (NEEDED - index);
        at += stream.below(room);
        input[at] = *byte;
        at += 1;
    }
    Case {
        family: "scattered",
        variant,
        source: "needed_bytes.c",
        defines: vec![
            ("NEEDED", NEEDED.to_string()),
            ("SEED", format!("{seed}u")),
            ("BASE", base.to_string()),
            ("SPAN", span.to_string()),
        ],
        bug: "sequence_is_complete",
        input,
        minimum: needed,
        is_text: false,
        ending: "",
    }
}

/// Two bugs that need the same two bytes.
pub fn two_bugs(set: Set) -> Vec<Case> {
    let of = |(variant, number): (&'static str, usize)| {
        let mut stream = set.stream(600 + number as u64);
        let [first, second] = [b'#', b'%'];
        let size = set.size(8192, &mut stream) / 2 * 2;
        let mut input = stream.bytes(size, &[first, second]);
        input[stream.below(size / 3)] = first;
        let place = size - 1 - stream.below(size / 3);
        // An odd place, for the minimum has the second byte at place 1.
        input[place | 1] = second;
        Case {
            family: "two-bugs",
            variant,
            source: "two_bugs.c",
            defines: vec![
                ("VARIANT", number.to_string()),
                ("FIRST", first.to_string()),
                ("SECOND", second.to_string()),
            ],
            bug: ["even_bug", "odd_bug"][number],
            input,
            minimum: vec![first, second],
            is_text: false,
            ending: "",
        }
    };
    [("length", 0), ("place", 1)].map(of).to_vec()
}
