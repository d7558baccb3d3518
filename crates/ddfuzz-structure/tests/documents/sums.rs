//! Texts with checksums in digits: of the bytes that a length beside them counts, of their line, of
//! what stands between two signs, of decoded bytes, and of all that follows or precedes them.

use ddfuzz_delta::Checksum;
use ddfuzz_structure::structure_of;

use crate::searches::reduce;

/// A stream of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Makes `words` words of small letters, with blanks between them.
    fn words(&mut self, words: usize) -> String {
        let word = |random: &mut Random| -> String {
            let letters = 2 + random.below(7);
            (0..letters)
                .map(|_| char::from(b'g' + random.below(20) as u8))
                .collect()
        };
        let words: Vec<String> = (0..words).map(|_| word(self)).collect();
        words.join(" ")
    }

    /// Makes `lines` contents of lines, one of which has the needle.
    fn contents(&mut self, lines: usize) -> Vec<String> {
        let bad = self.below(lines);
        let contents = (0..lines).map(|line| {
            let (before, behind) = (1 + self.below(4), 1 + self.below(4));
            let [before, behind] = [before, behind].map(|words| self.words(words));
            match line == bad {
                true => format!("{before} needle {behind}"),
                false => format!("{before} {behind}"),
            }
        });
        contents.collect()
    }
}

fn has_needle(text: &[u8]) -> bool {
    text.windows(6).any(|six| six == b"needle")
}

/// Returns the number that the digits are; `None` if they are no digits.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

fn split(text: &[u8], sign: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == sign)?;
    Some((&text[..at], &text[at + 1..]))
}

/// What a format is: it makes a text of the contents of lines, and reads the contents of a text of
/// which all numbers are right.
struct Family {
    make: fn(&mut Random, &[String]) -> String,
    read: fn(&[u8]) -> Option<Vec<Vec<u8>>>,
}

/// Minimizes texts of 30 lines of a family, and checks their sizes and numbers of tests.
fn check(family: &Family, least: usize, tests: usize) {
    for seed in 1..=4 {
        let mut random = Random(seed);
        let contents = random.contents(30);
        let text = (family.make)(&mut random, &contents).into_bytes();
        let fails = |text: &[u8]| {
            (family.read)(text).is_some_and(|contents| contents.iter().any(|one| has_needle(one)))
        };
        let reduced = reduce(&text, &fails, false);
        assert_eq!(structure_of(&text).name(), Some("summed"));
        let shown = reduced.text.escape_ascii();
        assert!(reduced.text.len() <= least, "seed {seed}: {shown}");
        assert!(
            reduced.tests <= tests,
            "seed {seed}: {} tests",
            reduced.tests
        );
    }
}

/// Reads records of a length, a checksum and so many bytes, one after the other.
fn read_counted(mut text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while !text.is_empty() {
        let (length, rest) = split(text, b':')?;
        let (sum, rest) = split(rest, b':')?;
        let (payload, rest) = rest.split_at_checked(number(length, 10)? as usize)?;
        let is_right = sum == format!("{:08x}", Checksum::Crc32.of(payload)).as_bytes();
        is_right.then(|| all.push(payload.to_vec()))?;
        text = rest.strip_prefix(b"\n")?;
    }
    Some(all)
}

fn counted_record(content: &str) -> String {
    let sum = Checksum::Crc32.of(content.as_bytes());
    format!("{}:{sum:08x}:{content}\n", content.len())
}

/// Records of a length, a checksum and so many bytes.
pub fn counted_records() -> Vec<u8> {
    let contents = ["first of all", "a needle in it", "the last"];
    contents.map(counted_record).concat().into_bytes()
}

#[test]
fn a_length_and_a_checksum_stand_before_bytes() {
    let family = Family {
        make: |_, contents| contents.iter().map(|it| counted_record(it)).collect(),
        read: read_counted,
    };
    check(&family, 18, 60);
}

/// Reads lines that begin with `$` and end with `*` and the exclusive or of the bytes between.
fn read_sentences(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.map(|line| {
        let (content, sum) = split(line.strip_prefix(b"$")?.strip_suffix(b"\r\n")?, b'*')?;
        let is_right = sum == format!("{:02X}", Checksum::Xor.of(content)).as_bytes();
        is_right.then(|| content.to_vec())
    });
    lines.collect()
}

fn sentence(content: &str) -> String {
    format!(
        "${content}*{:02X}\r\n",
        Checksum::Xor.of(content.as_bytes())
    )
}

#[test]
fn a_sentence_ends_with_its_exclusive_or() {
    let family = Family {
        make: |random, contents| {
            let lines = contents.iter().map(|content| {
                let content = format!("GPTXT,{},{}", random.below(100), content.replace(' ', ","));
                sentence(&content)
            });
            lines.collect()
        },
        read: read_sentences,
    };
    check(&family, 12, 60);
    let one = Family {
        make: |_, contents| {
            let line = contents.iter().find(|line| line.contains("needle"));
            sentence(line.expect("a line"))
        },
        read: read_sentences,
    };
    check(&one, 12, 50);
}

