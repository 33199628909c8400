// A list of lines that stays fluid however long it is: only the rows in sight are on the page. One grid for screen
// readers, one stop for the Tab key.

const ROW_HEIGHT = 19;
const OVERSCAN = 10;
const GUTTER = 66; // Pixels of the margin on the left, and of what is kept free on the right.
const HANGING = 2; // Characters by which the further lines of a wrapped row are indented.
const MOST_CELLS = 20000; // Of the table of words of two lines; longer ones are marked as a whole.
const MARKS = ["", "~", "−", "+", "↕", "⋯"];
const MARK_WORDS = ["", "changed", "gone", "new", "moved", ""];
const MARK_CLASSES = ["", "is-changed", "is-gone", "is-new", "is-moved", "is-folded"];

const WORDS = Object.fromEntries(Object.entries(TEXT_KINDS).map(([kind, { words }]) => [kind, new RegExp(words, "g")]));

const escapeHtml = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** Which parts of `text` are not in `other`, as [from, to]: words and signs, by their longest common subsequence. */
function differing(text, other) {
  const words = (line) => [...line.matchAll(/[\w.%@$]+|\s+|./g)].map((match) => [match[0], match.index]);
  const [own, its] = [words(text), words(other)];
  if (own.length * its.length > MOST_CELLS) return [];
  const weight = (i, j) => (own[i][0] === its[j][0] ? Math.min(own[i][0].length, 255) : 0);
  const shared = new Set(heaviest(own.length, its.length, weight).map(([i]) => i));
  return own.filter(([word], i) => !shared.has(i) && word.trim()).map(([word, at]) => [at, at + word.length]);
}

