//! Shell code by which scripts without ddfuzz pass the input to the target: as a file, under a
//! name, as two files, or as keystrokes at a terminal.
//!
//! Before this code, the script sets `$input` (the input file) and `$scratch` (an empty temporary
//! directory), and also `$program` if the code uses that variable.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use ddfuzz_exec::{Channel, Limits, Target, Terminal, sample_text};
use ddfuzz_model::files::{Base64, shell::quoted};

/// Placeholder for the path of the input file in a target's arguments.
const INPUT_MARK: &[u8] = b"@@";
/// Number of characters per line of the base64 text that encodes an input.
const LINE: usize = 76;

/// Shell lines that set a UTF-8 locale if none is set, as ddfuzz does for its targets.
pub const LOCALE: &str = r#"[ -n "${LC_ALL-}${LC_CTYPE-}${LANG-}" ] || {
    LANG=C.UTF-8
    export LANG
}
"#;

/// Shell words that stand between `env` and the path of a program that contains `=`, because `env`
/// would take such a path for a variable. A shell in place of these words would drop environment
/// variables whose names are not identifiers.
pub const RUN_PROGRAM: &[u8] = b"\"$(command -v nice)\" -n 0 ";

/// Shell code that splits the input at its first separator byte (28) into two files; without a
/// separator the second file is empty.
const TWO_FILES: &str = r#"at=$(od -An -v -tu1 "$input" |
    awk '{ for (i = 1; i <= NF; i++) { if ($i == 28) { print n + 0; exit }; n++ } }')
head -c "${at:-$(wc -c <"$input")}" "$input" >"$scratch/first"
: >"$scratch/second"
[ -z "$at" ] || tail -c +"$((at + 2))" "$input" >"$scratch/second"
"#;

const KEYS: &str = include_str!("keys.awk");

/// Shell function that types the keys of the input into the target's terminal with pauses, then
/// ends the program. It runs beside the program and reads the program's process id and terminal
/// from files.
const TYPE: &str = include_str!("type_keys.sh.in");

/// Returns the shell lines that put the input where the target expects it: a file of a certain
/// name, two files, or keys for a terminal; empty for other targets.
pub fn place_input(target: &Target) -> Vec<u8> {
    match &target.channel {
        Channel::Plain => Vec::new(),
        Channel::Named(name) => {
            let name = quoted(name.0.as_bytes());
            let copy = b"mkdir -- \"$scratch/named\" && cp -- \"$input\" \"$scratch/named\"/";
            [&copy[..], &name, b" || exit 70\n"].concat()
        }
        Channel::TwoFiles => TWO_FILES.into(),
        Channel::Terminal(terminal) => place_keys(target, terminal),
    }
}

fn place_keys(target: &Target, terminal: &Terminal) -> Vec<u8> {
    let ending = terminal.ending.0.iter();
    let ending: String = ending.map(|byte| format!("\\{byte:03o}")).collect();
    let mut text = format!("keys() {{\n    od -An -v -tu1 | awk '\n{KEYS}'\n}}\n");
    // No key begins in one of the three and ends in the next.
    text.push_str(&format!(
        "{{\n    keys <\"$input\" && printf '{ending}' | keys && printf '\\004\\004' | keys\n}} \
         >\"$scratch/keys\" || exit 70\n"
    ));
    let limits = &target.limits;
    text.push_str(&format!(
        "seconds={} ticks=$(({} * $(getconf CLK_TCK || echo 100)))\n",
        wall_seconds(limits),
        limits.cpu.as_secs().saturating_add(6).min(1 << 32),
    ));
    if target.names_file() {
        text.push_str("base64 -d >\"$scratch/sample\" <<'END' || exit 70\n");
        text.push_str(&base64_lines(sample_text()));
        text.push_str("END\n");
    }
    text.push_str(TYPE);
    text.into_bytes()
}

/// Returns the number of seconds after which scripts stop a run that hangs: so many that a run that
/// uses the CPU reaches its limit on CPU time first, even on a busy machine.
pub(super) fn wall_seconds(limits: &Limits) -> u64 {
    let seconds = limits.wall.max(limits.cpu).as_secs();
    seconds.saturating_mul(10).saturating_add(5).min(1 << 32)
}

/// Encodes the bytes as base64 with padding, in lines of 76 characters as in coreutils.
pub fn base64_lines(bytes: &[u8]) -> String {
    let text = Base64(bytes.to_vec()).text();
    let lines = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Quotes an argument as a shell word and replaces each `@@` by the path of an input file. `plain`
/// is this path, as a shell word, for an input that is a single file of any name. `named` counts
/// the `@@` replaced so far, in all arguments: if the target takes two input files, the first `@@`
/// becomes the path of the first file, and all others become the path of the second.
pub fn argument(target: &Target, arg: &OsStr, plain: &[u8], named: &mut usize) -> Vec<u8> {
    let mut rest = arg.as_bytes();
    let mut word = Vec::new();
    while let Some(at) = (rest.windows(INPUT_MARK.len())).position(|part| part == INPUT_MARK) {
        if at > 0 {
            word.extend(quoted(&rest[..at]));
        }
        word.extend(file(target, plain, *named));
        *named += 1;
        rest = &rest[at + INPUT_MARK.len()..];
    }
    if !rest.is_empty() || word.is_empty() {
        word.extend(quoted(rest));
    }
    word
}

fn file(target: &Target, plain: &[u8], named: usize) -> Vec<u8> {
    match &target.channel {
        Channel::Plain => plain.to_vec(),
        Channel::Named(name) => [b"\"$scratch/named\"/", &quoted(name.0.as_bytes())[..]].concat(),
        Channel::TwoFiles if named == 0 => b"\"$scratch/first\"".to_vec(),
        Channel::TwoFiles => b"\"$scratch/second\"".to_vec(),
        Channel::Terminal(_) => b"\"$scratch/sample\"".to_vec(),
    }
}

/// Returns the environment variables that a target at a terminal needs, as shell words to be put
/// before the command; empty for targets without a terminal.
pub fn variables(target: &Target) -> &'static [u8] {
    match &target.channel {
        Channel::Terminal(_) => b"TERM=xterm ",
        _ => b"",
    }
}

/// Returns the shell lines that run `command` with `stdin` (a shell word) as its standard input, or
/// with keys typed at a terminal. The lines end with the exit status of the program, or with 128
/// plus the number of the signal that killed it.
pub fn run(target: &Target, command: &[u8], stdin: &[u8]) -> Vec<u8> {
    if let Channel::Terminal(terminal) = &target.channel {
        let size = format!("stty rows {} cols {}\n", terminal.rows, terminal.columns);
        return [
            b"cat >\"$scratch/run\" <<'END_OF_RUN' || exit 70\nSHELL=$shell\ntty >\"$scratch/tty\"\n",
            size.as_bytes(),
            b"echo $$ >\"$scratch/pid\"\nexec ",
            command,
            b"\nEND_OF_RUN\ntype_keys | SHELL=/bin/sh script -qec 'exec sh \"$scratch/run\"' /dev/null \
              >/dev/null\n",
        ]
        .concat();
    }
    let stdin = match target.takes_file() {
        true => b"/dev/null",
        false => stdin,
    };
    [command, b" <", stdin, b"\n"].concat()
}
