// A list of lines that stays fluid however long it is: only the rows in sight are on the page. One grid for screen
// readers, one stop for the Tab key.

const ROW_HEIGHT = 19;
const OVERSCAN = 10;
const MARKS = ["", "~", "−", "+", "↕", "⋯"];
const MARK_WORDS = ["", "changed", "gone", "new", "moved", ""];
const MARK_CLASSES = ["", "is-changed", "is-gone", "is-new", "is-moved", "is-folded"];

const WORDS = Object.fromEntries(
  Object.entries(TEXT_KINDS).map(([kind, { words }]) => [kind, new RegExp(words, "g")]),
);

const escapeHtml = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** A line as HTML with its words coloured; variables carry their name. */
function coloured(text, kind) {
  let html = "";
  let at = 0;
  for (const match of text.matchAll(WORDS[kind] ?? /(?!)/g)) {
    const group = match.findIndex((part, index) => index > 0 && part !== undefined);
    const word = escapeHtml(match[0]);
    const named = TEXT_KINDS[kind].names && group <= 2 ? ` data-name="${word}"` : "";
    const comment = group === 3 && /^(?:[#;]|\/\/)/.test(match[0]);
    const style = comment ? "word-comment" : `word-${WORD_CLASSES[group - 1]}`;
    html += `${escapeHtml(text.slice(at, match.index))}<span class="${style}"${named}>${word}</span>`;
    at = match.index + match[0].length;
  }
  return html + escapeHtml(text.slice(at));
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
 * columns to underline, `note(line)` what stands after it, `name()` the variable under the pointer, `term(word)` what
 * a word of the language means.
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
    this.resized = new ResizeObserver(() => this.paint());
    this.resized.observe(this.element);
  }

  /**
   * Show other lines. `rows` are [line or -1, mark, words of a FOLDED row or how many lines it stands for]; `tags`
   * gives each line its text in the margin, `hues` the number that its colour comes from, `adjoint` whether it is one.
   */
  show({ texts, kind, rows, tags, hues, adjoint = null, top = 0 }) {
    Object.assign(this, { texts, kind, rows, tags, hues, adjoint });
    this.visualOf = new Int32Array(texts.length).fill(-1);
    rows.forEach(([line, mark], visual) => {
      if (line >= 0 && mark !== FOLDED) this.visualOf[line] = visual;
    });
    let widest = 0;
    for (const text of texts) if (text.length > widest) widest = text.length;
    this.element.style.setProperty("--widest", `${widest + 2}ch`);
    this.sheet.style.height = `${rows.length * ROW_HEIGHT}px`;
    this.element.setAttribute("aria-rowcount", String(rows.length));
    this.element.removeAttribute("aria-activedescendant");
    this.current = -1;
    this.clear();
    this.element.scrollTop = top;
    this.paint();
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
    const from = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - OVERSCAN);
    const to = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / ROW_HEIGHT) + OVERSCAN);
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
    const [line, mark, count] = this.rows[row];
    const node = make("div", { role: "row", id: `${this.id}-${row}`, "aria-rowindex": row + 1 });
    node.style.top = `${row * ROW_HEIGHT}px`;
    if (mark === FOLDED) {
      const [sign, words] = typeof count === "string" ? ["", count] : ["⋯", `${count} lines`];
      node.innerHTML = cells("", sign, "", escapeHtml(words));
    } else if (line < 0) {
      node.innerHTML = '<span role="gridcell"></span>';
    } else {
      const adjoint = this.adjoint?.(line) ? '<span class="adjoint" title="adjoint">∂</span>' : "";
      const word = MARK_WORDS[mark] ? ` aria-label="${MARK_WORDS[mark]}"` : "";
      const tag = `${adjoint}${this.tags?.(line) ?? ""}`;
      node.innerHTML = cells(word, MARKS[mark], tag, coloured(this.texts[line], this.kind));
      const note = this.host.note?.(line);
      if (note)
        node.append(make("span", { role: "gridcell", class: `note is-${note.tone}`, title: note.title }, note.text));
      const hue = this.hues?.(line) ?? -1;
      if (hue >= 0) node.style.setProperty("--hue", hueOf(hue));
    }
    return node;
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
    if (row >= 0 && !this.inSight(line)) this.element.scrollTop = row * ROW_HEIGHT - this.element.clientHeight / 2;
  }

  inSight(line) {
    const top = this.visualOf[line] * ROW_HEIGHT;
    return top >= this.element.scrollTop && top + ROW_HEIGHT <= this.element.scrollTop + this.element.clientHeight;
  }

  #scrollTo(row) {
    const top = row * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + clientHeight) this.element.scrollTop = top + ROW_HEIGHT - clientHeight;
  }

  #firstInSight() {
    return Math.min(this.rows.length - 1, Math.ceil(this.element.scrollTop / ROW_HEIGHT));
  }

  #under(event) {
    const box = this.element.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top + this.element.scrollTop) / ROW_HEIGHT);
    const code = this.nodes.get(row)?.querySelector(".code");
    if (!code) return { row: row < this.rows.length ? row : -1, column: -1 };
    return {
      row,
      column: Math.floor((event.clientX - code.getBoundingClientRect().left) / this.#characterWidth(code)),
    };
  }

  #characterWidth(code) {
    if (!this.character) {
      const probe = make("span", { style: "position:absolute;visibility:hidden" }, "0".repeat(100));
      code.append(probe);
      this.character = probe.getBoundingClientRect().width / 100 || 7;
      probe.remove();
    }
    return this.character;
  }

  #point(event) {
    const name = event.target.closest?.("[data-name]")?.dataset.name ?? "";
    const { row, column } = this.#under(event);
    const key = event.target.closest?.(".word-key");
    if (key && !key.title) key.title = this.host.term(key.textContent);
    const here = `${row} ${column}`;
    if (here === this.pointed) return;
    this.pointed = here;
    const line = this.lineAt(row);
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
