//! Nested items of DER, protobuf and MessagePack: inner ones are written in place of those around them.

use crate::searches::reduce;

/// Writes an item of DER with a short length.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, content.len() as u8], content].concat()
}

/// Reads items of DER with short lengths: each with its tag and content.
fn der_items(mut text: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut items = Vec::new();
    while let [tag, length @ 0..0x80, rest @ ..] = text {
        let content = rest.get(..usize::from(*length))?;
        items.push((*tag, content));
        text = &rest[content.len()..];
    }
    text.is_empty().then_some(items)
}

/// Returns true if an item with the tag `tag` is in a list of items, or in an item of a list of these, and
/// `accepts` its content; `None` if one of the items cannot be read.
fn has_der(text: &[u8], tag: u8, accepts: &dyn Fn(&[u8]) -> bool) -> Option<bool> {
    let mut found = false;
    for (own, content) in der_items(text)? {
        if own & 0x20 > 0 {
            found |= has_der(content, tag, accepts)?;
        }
        found |= own == tag && accepts(content);
    }
    Some(found)
}

#[test]
fn an_item_of_der_stands_in_place_of_those_around_it() {
    let number = der(2, &[1, 2, 3, 4]);
    let mut nested = number;
    for at in 0..6 {
        let beside = der(0x13, b"text");
        nested = der([0x30, 0xa3, 0x31][at % 3], &[beside, nested].concat());
    }
    let whole = der(0x30, &nested);
    let has_number =
        |content: &[u8]| has_der(content, 2, &|number| number.len() >= 4) == Some(true);
    let fails = |text: &[u8]| {
        let one = der_items(text).filter(|items| items.len() == 1);
        let is_list = one.is_some_and(|items| items[0].0 == 0x30);
        is_list && has_der(text, 0xa3, &has_number) == Some(true)
    };
    let reduced = reduce(&whole, &fails, true);
    assert_eq!(
        reduced.text,
        [0x30, 8, 0xa3, 6, 2, 4, 0x30, 0x30, 0x30, 0x30]
    );
    assert!(reduced.tests <= 60, "{} tests", reduced.tests);
}

#[test]
fn all_items_of_a_list_stand_in_place_of_it() {
    let pair = [der(6, &[1]), der(1, &[7])].concat();
    let whole = der(0x30, &der(0xa3, &der(0x30, &pair)));
    let has_pair = |content: &[u8]| {
        has_der(content, 6, &|_| true) == Some(true) && has_der(content, 1, &|_| true) == Some(true)
    };
    let fails = |text: &[u8]| {
        let one = der_items(text).filter(|items| items.len() == 1);
        let is_list = one.is_some_and(|items| items[0].0 == 0x30);
        let size = |content: &[u8]| content.len() == 1;
        is_list
            && has_der(text, 0xa3, &has_pair) == Some(true)
            && has_der(text, 6, &size) == Some(true)
            && has_der(text, 1, &size) == Some(true)
    };
    let reduced = reduce(&whole, &fails, true);
    assert_eq!(reduced.text, [0x30, 8, 0xa3, 6, 6, 1, 0x30, 1, 1, 0x30]);
}

/// Returns true if a message of protobuf, whose fields have lengths below 128, has a field 3 with the number
/// 300, or a message in its field 1 has one; `None` if it cannot be read.
fn has_number(mut text: &[u8]) -> Option<bool> {
    let mut found = false;
    while let [key, rest @ ..] = text {
        text = match (key, rest) {
            (0x0a | 0x12, [length @ 0..0x80, rest @ ..]) => {
                let content = rest.get(..usize::from(*length))?;
                found |= *key == 0x0a && has_number(content)?;
                &rest[content.len()..]
            }
            (0x18, [0xac, 2, rest @ ..]) => {
                found = true;
                rest
            }
            (0x18, [0..0x80, rest @ ..]) => rest,
            _ => return None,
        };
    }
    Some(found)
}

#[test]
fn a_field_of_protobuf_stands_in_place_of_those_around_it() {
    let mut message = vec![0x18, 0xac, 2];
    for at in 0..6 {
        let inner = [&[0x0a, message.len() as u8], &message[..]].concat();
        message = [&[0x12, 4][..], b"node", &inner, &[0x18, at]].concat();
    }
    let reduced = reduce(&message, &|text| has_number(text) == Some(true), true);
    assert_eq!(reduced.text, [0x18, 0xac, 2]);
    assert!(reduced.tests <= 30, "{} tests", reduced.tests);
}
