//! Messages and backtraces of Rust panics.

use ddfuzz::triage::messages::{backtrace_place, is_std_file, rust_panic, short_location};

const STD: &str = "
thread 'main' (8953) panicked at /rustc/5980/library/core/src/time.rs:1201:31:
overflow when subtracting durations
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/5980/library/std/src/panicking.rs:689:5
   1: core::panicking::panic_fmt
             at /rustc/5980/library/core/src/panicking.rs:80:14
   5: <core::time::Duration as core::ops::arith::Sub>::sub
             at /rustc/5980/library/core/src/time.rs:1201:31
   6: p::main
             at ./src/bin/p.rs:13:61
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
";

#[test]
fn both_forms_of_the_message_are_read() {
    let known = [
        (
            "thread 'main' panicked at src/main.rs:2:46:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`",
            "src/main.rs:2:46",
            "index out of bounds",
        ),
        (
            "\nthread '<unnamed>' (8930) panicked at p.rs:9:41:\na\nb 6\nstack backtrace:\n",
            "p.rs:9:41",
            "a\nb 6",
        ),
        (
            "thread 'main' panicked at 'it's', src/a.rs:3:5\n",
            "src/a.rs:3:5",
            "it's",
        ),
        (
            "thread 'main' panicked at 'two\nlines', src/a.rs:3:5\n",
            "src/a.rs:3:5",
            "two\nlines",
        ),
    ];
    for (text, location, message) in known {
        let panic = rust_panic(text.as_bytes()).unwrap();
        assert_eq!(
            (panic.location.as_str(), panic.message.as_str()),
            (location, message)
        );
    }
}

#[test]
fn of_two_panics_the_first_counts() {
    let text =
        "thread 'a' panicked at x.rs:1:1:\nfirst\nthread 'main' panicked at y.rs:2:2:\nsecond\n";
    let panic = rust_panic(text.as_bytes()).unwrap();
    assert_eq!(
        (panic.location.as_str(), panic.message.as_str()),
        ("x.rs:1:1", "first")
    );
}

fn located(panics: &[(&str, &str)]) -> Option<String> {
    let text: String = (panics.iter().enumerate())
        .map(|(line, (thread, said))| {
            format!("\nthread {thread} panicked at a.rs:{line}:1:\n{said}\n")
        })
        .collect();
    rust_panic(text.as_bytes()).map(|panic| panic.location)
}

#[test]
fn a_panic_that_its_thread_has_survived_does_not_name_a_later_one() {
    let probe = ("'main' (7)", "probe");
    for (at, panics) in [
        (1, vec![probe, ("'main' (7)", "bug")]),
        (2, vec![probe, probe, ("'main' (7)", "bug")]),
        (1, vec![("'main'", "probe"), ("'main'", "bug")]),
    ] {
        assert_eq!(located(&panics), Some(format!("a.rs:{at}:1")), "{panics:?}");
    }
    let old =
        "thread 'main' panicked at 'probe', a.rs:0:1\nthread 'main' panicked at 'bug', a.rs:1:1\n";
    assert_eq!(rust_panic(old.as_bytes()).unwrap().location, "a.rs:1:1");
}

#[test]
fn a_panic_that_follows_from_another_is_named_by_that() {
    let (main, probe) = ("'main' (7)", ("'main' (7)", "probe"));
    for (at, panics) in [
        (
            0,
            vec![
                (main, "bug"),
                (main, "panic in a function that cannot unwind"),
            ],
        ),
        (
            0,
            vec![
                (main, "bug"),
                (main, "in drop"),
                (main, "panic in a destructor during cleanup"),
            ],
        ),
        (
            1,
            vec![
                probe,
                (main, "bug"),
                (main, "in drop"),
                (main, "panic in a destructor during cleanup"),
            ],
        ),
        (
            0,
            vec![
                (main, "bug"),
                (
                    main,
                    "called `Result::unwrap()` on an `Err` value: Any { .. }",
                ),
            ],
        ),
        (
            0,
            vec![
                ("'<unnamed>' (8)", "bug"),
                (
                    main,
                    "called `Result::unwrap()` on an `Err` value: Any { .. }",
                ),
            ],
        ),
        (
            0,
            vec![("'<unnamed>'", "bug"), ("'<unnamed>'", "RecvError")],
        ),
        (0, vec![("'w' (8)", "bug"), ("'w' (9)", "RecvError")]),
    ] {
        assert_eq!(located(&panics), Some(format!("a.rs:{at}:1")), "{panics:?}");
    }
    let old = "thread 'main' panicked at 'bug', a.rs:0:1\nthread 'main' panicked at 'in drop', a.rs:1:1\n\
               thread panicked while panicking. aborting.\n";
    assert_eq!(rust_panic(old.as_bytes()).unwrap().location, "a.rs:0:1");
}

#[test]
fn what_only_looks_like_a_panic_is_none() {
    for text in [
        "",
        "he panicked at noon",
        "thread 'x' panicked at nowhere:",
        "panicked at a.rs:1:1:",
    ] {
        assert_eq!(rust_panic(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_backtrace_names_the_first_place_outside_the_standard_library() {
    assert_eq!(
        backtrace_place(STD.as_bytes()).as_deref(),
        Some("./src/bin/p.rs:13:61")
    );
    // Without debug information the user's frames have no place.
    let bare = STD.replace("             at ./src/bin/p.rs:13:61\n", "");
    assert_eq!(backtrace_place(bare.as_bytes()).as_deref(), Some("p::main"));
    assert_eq!(
        backtrace_place(b"stack backtrace:\nnote: Some details are omitted"),
        None
    );
    assert_eq!(backtrace_place(b"no backtrace"), None);
}

#[test]
fn methods_that_the_user_gives_to_std_traits_are_the_users() {
    let text = "stack backtrace:\n   0: <u32 as core::iter::traits::accum::Sum<&u32>>::sum::{{closure}}\n   \
                1: <core::slice::iter::Iter<T> as core::iter::traits::iterator::Iterator>::fold\n   \
                2: <p::D as core::ops::drop::Drop>::drop\n   3: p::main\n";
    assert_eq!(
        backtrace_place(text.as_bytes()).as_deref(),
        Some("<p::D as core::ops::drop::Drop>::drop")
    );
}

#[test]
fn files_of_the_standard_library_are_known_wherever_it_was_built() {
    assert!(is_std_file("/rustc/5980/library/core/src/time.rs:1:1"));
    assert!(is_std_file(
        "/home/u/.rustup/toolchains/x/lib/rustlib/src/rust/library/std/src/io.rs"
    ));
    assert!(is_std_file("library/alloc/src/vec.rs"));
    assert!(!is_std_file("src/library/core.rs"));
    assert!(!is_std_file("my_library/core/src/x.rs"));
}

#[test]
fn a_location_keeps_three_parts_of_its_path() {
    assert_eq!(
        short_location("/home/u/x/src/bin/p.rs:1:2"),
        "src/bin/p.rs:1:2"
    );
    assert_eq!(short_location("./p.rs:1:2"), "p.rs:1:2");
    assert_eq!(short_location("src/p.rs:1:2"), "src/p.rs:1:2");
}
