// The page of `gammagmm label` and the widget of `GammaGMM.label`: cards of rows, and what the answers show.
// Every number comes from Python. All texts of the data are set as text, never as HTML.

const N_PICTURES = 12; // columns that are always shown
const WIDTH = 240, HEIGHT = 34, LINE = 7; // of the picture of a column, and its room for marks
const LOOK_EVERY = 2000; // milliseconds after which a page looks for the answers of other windows
const ASKING = { share: "Know the share", find: "Find anomalies", check: "Check", again: "Second answers" };
const KEYS = { y: "yes", n: "no", u: "unsure", z: "undo", " ": "later" };
const LABELS = { yes: 1, no: 0, unsure: null };
const SAID = { yes: "anomaly", no: "normal", unsure: "unsure" };

// An element with properties and children; texts become text nodes.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && !name.startsWith("aria")) element[name] = value;
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== ""));
  return element;
}

function draw(tag, properties, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const svg = (width, height, ...children) => draw("svg",
  { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...children);

// Text of the data, in its own direction.
const own = (text) => make("bdi", {}, text);
const counted = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

// The mark of the row on a picture; an arrow where its value lies beyond the end.
function mark(at, odd) {
  const kind = odd ? "mark odd" : "mark";
  const x = Math.min(Math.max(at, 0), 1) * WIDTH;
  if (at < 0 || at > 1) {
    const [tip, back] = at < 0 ? [0, 7] : [WIDTH, WIDTH - 7];
    return draw("path", { class: kind, d: `M${tip} ${HEIGHT / 2} L${back} ${HEIGHT / 2 - 6} V${HEIGHT / 2 + 6} Z` });
  }
  return draw("g", { class: kind },
    draw("line", { x1: x, x2: x, y1: 4, y2: HEIGHT }),
    draw("circle", { cx: x, cy: 4, r: 4 }));
}

function ordinaryMark(at) {
  const x = Math.min(Math.max(at, 0), 1) * WIDTH;
  return draw("circle", { class: "ordinary", cx: x, cy: HEIGHT + LINE - 4, r: 3 });
}

// The distribution of a column, its usual range, and the values of the row and of the ordinary row.
function pictureOfNumbers(column, value) {
  const { bars, usual } = column;
  const width = WIDTH / bars.length;
  const paths = ["", ""];
  bars.forEach((height, i) => {
    const inside = (i + 1) / bars.length > usual[0] + 1e-3 && i / bars.length < usual[1] - 1e-3;
    const tall = height * (HEIGHT - 8) / 100;
    paths[Number(inside)] += `M${i * width + 0.5} ${HEIGHT} v${-tall} h${width - 1} v${tall} Z`;
  });
  const [low, high] = usual.map((at) => Math.min(Math.max(at, 0), 1) * WIDTH);
  const drawn = [
    draw("rect", { class: "shade", x: low, y: 0, width: Math.max(high - low, 2), height: HEIGHT }),
    draw("path", { class: "rest", d: paths[0] }),
    draw("path", { class: "usual", d: paths[1] }),
    draw("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
  ];
  if (value.ordinary_at !== undefined) drawn.push(ordinaryMark(value.ordinary_at));
  if (value.at !== undefined) drawn.push(mark(value.at, Boolean(value.side)));
  return svg(WIDTH, HEIGHT + LINE, ...drawn);
}

// The texts of a column by their shares, the most frequent first; that of the row is filled.
function pictureOfTexts(column, value) {
  const widths = column.texts.map((share) => Math.max(share, 0.02));
  const scale = WIDTH / widths.reduce((sum, width) => sum + width, 0);
  const own = value.side ? "own odd" : "own";
  const drawn = [];
  let x = 0;
  widths.forEach((share, i) => {
    const width = share * scale;
    drawn.push(draw("rect",
      { class: i === value.at ? own : "rest", x, y: 10, width: width - 2, height: HEIGHT - 14 }));
    if (i === value.ordinary_at) drawn.push(ordinaryMark((x + width / 2) / WIDTH));
    x += width;
  });
  return svg(WIDTH, HEIGHT + LINE, ...drawn);
}

// One column of the row: its value, that of the ordinary row, and both on the distribution.
function tile(columns, value, ordinary) {
  const column = columns[value.column];
  const picture = column.bars ? pictureOfNumbers(column, value) : pictureOfTexts(column, value);
  const shown = (text) => (text ? own(text) : make("i", {}, "missing"));
  const near = ordinary === null ? null : make("span", { className: "near" },
    make("span", { className: "hidden" }, "; ordinary row: "), shown(value.ordinary));
  const range = column.words && !value.is_rare ? `${value.side ?? "usual"} ${column.words}` : value.side ?? value.share ?? "";
  return make("li", { className: value.side ? "tile odd" : "tile" },
    make("p", { className: "name" }, own(column.name)),
    make("p", { className: "value" }, make("b", {}, shown(value.text)), near),
    picture, make("p", { className: "range" }, range));
}

// The columns of the file that are no features, beside those of the ordinary row.
function otherColumns(card) {
  if (!card.others.length) return null;
  return make("section", { className: "others" },
    make("h3", {}, "Other columns of the file"),
    make("dl", {}, card.others.map(([name, text]) =>
      make("div", {}, make("dt", {}, own(name)), make("dd", {}, text ? own(text) : make("i", {}, "missing"))))));
}

const word = (x, y, anchor, words) => draw("text", { x, y, "text-anchor": anchor }, words);

// Anomalies found against rows looked at; `searched` tells which rows were no random ones.
function foundCurve(found, searched) {
  const [left, top, bottom] = [16, 6, 60], n = found.length, most = Math.max(found.at(-1) ?? 0, 1);
  const x = (i) => (left + i * (WIDTH - left) / Math.max(n, 1)).toFixed(1);
  const y = (k) => (bottom - k * (bottom - top) / most).toFixed(1);
  const paths = { "found random": "", found: "" };
  found.forEach((k, i) => {
    paths[searched[i] ? "found" : "found random"] += `M${x(i)} ${y(found[i - 1] ?? 0)} V${y(k)} H${x(i + 1)}`;
  });
  return svg(WIDTH, bottom + 18, draw("line", { class: "base", x1: left, x2: WIDTH, y1: bottom, y2: bottom }),
    word(left - 4, top + 4, "end", most), word(left - 4, bottom, "end", "0"), word(left, bottom + 14, "start", "0"),
    word(WIDTH, bottom + 14, "end", `${n} rows`),
    ...Object.entries(paths).map(([kind, d]) => draw("path", { class: kind, d })));
}

// Intervals below one another, the first with its middle, on lines from 0 to `end`.
function intervals(pairs, middle, end) {
  const x = (share) => Math.min(share / end, 1) * WIDTH, height = 12 * pairs.length;
  return svg(WIDTH, height + 16, word(0, height + 14, "start", "0%"),
    word(WIDTH, height + 14, "end", `${Math.round(100 * end)}%`),
    ...pairs.flatMap(([low, high], i) => [
      draw("line", { class: "base", x1: 0, x2: WIDTH, y1: 12 * i + 6, y2: 12 * i + 6 }),
      draw("line", { class: i ? "interval second" : "interval",
        x1: x(low), x2: Math.max(x(high), x(low) + 2), y1: 12 * i + 6, y2: 12 * i + 6 })]),
    draw("circle", { class: "middle", cx: x(middle), cy: 12 * pairs.length - 6, r: 5 }));
}

// Sends messages to a server on this machine.
export function post(address) {
  return async (message) => {
    const answer = await fetch(address, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message),
    });
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.json();
  };
}

export class Labelling {
  constructor(root, send, { isPage = false } = {}) {
    Object.assign(this, { root, send, isPage, cards: [], shown: null, waiting: 0, isOpen: false });
    this.chain = Promise.resolve();
    this.failed = null;
    this.parts = {};
    this.asked = new Map(); // cards by row, for answers that cannot be saved
  }

  async start() {
    this.build();
    this.keys = (event) => this.press(event);
    (this.isPage ? document : this.root).addEventListener("keydown", this.keys);
    await this.ask({ kind: "open" });
    if (this.isPage) {
      this.timer = setInterval(() => this.look(), LOOK_EVERY);
      document.addEventListener("visibilitychange", () => this.look());
    }
    return this;
  }

  stop() {
    clearInterval(this.timer);
    (this.isPage ? document : this.root).removeEventListener("keydown", this.keys);
  }

  build() {
    const part = (name, element) => (this.parts[name] = element);
    const button = (action, words, key) => part(action, make("button",
      { type: "button", className: `answer ${action}`, "aria-keyshortcuts": key === " " ? "Space" : key,
        onclick: () => this.act(action, true) },
      words, " ", make("kbd", { "aria-hidden": "true" }, key === " " ? "space" : key)));
    const heading = this.isPage ? "h1" : "h2";
    part("count", make("p", { className: "note count" }));
    this.root.replaceChildren(
      make("header", { className: "bar" },
        make("div", {}, make(heading, {}, "Label rows"), part("title", make("p", { className: "title" }))),
        part("asking", make("div", { className: "asking", role: "group", "aria-label": "What rows are asked for" })),
        part("state", make("p", { className: "state", role: "status" })),
        part("finish", make("button", { type: "button", hidden: !this.isPage,
          onclick: () => this.ask({ kind: "finish" }) }, "Finish"))),
      part("alarm", make("div", { className: "alarm", role: "alert", hidden: true })),
      make("div", { className: "work" },
        part("card", make("section", { className: "card", "aria-label": "Row to label" })),
        part("aside", make("aside", { "aria-label": "What the answers show" }))),
      part("answers", make("div", { className: "answers", role: "group", "aria-label": "Answers" },
        button("yes", "Anomaly", "y"), button("no", "Normal", "n"), button("unsure", "Unsure", "u"),
        button("later", "Later", " "), button("undo", "Undo", "z"))),
      part("said", make("p", { className: "hidden", role: "status", "aria-live": "polite" })));
  }

  press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const { target } = event;
    const tag = target?.tagName;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(tag)) return;
    if (event.key === " " && ["BUTTON", "SUMMARY", "A"].includes(tag)) return;
    const action = KEYS[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    this.act(action);
  }

  act(action, byMouse = false) {
    if (this.isFinished || this.failed) return;
    if (action === "undo") {
      this.ask({ kind: "undo" }, "Undone.");
    } else if (this.shown !== null) {
      const { row, number } = this.shown;
      const message = action === "later" ? { kind: "skip", row } : { kind: "answer", row, label: LABELS[action] };
      this.asked.set(row, this.shown);
      this.cards.shift();
      const words = action === "later" ? `Row ${number} comes later.` : `Row ${number}: ${SAID[action]}.`;
      this.showCard(this.cards[0] ?? null);
      this.ask(message, words);
    }
    // Otherwise the space bar would press the same button again, for the next row.
    if (byMouse) this.parts.heading?.focus({ preventScroll: true });
  }

  // Messages are sent one after the other; what comes back is shown once none is on its way.
  ask(message, words = "") {
    this.waiting += 1;
    this.setState(message.kind === "open" ? "Loading …" : "Saving …");
    this.chain = this.chain.then(async () => {
      if (this.failed) return;
      try {
        const state = await this.send(message);
        if (state.error) this.fail(message, state.error);
        else if (words) this.parts.said.textContent = words;
        this.state = { ...this.state, ...state };
      } catch (error) {
        this.fail(message, this.isPage ? null : error.message);
      }
    }).finally(() => {
      this.waiting -= 1;
      if (!this.waiting && this.state) this.show();
    });
    return this.chain;
  }

  async look() {
    if (this.waiting || this.failed || document.hidden || this.isFinished) return;
    try {
      const state = await this.send({ kind: "look", version: this.state.version });
      if (this.waiting || state.version === this.state.version) return;
      this.state = { ...this.state, ...state };
      this.show(true);
    } catch (error) {
      this.fail({ kind: "look" }, null);
    }
  }

  fail(message, reason) {
    this.failed = message;
    const what = ["answer", "skip"].includes(message.kind) ? "Your last answer is not saved. " : "";
    const why = reason ?? "The program does not answer: it has ended, or this machine is busy.";
    this.parts.alarm.replaceChildren(
      make("p", {}, make("b", {}, what), why, " ",
        reason === null && this.isPage ? "Everything before is saved. Start gammagmm label again to go on." : ""),
      make("button", { type: "button", onclick: () => this.retry() }, "Try again"));
    this.parts.alarm.hidden = false;
  }

  retry() {
    const message = this.failed;
    this.failed = null;
    this.parts.alarm.hidden = true;
    this.ask(message);
  }

  setState(words) {
    this.parts.state.textContent = words;
  }

  // With `keeps`, the card that a person is reading stays as long as it has no answer.
  show(keeps = false) {
    const { state } = this;
    this.cards = [...state.cards];
    this.isFinished = state.is_finished;
    const isStill = keeps && this.cards.findIndex((card) => card.row === this.shown?.row);
    if (isStill > 0) this.cards.unshift(...this.cards.splice(isStill, 1));
    this.setState(this.failed ? "Not saved" : state.place ? `Saved in ${state.place}` : "Saved");
    this.parts.count.textContent = state.counter;
    this.parts.title.replaceChildren(own(state.title ?? ""), state.person ? ` · answers of ${state.person}` : "");
    this.showAsking();
    this.showProgress();
    const unsaved = this.failed && this.asked.get(this.failed.row);
    if (unsaved) this.cards = [unsaved, ...this.cards.filter((card) => card.row !== unsaved.row)];
    this.showCard(this.cards[0] ?? null, true);
  }

  showAsking() {
    const { asking, switches, can_repeat: canRepeat } = this.state;
    this.parts.asking.replaceChildren(...Object.entries(ASKING)
      .filter(([name]) => switches.includes(name) || (name === "again" && canRepeat))
      .map(([name, words]) => make("button", { type: "button", "aria-pressed": String(name === asking),
        onclick: () => this.ask({ kind: "ask", asking: name }) }, words)));
    this.parts.asking.hidden = this.isFinished;
    this.parts.finish.hidden = !this.isPage || this.isFinished;
  }

  showCard(card, isSettled = false) {
    const next = this.isFinished ? null : card;
    if (next !== null && next.row === this.shown?.row) return;
    this.shown = next;
    this.parts.answers.hidden = this.isFinished;
    for (const name of ["yes", "no", "unsure", "later"]) this.parts[name].disabled = this.shown === null;
    if (this.shown !== null) this.parts.card.replaceChildren(...this.cardOf(card));
    else if (isSettled) this.parts.card.replaceChildren(...this.endOf());
    else this.parts.card.replaceChildren(make("p", { className: "note" }, "The next row is on its way …"));
    this.parts.card.dataset.row = this.shown ? card.number : "";
  }

  cardOf(card) {
    const { columns } = this.state;
    const [first, more] = [card.values.slice(0, N_PICTURES), card.values.slice(N_PICTURES)];
    const tiles = (values) => make("ul", { className: "tiles" },
      values.map((value) => tile(columns, value, card.ordinary)));
    const fold = more.length ? make("details", { open: this.isOpen },
      make("summary", {}, `${counted(more.length, "more column")}, the most usual last`)) : null;
    if (fold && this.isOpen) fold.append(tiles(more));
    fold?.addEventListener("toggle", () => {
      this.isOpen = fold.open;
      if (fold.open && fold.children.length === 1) fold.append(tiles(more));
    });
    const heading = make("h2", { tabIndex: -1 }, `Row ${card.number.toLocaleString("en")}`,
      card.name === null ? "" : make("span", { className: "id" }, own(card.name)));
    this.parts.heading = heading;
    const purpose = { share: "chosen at random", find: "from the top of the ranking", check: "chosen at random, to check what is found",
      again: "answered by someone else" }[this.state.asking];
    return [
      make("div", { className: "head" }, heading, make("p", { className: "note" }, purpose),
        this.parts.count),
      make("p", { className: "question" }, make("b", {}, "Is this row an anomaly?"),
        " Unusual rows are not always anomalies. You decide."),
      make("p", { className: card.why ? "why" : "why none" },
        card.why ? own(`${card.why}.`) : "No single value is unusual."),
      make("p", { className: "legend", "aria-hidden": "true" },
        make("span", {}, make("span", { className: "key this" }), make("span", { className: "key this odd" }),
          "this row (orange: unusual)"),
        make("span", {}, make("span", { className: "key range" }), "usual range"),
        card.ordinary === null ? "" : make("span", {}, make("span", { className: "key beside" }),
          `nearest ordinary row, ${card.ordinary.toLocaleString("en")}`)),
      tiles(first), ...[fold, otherColumns(card)].filter(Boolean),
    ];
  }

  endOf() {
    const { asking, n_skipped: nSkipped, progress, command, place, stop, switches } = this.state;
    const ask = (words, message) => make("button", { type: "button", onclick: () => this.ask(message) }, words);
    const heading = make("h2", { tabIndex: -1 }, this.isFinished ? "Finished" : "No row is waiting");
    this.parts.heading = heading;
    const told = `${counted(progress.n_answers, "row")} ${progress.n_answers === 1 ? "has" : "have"} an answer.`;
    const { share } = progress;
    const shown = make("ul", { className: "plain" }, [
      share?.any_look ? `Share of anomalies: ${share.any_look.ends}. ${progress.share_words}` : null,
      share ? share.words ?? `Share of anomalies: ${share.ends}. ${progress.share_words}` : null,
      progress.left ? progress.left_words : null,
    ].filter(Boolean).map((words) => make("li", {}, words)));
    if (this.isFinished) {
      return [heading, make("p", {}, told, " ", place ? `They are saved in ${place}. You can close this page.` : ""),
        shown, command ? make("p", {}, "Next, use the answers:", this.copied(command)) : null].filter(Boolean);
    }
    return [heading, make("p", {}, told), shown, make("p", {}, make("b", {}, stop)),
      make("p", { className: "buttons" },
        ["again", "check"].includes(asking) ? null : ask("10 more rows", { kind: "more" }),
        nSkipped ? ask(`Ask again for ${counted(nSkipped, "row")} without an answer`, { kind: "skipped" }) : null,
        switches.filter((name) => name !== asking).map((name) => ask(ASKING[name], { kind: "ask", asking: name })),
      )];
  }

  // A command with a button that copies it, where the browser can.
  copied(words) {
    const button = make("button", { type: "button", hidden: !navigator.clipboard,
      onclick: async () => {
        await navigator.clipboard.writeText(words);
        button.textContent = "Copied";
      } }, "Copy");
    return make("span", { className: "command" }, make("code", {}, words), button);
  }

  showProgress() {
    const { progress, disputed } = this.state;
    const { share, left } = progress;
    const look = share?.any_look;
    const block = (title, ...children) => make("section", {}, make("h2", {}, title), ...children.filter(Boolean));
    const high = Math.max(share?.high ?? 0, look?.high ?? 0);
    const end = share ? Math.min(1, Math.max(0.3, Math.ceil(11 * high) / 10)) : 1;
    const pairs = share ? [...(look ? [[look.low, look.high]] : []), [share.low, share.high]] : [];
    const unsure = progress.n_unsure ? `, ${progress.n_unsure} unsure` : "";
    this.parts.aside.replaceChildren(
      ...(disputed.length ? [block("Different answers",
        make("ul", { className: "disputed" }, disputed.map(({ number, answers }) => make("li", {}, `Row ${number}: `,
          answers.map(([name, label], i) => [i ? ", " : "", own(name), ` ${label ? "anomaly" : "normal"}`])))),
        make("p", { className: "note" }, "Both are kept. The last answer counts."))] : []),
      block("Share of anomalies",
        make("p", { className: "big" }, (look ?? share)?.ends ?? "not known yet"),
        make("p", { className: "note" }, progress.share_words),
        share ? intervals(pairs, share.mean, end) : null,
        look ? make("p", { className: "note" }, share.words) : null),
      block("Found so far",
        make("p", { className: "big" }, progress.n_anomalies.toLocaleString("en"),
          make("small", {}, ` in ${counted(progress.n_answers, "answer")}${unsure}`)),
        progress.found.length ? foundCurve(progress.found, progress.searched) : null,
        progress.searched.some(Boolean) ? make("p", { className: "note" }, "Grey: random rows. Blue: from the top of the ranking.") : null,
        make("p", { className: "note" }, progress.left_words, left ? ` This is ${left.words} of all.` : "")),
      block("May I stop?", make("p", { className: this.state.may_stop ? "stop may" : "stop" }, this.state.stop)));
  }
}

