//! What shall hold, and what of it cannot hold yet.

/// The promises that are not kept yet, each with its reason beside it. Whatever is not named here
/// must hold, or its test fails; what is named and holds is said, so that it is taken off.
const PENDING: &[&str] = &[];

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
