addEventListener("DOMContentLoaded", function () {
  "use strict";
  function key(row, column) {
    var cell = row.cells[column];
    return cell ? cell.dataset.key || cell.textContent : "";
  }
  function sort(head) {
    var table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
    var down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach(function (other) { other.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    var compare = new Intl.Collator("en", { numeric: true }).compare;
    var rows = Array.from(body.rows, function (row) { return [key(row, column), row]; });
    rows.sort(function (a, b) { return down ? compare(b[0], a[0]) : compare(a[0], b[0]); });
    rows.forEach(function (pair) { body.appendChild(pair[1]); });
  }
  function filter(table, text) {
    var words = text.toLowerCase().split(/\s+/);
    Array.from(table.tBodies[0].rows).forEach(function (row) {
      var shown = row.textContent.toLowerCase();
      row.hidden = !words.every(function (word) { return shown.includes(word); });
    });
  }
  document.querySelectorAll("table.sorted").forEach(function (table) {
    table.querySelectorAll("th").forEach(function (head) {
      head.tabIndex = 0;
      head.setAttribute("aria-sort", "none");
      head.addEventListener("click", function () { sort(head); });
      head.addEventListener("keydown", function (event) {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(head); }
      });
    });
    if (table.tBodies[0].rows.length < 12) { return; }
    var field = document.createElement("input");
    field.type = "search";
    field.placeholder = "filter: words that a row must have";
    field.setAttribute("aria-label", field.placeholder);
    field.addEventListener("input", function () { filter(table, field.value); });
    (table.closest(".scroll") || table).before(field);
  });
});
