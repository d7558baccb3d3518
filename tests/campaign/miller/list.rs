//! Lists of utilities: the lines of `run.py`, and our directives.

use std::ffi::OsString;

use ddfuzz::campaign::study::Invocation;
use ddfuzz::campaign::study::list::List;
use ddfuzz::exec::{Channel, Terminal};
use ddfuzz::files::Base64;

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The invocation of the one entry of a list of these lines.
#[track_caller]
fn entry(lines: &str) -> Invocation {
    let list = List::parse("test", lines);
    assert_eq!(list.skipped, []);
    assert_eq!(list.entries.len(), 1);
    list.entries[0].invocation.clone()
}

/// A terminal whose program is ended by these keys.
fn terminal(ending: &[u8]) -> Channel {
    Channel::Terminal(Terminal {
        ending: Base64(ending.to_vec()),
        ..Terminal::default()
    })
}

/// Why the last of these lines is skipped.
#[track_caller]
fn why(lines: &str) -> String {
    let list = List::parse("test", lines);
    assert_eq!(list.entries, []);
    let last = list.skipped.last().expect("one is skipped");
    last.why.clone()
}

#[test]
fn each_channel_puts_the_file_where_the_study_did() {
    let cat = entry("stdin cat [-A  -b]");
    let list = List::parse("test", "stdin cat");
    assert_eq!(list.entries[0].utility, "cat");
    assert_eq!(cat.name(), "stdin");
    assert_eq!(cat.pool, [words(&["-A"]), words(&["-b"])]);
    assert_eq!((cat.args, cat.pool_at), (words(&[]), 0));

    let cut = entry("file cut [--complement -z] -b 1");
    assert_eq!(cut.name(), "file");
    assert_eq!((cut.args, cut.pool_at), (words(&["-b", "1", "@@"]), 0));

    let colrm = entry("file colrm 2 4 ");
    assert_eq!((colrm.args, colrm.pool), (words(&["2", "4", "@@"]), vec![]));

    let gcc = entry("cp t.c gcc [-c -S]");
    assert_eq!(gcc.name(), "cp t.c");
    assert_eq!(gcc.args, words(&["@@"]));

    let join = entry("two_files join");
    assert_eq!(join.channel, Channel::TwoFiles);
    assert_eq!(join.args, words(&["@@", "@@"]));

    let look = entry("file look a [-b -d]");
    assert_eq!((look.args, look.pool_at), (words(&["a", "@@"]), 1));
}

