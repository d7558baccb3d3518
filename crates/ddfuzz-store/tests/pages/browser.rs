//! Pages in Chromium: nothing overflows, overlaps or is cut off, no script of hostile text runs,
//! nothing is loaded, all is read without a script and reached by keys, and a page of 10,000 groups
//! opens at once.

use ddfuzz_store::report::clean::{CleanResult, clean_html};
use serde_json::{Value, json};

use crate::chromium::{Chromium, Look};
use crate::sample::{Group, HOSTILE, Sample, cleanup};
use crate::structure::{many, page, study_page};

/// Measures the page: boxes that leave the window or cover the next one, text that is cut off, and
/// what must not be there.
const MEASURE: &str = r#"
(function (print) {
  "use strict";
  var wide = document.documentElement.clientWidth, problems = [];
  function scrolls(element) {
    for (var at = element; at && at !== document.body; at = at.parentElement) {
      var how = getComputedStyle(at).overflowX;
      if (how === "auto" || how === "scroll" || how === "hidden") { return true; }
    }
    return false;
  }
  function name(element) { return element.tagName + "." + element.getAttribute("class") + ": " + element.textContent.slice(0, 40); }
  // The boxes of a huge page are those of a small one, many times.
  var measured = document.querySelectorAll("body *").length < 50000 ? document.body : document.createElement("p");
  measured.querySelectorAll("*").forEach(function (element) {
    var box = element.getBoundingClientRect();
    if (box.width && box.right > wide + 1 && !scrolls(element.parentElement)) {
      problems.push("overflows: " + name(element));
    }
    // On paper nothing scrolls, and nothing is folded.
    if (print && element.scrollWidth > element.clientWidth + 1 && element.clientWidth && scrolls(element)) {
      problems.push("is cut: " + name(element));
    }
  });
  if (print) {
    measured.querySelectorAll("details > :not(summary)").forEach(function (element) {
      if (element.textContent && !element.getBoundingClientRect().height) { problems.push("is folded: " + name(element)); }
    });
  }
  // Blocks that follow each other do not cover each other.
  measured.querySelectorAll("header, main, section, details, .charts, .pair, .pair > div, figure, dl").forEach(overlaps);
  overlaps(measured);
  function overlaps(parent) {
    var boxes = Array.from(parent.children, function (child) { return [child, child.getBoundingClientRect()]; })
      .filter(function (pair) { return pair[1].width && pair[1].height; });
    boxes.forEach(function (a, at) {
      var b = boxes[at + 1];
      if (b && a[1].bottom > b[1].top + 1 && a[1].right > b[1].left + 1 && b[1].bottom > a[1].top + 1) {
        problems.push("overlaps: " + name(a[0]) + " and " + name(b[0]));
      }
    });
  }
  var back = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
  return {
    wide: wide, all: document.documentElement.scrollWidth, problems: problems.slice(0, 9),
    nodes: document.querySelectorAll("*").length, harmed: window.harmed || null,
    scripts: document.scripts.length, images: document.images.length,
    handlers: document.querySelectorAll("[onload],[onerror],[onclick],iframe,object,embed,base,link").length,
    dark: back[0] < 128
  };
})"#;

const OPEN: &str =
    "document.querySelectorAll('details').forEach(function (one) { one.open = true; })";

fn look(width: u32, dark: bool) -> Look {
    let print = false;
    Look { width, dark, print }
}

/// Measures the page that is shown, and checks that nothing is wrong with it.
fn check(chromium: &mut Chromium, look: Look) -> Value {
    let told = chromium.evaluate(&format!("{MEASURE}({})", look.print));
    let counts = ["harmed", "images", "handlers", "scripts"].map(|name| told[name].clone());
    assert_eq!(
        counts,
        [Value::Null, 0.into(), 0.into(), 1.into()],
        "{look:?} {told}"
    );
    assert_eq!(told["problems"], json!([]), "{look:?} {told}");
    assert!(
        told["all"].as_u64() <= told["wide"].as_u64().map(|wide| wide + 1),
        "{look:?} {told}"
    );
    assert_eq!(
        (&told["wide"], &told["dark"]),
        (&look.width.into(), &look.dark.into())
    );
    let requested = chromium.requested();
    assert_eq!(requested.len(), 1, "{requested:?}");
    told
}