export async function start(root, send, options) {
  return new Labelling(root, send, options).start();
}

// In notebooks the colours follow the notebook, not the system.
function followTheme(root) {
  const { jpThemeLight } = document.body.dataset;
  const names = `${document.documentElement.className} ${document.body.className}`;
  if (jpThemeLight !== undefined) root.style.colorScheme = jpThemeLight === "false" ? "dark" : "light";
  else if (/\b(vscode-)?dark\b/.test(names)) root.style.colorScheme = "dark";
  else if (/\b(vscode-)?light\b/.test(names)) root.style.colorScheme = "light";
}

// The widget: messages go through the kernel, and each answer has the number of its message.
function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "gammagmm gammagmm-widget";
  root.tabIndex = 0;
  root.dataset.lmSuppressShortcuts = "true";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Rows to label");
  el.append(root);
  followTheme(root);
  const open = new Map();
  let last = 0;
  const receive = (content) => {
    const waiting = open.get(content.id);
    if (content.error) waiting?.reject(new Error(content.error));
    else waiting?.resolve(content.answer);
    open.delete(content.id);
  };
  model.on("msg:custom", receive);
  const send = (message) => new Promise((resolve, reject) => {
    last += 1;
    const id = `${Date.now()}-${last}`;
    open.set(id, { resolve, reject });
    model.send({ id, message });
  });
  const labelling = new Labelling(root, send);
  labelling.start();
  return () => {
    labelling.stop();
    model.off("msg:custom", receive);
  };
}

export default { render };
