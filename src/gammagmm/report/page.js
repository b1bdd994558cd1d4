"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const number = (value) => Number(value.toPrecision(6)).toString();

// The control over gamma. Every number was computed in Python; nothing is computed here.
const slider = byId("gamma");
const svg = document.querySelector("figure.posterior svg");

function listRows(names) {
  const shown = names.slice(0, 40).join(", ");
  return names.length > 40 ? shown + " and " + (names.length - 40) + " more" : shown;
}

function describeChange(n) {
  const base = data.n_flagged;
  if (n === base) return "The same rows as by the estimate.";
  const [from, to] = [Math.min(n, base), Math.max(n, base)];
  const count = to - from;
  const words = count.toLocaleString("en") + (count === 1 ? " row " : " rows ");
  const names = data.ranked.slice(from, to);
  const known = names.length ? ": " + listRows(names) : "";
  const rest = count > names.length && names.length ? " (and others)" : "";
  return words + (n > base ? "more than" : "fewer than") + " by the estimate" + known + rest + ".";
}

function moveCursor(gamma) {
  if (!svg) return;
  let line = svg.querySelector("line.cursor");
  if (!line) {
    line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "cursor");
    line.setAttribute("y1", "28");
    line.setAttribute("y2", "164");
    svg.insertBefore(line, svg.querySelector("line.mean"));
  }
  const { left, right, end } = svg.dataset;
  const x = Number(left) + (Number(right) - Number(left)) * gamma / Number(end);
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
  line.setAttribute("visibility", x > Number(right) ? "hidden" : "visible");
}

function show(cut) {
  const [gamma, n, threshold, thresholds, words] = cut;
  byId("chosen").textContent = words;
  byId("flagged").textContent = n.toLocaleString("en") + " of " + data.n_rows.toLocaleString("en");
  byId("threshold").textContent = number(threshold);
  byId("changed").textContent = describeChange(n);
  thresholds.forEach((value, i) => { byId("t" + i).textContent = number(value); });
  slider.setAttribute("aria-valuetext", words + ", " + n + " rows flagged");
  moveCursor(gamma);
}

slider.addEventListener("input", () => show(data.steps[Number(slider.value)]));
document.querySelectorAll("button[data-cut]").forEach((button) => {
  button.addEventListener("click", () => {
    const cut = data.cuts[Number(button.dataset.cut)];
    slider.value = Math.round(cut[0] / data.max_step * data.n_steps);
    show(cut);
  });
});
byId("costs").addEventListener("change", (event) => {
  if (event.target.value === "") return;
  const n = data.costs[Number(event.target.value)];
  byId("chosen").textContent = "by costs";
  byId("flagged").textContent = n.toLocaleString("en") + " of " + data.n_rows.toLocaleString("en");
  byId("threshold").textContent = "–";
  byId("changed").textContent = describeChange(n);
  data.cuts[0][3].forEach((_, i) => { byId("t" + i).textContent = "–"; });
});
show(data.cuts[0]);

// Tables that can be sorted and saved.
function cellValue(row, column) {
  const cell = row.cells[column];
  const text = cell.textContent.trim();
  if (text.startsWith("below ")) return Number.MIN_VALUE;
  const value = Number(cell.className === "n" ? text.replace(/[,%]/g, "") : text);
  return text === "" || Number.isNaN(value) ? text : value;
}

function compare(x, y) {
  return typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
}

function sortRows(table, column, rising) {
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [x, y] = [cellValue(a, column), cellValue(b, column)];
    // Empty cells and words come last among numbers, whichever way these are sorted.
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return rising ? compare(x, y) : compare(y, x);
  });
  table.tBodies[0].append(...rows);
}

document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const rising = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      sortRows(table, column, rising);
    });
  });
});

// A spreadsheet would run a cell that begins so.
function quoted(text) {
  const safe = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
  return '"' + safe.replaceAll('"', '""') + '"';
}

function cellText(cell) {
  const field = cell.querySelector("select");
  return field ? field.value : cell.textContent.trim();
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
