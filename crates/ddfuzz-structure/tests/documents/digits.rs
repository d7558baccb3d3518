//! Texts in which bytes follow their number in digits, and packets whose heads state lengths.

use ddfuzz_structure::structure_of;

use crate::searches::reduce;

fn netstring(text: &[u8]) -> Vec<u8> {
    [text.len().to_string().as_bytes(), b":", text, b","].concat()
}

/// Netstrings of netstrings.
pub fn counted() -> Vec<u8> {
    let inner = |word: &str| {
        [word, "another string", "and one more"]
            .map(|text| netstring(text.as_bytes()))
            .concat()
    };
    ["first of all", "a needle in it", "the last"]
        .map(|word| netstring(&inner(word)))
        .concat()
}

/// A dictionary with a list of strings.
pub fn bencode() -> Vec<u8> {
    b"d8:announce16:http://localhost4:infod5:filesl11:first\xff\0file6:needle4:laste4:sizei42eee"
        .to_vec()
}

/// An array with an array.
pub fn php() -> Vec<u8> {
    b"a:2:{s:2:\"id\";i:7;s:4:\"user\";a:3:{s:4:\"name\";s:10:\"the needle\";i:1;N;i:2;d:0.5;}}"
        .to_vec()
}

fn resp(texts: &[&[u8]]) -> Vec<u8> {
    let mut all = format!("*{}\r\n", texts.len()).into_bytes();
    for text in texts {
        all.extend(format!("${}\r\n", text.len()).into_bytes());
        all.extend(*text);
        all.extend(b"\r\n");
    }
    all
}

/// Reads netstrings; `None` if a number is wrong.
fn netstrings(mut text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut all = Vec::new();
    while !text.is_empty() {
        let colon = text.iter().position(|byte| *byte == b':')?;
        let size: usize = std::str::from_utf8(&text[..colon]).ok()?.parse().ok()?;
        let (body, rest) = text[colon + 1..].split_at_checked(size)?;
        all.push(body);
        text = rest.strip_prefix(b",")?;
    }
    Some(all)
}

/// Checks that a text comes to `least` in at most `tests` tests.
fn check(text: &[u8], structure: &str, fails: &dyn Fn(&[u8]) -> bool, least: &[u8], tests: usize) {
    assert_eq!(structure_of(text).name(), Some(structure));
    let reduced = reduce(text, fails, false);
    assert_eq!(
        reduced.text.escape_ascii().to_string(),
        least.escape_ascii().to_string()
    );
    assert!(reduced.tests <= tests, "{} tests", reduced.tests);
}

#[test]
fn nested_lengths_in_digits_stay_right() {
    let has_needle = |text: &[u8]| text.windows(6).any(|six| six == b"needle");
    let fails = |text: &[u8]| {
        let inner = netstrings(text).and_then(|all| all.into_iter().map(netstrings).collect());
        let inner: Option<Vec<Vec<&[u8]>>> = inner;
        inner.is_some_and(|all| all.concat().into_iter().any(has_needle))
    };
    check(&counted(), "counted", &fails, b"9:6:needle,,", 90);
}

#[test]
fn strings_go_from_lists_and_dictionaries_with_their_lengths() {
    let fails = |text: &[u8]| {
        let is_list = text.starts_with(b"l") || text.starts_with(b"d");
        let has_needle = text.windows(8).any(|eight| eight == b"6:needle");
        is_list && has_needle && value_end(text, 0) == Some(text.len())
    };
    check(&bencode(), "bencode", &fails, b"d0:6:needlee", 60);
}

/// Returns the end of the value of bencode at the offset `at`; `None` if it is wrong.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    let each = match text.get(at)? {
        b'i' => return Some(at + text[at..].iter().position(|byte| *byte == b'e')? + 1),
        b'l' => 1,
        b'd' => 2,
        _ => {
            let colon = at + text[at..].iter().position(|byte| *byte == b':')?;
            let size: usize = std::str::from_utf8(&text[at..colon]).ok()?.parse().ok()?;
            let end = (colon + 1).checked_add(size)?;
            return (end <= text.len()).then_some(end);
        }
    };
    let mut at = at + 1;
    while *text.get(at)? != b'e' {
        for _ in 0..each {
            at = value_end(text, at)?;
        }
    }
    Some(at + 1)
}

#[test]
fn counts_and_lengths_of_strings_in_digits_stay_right() {
    let text = resp(&[b"SET", b"a key and more", b"the needle", b"a last string"]);
    let fails = |text: &[u8]| {
        let texts = text.split(|byte| *byte == b'$').skip(1);
        let texts = texts.map(|text| text.split(|byte| *byte == b'\n').nth(1).unwrap_or_default());
        let texts: Vec<&[u8]> = texts
            .map(|text| text.strip_suffix(b"\r").unwrap_or(text))
            .collect();
        resp(&texts) == text && texts.iter().any(|text| text.ends_with(b"needle"))
    };
    check(&text, "counted", &fails, b"*1\r\n$6\r\nneedle\r\n", 60);
}

