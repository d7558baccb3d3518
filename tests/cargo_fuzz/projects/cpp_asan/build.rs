//! Compiles the part in C++, with the sanitizer and the coverage of the rest of the program.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=cpp/sessions.cpp");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file("cpp/sessions.cpp");
    if env::var_os("CARGO_FEATURE_FIXED").is_some() {
        build.define("FIXED", None);
    }
    // `--cfg fuzzing` is cargo-fuzz's own.
    if env::var_os("CARGO_CFG_FUZZING").is_some() {
        build.debug(true).force_frame_pointer(true);
        let sanitizers = env::var("CARGO_CFG_SANITIZE").unwrap_or_default();
        if sanitizers.split(',').any(|one| one == "address") {
            build.flag("-fsanitize=address");
        }
        // Clang's alone; what gcc compiles runs without telling where it passes.
        build.flag_if_supported("-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp");
    }
    build.compile("sessions");
}
