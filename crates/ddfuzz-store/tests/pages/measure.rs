//! What must hold for each page in a browser: nothing overflows, overlaps or is cut off, nothing is
//! loaded, no script runs that is not the page's own.

use serde_json::{Value, json};

use crate::chromium::{Chromium, Look};

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

/// Opens all that is folded.
pub const OPEN: &str =
    "document.querySelectorAll('details').forEach(function (one) { one.open = true; })";

/// The look of a window of a width.
pub fn look(width: u32, dark: bool) -> Look {
    let print = false;
    Look { width, dark, print }
}

/// Measures the page that is shown, which has a number of scripts, and checks that nothing is wrong
/// with it.
pub fn check(chromium: &mut Chromium, look: Look, scripts: u32) -> Value {
    let told = chromium.evaluate(&format!("{MEASURE}({})", look.print));
    let counts = ["harmed", "images", "handlers", "scripts"].map(|name| told[name].clone());
    assert_eq!(
        counts,
        [Value::Null, 0.into(), 0.into(), scripts.into()],
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
