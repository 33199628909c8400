// The rule view: what broke the access rules of a tape, one finding at a time. All that it shows comes with it; it
// asks the kernel for nothing.

const GRID_LINES = 40; // More cells than this in a row: no lines between them.

class RuleView {
  constructor(findings, root) {
    this.findings = findings;
    this.root = root;
    this.shown = 0;
    keepKeys(root);
    root.classList.add("tinote-rules");
    this.#build();
    this.unwatch = watchTheme(() => this.#theme());
    // The colour behind it is known once it is on the page.
    this.placed = new ResizeObserver(() => this.#theme());
    this.placed.observe(root);
  }

  close() {
    this.unwatch();
    this.placed.disconnect();
  }

  #theme() {
    this.root.classList.toggle("is-dark", isDark(this.root));
  }

  #build() {
    const count = this.findings.length;
    const title = make(
      "strong",
      { class: "title", ...asHeading(this.root) },
      count ? "Access rules: " + (count === 1 ? "one violation" : `${count} violations`) : "Access rules",
    );
    const head = make("div", { class: "head" }, title);
    this.finding = make("div", { class: "finding", role: "region" });
    const body = make("div", { class: "body" });
    if (count > 1) {
      this.position = make("span", { role: "status" });
      head.append(
        this.position,
        make(
          "button",
          {
            type: "button",
            "aria-label": "Previous violation",
            title: "Previous violation (p)",
            onclick: () => this.#show(this.shown - 1),
          },
          "↑",
        ),
        make(
          "button",
          {
            type: "button",
            "aria-label": "Next violation",
            title: "Next violation (n)",
            onclick: () => this.#show(this.shown + 1),
          },
          "↓",
        ),
      );
      this.list = make("div", {
        class: "list",
        role: "listbox",
        tabindex: 0,
        "aria-label": "Violations",
        onkeydown: (event) => this.#listKey(event),
      });
      const id = Math.random().toString(36).slice(2);
      this.list.append(...this.findings.map((finding, number) => this.#option(finding, number, id)));
      body.classList.add("has-list");
      body.append(this.list);
      this.root.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === "n") this.#show(this.shown + 1);
        if (event.key === "p") this.#show(this.shown - 1);
      });
    }
    body.append(this.finding);
    this.root.append(make("div", { class: "frame" }, head, body));
    if (count) this.#show(0);
    else this.finding.append(make("p", { class: "none" }, "No violation was found."));
  }

  #option(finding, number, id) {
    const names = [
      ...new Set(
        finding.chain
          .filter((step) => step.kind !== "between")
          .map((step) => (step.when === "Python" ? "Python" : step.name)),
      ),
    ];
    const times = finding.times > 1 ? `, ${finding.times.toLocaleString("en")} times` : "";
    return make(
      "div",
      { class: "option", role: "option", id: `${id}-${number}`, onclick: () => this.#show(number) },
      make("b", {}, finding.element),
      make("span", {}, `rule ${finding.rule} · ${names.join(" → ")}${times}`),
    );
  }

  #listKey(event) {
    const to = { ArrowUp: this.shown - 1, ArrowDown: this.shown + 1, Home: 0, End: this.findings.length - 1 }[
      event.key
    ];
    if (to === undefined) return;
    event.preventDefault();
    this.#show(to);
  }

  #show(number) {
    this.shown = Math.max(0, Math.min(this.findings.length - 1, number));
    const finding = this.findings[this.shown];
    if (this.list) {
      [...this.list.children].forEach((option, n) => option.setAttribute("aria-selected", String(n === this.shown)));
      const option = this.list.children[this.shown];
      this.list.setAttribute("aria-activedescendant", option.id);
      this.list.scrollTop = Math.max(
        Math.min(this.list.scrollTop, option.offsetTop - this.list.offsetTop),
        option.offsetTop - this.list.offsetTop + option.offsetHeight - this.list.clientHeight,
      );
      this.position.textContent = `${this.shown + 1} of ${this.findings.length}`;
    }
    const times =
      finding.times > 1 ? ` This happened ${finding.times.toLocaleString("en")} times; the first is shown.` : "";
    this.finding.setAttribute("aria-label", `Violation of rule ${finding.rule}: ${finding.element}`);
    this.finding.replaceChildren(
      make("p", { class: "reason" }, capitalised(finding.reason) + "." + times),
      this.#source(finding),
      this.#chain(finding),
      this.#elements(finding),
      this.#fixes(finding),
    );
    this.root.dataset.shown = String(this.shown);
  }

  #source(finding) {
    const parts = finding.sources.flatMap((source) => {
      const rows = source.rows.flatMap((row) => this.#rows(row));
      const heading = make("h2", {}, "Source", make("bdi", { class: "place", title: source.place }, source.place));
      if (!rows.length) return [heading, make("p", { class: "none" }, "The text is not available.")];
      return [
        heading,
        make(
          "div",
          { class: "text", role: "group", tabindex: 0, "aria-label": `Source, ${source.place}` },
          make("div", { class: "sheet" }, ...rows),
        ),
      ];
    });
    return make("section", { class: "source" }, ...parts);
  }

  #rows(row) {
    if (row.gap)
      return [
        make(
          "div",
          { class: "row gap" },
          make("span", { class: "number", "aria-hidden": "true" }, "⋯"),
          make("span", {}, `${row.gap} more line${row.gap > 1 ? "s" : ""}`),
        ),
      ];
    const marks = row.marks ?? [];
    const code = make("span", { class: "code" });
    code.innerHTML = coloured(row.text, "source");
    for (const mark of marks)
      code.append(
        make("span", {
          class: `highlight is-${mark.kind}`,
          style: `left: ${mark.begin}ch; width: ${mark.end - mark.begin}ch`,
        }),
      );
    const look = (mark) => (mark ? ` is-marked is-${mark.kind}` : "");
    const main = marks.find((mark) => mark.kind !== "read") ?? marks[0];
    const line = make(
      "div",
      { class: `row${look(main)}` },
      make("span", { class: "number" }, String(row.number)),
      code,
    );
    // Under its mark, or as far to the left as it takes to fit.
    const notes = marks.map((mark) =>
      make(
        "div",
        { class: `row${look(mark)}` },
        make("span", {}),
        make(
          "span",
          {
            class: "code",
            style: `padding-left: min(${mark.begin}ch, max(0px, 100cqw - 64px - ${0.92 * (mark.note.length + 2)}ch))`,
          },
          make("span", { class: "note" }, `↑ ${mark.note}`),
        ),
      ),
    );
    return [line, ...notes];
  }

  #chain(finding) {
    const steps = finding.chain.map((step) =>
      make(
        "li",
        { class: `step is-${step.kind}` },
        make("span", { class: "when" }, step.when),
        make("span", { class: "who" }, step.name),
        ...(step.does ? [make("span", { class: "does" }, step.does)] : []),
      ),
    );
    return make(
      "section",
      { class: "launches", "aria-label": "Launches" },
      make("h2", {}, "Launches"),
      make("ol", {}, ...steps),
    );
  }

  #elements(finding) {
    const found = finding.map;
    const listed =
      found.listed.map((name) => name.replaceAll(" ", "\u00a0")).join("  ") +
      (found.more ? `  and ${found.more.toLocaleString("en")} more` : "");
    const below = make("p", { class: "listed", role: "status" }, listed);
    const parts = found.rank ? [new ElementMap(found, (text) => (below.textContent = text ?? listed)).element] : [];
    return make(
      "section",
      { class: "elements", "aria-label": "Elements" },
      make("h2", {}, "Elements"),
      ...parts,
      make("p", { class: "count" }, found.count),
      below,
    );
  }

  #fixes(finding) {
    const fixes = finding.fixes.map((fix) => {
      const edit = fix.after
        ? [
            make("p", { class: "memory" }, fix.place),
            make(
              "div",
              { class: "edit", role: "group", tabindex: 0, "aria-label": `Edit in ${fix.place}` },
              make("del", {}, fix.before),
              make("ins", {}, fix.after),
            ),
          ]
        : [];
      const declare = fix.declare ? [make("p", {}, `${fix.declare}.`)] : [];
      return make(
        "li",
        { class: "fix" },
        make("b", {}, fix.title),
        make("p", {}, `${capitalised(fix.words)}.`),
        ...edit,
        ...declare,
        make("p", { class: "memory" }, fix.memory),
      );
    });
    return make(
      "section",
      { class: "fixes", "aria-label": "Fixes" },
      make("h2", {}, finding.fixes.length > 1 ? "Ways to fix it" : "How to fix it"),
      make("ol", { class: "fix-list" }, ...fixes),
    );
  }
}

