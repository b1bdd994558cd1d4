"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const number = (value) => Number(value.toPrecision(6)).toString();

// The slider for gamma. Every number comes from Python; this script computes none of them.
const MAX_LISTED = 40;
const slider = byId("gamma");
function describeChange(n) {
  const base = data.n_flagged;
  if (n === base) return "These are the same rows as at the estimated share.";
  const [from, to] = [Math.min(n, base), Math.max(n, base)];
  const count = to - from;
  const words = count.toLocaleString("en") + (n > base ? " more" : " fewer")
    + (count === 1 ? " row" : " rows") + " than at the estimated share";
  const names = data.ranked.slice(from, to).slice(0, MAX_LISTED);
  if (!names.length) return words + ".";
  const rest = count - names.length;
  return words + ": " + names.join(", ")
    + (rest ? " and " + rest.toLocaleString("en") + " more" : "") + ".";
}

// The axis of shares is a square root.
function moveCursor(gamma) {
  document.querySelectorAll("svg[data-end]").forEach((svg) => {
    let line = svg.querySelector("line.cursor");
    if (!line) {
      line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      line.setAttribute("class", "cursor");
      line.setAttribute("y1", 0);
      line.setAttribute("y2", svg.dataset.bottom);
      svg.append(line);
    }
    const place = Math.sqrt(gamma / Number(svg.dataset.end));
    ["x1", "x2"].forEach((end) => line.setAttribute(end, 100 * place + "%"));
    line.setAttribute("visibility", place > 1 || gamma === data.cuts[0][0] ? "hidden" : "visible");
  });
}

function show(cut) {
  const [gamma, n, threshold, thresholds, words] = cut;
  byId("chosen").textContent = words;
  byId("flagged").textContent = n.toLocaleString("en") + " of " + data.n_rows.toLocaleString("en");
  byId("changed").textContent = describeChange(n);
  byId("threshold").textContent = number(threshold);
  thresholds.forEach((value, i) => { byId("t" + i).textContent = number(value); });
  slider.setAttribute("aria-valuetext", words + ", " + n + " rows flagged");
  moveCursor(gamma);
}

function choose(cut) {
  slider.value = Math.round(cut[0] / data.max_step * data.n_steps);
  show(cut);
}

const costs = byId("costs");
slider.addEventListener("input", () => {
  costs.value = "";
  show(data.steps[Number(slider.value)]);
});
document.querySelectorAll("button[data-cut]").forEach((button) => {
  button.addEventListener("click", () => {
    costs.value = "";
    choose(data.cuts[Number(button.dataset.cut)]);
  });
});
costs.addEventListener("change", () => {
  if (costs.value !== "") choose(data.costs[Number(costs.value)]);
});
choose(data.cuts[0]);

// Commands that can be copied.
document.querySelectorAll("button[data-copy]").forEach((button) => {
  const field = byId(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(field);
    try {
      await navigator.clipboard.writeText(field.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
  });
});

// The parts that are folded, and the tables that show their first rows.
const openAll = byId("open_all");
openAll.hidden = false;
openAll.addEventListener("click", () => {
  const parts = [...document.querySelectorAll("#technical details")];
  const open = parts.some((part) => !part.open);
  parts.forEach((part) => { part.open = open; });
  openAll.textContent = open ? "Close all" : "Open all";
});

document.querySelectorAll("button[data-shorten]").forEach((button) => {
  const { classList } = byId(button.dataset.shorten);
  const words = button.textContent;
  button.hidden = false;
  button.addEventListener("click", () => {
    const short = classList.toggle("short");
    button.setAttribute("aria-expanded", String(!short));
    button.textContent = short ? words : "Show fewer rows";
  });
  button.click();
});

// Tables that can be sorted and saved.
function cellValue(row, column) {
  const cell = row.cells[column];
  const text = cellText(cell);
  if (text.startsWith("below ")) return Number.MIN_VALUE;
  const value = Number(cell.className === "n" ? text.replace(/[,%]/g, "") : text);
  return text === "" || Number.isNaN(value) ? text : value;
}

function compare(x, y) {
  return typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
}

function sortRows(table, column, ascending) {
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [x, y] = [cellValue(a, column), cellValue(b, column)];
    // Empty cells and words come after the numbers in both directions.
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return ascending ? compare(x, y) : compare(y, x);
  });
  table.tBodies[0].append(...rows);
}

document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortRows(table, column, ascending);
    });
  });
});

// Text for a CSV cell. A spreadsheet would evaluate a cell that begins with one of these characters.
function quoted(text) {
  const safe = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
  return '"' + safe.replaceAll('"', '""') + '"';
}

function cellText(cell) {
  const field = cell.querySelector("select");
  return field ? field.value : cell.dataset.text ?? cell.textContent.trim();
}

document.querySelectorAll("button[data-save]").forEach((button) => {
  button.addEventListener("click", () => {
    const table = byId(button.dataset.save);
    const lines = [...table.rows].map((row) => [...row.cells]
      .map((cell) => quoted(cellText(cell))).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = button.dataset.save + ".csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });
});

// The answers to the rows to label, which survive a reload.
function keepAnswers(fields) {
  const [labelled, kept, clear] = ["labelled", "kept", "clear"].map(byId);
  const answers = () => fields.map((field) => field.value);
  let cleared = null;

  function fill(values) {
    fields.forEach((field, i) => { field.value = values[i] ?? ""; });
  }

  // Storage can be missing, blocked or full; then the page works without it and says so.
  function use(action) {
    let words = "Your answers are stored in this browser, not in this file, until you clear them. "
      + "Save them as CSV to use them.";
    try {
      action();
    } catch {
      words = "Your answers are not stored, because this browser does not allow it. "
        + "Save them as CSV before you close or reload this page.";
    }
    const n = answers().filter(Boolean).length;
    labelled.textContent = n + " of " + fields.length + (n === 1 ? " rows is" : " rows are") + " labelled.";
    // A screen reader would read the same words again at each answer.
    if (kept.textContent !== words) kept.textContent = words;
    clear.textContent = cleared ? "Undo clear" : "Clear answers";
  }

  const restore = () => use(() => {
    cleared = null;
    fill((localStorage.getItem(data.answers_key) ?? "").split(","));
  });
  const store = () => use(() => {
    if (answers().some(Boolean)) localStorage.setItem(data.answers_key, answers().join(","));
    else localStorage.removeItem(data.answers_key);
  });

  fields.forEach((field) => {
    field.addEventListener("change", () => {
      cleared = null;
      store();
    });
  });
  clear.addEventListener("click", () => {
    const shown = answers();
    fill(cleared ?? []);
    cleared = shown.some(Boolean) ? shown : null;
    store();
  });
  // The same report in another tab.
  window.addEventListener("storage", (event) => {
    if (event.key === data.answers_key || event.key === null) restore();
  });
  restore();
}

const fields = [...document.querySelectorAll("#to_label select")];
if (fields.length) keepAnswers(fields);
