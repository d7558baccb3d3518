//! What shall hold, and what of it cannot hold yet.

/// The promises that are not kept yet, each with its reason beside it. Whatever is not named here
/// must hold, or its test fails; what is named and holds is said, so that it is taken off.
const PENDING: &[&str] = &[
    // Routes differ by the direct caller of the function with the bug, which is what the minor key
    // tells apart.
    "gcc ASan+UBSan: few groups too many by minor",
    "clang ASan+UBSan: few groups too many by minor",
    "gcc ASan+UBSan recovering: few groups too many by minor",
    // Two panics in one place of the standard library: nothing but a stack tells them apart, and
    // without symbols a backtrace has no names.
    "rustc -O stripped: panics are bugs one to one",
];

/// Fails unless `held`, or unless the promise is pending; `figures` say what was seen.
#[track_caller]
pub fn promise(name: &str, held: bool, figures: &str) {
    match (held, PENDING.contains(&name)) {
        (true, false) => {}
        (true, true) => println!("holds, and is still on the list PENDING: {name}"),
        (false, true) => println!("pending: {name}: {figures}"),
        (false, false) => panic!("not kept: {name}: {figures}"),
    }
}

/// The same of several: all are looked at before the test fails.
#[track_caller]
pub fn promises(all: &[(String, bool, String)]) {
    let broken: Vec<String> = all
        .iter()
        .filter(|(name, held, _)| !held && !PENDING.contains(&name.as_str()))
        .map(|(name, _, figures)| format!("{name}: {figures}"))
        .collect();
    assert!(broken.is_empty(), "not kept:\n  {}", broken.join("\n  "));
    for (name, held, figures) in all {
        promise(name, *held, figures);
    }
}
