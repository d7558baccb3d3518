//! Reports of sanitizers, as runtimes of gcc and clang print them.

use ddfuzz::triage::messages::{ObjectKind, ReportAccess, ReportObject, Tool, report};

const HEAP: &str = "\
=================================================================
==8487==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000011 at pc 0x55697ed47298 bp 0x7ffe3bf89b00 sp 0x7ffe3bf89af8
READ of size 1 at 0x602000000011 thread T0
    #0 0x55697ed47297  (/lab/prog+0x2297) (BuildId: 957aaaa468d091a2)
    #1 0x55697ed47a59  (/lab/prog+0x2a59)
    #2 0x7f20aa645249  (/lib/x86_64-linux-gnu/libc.so.6+0x27249)

0x602000000011 is located 1 bytes inside of 10-byte region [0x602000000010,0x60200000001a)
freed by thread T0 here:
    #0 0x7f20aa8b76a8  (/lib/x86_64-linux-gnu/libasan.so.8+0xb76a8)
    #1 0x55697ed47a4c  (/lab/prog+0x2a4c)

previously allocated by thread T0 here:
    #0 0x7f20aa8b89cf  (/lib/x86_64-linux-gnu/libasan.so.8+0xb89cf)

SUMMARY: AddressSanitizer: heap-use-after-free (/lab/prog+0x2297)
";

/// A line of a report, with a frame in the format that ddfuzz sets.
fn as_set(line: &str) -> String {
    let Some((address, place)) = line.split_once("  (") else {
        return line.to_owned();
    };
    let address = address.split_whitespace().last().unwrap();
    let place = place.split(')').next().unwrap();
    match place.split_once('+') {
        Some((module, offset)) => format!("{address} {module}{offset}"),
        None => format!("{address} <null>0x0"),
    }
}

#[test]
fn lines_with_an_address_are_no_frames() {
    let text = HEAP.replace(
        "    #0",
        "0x602000000010 is located at 0x602000000010 there\n    #0",
    );
    let shadow = text + "0x602000000000: fa fa 0x12\n0xzz /module0x12\n0x12 /module+0x1g\n";
    let [found, usual] = [shadow.as_bytes(), HEAP.as_bytes()].map(|it| report(it).unwrap());
    assert_eq!((found.stack, found.freed), (usual.stack, usual.freed));
}

#[test]
fn frames_say_the_same_in_the_format_that_ddfuzz_sets() {
    let usual = HEAP.replace(
        "#2 0x7f20aa645249  (/lib/x86_64-linux-gnu/libc.so.6+0x27249)",
        "#2 0x7f20aa645249  (<unknown module>)",
    );
    let set: Vec<String> = usual.lines().map(as_set).collect();
    let set = set.join("\n");
    assert_ne!(set, usual);
    let found = report(set.as_bytes()).unwrap();
    assert_eq!(found, report(usual.as_bytes()).unwrap());
    assert_eq!(
        (found.stack.len(), found.freed.len(), found.allocated.len()),
        (3, 2, 1)
    );
}

/// What AddressSanitizer says, and the kind that it is.
const ADDRESS: &[(&str, &str)] = &[
    (
        "heap-buffer-overflow on address 0x1 at pc 0x2",
        "heap-buffer-overflow",
    ),
    (
        "attempting double-free on 0x602000000010 in thread T0:",
        "double-free",
    ),
    (
        "attempting free on address which was not malloc()-ed: 0x7f in thread T0",
        "bad-free",
    ),
    (
        "alloc-dealloc-mismatch (malloc vs operator delete) on 0x1",
        "alloc-dealloc-mismatch",
    ),
    ("negative-size-param: (size=-1)", "negative-size-param"),
    (
        "memcpy-param-overlap: memory ranges [0x1,0x2) and [0x1, 0x2) overlap",
        "memcpy-param-overlap",
    ),
    (
        "requested allocation size 0x4000 (0x5000 after adjustments",
        "allocation-size-too-big",
    ),
    (
        "allocator is out of memory trying to allocate 0x10 bytes",
        "out-of-memory",
    ),
    ("SEGV on unknown address 0x000000000000 (pc 0x55)", "SEGV"),
    ("FPE on unknown address 0x55 (pc 0x55)", "FPE"),
    (
        "stack-overflow on address 0x7ffc (pc 0x56)",
        "stack-overflow",
    ),
    ("odr-violation (0x55):", "odr-violation"),
    (
        "new-delete-type-mismatch on 0x60 in thread T0:",
        "new-delete-type-mismatch",
    ),
];

