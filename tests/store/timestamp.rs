//! RFC 3339.

use std::time::{Duration, UNIX_EPOCH};

use ddfuzz::store::rfc3339;

#[test]
fn known_times_are_written_in_utc() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_000_000_000, "2001-09-09T01:46:40Z"),
        (1_709_164_800, "2024-02-29T00:00:00Z"),
        (1_735_689_599, "2024-12-31T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
    }
}

#[test]
fn a_time_before_1970_is_given_as_1970() {
    assert_eq!(
        rfc3339(UNIX_EPOCH - Duration::from_secs(5)),
        "1970-01-01T00:00:00Z"
    );
}

#[test]
fn later_days_are_greater_as_text() {
    let texts: Vec<String> = (0..60_000)
        .map(|day| rfc3339(UNIX_EPOCH + Duration::from_secs(day * 86_400)))
        .collect();
    assert!(texts.windows(2).all(|pair| pair[0] < pair[1]));
}