#[test]
fn the_length_of_a_body_stands_in_a_line_before_it() {
    let body = b"some words and {\"a\": \"needle\"} and others";
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\nAccept: */*\r\n\r\n",
        body.len()
    );
    let fails = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let mut lines = head.split("\r\n");
            let is_post = lines.next() == Some("POST / HTTP/1.1");
            let length = lines
                .clone()
                .find_map(|line| line.strip_prefix("Content-Length: "));
            let is_right = length == Some(&body.len().to_string());
            is_post && is_right && lines.all(|line| line.contains(": ")) && body.contains("needle")
        })
    };
    let least = b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nneedle";
    check(
        &[head.as_bytes(), body].concat(),
        "counted",
        &fails,
        least,
        200,
    );
}

#[test]
fn texts_with_numbers_are_no_strings_by_chance() {
    let list: Vec<String> = (1..200).map(|number| number.to_string()).collect();
    let log = |line: usize| format!("12:{line:02}:30 INFO: {line} requests of 17 clients\n");
    for text in [
        list.join(" "),
        list.join("; "),
        list.join("\n"),
        (0..40).map(log).collect(),
        "Total: 20 of 30, 5 left: 7 more; 3\n".repeat(9),
    ] {
        assert_eq!(structure_of(text.as_bytes()).name(), Some("text"), "{text}");
    }
}

/// Returns the sum of bytes as big-endian words, with the carry added.
fn words(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| {
        u32::from(u16::from_be_bytes([
            word[0],
            word.get(1).copied().unwrap_or_default(),
        ]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A packet of UDP in IPv4 with options in Ethernet, with right lengths and checksums.
fn datagram(content: &[u8]) -> Vec<u8> {
    let word = |number: usize| (number as u16).to_be_bytes();
    let addresses = [10, 0, 0, 1, 10, 0, 0, 2];
    let size = 8 + content.len();
    let mut udp = [&[0, 9, 0, 53][..], &word(size), &[0, 0], content].concat();
    let pseudo = [&addresses[..], &[0, 17], &word(size), &udp].concat();
    udp[6..8].copy_from_slice(&(!words(&pseudo)).to_be_bytes());
    let mut ip = [
        &[0x46, 0][..],
        &word(24 + size),
        &[7, 7, 0, 0, 64, 17, 0, 0],
        &addresses,
        &[1, 1, 1, 0],
    ]
    .concat();
    let sum = !words(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    [&[2; 12][..], &[8, 0], &ip, &udp].concat()
}

/// Returns the content of a packet as [`datagram`] makes them, with or without options; `None` if a length
/// or checksum is wrong.
fn content(packet: &[u8]) -> Option<&[u8]> {
    let ip = packet.get(14..).filter(|_| packet[12..14] == [8, 0])?;
    let front = usize::from(*ip.first()? & 0xf) * 4;
    let number = |at: usize| {
        Some(usize::from(u16::from_be_bytes(
            *ip.get(at..)?.first_chunk()?,
        )))
    };
    let is_right = number(2)? == ip.len() && words(ip.get(..front)?) == 0xffff;
    let udp = ip.get(front..).filter(|udp| udp.len() >= 8)?;
    let pseudo = [
        ip.get(12..20)?,
        &[0, 17],
        &(udp.len() as u16).to_be_bytes(),
        udp,
    ]
    .concat();
    let is_right = is_right && number(front + 4)? == udp.len() && words(&pseudo) == 0xffff;
    is_right.then(|| &udp[8..])
}

/// A capture of packets in little-endian order.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2; 20]);
    for packet in packets {
        let size = (packet.len() as u32).to_le_bytes();
        file.extend([&[5; 8], &size[..], &size, packet].concat());
    }
    file
}

/// Returns the contents of all packets of a capture; `None` if one is wrong.
fn contents(file: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = file
        .get(24..)
        .filter(|_| file.starts_with(&[0xd4, 0xc3, 0xb2, 0xa1]))?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let size = u32::from_le_bytes(*rest.get(8..)?.first_chunk()?) as usize;
        (rest.get(8..12)? == rest.get(12..16)?).then_some(())?;
        let (packet, after) = rest[16..].split_at_checked(size)?;
        all.push(content(packet)?);
        rest = after;
    }
    Some(all)
}

#[test]
fn lengths_and_checksums_of_packets_stay_right() {
    let texts = ["a first packet", "one with a needle in it", "a last one"];
    let packets = texts.map(|text| datagram(text.as_bytes()));
    let fails = |file: &[u8]| {
        let has_needle = |text: &[u8]| text.windows(6).any(|six| six == b"needle");
        contents(file).is_some_and(|all| all.into_iter().any(has_needle))
    };
    let file = capture(&packets);
    assert_eq!(structure_of(&file).name(), Some("pcap"));
    let reduced = reduce(&file, &fails, false);
    let least = 24 + 16 + 14 + 20 + 8 + 6;
    assert_eq!(reduced.text.len(), least, "{:?}", reduced.text);
    assert!(reduced.tests < 200, "{} tests", reduced.tests);
}
