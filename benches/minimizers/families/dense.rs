//! Most bytes are needed.

use super::stream::Lcg;
use super::{Case, Set};

/// The families `all-needed` and `every-other`.
pub fn cases(set: Set) -> Vec<Case> {
    vec![
        needed(set, "all-needed", "letters", 300, None),
        needed(set, "all-needed", "any byte", 300, None),
        needed(
            set,
            "every-other",
            "letters",
            200,
            Some(b"abcdefghijklmnop"),
        ),
        needed(set, "every-other", "dots", 200, Some(b".")),
    ]
}

/// Needed bytes of which each is followed by one of `filler`.
fn needed(
    set: Set,
    family: &'static str,
    variant: &'static str,
    count: usize,
    filler: Option<&[u8]>,
) -> Case {
    let mut stream = set.stream(700 + count as u64 + variant.len() as u64);
    let seed = stream.next() as u32;
    let mut lcg = Lcg(seed);
    let (base, span) = match variant {
        "any byte" => (0, 255),
        _ => (b'A', 26),
    };
    let minimum: Vec<u8> = (0..count).map(|_| base + lcg.next() % span).collect();
    let mut input = Vec::new();
    for byte in &minimum {
        input.push(*byte);
        input.extend(filler.map(|filler| stream.letters(1, filler)[0]));
    }
    Case {
        family,
        variant,
        source: "needed_bytes.c",
        defines: vec![
            ("NEEDED", count.to_string()),
            ("SEED", format!("{seed}u")),
            ("BASE", base.to_string()),
            ("SPAN", span.to_string()),
        ],
        bug: "sequence_is_complete",
        input,
        minimum,
        is_text: variant != "any byte",
        ending: "",
    }
}
