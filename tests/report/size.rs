//! Sizes, counts and durations.

use std::time::Duration;

use ddfuzz::report::size::{bytes, counted, duration, grouped, limit, reduction, reduction_in};

#[test]
fn sizes_are_exact_below_ten_thousand_bytes_and_rounded_above() {
    for (size, text) in [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (9_999, "9,999 bytes"),
        (10_240, "10.0 KiB"),
        (1024 * 1024 - 1, "1.0 MiB"),
        (1 << 30, "1.0 GiB"),
        (u64::MAX, "16777216.0 TiB"),
    ] {
        assert_eq!(bytes(size), text);
    }
}

#[test]
fn a_limit_is_told_as_it_was_set() {
    for (size, text) in [
        (0, "0 bytes"),
        (10, "10 bytes"),
        (100_000, "100,000 bytes"),
        (1 << 10, "1 KiB"),
        (1 << 28, "256 MiB"),
        (2 << 30, "2 GiB"),
        ((1 << 20) + 1, "1,048,577 bytes"),
        (1 << 60, "1,048,576 TiB"),
    ] {
        assert_eq!(limit(size), text);
    }
}

#[test]
fn a_reduction_names_its_unit_once_where_it_is_the_same() {
    assert_eq!(reduction(40, 6), "40 → 6 bytes");
    assert_eq!(reduction(1000, 1), "1,000 → 1 byte");
    assert_eq!(reduction(1 << 20, 0), "1.0 MiB → 0 bytes");
    assert_eq!(reduction(1072, 1072), "1,072 bytes");
    assert_eq!(reduction_in(3, 3, "unit"), "3 units");
}

#[test]
fn counts_are_grouped_by_thousands() {
    assert_eq!(counted(1, "test"), "1 test");
    assert_eq!(counted(0, "test"), "0 tests");
    assert_eq!(grouped(999), "999");
    assert_eq!(grouped(1000), "1,000");
    assert_eq!(grouped(1_234_567), "1,234,567");
}

#[test]
fn durations_have_their_two_largest_units() {
    for (millis, text) in [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_999, "59.9 s"),
        (60_000, "1 m 00 s"),
        (245_000, "4 m 05 s"),
        (7_380_000, "2 h 03 m"),
    ] {
        assert_eq!(duration(Duration::from_millis(millis)), text);
    }
}