/// Reads lines of hexadecimal digits behind a colon, as linkers of small devices write them.
fn read_hex(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.map(|line| {
        let digits = line.strip_prefix(b":")?.strip_suffix(b"\n")?;
        let bytes = digits
            .chunks(2)
            .map(|two| (two.len() == 2).then(|| number(two, 16))?);
        let bytes: Vec<u8> = bytes.map(|byte| Some(byte? as u8)).collect::<Option<_>>()?;
        let (front, content) = bytes.split_at_checked(4)?;
        let content = content.split_last()?.1;
        let is_right = usize::from(front[0]) == content.len() && front[3] < 2;
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        (is_right && sum == 0).then(|| content.to_vec())
    });
    lines.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn hex_record(address: usize, content: &[u8]) -> String {
    let front = [content.len() as u8, address as u8, 16, 0];
    let bytes = [&front[..], content].concat();
    let sum = Checksum::Negated.of(&bytes) as u8;
    format!(":{}{sum:02X}\n", hex(&bytes))
}

/// Lines of hexadecimal digits, as linkers write them.
pub fn hex_records() -> Vec<u8> {
    let lines = [hex_record(1, b"first of all"), hex_record(2, b"the last")].concat();
    (lines + ":00000001FF\n").into_bytes()
}

#[test]
fn a_line_of_digits_states_length_and_checksum_of_its_bytes() {
    let family = Family {
        make: |random, contents| {
            let lines = contents.iter();
            let lines = lines.map(|content| hex_record(random.below(99), content.as_bytes()));
            lines.collect::<String>() + ":00000001FF\n"
        },
        read: read_hex,
    };
    check(&family, 24, 65);
}

/// Reads lines of keys and values, the last of which is the checksum of those before it.
fn read_keys(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.map(|line| {
        let line = line.strip_suffix(b"\n")?;
        let at = line.windows(5).rposition(|five| five == b";sum=")?;
        let is_right = number(&line[at + 5..], 10)? == Checksum::Adler32.of(&line[..at]);
        is_right.then(|| line[..at].to_vec())
    });
    lines.collect()
}

#[test]
fn the_last_value_of_a_line_is_a_checksum_in_decimal_digits() {
    let family = Family {
        make: |random, contents| {
            let lines = contents.iter().map(|content| {
                let line = format!(
                    "id={};note={content};at={}",
                    random.below(999),
                    random.below(99)
                );
                format!("{line};sum={}\n", Checksum::Adler32.of(line.as_bytes()))
            });
            lines.collect()
        },
        read: read_keys,
    };
    check(&family, 21, 65);
}

/// Reads a head with a digest, an empty line, and a body.
fn read_signed(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let at = text.windows(2).position(|two| two == b"\n\n")?;
    let digest = text[..at].strip_prefix(b"SHA256: ")?;
    let body = &text[at + 2..];
    (digest == sha256(body).as_bytes()).then(|| vec![body.to_vec()])
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_head_has_the_digest_of_the_body() {
    let family = Family {
        make: |_, contents| {
            let body = contents.join("\n");
            format!("SHA256: {}\n\n{body}\n", sha256(body.as_bytes()))
        },
        read: |text| read_signed(text.strip_suffix(b"\n")?),
    };
    check(&family, 81, 125);
}

/// Reads packets of a debugger one after the other: a dollar, text, a sharp, the sum of the text.
fn read_packets(mut text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while !text.is_empty() {
        let (content, rest) = split(text.strip_prefix(b"$")?, b'#')?;
        let sum = format!("{:02x}", Checksum::Sum.of(content) as u8);
        text = rest.strip_prefix(sum.as_bytes())?;
        all.push(content.to_vec());
    }
    Some(all)
}

#[test]
fn packets_without_line_ends_have_sums() {
    let family = Family {
        make: |_, contents| {
            let packets = contents.iter().map(|content| {
                format!(
                    "${content}#{:02x}",
                    Checksum::Sum.of(content.as_bytes()) as u8
                )
            });
            packets.collect()
        },
        read: read_packets,
    };
    check(&family, 10, 50);
}

/// Reads lines that begin with `S1`, a length of what follows, an address, and bytes.
fn read_records(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.map(|line| {
        let digits = line.strip_prefix(b"S1")?.strip_suffix(b"\n")?;
        let bytes = digits
            .chunks(2)
            .map(|two| (two.len() == 2).then(|| number(two, 16))?);
        let bytes: Vec<u8> = bytes.map(|byte| Some(byte? as u8)).collect::<Option<_>>()?;
        let (length, content) = bytes.split_first()?;
        let content = content.get(2..)?.split_last()?.1;
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        let is_right = usize::from(*length) == bytes.len() - 1;
        (is_right && sum == 0xff).then(|| content.to_vec())
    });
    lines.collect()
}

#[test]
fn the_length_of_a_line_of_digits_counts_its_checksum() {
    let family = Family {
        make: |random, contents| {
            let lines = contents.iter().map(|content| {
                let content = content.as_bytes();
                let front = [content.len() as u8 + 3, random.below(99) as u8, 32];
                let bytes = [&front[..], content].concat();
                let sum = !(Checksum::Sum.of(&bytes) as u8);
                format!("S1{}{sum:02X}\n", hex(&bytes))
            });
            lines.collect()
        },
        read: read_records,
    };
    check(&family, 23, 72);
}

/// Reads lines, the last of which has the digest of all before it.
fn read_trailed(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let text = text.strip_suffix(b"\n")?;
    let at = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let digest = text[at..].strip_prefix(b"# md5 = ")?;
    (digest == md5(&text[..at]).as_bytes()).then(|| vec![text[..at].to_vec()])
}

fn md5(bytes: &[u8]) -> String {
    use md5::Digest;
    let digest = md5::Md5::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_last_line_has_the_digest_of_the_others() {
    let family = Family {
        make: |_, contents| {
            let lines = contents.join("\n") + "\n";
            format!("{lines}# md5 = {}\n", md5(lines.as_bytes()))
        },
        read: read_trailed,
    };
    check(&family, 48, 95);
}

const SIXES: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns bytes in Base64.
fn base64(bytes: &[u8]) -> String {
    let three = |bytes: &[u8]| {
        let number = (0..3).fold(0_usize, |number, at| {
            number << 8 | usize::from(bytes.get(at).copied().unwrap_or_default())
        });
        [18, 12, 6, 0].map(|shift| char::from(SIXES[number >> shift & 63]))
    };
    let written = bytes.chunks(3).flat_map(|bytes| {
        let mut written = three(bytes);
        written[bytes.len() + 1..].fill('=');
        written
    });
    written.collect()
}

/// Reads Base64, whose line ends are skipped.
fn bytes_of(text: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'\n').collect();
    let four = text.chunks(4).map(|four| {
        let size = four.iter().position(|byte| *byte == b'=').unwrap_or(4);
        let number = (0..4).try_fold(0_u32, |number, at| {
            let six = match at < size {
                true => SIXES.iter().position(|six| *six == four[at])? as u32,
                false => 0,
            };
            Some(number << 6 | six)
        });
        number.map(|number| number.to_be_bytes()[1..size.max(1)].to_vec())
    });
    let bytes = text
        .len()
        .is_multiple_of(4)
        .then(|| four.collect::<Option<Vec<_>>>())?;
    let bytes = bytes?.concat();
    (base64(&bytes).as_bytes() == text).then_some(bytes)
}

/// Reads a request whose head states size and digest of its body: the digest behind `name`.
fn read_request(text: &[u8], name: &[u8], digest: &dyn Fn(&[u8]) -> String) -> Option<Vec<u8>> {
    let at = text.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = (&text[..at], &text[at + 4..]);
    let value = |name: &[u8]| {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.find_map(|line| line.strip_prefix(name))
    };
    let is_right = number(value(b"Content-Length: ")?, 10)? == body.len() as u64
        && value(name)? == digest(body).as_bytes();
    (is_right && head.starts_with(b"PUT ")).then(|| body.to_vec())
}

fn request(name: &str, digest: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "PUT /a/file HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\
         User-Agent: some client\r\n{name}{digest}\r\nAccept: */*\r\n\r\n{body}"
    )
}

fn md5_in_base64(bytes: &[u8]) -> String {
    use md5::Digest;
    base64(&md5::Md5::digest(bytes))
}

fn sha256_in_base64(bytes: &[u8]) -> String {
    use sha2::Digest;
    base64(&sha2::Sha256::digest(bytes))
}

fn sha384_in_base64(bytes: &[u8]) -> String {
    use sha2::Digest;
    base64(&sha2::Sha384::digest(bytes))
}

#[test]
fn a_head_has_size_and_digest_in_base64_of_the_body() {
    let md5 = Family {
        make: |_, contents| {
            let body = contents.join("\n");
            request("Content-MD5: ", &md5_in_base64(body.as_bytes()), &body)
        },
        read: |text| Some(vec![read_request(text, b"Content-MD5: ", &md5_in_base64)?]),
    };
    check(&md5, 70, 270);
    let sha256 = Family {
        make: |_, contents| {
            let body = contents.join("\n");
            let digest = sha256_in_base64(body.as_bytes());
            request("Digest: SHA-256=", &digest, &body)
        },
        read: |text| {
            let body = read_request(text, b"Digest: SHA-256=", &sha256_in_base64);
            Some(vec![body?])
        },
    };
    check(&sha256, 93, 320);
}

#[test]
fn a_line_in_front_has_the_integrity_of_the_others() {
    let family = Family {
        make: |_, contents| {
            let body = contents.join("\n") + "\n";
            format!("sha384-{}\n{body}", sha384_in_base64(body.as_bytes()))
        },
        read: |text| {
            let (digest, body) = split(text.strip_prefix(b"sha384-")?, b'\n')?;
            (digest == sha384_in_base64(body).as_bytes()).then(|| vec![body.to_vec()])
        },
    };
    check(&family, 78, 125);
}

/// Returns the CRC-24 of OpenPGP, bit by bit.
fn crc24(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(0xb7_04ce_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 16, |crc, _| {
            let crc = crc << 1;
            if crc >> 24 & 1 == 1 {
                crc ^ 0x186_4cfb
            } else {
                crc
            }
        })
    });
    crc & 0xff_ffff
}