/// The page of a campaign with many groups, of a study, and of a cleanup.
fn pages() -> [(&'static str, String); 3] {
    let mut sample = Sample::usual();
    for _ in 0..12 {
        sample.group(&Group::PLAIN);
    }
    let result: CleanResult = serde_json::from_value(cleanup("queue/id:000001")).expect("a result");
    let study = study_page(&Sample::study("ul"));
    [
        ("campaign", page(&sample)),
        ("study", study),
        ("cleanup", clean_html(&result)),
    ]
}

#[test]
fn nothing_overflows_overlaps_or_is_cut_at_any_width_in_light_dark_and_print() {
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    for (name, page) in pages() {
        for (width, dark) in [(360, true), (1280, false)] {
            let look = look(width, dark);
            chromium.show(&page, look, true);
            chromium.evaluate(OPEN);
            check(&mut chromium, look);
            chromium.picture(&format!("{name}-{width}"));
        }
        // The width of A4 without its margins.
        let paper = Look {
            print: true,
            ..look(718, false)
        };
        chromium.show(&page, paper, true);
        check(&mut chromium, paper);
    }
}

#[test]
fn a_page_is_read_without_its_script_and_used_by_keys() {
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    for (name, page) in pages() {
        chromium.show(&page, look(1280, false), false);
        assert_eq!(
            chromium.evaluate("document.querySelectorAll('input, [aria-sort]').length"),
            0
        );
        let shown =
            "Array.from(document.querySelectorAll('main > section, main > section > h2, tbody tr'))
            .filter(function (it) { return !it.getBoundingClientRect().height; }).length";
        assert_eq!(chromium.evaluate(shown), 0, "{name}");
        chromium.show(&page, look(1280, false), true);
        by_keys(&mut chromium, name);
    }
}

/// Goes through the page by Tab until the first table is sorted and a fold is open, by Enter.
fn by_keys(chromium: &mut Chromium, name: &str) {
    let has_fold = chromium.evaluate("document.querySelector('details') !== null");
    let mut done = (false, has_fold == false, Vec::new());
    for _ in 0..400 {
        chromium.press("Tab");
        let at = chromium.evaluate(
            "(function (at) { var style = getComputedStyle(at), box = at.getBoundingClientRect();
              return [at.tagName, style.outlineStyle, box.top < innerHeight && box.bottom > 0]; })(document.activeElement)",
        );
        let tag = at[0].as_str().unwrap_or_default().to_owned();
        if tag == "BODY" {
            break;
        }
        assert_eq!(
            (&at[1], &at[2]),
            (&json!("solid"), &json!(true)),
            "{name}: the focus is not seen at {at}"
        );
        if tag == "TH" && !done.0 {
            chromium.press("Enter");
            done.0 = chromium.evaluate("document.activeElement.getAttribute('aria-sort')")
                == "ascending";
        }
        if tag == "SUMMARY" && !done.1 {
            chromium.press("Enter");
            done.1 = chromium.evaluate("document.activeElement.parentElement.open") == true;
        }
        done.2.push(tag);
        if done.0 && done.1 {
            return;
        }
    }
    panic!(
        "{name}: sorted {}, unfolded {}, by way of {:?}",
        done.0, done.1, done.2
    );
}

#[test]
fn hostile_text_runs_no_script_and_loads_nothing() {
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let loads = format!(
        "{HOSTILE}<img src=http://127.0.0.1:9/><link rel=stylesheet href=//127.0.0.1:9/>\
         <style>@import 'http://127.0.0.1:9/';</style>"
    );
    let mut sample = Sample::new(&loads, &loads);
    for kind in ["crashes", "hangs"] {
        let entry = sample.group(&Group {
            kind,
            class: &loads,
            message: &loads,
            function: &loads,
            input: loads.as_bytes(),
            ..Group::PLAIN
        });
        sample.minimize(&entry, loads.as_bytes(), &[(1, 9, b"")]);
        let explanation = sample.root().join(&entry).join("explanation.txt");
        std::fs::write(explanation, &loads).expect("a file");
    }
    let study = Sample::study(&loads);
    let result: CleanResult = serde_json::from_value(cleanup(&loads)).expect("a result");
    for page in [
        page(&sample),
        page(&study),
        study_page(&study),
        clean_html(&result),
    ] {
        chromium.show(&page, look(360, false), true);
        chromium.evaluate(OPEN);
        check(&mut chromium, look(360, false));
    }
}

/// Opens within 2 s where the machine is not busy with other things; the bound here is for one that
/// is.
#[test]
fn ten_thousand_groups_open_at_once() {
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    chromium.show(many(), look(1280, false), true);
    let timing = "performance.getEntriesByType('navigation')[0].loadEventEnd";
    let opened = chromium.evaluate(timing);
    eprintln!("opened after {opened} ms");
    let told = check(&mut chromium, look(1280, false));
    assert!(told["nodes"].as_u64() > Some(50_000), "{told}");
    assert!(opened.as_f64() < Some(20_000.0), "{told}");
    // The filter of the page works on all of them.
    let filter = "(function (field) { field.value = 'no-such-word'; field.dispatchEvent(new Event('input'));
        return document.querySelectorAll('table.sorted tbody tr:not([hidden])').length; })(document.querySelector('input'))";
    assert_eq!(chromium.evaluate(filter), 0);
}
