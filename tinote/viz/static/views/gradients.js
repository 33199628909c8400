// The gradients of a tape: charts of norms, times, memory and horizons, whose lines and bars Python has placed in parts
// of the plot (`viz/gradient_view/charts.py`), and the table of kernels. It asks the kernel for nothing.

const HEIGHTS = { norms: 200, times: 140, memory: 90, horizons: 190 };
const EDGES = { left: 62, right: 14, top: 8, bottom: 38 };
const OTHERS = SERIES_COLORS.light.length - 1;

/** One chart: a picture, what stands under the pointer, and the same as a table. */
class GradientChart {
  constructor(chart) {
    this.chart = chart;
    this.stop = -1;
    this.plot = draw("svg", { class: "plot", "aria-hidden": "true" });
    this.readout = make("div", { class: "readout", role: "status" });
    this.stage = make("div", { class: "stage", tabindex: 0, role: "img" }, this.plot, this.readout);
    const about = `${chart.title}: ${chart.about}. The arrow keys move through it; a table follows.`;
    this.stage.setAttribute("aria-label", about);
    this.stage.addEventListener("pointermove", (event) => this.#point(event));
    this.stage.addEventListener("pointerleave", () => this.#show(-1));
    this.stage.addEventListener("blur", () => this.#show(-1));
    this.stage.addEventListener("keydown", (event) => this.#key(event));
    const legend = make("div", { class: "legend" });
    for (const { name, color } of chart.legend)
      legend.append(make("span", {}, make("i", { class: "swatch", style: `--series: var(--series-${color})` }), name));
    const marks = chart.marks.map((mark) => make("p", { class: "mark" }, mark.text));
    this.root = make(
      "section",
      { class: "chart", "data-chart": chart.id },
      make("h2", {}, chart.title),
      make("p", { class: "about" }, chart.about),
      legend,
      ...marks,
      this.stage,
      this.#table(),
    );
  }

  #table() {
    const details = make("details", {}, make("summary", {}, "As a table"));
    const fill = () => {
      if (details.querySelector("table")) return;
      const cells = (row) => row.map((cell, n) => make(n ? "td" : "th", n ? {} : { scope: "row" }, cell));
      const heads = this.chart.heads.map((head) => make("th", { scope: "col" }, head));
      const table = make(
        "table",
        {},
        make("caption", {}, this.chart.title),
        make("thead", {}, make("tr", {}, ...heads)),
        make("tbody", {}, ...this.chart.rows.map((row) => make("tr", {}, ...cells(row)))),
      );
      details.append(make("div", { class: "sheet", tabindex: 0, role: "region", "aria-label": "Values" }, table));
    };
    // A press is reported before it opens, so that it never stands open and empty; what else opens it, only afterwards.
    for (const event of ["click", "toggle"]) details.addEventListener(event, fill, { once: true });
    return details;
  }

  /** Draw it as wide as there is room. */
  paint(width) {
    const { chart } = this;
    const height = HEIGHTS[chart.id] + EDGES.top + EDGES.bottom;
    const placed = placeAxes(chart, width, height, EDGES);
    const { x, y, top, bottom } = placed;
    this.x = x;
    this.inside = placed;
    sizePlot(this.plot, width, height);
    const parts = [];
    for (const mark of chart.marks)
      parts.push(
        draw("rect", {
          class: "bad-ground",
          x: x(mark.at) - 1,
          y: top,
          width: Math.max(2, x(mark.to) - x(mark.at)),
          height: bottom - top,
        }),
      );
    parts.push(...placed.grid);
    parts.push(draw("text", { class: "tick", x: 4, y: top + 10 }, chart.y.label));
    for (const bar of chart.bars) {
      const wide = x(bar.x[1]) - x(bar.x[0]);
      const gap = wide > 3 ? 0.5 : 0;
      parts.push(
        draw("rect", {
          class: bar.faint ? "bar is-faint" : "bar",
          style: `--series: var(--series-${bar.color})`,
          x: x(bar.x[0]) + gap,
          y: y(bar.y[1]),
          width: Math.max(0.5, wide - 2 * gap),
          height: Math.max(0.5, y(bar.y[0]) - y(bar.y[1])),
        }),
      );
    }
    for (const line of chart.lines) {
      const style = line.color === null ? "--series: var(--muted)" : `--series: var(--series-${line.color})`;
      for (const run of line.runs) {
        const points = run.map(([px, py]) => [x(px), y(py)]);
        if (points.length > 1)
          parts.push(
            draw("polyline", { class: line.dashed ? "line is-dashed" : "line", style, points: points.join(" ") }),
          );
        if (line.dots || points.length === 1)
          for (const [cx, cy] of points) parts.push(draw("circle", { class: "dot", style, cx, cy, r: 2.4 }));
      }
    }
    for (const mark of chart.marks)
      parts.push(draw("line", { class: "bad", x1: x(mark.at), x2: x(mark.at), y1: top, y2: bottom }));
    this.cursor = draw("line", { class: "cursor", x1: 0, x2: 0, y1: top, y2: bottom, visibility: "hidden" });
    this.plot.replaceChildren(...parts, this.cursor);
    this.#show(this.stop);
  }

  #point(event) {
    const box = this.plot.getBoundingClientRect();
    const at = (event.clientX - box.left - this.inside.left) / (this.inside.right - this.inside.left);
    let nearest = -1;
    this.chart.stops.forEach((stop, n) => {
      if (nearest < 0 || Math.abs(stop - at) < Math.abs(this.chart.stops[nearest] - at)) nearest = n;
    });
    this.#show(nearest);
  }

  #key(event) {
    const last = this.chart.stops.length - 1;
    const to = { ArrowLeft: this.stop - 1, ArrowRight: this.stop + 1, Home: 0, End: last, Escape: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#show(event.key === "Escape" ? -1 : Math.max(0, Math.min(last, to)));
  }

  #show(stop) {
    this.stop = stop;
    this.root.dataset.stop = String(stop);
    const hidden = stop < 0;
    this.readout.hidden = hidden;
    this.cursor?.setAttribute("visibility", hidden ? "hidden" : "visible");
    if (hidden || !this.x) return;
    const at = this.x(this.chart.stops[stop]);
    this.cursor.setAttribute("x1", at);
    this.cursor.setAttribute("x2", at);
    const [head, ...values] = this.chart.rows[stop];
    this.readout.replaceChildren(
      make("b", {}, `${this.chart.heads[0]} ${head}`),
      ...values.map((value, n) => make("span", {}, `${this.chart.heads[n + 1]} ${value}`)),
    );
    const wide = this.readout.offsetWidth;
    this.readout.style.left = `${at + 10 + wide < this.inside.right ? at + 10 : Math.max(0, at - 10 - wide)}px`;
  }
}

class GradientView {
  constructor(facts, root) {
    this.root = root;
    keepKeys(root);
    root.classList.add("tinote-gradients");
    this.charts = facts.charts.map((chart) => new GradientChart(chart));
    const statements = make("ul", { class: "statements" }, ...facts.statements.map((one) => make("li", {}, one)));
    this.frame = make(
      "div",
      { class: "frame" },
      make("div", { class: "head" }, make("strong", { class: "title", ...asHeading(root) }, facts.title)),
      statements,
      ...this.charts.map((chart) => chart.root),
      kernelTable(facts.kernels),
    );
    root.append(this.frame);
    this.unwatch = watchTheme(() => this.#theme());
    this.placed = new ResizeObserver(() => this.#paint());
    this.placed.observe(root);
  }

  close() {
    this.unwatch();
    this.placed.disconnect();
  }

  #theme() {
    followTheme(this.root);
  }

  #paint() {
    this.#theme();
    const width = this.frame.clientWidth - 28;
    if (width < 120 || width === this.width) return;
    this.width = width;
    for (const chart of this.charts) chart.paint(width);
    this.root.dataset.shown = String(width);
  }
}

/** Where the time goes: a row a kernel, with bars of its gradients' time and below that of its launches. */
function kernelTable({ heads, rows }) {
  const bar = (part, kind) => make("i", { class: kind, style: `width: ${100 * part}%` });
  const body = rows.map((row) =>
    make(
      "tr",
      { style: `--series: var(--series-${Math.min(row.color, OTHERS)})` },
      make("th", { scope: "row", title: row.place }, make("i", { class: "swatch" }), make("code", {}, row.name)),
      make("td", {}, row.launches),
      make("td", {}, row.forward),
      make("td", {}, row.backward),
      make("td", {}, row.kept),
      make("td", { class: "bars", "aria-hidden": "true" }, bar(row.bars[1], "back"), bar(row.bars[0], "forth")),
    ),
  );
  const head = [...heads.map((one) => make("th", { scope: "col" }, one)), make("td", { class: "bars" })];
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
  return make("section", { class: "kernels" }, make("h2", {}, "Kernels"), make("div", { class: "sheet" }, table));
}

/** Show the view in a page of its own. */
function showPage(root, data) {
  return new GradientView(data.facts, root);
}

export default {
  render({ model, el }) {
    const view = new GradientView(model.get("facts"), el);
    return () => view.close();
  },
};
