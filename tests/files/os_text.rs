//! Names inside JSON.

use ddfuzz::files::OsText;

#[test]
fn utf8_stands_as_a_plain_string() {
    let text = OsText("größe".into());
    assert_eq!(serde_json::to_string(&text).unwrap(), "\"größe\"");
    assert!(serde_json::from_str::<OsText>("{\"base64\":\"?\"}").is_err());
}
