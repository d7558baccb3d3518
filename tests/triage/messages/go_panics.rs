//! Messages and stacks of Go panics, in the shapes that the documentation of Go's runtime shows.

use ddfuzz::triage::messages::go_panic;

#[test]
fn a_panic_is_named_by_the_first_frame_outside_the_runtime() {
    let text = "panic: runtime error: index out of range [5] with length 3 [recovered]\n\n\
                goroutine 1 [running]:\nruntime.gopanic({0x45e0, 0xc0})\n\t/usr/local/go/src/runtime/panic.go:884 +0x212\n\
                panic({0x45e0?, 0xc0?})\n\t/usr/local/go/src/runtime/panic.go:884 +0x212\n\
                main.(*Parser).parse(0xc000012018, {0xc0, 0x3})\n\t/home/u/p/main.go:12 +0x1d\n\
                main.main()\n\t/home/u/p/main.go:7 +0x20\nexit status 2\n";
    let panic = go_panic(text.as_bytes()).unwrap();
    assert_eq!(
        panic.message,
        "runtime error: index out of range [5] with length 3"
    );
    assert_eq!(panic.function.as_deref(), Some("main.(*Parser).parse"));
    assert_eq!(panic.line.as_deref(), Some("/home/u/p/main.go:12"));
}

#[test]
fn a_fatal_error_is_a_panic_too() {
    let text = "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n\
                main.main()\n\t/p/main.go:5 +0x31\n";
    let panic = go_panic(text.as_bytes()).unwrap();
    assert_eq!(panic.message, "all goroutines are asleep - deadlock!");
    assert_eq!(panic.function.as_deref(), Some("main.main"));
}

#[test]
fn a_panic_without_a_goroutine_is_none() {
    assert_eq!(go_panic(b"panic: out of paper\n"), None);
    assert_eq!(go_panic(b"goroutine 1 [running]:\n"), None);
}

/// Returns the message of a panic in `strings.Repeat`, with `own` as the frames of the callers.
fn repeated(own: &str) -> String {
    format!(
        "panic: strings: negative Repeat count\n\ngoroutine 1 [running]:\npanic({{0x45e0?, 0xc0?}})\n\
         \t/usr/local/go/src/runtime/panic.go:884 +0x212\nstrings.Repeat({{0x1, 0x1}}, 0xff)\n\
         \t/usr/local/go/src/strings/strings.go:624 +0x5d\n{own}"
    )
}

#[test]
fn a_panic_in_the_standard_library_is_named_by_its_caller() {
    let named = |own: &str| go_panic(repeated(own).as_bytes()).unwrap().function;
    let callers = [
        ("main.left(...)\n\t/p/main.go:5 +0x31\n", "main.left"),
        ("main.right(...)\n\t/p/main.go:9 +0x31\n", "main.right"),
        // Packages of the user's that a compiler has seen below a folder `src`, too.
        ("util.F(0x1)\n\t/home/u/src/util/f.go:3 +0x1\n", "util.F"),
        (
            "encoding/own.F(0x1)\n\t/home/u/own/f.go:3 +0x1\n",
            "encoding/own.F",
        ),
        ("", "strings.Repeat"),
    ];
    for (own, function) in callers {
        assert_eq!(named(own).as_deref(), Some(function), "{own}");
    }
    let json = "encoding/json.(*decodeState).object(0x1)\n\t/usr/local/go/src/encoding/json/decode.go:9 +0x1\n\
                main.load()\n\t/p/main.go:7 +0x20\n";
    assert_eq!(named(json).as_deref(), Some("main.load"));
}
