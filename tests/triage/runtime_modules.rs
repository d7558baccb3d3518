//! Which code is the runtime's.

use ddfuzz::triage::runtime_modules::{is_runtime_module, is_runtime_symbol};

#[test]
fn the_runtimes_modules_are_known_by_their_base_names() {
    for name in [
        "libc.so.6",
        "libc-2.31.so",
        "ld-linux-x86-64.so.2",
        "ld-2.31.so",
        "ld-musl-x86_64.so.1",
        "libgcc_s.so.1",
        "libstdc++.so.6.0.30",
        "libpthread-2.31.so",
        "libm.so.6",
        "libasan.so.8.0.0",
        "libclang_rt.asan-x86_64.so",
        "libstd-8389830094602f5a.so",
        "ddfuzz-runtime.so",
        "[vdso]",
    ] {
        assert!(is_runtime_module(name), "{name}");
    }
}

#[test]
fn names_that_only_resemble_them_are_the_users() {
    for name in [
        "libcurl.so.4",
        "libc-client.so",
        "libmagic.so.1",
        "ldap",
        "libstd-mine.so",
        "",
    ] {
        assert!(!is_runtime_module(name), "{name}");
    }
}

#[test]
fn runtimes_linked_in_are_known_by_their_symbols() {
    for symbol in [
        "abort",
        "__assert_fail_base.cold",
        "__pthread_kill_implementation.constprop.0",
        "__asan_report_load4",
        "__interceptor_free",
        "_ZN6fuzzer6Fuzzer15ExecuteCallbackEPKhm",
        "_ZN3std9panicking11begin_panic17h0123456789abcdefE",
        "_ZN4core9panicking5panic17h0123456789abcdefE",
        "_RNvMNtCsgEmfK2I1SDS_4core4timeNtB2_8Duration13from_secs_f64",
        "_ZN52_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$mine..X$GT$3get17h0123456789abcdefE",
    ] {
        assert!(is_runtime_symbol(symbol), "{symbol}");
    }
}

#[test]
fn exact_names_spare_what_the_user_named_alike() {
    for symbol in [
        "my_abort",
        "abort_parse",
        "freeze",
        "_ZN4mine3std4free17h0123456789abcdefE",
        "_ZN46_$LT$mine..X$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
    ] {
        assert!(!is_runtime_symbol(symbol), "{symbol}");
    }
}
