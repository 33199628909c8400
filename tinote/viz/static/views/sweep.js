// A sweep while it runs: a strip of its points, a plot of one result, a table, and the particles of the point that is
// chosen. Python has placed everything in parts of the plot (`viz/sweep_view/facts.py`).

const PLOT = { height: 240, edges: { left: 62, right: 12, top: 22, bottom: 38 } };
const REACH = 24; // Pixels around a dot in which a press chooses it.
const KINDS = { done: "is-1", failed: "is-2" };

class SweepView {
  /**
   * `chosen`: a point, -1 for the best; `choose(number)` gets another; `placesOf(number)` gives the places of a
   * point's particles, if they have come: `axes` (0 where there are none) and `values`.
   */
  constructor(root, { facts, placesOf, chosen = -1, choose = () => {} }) {
    this.root = root;
    this.placesOf = placesOf;
    this.chosen = chosen;
    this.choose = choose;
    keepKeys(root);
    root.classList.add("tinote-sweep");
    this.title = make("strong", { class: "title", ...asHeading(root) });
    this.count = make("progress", { "aria-label": "Completed points" });
    this.statements = make("ul", { class: "statements" });
    this.strip = draw("svg", { class: "strip", preserveAspectRatio: "none", role: "img" });
    this.plot = draw("svg", { class: "plot", "aria-hidden": "true" });
    this.stage = make("div", { class: "stage", tabindex: 0, role: "application" }, this.plot);
    const keys = "The arrow keys choose a point, Escape goes to the best one.";
    this.stage.setAttribute("aria-label", `Results of the points. ${keys}`);
    this.stage.addEventListener("click", (event) => this.#press(event));
    this.stage.addEventListener("keydown", (event) => this.#key(event));
    this.canvas = make("canvas", { role: "img" });
    this.caption = make("p", { class: "caption", role: "status" });
    this.particles = make("div", { class: "particles" }, this.canvas, this.caption);
    this.head = make("tr");
    this.body = make("tbody");
    this.more = make("p", { class: "more" });
    const table = make("table", {}, make("caption", {}, "Points"), make("thead", {}, this.head), this.body);
    this.frame = make(
      "div",
      { class: "frame" },
      make("div", { class: "head" }, this.title, this.count),
      this.strip,
      make("div", { role: "status" }, this.statements),
      make("div", { class: "details" }, this.stage, this.particles),
      make("div", { class: "sheet", tabindex: 0, role: "region", "aria-label": "Points" }, table),
      this.more,
    );
    root.append(this.frame);
    this.unwatch = watchTheme(() => this.#theme());
    this.placed = new ResizeObserver(() => this.#paint());
    this.placed.observe(root);
    this.show(facts);
  }

  close() {
    this.unwatch();
    this.placed.disconnect();
    release(this.root);
  }

  /** The points as they are now. */
  show(facts) {
    this.facts = facts;
    this.title.textContent = facts.title;
    this.count.max = facts.count || 1;
    this.count.value = facts.done + facts.failed;
    this.count.hidden = facts.ended;
    const text = facts.statements.join("\n");
    if (text !== this.text) {
      this.text = text;
      this.statements.replaceChildren(...facts.statements.map((one) => make("li", {}, one)));
    }
    this.strip.setAttribute("viewBox", `0 0 ${facts.cells.length} 1`);
    this.strip.setAttribute("aria-label", facts.title);
    const runs = facts.cells.matchAll(/(\d)\1*/g);
    this.strip.replaceChildren(
      ...[...runs].map(({ 0: run, 1: state, index }) =>
        draw("rect", { class: `is-${state}`, x: index, y: 0, width: run.length, height: 1 }),
      ),
    );
    this.#fill();
    this.#paint(true);
    this.root.dataset.done = String(facts.done + facts.failed);
    this.root.dataset.ended = String(facts.ended);
  }

  /** The places of a point's particles have come. */
  arrived() {
    this.#paintParticles();
  }

  /** Another point is chosen, perhaps in another copy of the view. */
  select(number) {
    this.chosen = number;
    this.#mark();
    this.#paintParticles();
  }

  #current() {
    return this.chosen >= 0 ? this.chosen : this.facts.best;
  }

  #choose(number) {
    this.select(number);
    this.choose(number);
  }

  #fill() {
    const { heads, rows, best, left_out: left } = this.facts;
    if (heads.join("\t") !== this.heads) {
      this.heads = heads.join("\t");
      this.head.replaceChildren(...heads.map((head) => make("th", { scope: "col" }, head)));
    }
    // Rows that have not changed stay: somebody may be reading them, or stand on one.
    const kept = new Map([...this.body.children].map((row) => [row.dataset.text, row]));
    const made = rows.map((row) => {
      const text = row.join("\t");
      if (kept.has(text)) return kept.get(text);
      const button = make("button", { onclick: () => this.#choose(row[0]) }, String(row[0]));
      const cells = row.slice(1).map((cell) => make("td", {}, cell));
      const attributes = { class: KINDS[row[row.length - 1]] ?? "is-0", "data-text": text, "data-point": row[0] };
      return make("tr", attributes, make("th", { scope: "row" }, button), ...cells);
    });
    const focused = made.findIndex(({ dataset }) => dataset.point === this.#focused());
    made.forEach((row, n) => {
      if (this.body.children[n] !== row) this.body.insertBefore(row, this.body.children[n] ?? null);
    });
    while (this.body.children.length > made.length) this.body.lastChild.remove();
    // A row that has changed, or moved, loses the focus that it had.
    if (focused >= 0) made[focused].querySelector("button").focus({ preventScroll: true });
    this.more.textContent = left
      ? `${left.toLocaleString("en")} more points are in the table that the sweep returns.`
      : "";
    for (const row of this.body.children) row.classList.toggle("is-best", Number(row.dataset.point) === best);
    this.#mark();
  }

  /** The point in whose row the focus is. */
  #focused() {
    const { activeElement } = this.root.getRootNode();
    return this.body.contains(activeElement) ? activeElement.closest("tr")?.dataset.point : undefined;
  }

  #mark() {
    const current = this.#current();
    for (const row of this.body.children) {
      const here = Number(row.dataset.point) === current;
      row.classList.toggle("is-chosen", here);
      row.querySelector("button").setAttribute("aria-pressed", String(here));
    }
    for (const dot of this.plot.querySelectorAll(".dot"))
      dot.classList.toggle("is-chosen", Number(dot.dataset.point) === current);
    this.root.dataset.chosen = String(current);
  }

  #theme() {
    followTheme(this.root);
    this.#paintParticles();
  }

  #paint(always = false) {
    this.#theme();
    const { plot, has_places: hasPlaces } = this.facts;
    this.stage.hidden = !plot;
    this.particles.hidden = !hasPlaces;
    const width = plot ? this.stage.clientWidth : 0;
    this.root.dataset.shown = String(this.frame.clientWidth);
    if (!plot || width < 100 || (width === this.width && !always)) return;
    this.width = width;
    const { height, edges } = PLOT;
    const { x, y, grid } = placeAxes(plot, width, height, edges);
    this.at = plot.dots.map(([number, across, up]) => [number, x(across), y(up)]);
    const dots = this.at.map(([number, cx, cy]) => {
      const best = number === this.facts.best;
      return draw("circle", { class: best ? "dot is-best" : "dot", cx, cy, r: best ? 5 : 3, "data-point": number });
    });
    sizePlot(this.plot, width, height);
    this.plot.replaceChildren(draw("text", { class: "tick", x: 4, y: 12 }, plot.y.label), ...grid, ...dots);
    this.#mark();
    this.#paintParticles();
  }