/** A line as HTML with its words coloured; variables carry their name, and what has changed is marked. */
function coloured(text, kind, changed = []) {
  let html = "";
  let at = 0;
  const plain = (from, to) => {
    let piece = "";
    for (const [begin, end] of changed) {
      if (end <= from || begin >= to) continue;
      const [left, right] = [Math.max(begin, from), Math.min(end, to)];
      const [same, other] = [text.slice(from, left), text.slice(left, right)].map(escapeHtml);
      piece += `${same}<b class="is-different">${other}</b>`;
      from = right;
    }
    return piece + escapeHtml(text.slice(from, to));
  };
  for (const match of text.matchAll(WORDS[kind] ?? /(?!)/g)) {
    const group = match.findIndex((part, index) => index > 0 && part !== undefined);
    const word = escapeHtml(match[0]);
    const named = TEXT_KINDS[kind].names && group <= 2 ? ` data-name="${word}"` : "";
    const comment = group === 3 && /^(?:[#;]|\/\/)/.test(match[0]);
    const style = comment ? "word-comment" : `word-${WORD_CLASSES[group - 1]}`;
    const end = match.index + match[0].length;
    html += `${plain(at, match.index)}<span class="${style}"${named}>${plain(match.index, end)}</span>`;
    at = end;
  }
  return html + plain(at, text.length);
}

/** The cells of a row. `attributes` are those of the mark. */
const cells = (attributes, mark, tag, code) =>
  `<span role="gridcell" class="mark"${attributes}>${mark}</span><span role="gridcell" class="tag">${tag}</span>` +
  `<span role="gridcell" class="code">${code}</span>`;

/** A hue for a source line, far from its neighbours' hues. */
const hueOf = (row) => Math.round((row * 137.508 + 210) % 360);

let nextId = 0;

/**
 * The grid. `host` gets what happens: `pointed(line, column)`, `chosen(line, column, name)`, `left()`, `named(name,
 * line)`, `scrolled(top)`; and asked how a line looks: `look(line)` gives "", "lit" or "strong", `highlight(line)` the
 * columns to underline, `note(line)` what stands after it, `name()` the variable under the pointer, `term(word, line)`
 * what a word of a line means.
 */
class Lines {
  constructor(label, host) {
    this.host = host;
    this.id = `tinote-lines-${nextId++}`;
    this.texts = [];
    this.rows = [];
    this.kind = "";
    this.tags = null;
    this.current = -1;
    this.tops = null; // Where each row begins, if rows are wrapped.
    this.nodes = new Map();
    this.sheet = make("div", { class: "sheet", role: "rowgroup" });
    this.element = make(
      "div",
      { class: "lines", role: "grid", tabindex: 0, "aria-label": label, "aria-readonly": "true", "aria-rowcount": 0 },
      this.sheet,
    );
    this.element.addEventListener("scroll", () => {
      this.paint();
      host.scrolled?.(this.element.scrollTop);
    });
    this.element.addEventListener("pointermove", (event) => this.#point(event));
    this.element.addEventListener("pointerleave", () => {
      this.pointed = "";
      host.left();
      host.named("");
    });
    this.element.addEventListener("click", (event) => {
      // The user is selecting text to copy.
      if (!getSelection()?.isCollapsed && this.element.contains(getSelection().anchorNode)) return;
      const { row, column } = this.#under(event);
      if (row < 0) return;
      this.moveTo(row, false);
      const line = this.lineAt(row);
      if (line >= 0) host.chosen(line, column, event.target.closest?.("[data-name]")?.dataset.name ?? "");
    });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focus", () => {
      if (this.current < 0 && this.rows.length) this.moveTo(this.#firstInSight(), false);
      else this.dress();
    });
    this.element.addEventListener("blur", () => host.left());
    this.resized = new ResizeObserver(() => {
      host.resized?.();
      this.paint();
    });
    this.resized.observe(this.element);
  }

  /**
   * Show other lines. `rows` are [line or -1, mark, more]: of a FOLDED row its words or how many lines it stands for,
   * of a CHANGED one the text on the other side; `counts`: how many lines of text each takes, if they are wrapped;
   * `tags` gives each line its text in the margin, `hues` the number that its colour comes from, `adjoint` whether it
   * is one.
   */
  show({ texts, kind, rows, tags, hues, adjoint = null, first = 0, counts = null }) {
    Object.assign(this, { texts, kind, rows, tags, hues, adjoint });
    this.visualOf = new Int32Array(texts.length).fill(-1);
    rows.forEach(([line, mark], visual) => {
      if (line >= 0 && mark !== FOLDED) this.visualOf[line] = visual;
    });
    let widest = 0;
    for (const text of texts) if (text.length > widest) widest = text.length;
    this.element.style.setProperty("--widest", `${widest + 2}ch`);
    this.element.setAttribute("aria-rowcount", String(rows.length));
    this.element.removeAttribute("aria-activedescendant");
    this.current = -1;
    this.layOut(counts);
    this.element.scrollTop = this.topOf(first);
    this.paint();
  }

  /** Give each row room for so many lines of text; null: for one. */
  layOut(counts) {
    this.tops = counts && new Int32Array(counts.length + 1);
    counts?.forEach((count, row) => (this.tops[row + 1] = this.tops[row] + count * ROW_HEIGHT));
    this.element.classList.toggle("is-wrapped", Boolean(counts));
    this.sheet.style.height = `${this.topOf(this.rows.length)}px`;
    this.clear();
  }

  /** How many lines of text each of these rows takes where it is as wide as there is room. */
  counted(rows, texts) {
    const columns = Math.max(2 * HANGING, this.#columns());
    const of = (length) => (length > columns ? 1 + Math.ceil((length - columns) / (columns - HANGING)) : 1);
    return rows.map(([line, mark]) => (line >= 0 && mark !== FOLDED ? of(texts[line].length) : 1));
  }

  topOf(row) {
    return this.tops ? this.tops[row] : row * ROW_HEIGHT;
  }

  /** The row at this many pixels from the top of the first one; it may be one after the last. */
  rowAt(y) {
    if (!this.tops) return Math.floor(y / ROW_HEIGHT);
    const after = this.tops.findIndex((top) => top > y);
    return after < 0 ? this.rows.length : after - 1;
  }

  clear() {
    this.nodes.clear();
    this.sheet.replaceChildren();
  }

  /** Draw the rows in sight again. */
  renew() {
    this.clear();
    this.paint();
  }

  lineAt(row) {
    return row >= 0 && row < this.rows.length && this.rows[row][1] !== FOLDED ? this.rows[row][0] : -1;
  }

  /** Put the rows in sight on the page, and take the others off it. */
  paint() {
    const { scrollTop, clientHeight } = this.element;
    if (!clientHeight) return;
    const from = Math.max(0, this.rowAt(scrollTop) - OVERSCAN);
    const to = Math.min(this.rows.length, this.rowAt(scrollTop + clientHeight) + 1 + OVERSCAN);
    for (const [row, node] of this.nodes) {
      if (row < from || row >= to) {
        node.remove();
        this.nodes.delete(row);
      }
    }
    const fresh = document.createDocumentFragment();
    for (let row = from; row < to; row++) {
      if (this.nodes.has(row)) continue;
      const node = this.#draw(row);
      this.nodes.set(row, node);
      fresh.append(node);
    }
    if (fresh.childNodes.length) this.sheet.append(fresh);
    this.dress();
  }

  #draw(row) {
    const [line, mark, more] = this.rows[row];
    const node = make("div", { role: "row", id: `${this.id}-${row}`, "aria-rowindex": row + 1 });
    node.style.top = `${this.topOf(row)}px`;
    if (this.tops) node.style.height = `${this.topOf(row + 1) - this.topOf(row)}px`;
    if (mark === FOLDED) {
      const [sign, words] = typeof more === "string" ? ["", more] : ["⋯", `${more} lines`];
      node.innerHTML = cells("", sign, "", escapeHtml(words));
    } else if (line < 0) {
      node.innerHTML = '<span role="gridcell"></span>';
    } else {
      const adjoint = this.adjoint?.(line) ? '<span class="adjoint" title="adjoint">∂</span>' : "";
      const word = MARK_WORDS[mark] ? ` aria-label="${MARK_WORDS[mark]}"` : "";
      const tag = `${adjoint}${this.tags?.(line) ?? ""}`;
      node.innerHTML = cells(word, MARKS[mark], tag, this.#coloured(line, mark, more));
      const note = this.host.note?.(line);
      if (note)
        node.append(make("span", { role: "gridcell", class: `note is-${note.tone}`, title: note.title }, note.text));
      const hue = this.hues?.(line) ?? -1;
      if (hue >= 0) node.style.setProperty("--hue", hueOf(hue));
    }
    return node;
  }

  #coloured(line, mark, other) {
    const text = this.texts[line];
    return coloured(text, this.kind, mark === CHANGED && other !== undefined ? differing(text, other) : []);
  }

  /** Renew what changes without new lines: what is lit, the current row, the variable under the pointer. */
  dress() {
    const name = this.host.name();
    for (const [row, node] of this.nodes) {
      const [line, mark] = this.rows[row];
      const empty = line < 0 && mark !== FOLDED;
      const look = line >= 0 && mark !== FOLDED ? this.host.look(line) : "";
      const states = [
        MARK_CLASSES[mark],
        empty && "is-empty",
        look && `is-${look}`,
        row === this.current && "is-current",
      ];
      node.className = ["row", ...states.filter(Boolean)].join(" ");
      if (row === this.current) node.setAttribute("aria-selected", "true");
      else node.removeAttribute("aria-selected");
      const highlight = look && this.host.highlight?.(line);
      node.querySelector(".highlight")?.remove();
      if (highlight) {
        const underline = make("i", { class: "highlight", "aria-hidden": "true" });
        underline.style.left = `${highlight[0]}ch`;
        underline.style.width = `${Math.max(1, highlight[1] - highlight[0])}ch`;
        node.querySelector(".code").append(underline);
      }
      for (const word of node.querySelectorAll("[data-name]"))
        word.classList.toggle("is-named", name !== "" && word.dataset.name === name);
    }
    if (this.current >= 0) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
  }

  /** Make a row current and, if it is out of sight, scroll to it. */
  moveTo(row, tell = true) {
    if (!this.rows.length) return;
    this.current = Math.max(0, Math.min(this.rows.length - 1, row));
    this.#scrollTo(this.current);
    this.paint();
    const line = this.lineAt(this.current);
    if (tell) {
      if (line >= 0) this.host.pointed(line, -1);
      else this.host.left();
    }
  }

  /** Scroll so that a row is in sight, in the middle if it was not. */
  reveal(line) {
    const row = line >= 0 ? this.visualOf[line] : -1;
    if (row >= 0 && !this.inSight(line)) this.element.scrollTop = this.topOf(row) - this.element.clientHeight / 2;
  }

  inSight(line) {
    const row = this.visualOf[line];
    const { scrollTop, clientHeight } = this.element;
    return this.topOf(row) >= scrollTop && this.topOf(row + 1) <= scrollTop + clientHeight;
  }

  #scrollTo(row) {
    const [top, bottom] = [this.topOf(row), this.topOf(row + 1)];
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = bottom - clientHeight;
  }

  #firstInSight() {
    return Math.min(this.rows.length - 1, this.rowAt(this.element.scrollTop + ROW_HEIGHT - 1));
  }

  #under(event) {
    const box = this.element.getBoundingClientRect();
    const row = this.rowAt(event.clientY - box.top + this.element.scrollTop);
    const code = this.nodes.get(row)?.querySelector(".code");
    if (!code) return { row: row < this.rows.length ? row : -1, column: -1 };
    const { left, top } = code.getBoundingClientRect();
    const column = Math.floor((event.clientX - left) / this.#characterWidth());
    const further = this.tops ? Math.floor((event.clientY - top) / ROW_HEIGHT) : 0;
    return { row, column: column + further * (this.#columns() - HANGING) };
  }

  #characterWidth() {
    if (!this.character) {
      const probe = make("span", { style: "position:absolute;visibility:hidden" }, "0".repeat(100));
      this.sheet.append(probe);
      this.character = probe.getBoundingClientRect().width / 100 || 7;
      probe.remove();
    }
    return this.character;
  }

  /** How many characters fit into a row. */
  #columns() {
    return Math.floor((this.element.clientWidth - GUTTER) / this.#characterWidth());
  }

  #point(event) {
    const name = event.target.closest?.("[data-name]")?.dataset.name ?? "";
    const { row, column } = this.#under(event);
    const here = `${row} ${column}`;
    if (here === this.pointed) return;
    this.pointed = here;
    const line = this.lineAt(row);
    const code = this.nodes.get(row)?.querySelector(".code");
    const word =
      line >= 0 &&
      [...this.texts[line].matchAll(/[$-]?[\w.]+/g)].find((match) => match.index + match[0].length > column);
    if (code) code.title = word && word.index <= column ? this.host.term(word[0], line) : "";
    if (line >= 0) this.host.pointed(line, column);
    else this.host.left();
    this.host.named(name, line);
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 1);
    const moves = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.rows.length,
      End: this.rows.length,
    };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in moves) {
      event.preventDefault();
      this.moveTo(this.current + moves[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      const line = this.lineAt(this.current);
      if (line >= 0) this.host.chosen(line, -1);
    }
  }
}
