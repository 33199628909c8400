// A sweep while it runs: a strip of its points, a plot of one result, a table, and the particles of the point that is
// chosen. Python has placed everything in parts of the plot (`viz/runs/facts.py`); places of particles come as messages.

const SVG = "http://www.w3.org/2000/svg";
const PLOT = { height: 240, left: 62, right: 12, top: 22, bottom: 38 };
const REACH = 24; // Pixels around a dot in which a press chooses it.

const draw = (tag, attributes, ...children) => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

class SweepView {
  /** `chosen`: a point, -1 for the best; `choose(number)` is told of another; `ask(number)` gets a point's places. */
  constructor(root, { facts, places, chosen = -1, choose = () => {}, ask = () => {} }) {
    this.root = root;
    this.places = places;
    this.chosen = chosen;
    this.choose = choose;
    this.ask = ask;
    this.asked = new Set();
    keepKeys(root);
    root.classList.add("tinote-sweep");
    this.title = make("strong", { class: "title" });
    this.count = make("progress", { "aria-label": "Points that are done" });
    this.statements = make("ul", { class: "statements", role: "status" });
    this.strip = draw("svg", { class: "strip", preserveAspectRatio: "none", role: "img" });
    this.plot = draw("svg", { class: "plot", "aria-hidden": "true" });
    this.stage = make("div", { class: "stage", tabindex: 0, role: "application" }, this.plot);
    this.stage.setAttribute("aria-label", "Results of the points. The arrow keys choose a point, Escape the best one.");
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
      make("header", {}, this.title, this.count),
      this.strip,
      this.statements,
      make("div", { class: "beside" }, this.stage, this.particles),
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
  }

