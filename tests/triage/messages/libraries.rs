//! What C and C++ libraries say when they abort.

use ddfuzz::triage::messages::abort;

#[test]
fn messages_of_c_libraries_are_found_among_other_lines() {
    for message in [
        "*** stack smashing detected ***: terminated",
        "*** buffer overflow detected ***: terminated",
        "free(): invalid pointer",
        "double free or corruption (!prev)",
        "malloc(): corrupted top size",
        "corrupted size vs. prev_size",
        "prog: a.c:3: f: Assertion `x > 0' failed.",
        "Assertion failed: x > 0 (a.c: f: 3)",
    ] {
        let text = format!("reading\n{message}\nAborted\n");
        let found = abort(text.as_bytes()).unwrap();
        assert_eq!((found.message.as_str(), found.exception), (message, None));
    }
    assert_eq!(abort(b"all is well\n"), None);
}

#[test]
fn the_type_of_an_uncaught_exception_is_told() {
    let known = [
        (
            "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector\n",
            Some("std::out_of_range"),
        ),
        (
            "libc++abi: terminating due to uncaught exception of type std::length_error: vector\n",
            Some("std::length_error"),
        ),
        (
            "libc++abi: terminating with uncaught exception of type int\n",
            Some("int"),
        ),
        ("terminate called without an active exception\n", None),
    ];
    let what = abort(known[0].0.as_bytes()).unwrap().what;
    assert_eq!(what.as_deref(), Some("vector"));
    for (text, exception) in known {
        assert_eq!(
            abort(text.as_bytes()).unwrap().exception.as_deref(),
            exception,
            "{text}"
        );
    }
}
