//! The classic generator: an input is rebuilt from its name, today and in ten years.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

use ddfuzz::campaign::generator::unescape;
use ddfuzz::campaign::generator::{Characters, InputName, Kind, Lines, Preset};

fn input(name: &str) -> Vec<u8> {
    let name: InputName = name.parse().unwrap();
    let mut buffer = b"of an earlier input".to_vec();
    name.write_into(&mut buffer);
    buffer
}

#[test]
fn the_stream_of_a_name_never_changes() {
    let mut changed = Vec::new();
    // Were one of these to differ, every recorded campaign would lose its inputs.
    for (name, hash) in [
        ("printable:0000000000000001:1000", "23ca7cd97755527e"),
        ("all:0000000000000001:1000", "46126a7e179571d6"),
        ("printable+nul:00000000000000ff:4096", "9337268e398aa174"),
        ("all+nul:00000000000000ff:100000", "0ac1ef606e13850d"),
        ("printable+lines:ffffffffffffffff:1000", "1f9009a26641e657"),
        ("all+nul+lines:0123456789abcdef:50000", "3b3074105a444cea"),
        ("all:0000000000000001:0", "af1349b9f5f9a1a6"),
        ("bytes:0000000000000001:1000", "51da2d8a8eca4e06"),
        ("bytes+nul:00000000000000ff:4096", "0afc2bd10f471541"),
        (
            "printable+strings255:0000000000000001:100",
            "11c47927827183bf",
        ),
        (
            "bytes+nul+strings100:00000000000000ff:1000",
            "8b17ed3e0ac5e94c",
        ),
    ] {
        let found = blake3::hash(&input(name)).to_hex();
        if found[..16] != *hash {
            changed.push(format!("{name}: {}", &found[..16]));
        }
    }
    assert_eq!(changed, [""; 0]);
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
        "all+lines+nul:1:1",
        "all+nul+nul:1:1",
        "all+strings0:1:1",
        "all+strings007:1:1",
        "all+strings4294967296:1:1",
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
                b'\n' => kind.lines == Lines::Scaled,
                0x20..=0x7e => true,
                _ => kind.characters == Characters::All,
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

#[test]
fn a_stream_gives_the_same_bytes_in_pieces_of_any_size() {
    for name in [
        "printable:0000000000000001:70001",
        "all+nul+lines:0123456789abcdef:70001",
        "bytes+nul+strings255:0000000000000007:600",
        "printable+strings1:0000000000000007:50",
    ] {
        let whole = input(name);
        let name: InputName = name.parse().unwrap();
        for size in [1, 7, 4096, 65536] {
            let (mut stream, mut piece, mut bytes) =
                (name.stream(), vec![0; size], Vec::<u8>::new());
            loop {
                let read = stream.read(&mut piece).unwrap();
                bytes.extend(&piece[..read]);
                if read == 0 {
                    break;
                }
            }
            assert!(bytes == whole, "{name} in pieces of {size}");
        }
    }
}

#[test]
fn strings_are_lines_shorter_than_they_are_said_to_be() {
    let bytes = input("printable+strings20:0000000000000009:5000");
    assert_eq!(bytes.last(), Some(&b'\n'));
    let lengths: Vec<usize> = bytes[..bytes.len() - 1]
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::len)
        .collect();
    assert_eq!(lengths.len(), 5000);
    let different: HashSet<usize> = lengths.into_iter().collect();
    assert_eq!(different, (0..20).collect());
}

#[test]
fn characters_of_fuzz_have_newlines_among_them() {
    for (name, nul) in [("bytes", false), ("bytes+nul", true)] {
        let bytes = input(&format!("{name}:0000000000000003:200000"));
        let seen: HashSet<u8> = bytes.into_iter().collect();
        let expected: HashSet<u8> = (u8::from(!nul)..=255).collect();
        assert_eq!(seen, expected, "{name}");
    }
}

/// How many inputs of each kind a preset has, and their least and greatest lengths.
fn shape(preset: &str) -> BTreeMap<String, (usize, u64, u64)> {
    let preset: Preset = preset.parse().unwrap();
    let mut shape = BTreeMap::new();
    for input in preset.inputs(1) {
        let entry = shape
            .entry(input.kind.to_string())
            .or_insert((0, u64::MAX, 0));
        *entry = (
            entry.0 + 1,
            entry.1.min(input.length),
            entry.2.max(input.length),
        );
    }
    shape
}

#[test]
fn the_sixteen_inputs_of_issta_are_four_sizes_of_four_kinds() {
    let shape = shape("issta");
    let kinds: Vec<&str> = shape.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["bytes", "bytes+nul", "printable", "printable+nul"]);
    assert!(shape.values().all(|kind| *kind == (4, 1_000, 1_000_000)));
}

#[test]
fn data_sets_of_2020_have_the_published_counts_and_lengths() {
    for (preset, count) in [
        ("small1", 1200),
        ("small2", 1200),
        ("small3", 1200),
        ("medium1", 900),
        ("medium2", 900),
        ("medium3", 600),
        ("large1", 180),
        ("large2", 180),
        ("large3", 180),
        ("huge1", 60),
        ("huge2", 60),
        ("huge3", 60),
    ] {
        let inputs: Vec<InputName> = preset.parse::<Preset>().unwrap().inputs(7).collect();
        assert_eq!(inputs.len(), count, "{preset}");
        let different: HashSet<&InputName> = inputs.iter().collect();
        assert_eq!(different.len(), count, "{preset}");
        let few_seeds = inputs.iter().all(|input| input.seed < 37);
        assert_eq!(few_seeds, preset.ends_with('1'), "{preset}");
    }
    let third = shape("medium3");
    assert_eq!(third["bytes"], (100, 100_000, 100_000));
    assert_eq!(third["printable+strings100"], (100, 1_000, 1_000));
    let huge = shape("huge2");
    let (count, least, greatest) = huge["bytes+nul"];
    assert!(count == 10 && least >= 10_000_000 && greatest <= 100_000_000);
    assert_eq!(shape("medium2")["bytes+strings255"].0, 200);
}

#[test]
fn a_preset_is_a_function_of_its_seed() {
    let small: Preset = "small2".parse().unwrap();
    let first: Vec<InputName> = small.inputs(1).collect();
    assert!(small.inputs(1).eq(first.iter().copied()));
    assert!(
        small
            .inputs(2)
            .zip(&first)
            .all(|(other, one)| other != *one)
    );
    let error = "small4".parse::<Preset>().unwrap_err().to_string();
    assert!(
        error.contains("small4") && error.contains("small3"),
        "{error}"
    );
}

#[test]
fn escapes_are_those_of_c() {
    let bytes = unescape(br"a\tb\n\x1b\0\101\1019\x4\\\'\?\e").unwrap();
    assert_eq!(bytes, b"a\tb\n\x1b\0AA9\x04\\'?\x1b");
    for wrong in ["\\q", "\\", "\\x", "\\xg", "\\400", "\\8"] {
        let error = unescape(wrong.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("escape of C"), "{error}");
    }
}
