//! Class files of Java: indices of constants follow.

use crate::open;

/// A text among the constants.
fn utf8(text: &str) -> Vec<u8> {
    [&[1, 0, text.len() as u8], text.as_bytes()].concat()
}

/// An attribute: the index of its name, and its body.
fn attribute(name: u8, body: &[u8]) -> Vec<u8> {
    [&[0, name, 0, 0, 0, body.len() as u8], body].concat()
}

/// A class with a field of two words and a method that reads it.
pub fn class() -> Vec<u8> {
    let constants = [
        utf8("A"),
        vec![7, 0, 1],
        utf8("java/lang/Object"),
        vec![7, 0, 3],
        utf8("m"),
        utf8("()V"),
        utf8("Code"),
        vec![5, 0, 0, 0, 0, 0, 0, 0, 9],
        utf8("f"),
        utf8("J"),
        vec![12, 0, 10, 0, 11],
        vec![9, 0, 2, 0, 12],
        utf8("ConstantValue"),
    ];
    let code = [0x14, 0, 8, 0x58, 0xb2, 0, 13, 0x58, 0xb1];
    let code = [&[0, 2, 0, 1, 0, 0, 0, 9][..], &code, &[0, 0, 0, 0]].concat();
    [
        &b"\xca\xfe\xba\xbe\0\0\0\x3d\0\x0f"[..],
        &constants.concat(),
        &[0, 0x21, 0, 2, 0, 4, 0, 0, 0, 1, 0, 0x18, 0, 10, 0, 11, 0, 1],
        &attribute(14, &[0, 8]),
        &[0, 1, 0, 9, 0, 5, 0, 6, 0, 1],
        &attribute(7, &code),
        &[0, 0],
    ]
    .concat()
}

/// Returns the constants of a class by their indices, and the offset after them.
fn constants(text: &[u8]) -> (Vec<&[u8]>, usize) {
    let count = usize::from(text[8]) << 8 | usize::from(text[9]);
    let (mut at, mut constants) = (10, vec![&text[..0]]);
    while constants.len() < count {
        let size = match text[at] {
            1 => 3 + usize::from(text[at + 2]),
            7 => 3,
            9 | 12 => 5,
            5 => 9,
            kind => panic!("a constant of kind {kind}"),
        };
        constants.push(&text[at..at + size]);
        if text[at] == 5 {
            constants.push(&text[..0]);
        }
        at += size;
    }
    (constants, at)
}

#[test]
fn indices_of_constants_follow() {
    let text = class();
    let document = open(&text).expect("a document");
    let mut counts = Vec::new();
    for part in 0..document.parts().len() {
        let fewer = document.without(&[part]).text();
        let (constants, end) = constants(&fewer);
        counts.push(constants.len());
        let code = fewer[end..].windows(2).position(|code| code == [0xb2, 0]);
        let kept = code.map(|at| constants[usize::from(fewer[end + at + 2])].first());
        let is_field = constants
            .iter()
            .any(|constant| constant.first() == Some(&9));
        assert!(
            !is_field || kept.is_none_or(|kept| kept == Some(&9)),
            "without {part}"
        );
    }
    // Without the field, its attribute has no name; without the method, more goes.
    assert!(counts.contains(&14) && counts.contains(&10), "{counts:?}");
    let least = document.reduced(&[0]).text();
    assert!(least.windows(2).any(|code| code == [0x01, 0xbf]));
}
