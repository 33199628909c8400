// Finding things in both panes: the search, with a filter that leaves only what it finds, and where variables are
// bound and used.

/**
 * The search field. `host.docs()` are the two stages in sight, `host.panes` their lines; `host.say(text)` tells how
 * much was found, `host.quiet()` that no search is active; `host.filtered()` that other lines are to be shown.
 */
class Search {
  constructor(host) {
    this.host = host;
    this.hits = null;
    this.only = false;
    this.input = make("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search in both panes",
      oninput: () => this.#typed(),
      onkeydown: (event) => this.#key(event),
    });
    this.filter = make(
      "button",
      {
        type: "button",
        class: "toggle",
        "aria-pressed": "false",
        hidden: true,
        title: "Show only the lines that match",
        onclick: () => this.#toggle(),
      },
      "Only matches",
    );
  }

  /** Look again, because other lines are shown. */
  find() {
    const wanted = this.input.value.trim().toLowerCase();
    const docs = this.host.docs();
    const lines = (stage) =>
      new Set(
        stage.texts.map((text, line) => (text.toLowerCase().includes(wanted) ? line : -1)).filter((line) => line >= 0),
      );
    this.hits = wanted && docs?.[0] && docs[1] ? docs.map(lines) : null;
    this.filter.hidden = !this.hits;
    if (this.hits) this.host.say(`“${wanted}”: ${this.hits[0].size} left, ${this.hits[1].size} right`);
  }

  /** `rows` of [left, right, mark] without those that match on neither side, if that is wanted. */
  kept(rows) {
    if (!this.only || !this.hits) return rows;
    return foldRows(rows, 0, ([left, right]) => this.hits[0].has(left) || this.hits[1].has(right));
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

  #key(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.#typed();
      this.host.quiet();
    } else if (event.key === "Enter" && this.hits) {
      event.preventDefault();
      const side = this.hits[1].size ? 1 : 0;
      const lines = this.host.panes[side];
      const rows = [...this.hits[side]].map((line) => lines.visualOf[line]).filter((row) => row >= 0);
      if (!rows.length) return;
      const next = event.shiftKey
        ? (rows.findLast((row) => row < lines.current) ?? rows[rows.length - 1])
        : (rows.find((row) => row > lines.current) ?? rows[0]);
      lines.moveTo(next, false);
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
      for (const [, name, binds] of text.matchAll(occurrence)) {
        const head =
          name[0] === "@"
            ? /^(?:buffer|define|declare) /.test(text) && !text.slice(0, text.indexOf(name)).includes("@")
            : text.startsWith("define ");
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