/// Writes a block of OpenPGP with these bytes.
fn armored(bytes: &[u8]) -> String {
    let digits = base64(bytes).into_bytes();
    let lines: Vec<&str> = digits
        .chunks(64)
        .map(|it| std::str::from_utf8(it).unwrap())
        .collect();
    let (lines, sum) = (lines.join("\n"), base64(&crc24(bytes).to_be_bytes()[1..]));
    format!(
        "-----BEGIN PGP MESSAGE-----\nComment: a test\n\n{lines}\n={sum}\n-----END PGP MESSAGE-----\n"
    )
}

/// Reads the first block of OpenPGP of a text.
fn read_armored(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, text) = text.split_once("-----BEGIN PGP MESSAGE-----\n")?;
    let (head, text) = text.split_at(text.find("\n\n").map_or(0, |at| at + 1));
    let (text, _) = text
        .strip_prefix('\n')?
        .split_once("\n-----END PGP MESSAGE-----\n")?;
    let (text, sum) = text.rsplit_once("\n=")?;
    let bytes = bytes_of(text.as_bytes())?;
    let is_right = bytes_of(sum.as_bytes())? == crc24(&bytes).to_be_bytes()[1..];
    let is_whole = head.lines().all(|line| line.contains(": "));
    (is_right && is_whole).then_some(bytes)
}