/// First lines of other sanitizers' reports, and what they are.
const OTHERS: &[(&str, Tool, &str)] = &[
    (
        "==1==WARNING: MemorySanitizer: use-of-uninitialized-value",
        Tool::Msan,
        "use-of-uninitialized-value",
    ),
    (
        "WARNING: ThreadSanitizer: data race (pid=8716)",
        Tool::Tsan,
        "data-race",
    ),
    (
        "WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=1)",
        Tool::Tsan,
        "lock-order-inversion",
    ),
    (
        "WARNING: ThreadSanitizer: signal-unsafe call inside of a signal (pid=1)",
        Tool::Tsan,
        "signal-unsafe-call-inside-of-a-signal",
    ),
    (
        "==1==ERROR: HWAddressSanitizer: tag-mismatch on address 0x1",
        Tool::Hwasan,
        "tag-mismatch",
    ),
    (
        "==1==ERROR: UndefinedBehaviorSanitizer: SEGV on unknown address",
        Tool::Ubsan,
        "SEGV",
    ),
];

/// What UndefinedBehaviorSanitizer says, and the flag of the check.
const CHECKS: &[(&str, &str)] = &[
    (
        "signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'",
        "signed-integer-overflow",
    ),
    ("division by zero", "division-by-zero"),
    (
        "shift exponent 33 is too large for 32-bit type 'int'",
        "shift-exponent",
    ),
    ("left shift of negative value -1", "shift-base"),
    ("index 5 out of bounds for type 'int [4]'", "bounds"),
    ("load of null pointer of type 'int'", "null"),
    (
        "load of misaligned address 0x7f for type 'int', which requires 4 byte alignment",
        "alignment",
    ),
    (
        "load of value 3, which is not a valid value for type 'bool'",
        "bool",
    ),
    (
        "load of value 9, which is not a valid value for type 'enum e'",
        "enum",
    ),
    (
        "execution reached an unreachable program point",
        "unreachable",
    ),
    (
        "applying non-zero offset 4 to null pointer",
        "pointer-overflow",
    ),
    (
        "null pointer passed as argument 1, which is declared to never be null",
        "nonnull-attribute",
    ),
    (
        "variable length array bound evaluates to non-positive value -1",
        "vla-bound",
    ),
    (
        "1e+20 is outside the range of representable values of type 'int'",
        "float-cast-overflow",
    ),
    ("a message that nobody knows", "other"),
];

#[test]
fn a_report_has_its_kind_access_and_three_stacks() {
    let report = report(HEAP.as_bytes()).unwrap();
    assert_eq!(
        (report.tool, report.kind.as_str()),
        (Tool::Asan, "heap-use-after-free")
    );
    assert_eq!(
        (report.access, report.size),
        (Some(ReportAccess::Read), Some(1))
    );
    let offsets = |stack: &[ddfuzz::triage::messages::ReportFrame]| -> Vec<(String, u64)> {
        let frame = |it: &ddfuzz::triage::messages::ReportFrame| {
            (it.base_name().unwrap().to_owned(), it.offset.unwrap().0)
        };
        stack.iter().map(frame).collect()
    };
    let frame = |module: &str, offset| (module.to_owned(), offset);
    assert_eq!(
        offsets(&report.stack),
        [
            frame("prog", 0x2297),
            frame("prog", 0x2a59),
            frame("libc.so.6", 0x27249)
        ]
    );
    assert_eq!(
        offsets(&report.freed),
        [frame("libasan.so.8", 0xb76a8), frame("prog", 0x2a4c)]
    );
    assert_eq!(offsets(&report.allocated), [frame("libasan.so.8", 0xb89cf)]);
}

#[test]
fn kinds_are_the_sanitizers_own_words() {
    for (said, kind) in ADDRESS {
        let text = format!("==12==ERROR: AddressSanitizer: {said}\n");
        let report = report(text.as_bytes()).unwrap();
        assert_eq!(
            (report.tool, report.kind.as_str()),
            (Tool::Asan, *kind),
            "{said}"
        );
    }
    for (line, tool, kind) in OTHERS {
        let report = report(line.as_bytes()).unwrap();
        assert_eq!(
            (report.tool, report.kind.as_str()),
            (*tool, *kind),
            "{line}"
        );
    }
}

