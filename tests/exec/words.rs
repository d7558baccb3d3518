//! The words of programs that nobody has prepared.

use std::path::Path;

use ddfuzz::exec::facts::program_words;
use ddfuzz::exec::{ExecError, Program, Target};

use crate::programs::{Compiled, compile, try_compile};

const MAKES: [&[&str]; 4] = [
    &["-O0"],
    &["-O2"],
    &["-O2", "-no-pie", "-fno-pie"],
    &["-O2", "-s"],
];

/// The words of the program at `path`; none of one that is refused.
fn words_of(path: &Path) -> Vec<Vec<u8>> {
    match program_words(&Target::new(Program::Path(path.to_owned()))) {
        Err(ExecError::NotExecutable { .. }) => Vec::new(),
        words => words.unwrap(),
    }
}

fn words(program: &Compiled) -> Vec<Vec<u8>> {
    words_of(&program.path)
}

#[track_caller]
fn assert_has(words: &[Vec<u8>], word: &[u8], make: &[&str]) {
    let shown: Vec<_> = words
        .iter()
        .map(|word| word.escape_ascii().to_string())
        .collect();
    let word_shown = word.escape_ascii();
    assert!(
        words.iter().any(|known| known == word),
        "{make:?}: {word_shown} is not in {shown:?}"
    );
}

#[test]
fn texts_that_are_looked_for_are_words_of_programs_of_every_make() {
    for make in MAKES {
        let words = words(&compile("magic", make));
        for word in [
            "%%EndOfFile",
            "Content-Length",
            "pastry",
            "butterfly",
            "sundial",
        ] {
            assert_has(&words, word.as_bytes(), make);
        }
    }
}

#[test]
fn constants_that_are_compared_with_are_words_in_both_byte_orders() {
    if !cfg!(target_arch = "x86_64") {
        return crate::needs::missing("x86-64", "instructions of other machines are not decoded");
    }
    for make in MAKES {
        let words = words(&compile("magic", make));
        for word in [
            &b"\xca\xfe\xba\xbe"[..],
            b"\xbe\xba\xfe\xca",
            b"BM",
            b"\x89PNG\n\r\n\x1a",
            b"IHDR",
            b"tEXt",
            b"zTXt",
        ] {
            assert_has(&words, word, make);
        }
    }
}

#[test]
fn messages_paths_and_small_numbers_are_no_words() {
    for make in MAKES {
        let words = words(&compile("magic", make));
        for word in &words {
            let text = String::from_utf8_lossy(word);
            let noise = ["too short", "/usr", "cannot find", "GCC", "GLIBC"];
            assert!(
                !noise.iter().any(|part| text.contains(part)),
                "{make:?}: {text}"
            );
        }
        assert!(!words.contains(&vec![12, 0, 0, 0]) && !words.contains(&vec![0, 0x10, 0, 0]));
    }
}

#[test]
fn the_words_of_a_static_program_begin_with_its_own() {
    let Some(program) = try_compile("magic", &["-O2", "-static"]) else {
        return crate::needs::missing("libc.a", "the compiler links no static programs");
    };
    let words = words(&program);
    assert!(words.len() <= 512, "{}", words.len());
    assert_has(&words, b"Content-Length", &["-static"]);
}

#[test]
fn words_are_the_same_each_time_and_each_stands_once() {
    let program = compile("magic", &["-O2"]);
    let all = words(&program);
    assert_eq!(all, words(&program));
    let mut sorted = all.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), all.len());
    assert!(all.iter().all(|word| (2..=32).contains(&word.len())));
}

#[test]
fn what_is_no_program_of_this_machine_has_no_words() {
    let shell = Path::new("/bin/sh");
    let script = crate::programs::open_directory();
    let path = script.path().join("script");
    std::fs::write(&path, "#!/bin/sh\necho \"hello\"\n").unwrap();
    make_executable(&path);
    assert_eq!(words_of(&path), Vec::<Vec<u8>>::new());
    let mut cut = std::fs::read(shell).unwrap();
    cut.truncate(cut.len() / 2);
    let half = script.path().join("half");
    std::fs::write(&half, &cut).unwrap();
    make_executable(&half);
    assert!(words_of(&half).len() <= 512);
}

#[test]
fn a_damaged_program_does_no_harm() {
    let program = compile("magic", &["-O2"]);
    let whole = std::fs::read(&program.path).unwrap();
    let folder = crate::programs::open_directory();
    let path = folder.path().join("damaged");
    // Every header byte that a parser rests on, set to what is least expected.
    for at in (0..0x400)
        .step_by(7)
        .chain(whole.len() - 0x800..whole.len())
        .step_by(3)
    {
        let mut damaged = whole.clone();
        damaged[at] = 0xff;
        std::fs::write(&path, &damaged).unwrap();
        make_executable(&path);
        assert!(words_of(&path).len() <= 512);
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
