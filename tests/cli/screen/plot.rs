//! Numbers as blocks.

use ddfuzz::cli::ui::campaign::{plot, size_bar};

#[test]
fn a_plot_reaches_from_nothing_to_the_greatest() {
    assert_eq!(plot(&[0.0, 1.0, 4.0, 8.0], 1), [" ▁▄█"]);
    assert_eq!(plot(&[0.0, 4.0, 8.0, 16.0], 2), ["   █", " ▄██"]);
    assert_eq!(plot(&[0.0, 0.0], 1), ["  "]);
    assert_eq!(plot(&[1e-9, 1.0], 1), ["▁█"]);
    assert_eq!(plot(&[], 1), [""]);
    assert!(plot(&[1.0], 0).is_empty());
}

#[test]
fn a_bar_is_full_before_and_shows_the_last_byte() {
    assert_eq!(size_bar(40_000, 40_000, 4), "████");
    assert_eq!(size_bar(40_000, 199, 4), "██  ");
    assert_eq!(size_bar(1 << 40, 1, 4), "▏   ");
    assert_eq!(size_bar(40, 0, 4), "    ");
    assert_eq!(size_bar(0, 0, 4), "    ");
    assert_eq!(size_bar(4, 400, 2), "██");
    assert_eq!(size_bar(4, 4, 0), "");
}