#[test]
fn a_kind_that_is_not_known_is_taken_from_the_summary() {
    let text = "==1==ERROR: AddressSanitizer: something never heard of\n    #0 0x1 (/p+0x1)\n\n\
                SUMMARY: AddressSanitizer: news (/p+0x1)\n";
    assert_eq!(report(text.as_bytes()).unwrap().kind, "news");
}

#[test]
fn checks_of_undefined_behaviour_are_named_as_their_flags() {
    for (message, check) in CHECKS {
        let text =
            format!("a.c:8:63: runtime error: {message}\n    #0 0x55dc  (/lab/prog+0x229f)\n");
        let report = report(text.as_bytes()).unwrap();
        assert_eq!(
            (report.tool, report.kind.as_str()),
            (Tool::Ubsan, *check),
            "{message}"
        );
        assert_eq!(report.location.as_deref(), Some("a.c:8:63"));
        assert_eq!(report.stack.len(), 1);
    }
}

#[test]
fn bytes_that_a_report_points_at_do_not_hide_its_stack() {
    let text = "a.c:36:57: runtime error: load of misaligned address 0x7ffd for type 'int', which requires 4 byte alignment\n\
                0x7ffd6075d951: note: pointer points here\n 55 00 00  61 6c 69\n              ^ \n    \
                #0 0x55f28e202c4a  (/lab/prog+0x2c4a)\n";
    assert_eq!(report(text.as_bytes()).unwrap().stack.len(), 1);
}

#[test]
fn symbolized_frames_are_read_too() {
    let text = "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n\
                WRITE of size 60 at 0x1 thread T0\n    \
                #0 0x4f in __interceptor_memcpy (/usr/lib/libasan.so.8+0x48060)\n    \
                #1 0x4f in ns::f(int, char const*) /home/a b/file.cpp:12:3\n    \
                #2 0x4f in main /home/file.c:3\n";
    let report = report(text.as_bytes()).unwrap();
    let function = |at: usize| report.stack[at].function.as_deref().unwrap();
    assert_eq!(function(0), "__interceptor_memcpy");
    assert_eq!(report.stack[0].base_name(), Some("libasan.so.8"));
    assert!(function(1).starts_with("ns::f(int, char const*)"));
    assert_eq!(
        (function(2), report.stack[2].line.as_deref()),
        ("main", Some("/home/file.c:3"))
    );
    assert_eq!(report.access, Some(ReportAccess::Write));
}

#[test]
fn frames_of_thread_sanitizer_have_a_module_behind_two_nulls() {
    let text = "WARNING: ThreadSanitizer: data race (pid=8716)\n  \
                Write of size 4 at 0x55e6bd6c7258 by main thread:\n    \
                #0 <null> <null> (ct+0xd0176) (BuildId: 6e7e32)\n\n  \
                Previous read of size 4 at 0x55e6bd6c7258 by thread T1:\n    \
                #0 <null> <null> (ct+0xd0114) (BuildId: 6e7e32)\n";
    let report = report(text.as_bytes()).unwrap();
    assert_eq!(report.access, Some(ReportAccess::Write));
    assert_eq!(
        report.stack.len(),
        1,
        "the other thread's stack is no part of it"
    );
    let frame = &report.stack[0];
    assert_eq!(
        (frame.module.as_deref(), frame.offset.map(|it| it.0)),
        (Some("ct"), Some(0xd0176))
    );
    assert_eq!((&frame.function, &frame.line), (&None, &None));
}

#[test]
fn the_first_direct_leak_stands_for_all() {
    let text = "==7==ERROR: LeakSanitizer: detected memory leaks\n\n\
                Indirect leak of 3 byte(s) in 1 object(s) allocated from:\n    #0 0x1  (/p+0x1)\n\n\
                Direct leak of 10 byte(s) in 1 object(s) allocated from:\n    #0 0x2  (/p+0x2)\n\n\
                Direct leak of 20 byte(s) in 1 object(s) allocated from:\n    #0 0x3  (/p+0x3)\n";
    let report = report(text.as_bytes()).unwrap();
    assert_eq!(
        (report.kind.as_str(), report.size),
        ("direct-leak", Some(10))
    );
    assert_eq!(report.stack.len(), 1);
    assert_eq!(report.stack[0].offset.unwrap().0, 2);
}

