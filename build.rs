//! Compiles the injected runtime and the bundled targets, which the binary embeds.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
