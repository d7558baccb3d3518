//! Compiles the injected runtime and the bundled targets, which the binary embeds.

#[path = "build/targets.rs"]
mod targets;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    targets::build();
}