#[test]
fn of_two_reports_the_first_counts() {
    let two = format!(
        "{HEAP}{}",
        HEAP.replace("heap-use-after-free", "container-overflow")
    );
    let first = report(two.as_bytes()).unwrap();
    assert_eq!(first.kind, "heap-use-after-free");
    assert_eq!(first.stack.len(), 3);
}

#[test]
fn what_is_no_report_is_none() {
    for text in [
        "",
        "segmentation fault",
        "ERROR: file not found",
        "==12==ERROR:",
        "==12==ERROR: AddressSanitizer: ",
    ] {
        assert_eq!(report(text.as_bytes()), None, "{text}");
    }
}

/// The object of a report that says this of it.
fn object(said: &str) -> Option<ReportObject> {
    let text = format!(
        "==1==ERROR: AddressSanitizer: x-buffer-overflow on address 0x1\n\
         WRITE of size 1 at 0x1 thread T0\n    #0 0x2  (/p+0x2)\n\n{said}\nSUMMARY: x\n"
    );
    report(text.as_bytes()).unwrap().object
}

#[test]
fn a_variable_on_the_stack_is_told_with_the_frame_that_holds_it() {
    let told = object(
        "Address 0x7ffd is located in stack of thread T0 (a thread) at offset 64 in frame\n    \
         #0 0x55  (/p+0x12d8) (BuildId: 00)\n\n  This frame has 2 object(s):\n    \
         [32, 64) 'name.i1' (line 26) <== Memory access at offset 64 overflows this variable\n    \
         [96, 100) 'it's' (line 27)\nHINT: this may be a false positive",
    )
    .unwrap();
    assert_eq!(
        (told.kind, told.size, told.offset),
        (ObjectKind::Stack, 32, 32)
    );
    assert_eq!(told.variable.as_deref(), Some("name.i1"));
    assert_eq!((told.begin, told.line), (Some(32), Some(26)));
    assert_eq!(told.frame.unwrap().offset.unwrap().0, 0x12d8);
    let below = object(
        "Address 0x7ffd is located in stack of thread T0 at offset 29 in frame\n    \
         #0 0x55  (/p+0x12d8)\n    \
         [32, 96) 'it's' <== Memory access at offset 29 partially underflows this variable\n",
    )
    .unwrap();
    assert_eq!((below.offset, below.line), (-3, None));
    assert_eq!(below.variable.as_deref(), Some("it's"));
}

#[test]
fn a_block_of_the_heap_is_told_by_older_and_newer_runtimes() {
    for (said, offset) in [
        ("0 bytes to the right of", 10),
        ("4 bytes after", 14),
        ("1 bytes to the left of", -1),
        ("2 bytes before", -2),
        ("3 bytes inside of", 3),
    ] {
        let told = object(&format!(
            "0x60 is located {said} 10-byte region [0x60,0x6a)"
        ))
        .unwrap();
        assert_eq!(
            (told.kind, told.size, told.offset),
            (ObjectKind::Heap, 10, offset),
            "{said}"
        );
        assert!(told.is_near());
    }
    let far = object("0x60 is located 400 bytes after 10-byte region [0x60,0x6a)").unwrap();
    assert!(!far.is_near());
}

#[test]
fn of_global_variables_side_by_side_the_nearest_is_taken() {
    let told = object(
        "0x5d is located 44 bytes to the left of global variable 'tail' defined in 'o.c:7:26' \
         (0x56) of size 16\n\
         0x5d is located 4 bytes to the right of global variable 'table' defined in 'o.c:7:5' \
         (0x55) of size 16\n  'table' is ascii string 'x'",
    )
    .unwrap();
    assert_eq!(
        (told.kind, told.size, told.offset),
        (ObjectKind::Global, 16, 20)
    );
    assert_eq!(told.variable.as_deref(), Some("table"));
    assert_eq!((told.file.as_deref(), told.line), (Some("o.c"), Some(7)));
}

#[test]
fn what_is_no_object_is_none() {
    for said in [
        "Address 0x10 is a wild pointer inside of access range of size 0x000000000001.",
        "0x60 is located nowhere",
        "0x60 is located 99999999999999999999 bytes after 10-byte region [0x60,0x6a)",
        "[32, 16) 'name' <== Memory access at offset 64 overflows this variable",
        "[, ) '' <== Memory access at offset  overflows this variable",
        "Address 0x7ffd is located in stack of thread T0",
    ] {
        assert_eq!(object(said), None, "{said}");
    }
}
