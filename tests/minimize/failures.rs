//! Failures to minimize.

use ddfuzz::delta::Outcome;

/// FAIL where the letters of `needle` stand in this order, else PASS.
pub fn subsequence(needle: &'static [u8]) -> impl Fn(&[u8]) -> Outcome + Clone {
    move |text| {
        let mut rest = needle.iter();
        let mut wanted = rest.next();
        for byte in text {
            if Some(byte) == wanted {
                wanted = rest.next();
            }
        }
        if wanted.is_none() {
            Outcome::Fail
        } else {
            Outcome::Pass
        }
    }
}

/// FAIL with all bytes of `needed`, UNRESOLVED with some, PASS with none.
pub fn all_of(needed: &'static [u8]) -> impl Fn(&[u8]) -> Outcome + Clone {
    move |text| match needed.iter().filter(|byte| text.contains(byte)).count() {
        0 => Outcome::Pass,
        some if some == needed.len() => Outcome::Fail,
        _ => Outcome::Unresolved,
    }
}

/// Outcomes without any order in them: a hash of the text decides, `whole` always fails.
pub fn odd(seed: u64, whole: &[u8]) -> impl Fn(&[u8]) -> Outcome + Clone + use<> {
    let whole = whole.to_vec();
    move |text| {
        let hash = text
            .iter()
            .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(*byte))
                    .wrapping_mul(0x0000_0100_0000_01b3)
                    .rotate_left(29)
            });
        match hash >> 60 {
            _ if text == whole => Outcome::Fail,
            _ if text.is_empty() => Outcome::Pass,
            0..=3 => Outcome::Fail,
            4..=8 => Outcome::Unresolved,
            _ => Outcome::Pass,
        }
    }
}

/// The log without what may differ between two runs of the same outcomes.
pub fn without_times(log: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(log).expect("UTF-8");
    text.lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let fields = value.as_object_mut().expect("an object");
            fields.remove("us");
            fields.remove("spent_ms");
            value
        })
        .collect()
}