/**
 * The elements concerned over the field: each cell stands for one element or a block of them. Arrow keys or the
 * pointer move a cursor; `report(text)` says what is under it, `report(null)` that there is none.
 */
class ElementMap {
  constructor(found, report) {
    this.found = found;
    this.report = report;
    [this.rows, this.columns] = found.size;
    this.at = null;
    // A single row is a strip.
    const height = this.rows === 1 ? this.columns / Math.max(8, Math.min(24, this.columns)) : this.rows;
    this.cell = height / this.rows;
    this.element = draw("svg", {
      class: "map",
      viewBox: `0 0 ${this.columns} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      tabindex: 0,
      "aria-label": `Map of ${found.field}: ${found.count}. Arrow keys move over it.`,
      style: `aspect-ratio: ${this.columns} / ${height}; max-height: 240px`,
    });
    for (let level = 1; level <= 4; level++) {
      const runs = found.runs.filter((run) => run[4] === level);
      const path = runs
        .map(([row, column, length]) => `M${column} ${row * this.cell}h${length}v${this.cell}h${-length}z`)
        .join("");
      if (path) this.element.append(draw("path", { class: "level", d: path, "fill-opacity": 0.25 + 0.1875 * level }));
    }
    if (Math.max(this.rows, this.columns) <= GRID_LINES) {
      let path = "";
      for (let row = 1; row < this.rows; row++) path += `M0 ${row * this.cell}H${this.columns}`;
      for (let column = 1; column < this.columns; column++) path += `M${column} 0V${height}`;
      this.element.append(draw("path", { class: "lines", d: path }));
    }
    this.cursor = draw("rect", { class: "cursor", width: 1, height: this.cell, visibility: "hidden" });
    this.element.append(this.cursor);
    this.element.addEventListener("pointermove", (event) => {
      const box = this.element.getBoundingClientRect();
      this.#move(
        Math.floor(((event.clientY - box.top) / box.height) * this.rows),
        Math.floor(((event.clientX - box.left) / box.width) * this.columns),
      );
    });
    this.element.addEventListener("pointerleave", () => this.#leave());
    this.element.addEventListener("blur", () => this.#leave());
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") this.#leave();
    if (!step) return;
    event.preventDefault();
    // The first key shows where the first of the elements is.
    const first = this.found.runs[0];
    this.#move(...(this.at ? [this.at[0] + step[0], this.at[1] + step[1]] : [first[0], first[1]]));
  }

  #leave() {
    this.at = null;
    this.cursor.setAttribute("visibility", "hidden");
    this.report(null);
  }

  #move(row, column) {
    this.at = [Math.max(0, Math.min(this.rows - 1, row)), Math.max(0, Math.min(this.columns - 1, column))];
    this.cursor.setAttribute("visibility", "visible");
    this.cursor.setAttribute("x", this.at[1]);
    this.cursor.setAttribute("y", this.at[0] * this.cell);
    const { extent, offset, per, rank, deep, field, runs } = this.found;
    const ranges = this.at.map((at, dimension) => {
      const first = at * per[dimension];
      const last = Math.min(first + per[dimension], extent[dimension]) - 1;
      return [first + offset[dimension], last + offset[dimension]];
    });
    const kept = rank === 1 ? ranges.slice(1) : ranges;
    const names = kept
      .map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`))
      .concat(Array(Math.max(0, rank - 2)).fill(":"));
    const size = ranges.reduce((product, [first, last]) => product * (last - first + 1), deep);
    const [here, there] = this.at;
    const run = runs.find(([r, c, length]) => r === here && c <= there && there < c + length);
    const name = `${field}[${names.join(", ")}]`;
    const count = run ? run[3] : 0;
    this.report(
      size === 1
        ? `${name}: ${count ? "concerned" : "not concerned"}`
        : `${name}: ${count.toLocaleString("en")} of ${size.toLocaleString("en")}`,
    );
  }
}

const capitalised = (text) => (/^[a-z]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);

/** Show a rule view in a page of its own. */
function showPage(root, data) {
  return new RuleView(data.findings, root);
}

export default {
  render({ model, el }) {
    const view = new RuleView(model.get("findings"), el);
    return () => view.close();
  },
};
