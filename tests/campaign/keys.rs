//! The generator of keystrokes: an input is rebuilt from its name, today and in ten years.

use ddfuzz::campaign::KeystrokesName;

fn keys(name: &str) -> Vec<u8> {
    let name: KeystrokesName = name.parse().unwrap();
    let mut buffer = b"of an earlier input".to_vec();
    name.write_into(&mut buffer);
    buffer
}

#[test]
fn the_keys_of_a_name_never_change() {
    // Were one of these to differ, every recorded study would lose its inputs.
    let names = [
        "keys:0000000000000001:300",
        "keys:000000000000002d:300",
        "keys:ffffffffffffffff:10000",
        "keys:0000000000000001:0",
    ];
    let hashes = names.map(|name| blake3::hash(&keys(name)).to_hex()[..16].to_owned());
    let expected = [
        "f938614f610b8c88",
        "11debdc8e0d7c1f5",
        "61dd26e4df63d276",
        "af1349b9f5f9a1a6",
    ];
    assert_eq!(hashes, expected);
}

#[test]
fn a_name_of_keys_reads_back_as_it_is_written() {
    let name = KeystrokesName {
        seed: 0xfeed,
        length: 77,
    };
    assert_eq!(name.to_string(), "keys:000000000000feed:77");
    assert_eq!(name.to_string().parse(), Ok(name));
    for wrong in [
        "",
        "keys:",
        "keys:1",
        "keys:x:1",
        "keys:1:-1",
        "all:1:1",
        "keys:1:1:1",
    ] {
        assert!(wrong.parse::<KeystrokesName>().is_err(), "{wrong}");
    }
}

#[test]
fn a_longer_sequence_begins_with_the_shorter_one() {
    let long = keys("keys:0000000000000007:500");
    assert!(long.starts_with(&keys("keys:0000000000000007:100")));
    assert_ne!(long, keys("keys:0000000000000008:500"));
}

#[test]
fn every_sort_of_key_comes() {
    let all = keys("keys:0000000000000001:20000");
    let has = |part: &[u8]| all.windows(part.len()).any(|window| window == part);
    for part in [
        &b"\x1b[A"[..],
        b"\x1bOP",
        b"\x1b[15~",
        b"\x1b[H",
        b"\x1b[6~",
        b"\x1bv",
        b"\x1b[M",
        b"\x1b[200~",
        b"\x1b[8;24;80t",
        b"help",
        "漢".as_bytes(),
        b"\x04",
        b"\x03",
        b"\x1a",
        b"\0",
        b"\r",
        b"\t",
        b"\x7f",
        b"\xff",
        b"Q",
        b"z",
        b"[",
        b"0",
        b"9",
    ] {
        assert!(has(part), "{part:?}");
    }
}
