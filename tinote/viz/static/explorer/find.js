// Finding things: the search through all stages, with a filter that leaves only what it finds in those in sight, and
// where variables are bound and used.

/** The lines of `texts` that contain `wanted`, in lower case. */
const linesWith = (texts, wanted) =>
  texts.map((text, line) => (text.toLowerCase().includes(wanted) ? line : -1)).filter((line) => line >= 0);

/**
 * The search field. `host.docs()` are the two stages in sight, `host.panes` their lines, `host.here()` the stage on the
 * right and its current line; `host.ask(text)` asks which lines of all stages have a text; `host.go(stage, line)` shows
 * one; `host.quiet()` tells that no search is active, `host.filtered()` that other lines are to be shown,
 * `host.counted()` that other stages have hits.
 */
class Search {
  constructor(host) {
    this.host = host;
    this.hits = null;
    this.only = false;
    this.#forget();
    this.input = make("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search in all stages",
      title: "Enter: next match; Shift+Enter: previous match; Escape: clear the search",
      oninput: () => this.#typed(),
      onkeydown: (event) => this.#key(event),
    });
    this.count = make("span", { class: "found", role: "status" });
    this.element = make("span", { class: "search" }, this.input, this.count);
    this.filter = toggleButton("Only matches", "Show only the lines that match", () => this.#toggle());
    this.filter.hidden = true;
  }

  /** Look again, because other lines are shown; `edition` names the stages that there are. */
  find(edition = this.edition) {
    const wanted = this.input.value.trim().toLowerCase();
    const docs = this.host.docs();
    this.hits = wanted && docs?.[0] && docs[1] ? docs.map((stage) => new Set(linesWith(stage.texts, wanted))) : null;
    this.filter.hidden = !wanted;
    if (wanted === this.wanted && edition === this.edition) return;
    this.#forget(wanted, edition);
    this.#show();
    this.host.counted();
    clearTimeout(this.asking);
    if (wanted) this.asking = setTimeout(() => this.host.ask(wanted), 150);
  }

  /** Which lines of which stages have the text. */
  receive({ text, stages }) {
    if (text !== this.wanted) return;
    this.found = Object.entries(stages).flatMap(([stage, lines]) => lines.map((line) => [Number(stage), line]));
    this.ofStage = new Map(Object.entries(stages).map(([stage, lines]) => [Number(stage), lines.length]));
    this.#show();
    this.host.counted();
    if (this.eager && this.found.length) this.#step(this.eager);
    this.eager = 0;
  }

  /** `rows` of [left, right, mark] without those that match on neither side, if that is wanted. */
  kept(rows) {
    if (!this.only || !this.hits) return rows;
    return foldRows(rows, 0, ([left, right]) => this.hits[0].has(left) || this.hits[1].has(right));
  }

  #forget(wanted = "", edition) {
    Object.assign(this, { wanted, edition, found: null, ofStage: new Map(), at: -1, eager: 0 });
  }

  #show() {
    const all = this.found?.length;
    const place = this.at >= 0 ? `${this.at + 1} of ` : "";
    this.count.textContent = all
      ? `${place}${all}, in ${counted(this.ofStage.size, "stage")}`
      : all === 0
        ? "none"
        : "";
  }

  #typed() {
    this.find();
    if (this.only) this.host.filtered();
    else for (const lines of this.host.panes) lines.dress();
  }

  #toggle() {
    this.only = !this.only;
    this.filter.setAttribute("aria-pressed", String(this.only));
    this.host.filtered();
  }

  /** The next hit from the present line on, in this stage or another one; back with -1. */
  #step(direction) {
    const [stage, line] = this.host.here();
    const isAfter = ([other, its]) => other > stage || (other === stage && its > line);
    const isBefore = ([other, its]) => other < stage || (other === stage && its < line);
    const at = direction > 0 ? this.found.findIndex(isAfter) : this.found.findLastIndex(isBefore);
    this.at = at >= 0 ? at : direction > 0 ? 0 : this.found.length - 1;
    this.#show();
    this.host.go(...this.found[this.at]);
  }

  #key(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.#typed();
      this.host.quiet();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const direction = event.shiftKey ? -1 : 1;
      if (this.found?.length) this.#step(direction);
      else this.eager = direction; // The answer is on its way.
    }
  }
}

/** Where the names of a stage are bound and used. Those of values and labels count within their function. */
class Names {
  constructor({ texts, kind }) {
    this.bound = new Map();
    this.uses = new Map();
    this.scopes = [];
    let scope = 0;
    const occurrence = new RegExp(TEXT_KINDS[kind]?.names || "(?!)", "g");
    texts.forEach((text, line) => {
      if (matched(kind, "scope", text)) scope += 1;
      this.scopes[line] = scope;
      const label = scope && /^([\w.$-]+):/.exec(text);
      if (label) this.#bind(`%${label[1]}`, line);
      for (const { 1: name, 2: binds, index } of text.matchAll(occurrence)) {
        const head =
          name[0] === "@"
            ? /^(?:buffer|block|define|declare) /.test(text) && !text.slice(0, index).includes("@")
            : /^(?:define|program) | gives \([^)]*$/.test(text.slice(0, index));
        if (head || (binds && name[0] === "%")) this.#bind(name, line);
        else this.#use(name, line);
      }
    });
  }

  #key(name, line) {
    return name[0] === "@" ? name : `${this.scopes[line]} ${name}`;
  }

  #bind(name, line) {
    const key = this.#key(name, line);
    if (!this.bound.has(key)) this.bound.set(key, line);
  }

  #use(name, line) {
    const key = this.#key(name, line);
    const lines = this.uses.get(key);
    if (!lines) this.uses.set(key, [line]);
    else if (lines.at(-1) !== line) lines.push(line);
  }

  /** The line that binds `name` as `line` sees it, -1 for none. */
  definition(name, line) {
    return this.bound.get(this.#key(name, line)) ?? -1;
  }

  /** The lines that use it. */
  usesOf(name, line) {
    return this.uses.get(this.#key(name, line)) ?? [];
  }

  /** Lines by what they need: which lines bind what each line uses, memory left out, and which use what it binds. */
  get flow() {
    if (!this.edges) {
      const sources = new Map();
      const users = new Map();
      const join = (map, at, line) => map.set(at, [...(map.get(at) ?? []), line]);
      for (const [key, lines] of this.uses) {
        const from = this.bound.get(key);
        if (from === undefined || key[0] === "@") continue;
        for (const line of lines) {
          if (line === from) continue;
          join(sources, line, from);
          join(users, from, line);
        }
      }
      this.edges = { sources, users };
    }
    return this.edges;
  }
}