  /** The points as they are now. */
  show(facts) {
    this.facts = facts;
    this.title.textContent = facts.title;
    this.count.max = facts.count || 1;
    this.count.value = facts.done + facts.failed;
    this.count.hidden = facts.ended;
    const told = facts.statements.join("\n");
    if (told !== this.told) {
      this.told = told;
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

  /** A point's places have come. */
  arrived(number) {
    if (number === this.#current()) this.#paintParticles();
  }

  #current() {
    return this.chosen >= 0 ? this.chosen : this.facts.best;
  }

  #select(number) {
    this.chosen = number;
    this.choose(number);
    this.#mark();
    this.#paintParticles();
  }

  #fill() {
    const { heads, rows, best, left_out: left } = this.facts;
    if (heads.join() !== this.heads) {
      this.heads = heads.join();
      this.head.replaceChildren(...heads.map((head) => make("th", { scope: "col" }, head)));
    }
    // Rows that have not changed stay: somebody may be reading them, or stand on one.
    const kept = new Map([...this.body.children].map((row) => [row.dataset.text, row]));
    const made = rows.map((row) => {
      const text = row.join("\t");
      if (kept.has(text)) return kept.get(text);
      const button = make("button", { onclick: () => this.#select(row[0]) }, String(row[0]));
      const cells = row.slice(1).map((cell) => make("td", {}, cell));
      const state = { done: "is-1", failed: "is-2" }[row[row.length - 1]] ?? "is-0";
      const attributes = { class: state, "data-text": text, "data-point": row[0] };
      return make("tr", attributes, make("th", { scope: "row" }, button), ...cells);
    });
    made.forEach((row, n) => {
      if (this.body.children[n] !== row) this.body.insertBefore(row, this.body.children[n] ?? null);
    });
    while (this.body.children.length > made.length) this.body.lastChild.remove();
    this.more.textContent = left
      ? `${left.toLocaleString("en")} more points are in the table that the sweep gives.`
      : "";
    for (const row of this.body.children) row.classList.toggle("is-best", Number(row.dataset.point) === best);
    this.#mark();
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
    const dark = isDark(this.root);
    this.root.classList.toggle("is-dark", dark);
    SERIES_COLORS[dark ? "dark" : "light"].forEach((color, n) => this.root.style.setProperty(`--series-${n}`, color));
    if (this.facts) this.#paintParticles();
  }

  #paint(always = false) {
    this.#theme();
    const { plot, has_places: beside } = this.facts;
    this.stage.hidden = !plot;
    this.particles.hidden = !beside;
    const width = plot ? this.stage.clientWidth : 0;
    if (!plot || width < 100 || (width === this.width && !always)) return;
    this.width = width;
    const { height, left, top } = PLOT;
    const [right, bottom] = [width - PLOT.right, height - PLOT.bottom];
    const x = (part) => left + part * (right - left);
    const y = (part) => bottom - part * (bottom - top);
    this.at = plot.dots.map(([number, across, up]) => [number, x(across), y(up)]);
    const parts = [draw("text", { class: "tick", x: 4, y: 12 }, plot.y.label)];
    for (const { at, text } of plot.y.ticks) {
      parts.push(draw("line", { class: "grid", x1: left, x2: right, y1: y(at), y2: y(at) }));
      parts.push(draw("text", { class: "tick", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, text));
    }
    const room = Math.max(1, Math.ceil((plot.x.ticks.length * 46) / (right - left)));
    for (const { at, text } of plot.x.ticks.filter((_, n) => n % room === 0))
      parts.push(draw("text", { class: "tick", x: x(at), y: bottom + 16, "text-anchor": "middle" }, text));
    const middle = { class: "tick", x: (left + right) / 2, y: height - 5, "text-anchor": "middle" };
    parts.push(draw("text", middle, plot.x.label));
    const dots = this.at.map(([number, cx, cy]) => {
      const kind = number === this.facts.best ? "dot is-best" : "dot";
      return draw("circle", { class: kind, cx, cy, r: number === this.facts.best ? 5 : 3, "data-point": number });
    });
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height }))
      this.plot.setAttribute(name, value);
    this.plot.replaceChildren(...parts, ...dots);
    this.#mark();
    this.#paintParticles();
    this.root.dataset.shown = String(width);
  }

  #press(event) {
    const box = this.plot.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let [nearest, distance] = [-1, REACH];
    for (const [number, x, y] of this.at ?? []) {
      const away = Math.hypot(x - px, y - py);
      if (away < distance) [nearest, distance] = [number, away];
    }
    if (nearest >= 0) this.#select(nearest);
  }

  #key(event) {
    const dots = [...(this.at ?? [])].sort((a, b) => a[1] - b[1]);
    const here = dots.findIndex(([number]) => number === this.#current());
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: dots.length - 1, Escape: -1 }[event.key];
    if (to === undefined || !dots.length) return;
    event.preventDefault();
    this.#select(event.key === "Escape" ? -1 : dots[Math.max(0, Math.min(dots.length - 1, to))][0]);
  }

  #paintParticles() {
    if (this.particles.hidden) return;
    const number = this.#current();
    const side = this.particles.clientWidth;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = this.canvas.height = Math.max(1, Math.round(side * scale));
    const context = this.canvas.getContext("2d");
    const found = this.places.get(number);
    const name = number === this.facts.best ? `point ${number}, the best` : `point ${number}`;
    this.canvas.setAttribute("aria-label", `Particles of ${name}`);
    if (!found) {
      const row = this.facts.rows.find(([one]) => one === number);
      const done = !row || row[row.length - 1] === "done";
      this.caption.textContent = number < 0 ? "" : done ? `${name}: waiting for the cell` : `${name}: nothing to show`;
      if (number >= 0 && done && !this.asked.has(number)) {
        this.asked.add(number);
        this.ask(number);
      }
      this.root.dataset.particles = "";
      return;
    }
    this.caption.textContent = `Particles of ${name}${found.axes === 3 ? ", along x and y" : ""}`;
    const { axes, values } = found;
    const low = [Infinity, Infinity];
    const high = [-Infinity, -Infinity];
    for (let k = 0; k < values.length; k += 1) {
      if (k % axes < 2 && Number.isFinite(values[k])) {
        low[k % axes] = Math.min(low[k % axes], values[k]);
        high[k % axes] = Math.max(high[k % axes], values[k]);
      }
    }
    const span = Math.max(high[0] - low[0], high[1] - low[1]) || 1;
    const size = this.canvas.width;
    const radius = Math.max(1.2, Math.min(3.5, 40 / Math.sqrt(values.length / axes))) * scale;
    const place = (value, axis) => 0.5 + (0.9 * (value - (low[axis] + high[axis]) / 2)) / span;
    context.fillStyle = getComputedStyle(this.root).getPropertyValue("--series-0");
    for (let k = 0; k + 1 < values.length; k += axes) {
      context.beginPath();
      context.arc(place(values[k], 0) * size, (1 - place(values[k + 1], 1)) * size, radius, 0, 2 * Math.PI);
      context.fill();
    }
    this.root.dataset.particles = String(number);
  }
}

/** Show the view in a page of its own. */
function showPage(root, data) {
  const places = new Map(Object.entries(data.places).map(([number, held]) => [Number(number), held]));
  return new SweepView(root, { facts: data.facts, places });
}

const held = new WeakMap(); // Of each model, the places of its points, which outlive its views.

export default {
  initialize({ model }) {
    const places = new Map();
    const views = new Set();
    held.set(model, { places, views });
    model.on("msg:custom", (message, buffers) => {
      if (message.kind !== "places") return;
      const { buffer, byteOffset, byteLength } = buffers[0];
      const values = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
      places.set(message.number, { axes: message.axes, values });
      for (const view of views) view.arrived(message.number);
    });
  },
  render({ model, el }) {
    const { places, views } = held.get(model);
    const choose = (number) => {
      model.set("chosen", number);
      model.save_changes();
    };
    const ask = (number) => model.send({ kind: "places", number });
    const view = new SweepView(el, { facts: model.get("facts"), places, chosen: model.get("chosen"), choose, ask });
    const change = () => view.show(model.get("facts"));
    model.on("change:facts", change);
    views.add(view);
    return () => {
      model.off("change:facts", change);
      views.delete(view);
      view.close();
    };
  },
};
