//! Muted groups.

use ddfuzz::store::{InvalidKey, KnownGroups};

use crate::sample::key;

#[test]
fn a_list_holds_keys_and_remarks() {
    let (major, stable) = (key("a"), key("b"));
    let text = format!(
        "# known\n\n{}  # why\r\n  stable:{}\n",
        major.short().to_uppercase(),
        stable
    );
    let known = KnownGroups::parse(&text).unwrap();
    assert!(known.has_major(&major.short()) && known.has_major(&major.to_string()));
    assert!(!known.has_major(&stable.short()));
    assert!(known.has_stable(Some(stable)) && known.has_stable_keys());
    assert!(!known.has_stable(Some(major)) && !known.has_stable(None));
    let whole = KnownGroups::parse(&major.to_string()).unwrap();
    assert!(whole.has_major(&major.short()));
    assert!(!KnownGroups::parse("").unwrap().has_major(&major.short()));
}

#[test]
fn a_line_that_is_no_key_is_an_error_with_its_number() {
    let long = "0".repeat(33);
    for word in [
        "0123456789a",
        "0123456789ag",
        "stable:",
        "stable:0123",
        &long,
        "a b",
    ] {
        let error = KnownGroups::parse(&format!("# one\n\n{word} # why\n")).unwrap_err();
        let text = word.to_owned();
        assert_eq!(error, InvalidKey { line: 3, text });
    }
}