/// A block of OpenPGP between other lines.
pub fn block() -> Vec<u8> {
    let bytes = b"a message that is too long for one line, so that it has a second one";
    format!("before\n{}behind\n", armored(bytes)).into_bytes()
}

#[test]
fn a_block_in_base64_has_the_checksum_of_its_bytes() {
    assert_eq!(
        crc24(b"123456789"),
        0x21_cf02,
        "the check value of CRC-24/OPENPGP"
    );
    let family = Family {
        make: |random, contents| {
            let before = random.words(9);
            format!(
                "{before}\n{}{before}\n",
                armored(contents.join("\n").as_bytes())
            )
        },
        read: |text| Some(vec![read_armored(text)?]),
    };
    check(&family, 70, 140);
    // A wrong checksum stays wrong.
    let wrong = String::from_utf8(block()).unwrap().replace("\n=", "\n=A");
    assert_ne!(structure_of(wrong.as_bytes()).name(), Some("summed"));
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let lines = Random(1).contents(30).concat();
    let wrong = |line: &str| sentence(line).replace('*', "!*");
    let text: String = (0..30)
        .map(|nth| sentence(&format!("{nth},{lines}")))
        .collect();
    let text = format!("{text}{}", wrong("needle"));
    assert_eq!(structure_of(text.as_bytes()).name(), Some("summed"));
    let fails = |text: &[u8]| {
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.any(|line| has_needle(line) && read_sentences(line).is_none())
    };
    let reduced = reduce(text.as_bytes(), &fails, false);
    assert_eq!(reduced.text, b"needle");
}

#[test]
fn numbers_that_agree_by_chance_are_no_checksums() {
    let mut random = Random(7);
    let hex = |random: &mut Random| format!("{:02x}", random.below(256));
    let dump = |random: &mut Random| -> String {
        let line = |random: &mut Random| -> String { (0..16).map(|_| hex(random)).collect() };
        (0..200).map(|_| line(random) + "\n").collect()
    };
    let tables = |random: &mut Random| -> String {
        let mut line = || format!("{} #{} *{}\n", random.words(3), hex(random), hex(random));
        (0..300).map(|_| line()).collect()
    };
    let equal = sentence("the same line").repeat(9).replace('$', "");
    for text in [dump(&mut random), tables(&mut random), equal] {
        assert_ne!(
            structure_of(text.as_bytes()).name(),
            Some("summed"),
            "{text}"
        );
    }
}
