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