  #press(event) {
    const box = this.plot.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let [nearest, distance] = [-1, REACH];
    for (const [number, x, y] of this.at ?? []) {
      const away = Math.hypot(x - px, y - py);
      if (away < distance) [nearest, distance] = [number, away];
    }
    if (nearest >= 0) this.#choose(nearest);
  }

  #key(event) {
    const dots = [...(this.at ?? [])].sort((a, b) => a[1] - b[1]);
    const here = dots.findIndex(([number]) => number === this.#current());
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: dots.length - 1, Escape: -1 }[event.key];
    if (to === undefined || !dots.length) return;
    event.preventDefault();
    this.#choose(event.key === "Escape" ? -1 : dots[Math.max(0, Math.min(dots.length - 1, to))][0]);
  }

  #paintParticles() {
    if (!this.facts || this.particles.hidden) return;
    const number = this.#current();
    const side = this.particles.clientWidth;
    const scale = fitCanvas(this.canvas, side, side);
    const name = number === this.facts.best ? `point ${number}, the best` : `point ${number}`;
    const found = this.placesOf(number);
    this.canvas.setAttribute("aria-label", `Particles of ${name}`);
    this.root.dataset.particles = found?.axes ? String(number) : "";
    if (!found?.axes) {
      this.caption.textContent = number < 0 ? "" : `${name}: ${found ? "nothing to show" : "waiting for the cell"}`;
      return;
    }
    const { axes, values } = found;
    const low = [Infinity, Infinity];
    const high = [-Infinity, -Infinity];
    for (let k = 0; k < values.length; k += 1) {
      if (k % axes < 2 && Number.isFinite(values[k])) {
        low[k % axes] = Math.min(low[k % axes], values[k]);
        high[k % axes] = Math.max(high[k % axes], values[k]);
      }
    }
    const extent = (axis) =>
      `${"xy"[axis]} ${Number(low[axis].toPrecision(3))} to ${Number(high[axis].toPrecision(3))}`;
    this.caption.textContent = `Particles of ${name}: ${extent(0)}, ${extent(1)}`;
    const span = Math.max(high[0] - low[0], high[1] - low[1]) || 1;
    const size = this.canvas.width;
    const radius = Math.max(1.2, Math.min(3.5, 40 / Math.sqrt(values.length / axes))) * scale;
    const place = (value, axis) => 0.5 + (0.9 * (value - (low[axis] + high[axis]) / 2)) / span;
    const context = this.canvas.getContext("2d");
    context.fillStyle = getComputedStyle(this.root).getPropertyValue("--series-0");
    for (let k = 0; k + 1 < values.length; k += axes) {
      context.beginPath();
      context.arc(place(values[k], 0) * size, (1 - place(values[k + 1], 1)) * size, radius, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

/** Show the view in a page of its own. */
function showPage(root, data) {
  return new SweepView(root, { facts: data.facts, placesOf: (number) => data.places[number] ?? { axes: 0 } });
}

export default {
  render({ model, el }) {
    const placesOf = (number) => {
      const held = model.get("places");
      if (held.number !== number) return undefined;
      const { buffer, byteOffset, byteLength } = held.values;
      return { axes: held.axes, values: new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength)) };
    };
    const choose = (number) => {
      model.set("chosen", number);
      model.save_changes();
    };
    const view = new SweepView(el, { facts: model.get("facts"), placesOf, chosen: model.get("chosen"), choose });
    const handlers = { facts: () => view.show(model.get("facts")), places: () => view.arrived() };
    handlers.chosen = () => view.select(model.get("chosen"));
    for (const [name, change] of Object.entries(handlers)) model.on(`change:${name}`, change);
    return () => {
      for (const [name, change] of Object.entries(handlers)) model.off(`change:${name}`, change);
      view.close();
    };
  },
};
