//! The classic generator: an input is rebuilt from its name, today and in ten years.

use ddfuzz::campaign::generator::{InputName, Kind};

fn input(name: &str) -> Vec<u8> {
    let name: InputName = name.parse().unwrap();
    let mut buffer = b"of an earlier input".to_vec();
    name.write_into(&mut buffer);
    buffer
}

#[test]
fn the_stream_of_a_name_never_changes() {
    // Were one of these to differ, every recorded campaign would lose its inputs.
    for (name, hash) in [
        ("printable:0000000000000001:1000", "23ca7cd97755527e"),
        ("all:0000000000000001:1000", "46126a7e179571d6"),
        ("printable+nul:00000000000000ff:4096", "9337268e398aa174"),
        ("all+nul:00000000000000ff:100000", "0ac1ef606e13850d"),
        ("printable+lines:ffffffffffffffff:1000", "1f9009a26641e657"),
        ("all+nul+lines:0123456789abcdef:50000", "3b3074105a444cea"),
        ("all:0000000000000001:0", "af1349b9f5f9a1a6"),
    ] {
        let found = blake3::hash(&input(name)).to_hex();
        assert_eq!(&found[..16], hash, "{name}");
    }
}

#[test]
fn a_name_reads_back_as_it_is_written() {
    for kind in Kind::ALL {
        let name = InputName {
            kind,
            seed: 0xfeed,
            length: 77,
        };
        assert_eq!(name.to_string().parse(), Ok(name));
        assert_eq!(input(&name.to_string()).len(), 77);
    }
}

#[test]
fn what_is_no_name_is_refused() {
    for text in [
        "",
        "all",
        "all:1",
        "some:1:1",
        "all:xyz:1",
        "all:1:-1",
        "all:1:1:1",
        "all:10000000000000000:1",
    ] {
        let error = text.parse::<InputName>().unwrap_err();
        assert!(error.to_string().contains("no") && error.to_string().contains(text));
    }
}

#[test]
fn each_kind_has_its_characters_and_no_others() {
    for kind in Kind::ALL {
        let name = InputName {
            kind,
            seed: 3,
            length: 200_000,
        };
        let mut bytes = Vec::new();
        name.write_into(&mut bytes);
        let mut seen = [false; 256];
        bytes
            .iter()
            .for_each(|byte| seen[usize::from(*byte)] = true);
        for byte in 0..=255 {
            let expected = match byte {
                0 => kind.nul,
                b'\n' => kind.newlines,
                0x20..=0x7e => true,
                _ => kind.all,
            };
            assert_eq!(seen[usize::from(byte)], expected, "{kind}: byte {byte}");
        }
    }
}

#[test]
fn a_shorter_input_of_one_name_is_the_beginning_of_a_longer_one() {
    for kind in ["printable", "all+nul", "all+lines"] {
        let long = input(&format!("{kind}:0000000000000005:3000"));
        let short = input(&format!("{kind}:0000000000000005:100"));
        assert_eq!(short, long[..100]);
    }
}