#[test]
fn words_are_those_that_a_shell_would_see() {
    assert_eq!(entry("file awk '{print}'").args, words(&["{print}", "@@"]));
    assert_eq!(
        entry("cp tmp sed 's/a/b/' [-n]").args,
        words(&["s/a/b/", "@@"])
    );
    assert_eq!(
        entry("file grep [-a] \"e\" -f").args,
        words(&["e", "-f", "@@"])
    );
    assert_eq!(
        entry(r#"stdin x "a \" b"'c d'\ e ''"#).args,
        words(&[r#"a " bc d e"#, ""])
    );
    // The utility is a word as well, and so is the name of its file.
    for (line, utility) in [
        ("stdin \"./my program\" -a", "./my program"),
        ("stdin './my  program' -a", "./my  program"),
        ("stdin ./my\\ program -a", "./my program"),
        ("stdin 'cat' -a", "cat"),
    ] {
        let list = List::parse("test", line);
        assert_eq!(list.skipped, [], "{line}");
        assert_eq!(list.entries[0].utility, utility);
        assert_eq!(list.entries[0].invocation.args, words(&["-a"]));
    }
    assert_eq!(entry("cp 'my t.c' gcc -c").name(), "cp my t.c");
    // What stands in the pool is split at blanks, and nothing else.
    assert_eq!(
        entry("file colcrt [- -2]").pool,
        [words(&["-"]), words(&["-2"])]
    );
    assert_eq!(
        entry("pty less [-~ -#]").pool,
        [words(&["-~"]), words(&["-#"])]
    );
    assert_eq!(entry("stdin cat [-A]\r\n").pool, [words(&["-A"])]);
}

#[test]
fn programs_in_terminals_know_how_to_end() {
    let less = entry("pty less [-a]");
    assert_eq!(less.args, words(&["@@"]));
    assert!(matches!(less.channel, Channel::Terminal(it) if it.ending.0.contains(&b'q')));
    let shell = entry("pty ./build/bash [-i]");
    assert_eq!(shell.args, words(&[]));
    assert!(matches!(shell.channel, Channel::Terminal(it) if !it.ending.0.is_empty()));
    let unknown = entry("pty surely-not-known");
    assert_eq!(unknown.channel, terminal(b""));
}

#[test]
fn a_redirection_at_the_end_means_stdin() {
    let tool = entry("file tool -s \"subject\" to < ");
    assert_eq!(tool.name(), "stdin");
    assert_eq!(tool.args, words(&["-s", "subject", "to"]));
    assert_eq!(entry("stdin tool <").name(), "stdin");
}

#[test]
fn directives_say_more_than_the_study_could() {
    let lines = "//: package vim\n//: end \\x1b:q!\\r\n//: option -c 'set list'\npty vi [-R] @@\n\
                 // a comment\nstdin cat\n//: package\nstdin tac";
    let list = List::parse("test", lines);
    assert_eq!(list.skipped, []);
    let [vi, cat, tac] = &list.entries[..] else {
        panic!("{list:?}");
    };
    assert_eq!(vi.invocation.channel, terminal(b"\x1b:q!\r"));
    assert_eq!(
        vi.invocation.pool,
        [words(&["-R"]), words(&["-c", "set list"])]
    );
    assert_eq!(vi.invocation.args, words(&["@@"]));
    let packages = [vi, cat, tac].map(|listed| listed.package.as_deref());
    assert_eq!(packages, [Some("vim"), Some("vim"), None]);
    assert!(cat.invocation.pool.is_empty());
}

#[test]
fn wrong_lines_are_skipped_with_their_number_and_what_to_write() {
    let list = List::parse("test", "stdin cat\n\ncat [-A]\nfile tac [-r\n");
    assert_eq!(list.entries.len(), 1);
    let lines: Vec<(usize, &str)> = list
        .skipped
        .iter()
        .map(|skipped| (skipped.line, skipped.text.as_str()))
        .collect();
    assert_eq!(lines, [(3, "cat [-A]"), (4, "file tac [-r")]);
    assert!(list.skipped[0].why.contains("stdin|file|cp NAME"));
    assert!(list.skipped[1].why.contains("[-a -b]"));
    for (line, says) in [
        ("stdin", "the utility is missing"),
        ("stdin [-a]", "the utility is missing"),
        ("cp ../x cat", "current directory"),
        ("stdin a | b", "shell"),
        ("stdin a $HOME", "shell"),
        ("stdin a \"`b`\"", "shell"),
        ("stdin a 'b", "is not closed"),
        ("stdin 'a b", "is not closed"),
        ("stdin a b\\", "backslash"),
        ("file a ]-x[", "square brackets"),
        ("two_files a @@", "2 times"),
        ("stdin a @@", "0 times"),
        ("//: end \\q", "escape"),
        ("//: option", "//: option -w 40"),
        ("//: package a b", "groff"),
        ("//: else", "package, option and end"),
    ] {
        assert!(why(line).contains(says), "{line}: {}", why(line));
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    for line in [
        "[",
        "]",
        "stdin \u{e4} [\u{e4}",
        "cp",
        "cp t",
        "pty '",
        "//:",
        "//:\u{e4}",
        "\0 \0",
    ] {
        let list = List::parse("test", line);
        assert_eq!(list.entries.len() + list.skipped.len(), 1, "{line:?}");
    }
}
