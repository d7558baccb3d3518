//! What keys do.

use ddfuzz::cli::ui::campaign::{Action, Key, Page, ScreenModel, Tab};

use super::sample::{busy, course, shown, view};

fn press_all(course: &mut ScreenModel, keys: &[Key]) {
    for key in keys {
        assert_eq!(course.press(*key), Action::None);
    }
}

#[test]
fn the_selection_stays_within_the_groups() {
    let mut course = busy(false);
    press_all(
        &mut course,
        &[Key::Up, Key::Down, Key::Down, Key::Down, Key::Down],
    );
    assert!(shown(&course, 80, 24).contains("▶ abrt"));
    press_all(&mut course, &[Key::PageUp]);
    assert!(shown(&course, 80, 24).contains("▶ segv"));
    press_all(&mut course, &[Key::Last, Key::Up]);
    assert!(shown(&course, 80, 24).contains("▶ asan"));
}

#[test]
fn the_selected_group_is_always_on_the_screen() {
    let mut course = course();
    for index in 0..100 {
        course.group(&view(&format!("exit:{index}"), 4));
    }
    course.progress(&super::sample::progress(1, false));
    for index in 0..100 {
        for height in [8, 12, 24, 50] {
            let text = shown(&course, 80, height);
            assert!(
                text.contains(&format!("▶ exit:{index} ")),
                "{height}: {text}"
            );
        }
        course.press(Key::Down);
    }
}

#[test]
fn enter_opens_a_group_and_escape_closes_it() {
    let mut empty = course();
    press_all(&mut empty, &[Key::Enter]);
    assert_eq!(empty.page(), Page::Overview);
    let mut course = busy(false);
    press_all(&mut course, &[Key::Down, Key::Enter]);
    assert_eq!(course.opened().unwrap().class, "asan:heap-buffer-overflow");
    press_all(&mut course, &[Key::Next, Key::Next, Key::Previous]);
    let tab = Tab::Input;
    assert_eq!(course.page(), Page::Group { tab, scroll: 0 });
    press_all(&mut course, &[Key::Back]);
    assert_eq!(course.page(), Page::Overview);
    assert!(shown(&course, 80, 24).contains("▶ asan"));
}

#[test]
fn a_page_scrolls_to_its_last_line_and_no_further() {
    let mut course = busy(false);
    press_all(&mut course, &[Key::Enter, Key::Next]);
    let bytes: Vec<u8> = (0..=255).collect();
    course.detail().reproducer(&bytes, 256);
    press_all(&mut course, &[Key::Down]);
    let text = shown(&course, 80, 24);
    assert!(
        !text.contains("00000000  ") && text.contains("00000010  "),
        "{text}"
    );
    for _ in 0..100 {
        press_all(&mut course, &[Key::PageDown]);
    }
    assert!(shown(&course, 80, 24).contains("000000f0  "));
    press_all(&mut course, &[Key::First]);
    assert!(shown(&course, 80, 24).contains("00000000  "));
}

#[test]
fn q_on_a_page_goes_back_and_does_not_end_the_campaign() {
    let mut course = busy(false);
    press_all(&mut course, &[Key::Enter]);
    assert!(course.opened().is_some());
    assert_eq!(course.press(Key::Quit), Action::None);
    assert!(course.opened().is_none());
    assert!(!shown(&course, 80, 24).contains("stopping"));
    assert_eq!(course.press(Key::Quit), Action::Stop);
}

#[test]
fn quitting_asks_for_an_end_and_says_so() {
    let mut course = busy(false);
    assert_eq!(course.press(Key::Quit), Action::Stop);
    let text = shown(&course, 80, 24);
    assert!(
        text.contains("stopping, the state is being saved"),
        "{text}"
    );
    let told = course
        .events()
        .filter(|one| one.text.starts_with("stopping"));
    assert_eq!(told.count(), 1);
    course.press(Key::Quit);
    assert_eq!(
        course
            .events()
            .filter(|one| one.text.starts_with("stopping"))
            .count(),
        1
    );
    assert_eq!(course.press(Key::Suspend), Action::Suspend);
}
