// The panel of the roofline: a form for the arguments, the loops as a table, and those that compute in a chart.

const ROOF_SIZE = { width: 400, height: 200 };
const ROOF_EDGES = { left: 46, right: 12, top: 18, bottom: 36 };

/** `host.ask(numbers)` has a launch with these arguments measured. */
class Roofline {
  constructor(host) {
    this.host = host;
  }

  /** What a panel shows that has arrived, around its tables. */
  draw({ notes, chart, measures, refused }, tables) {
    const { labels, numbers } = argumentInputs(measures.parameters);
    const form = make(
      "form",
      {
        class: "observe",
        onsubmit: (event) => {
          event.preventDefault();
          this.host.ask(numbers());
        },
      },
      ...labels,
      make("button", { type: "submit" }, "Measure"),
    );
    const about =
      measures.refused ||
      "Launches it ten times, with copies of the fields, and compares each loop with what this machine moves and " +
        "computes. The program itself is unchanged.";
    const text = make(
      "div",
      { class: "measured" },
      ...(measures.refused ? [] : [form]),
      ...(refused ? [make("pre", { class: "panel-problem", role: "alert" }, refused)] : []),
      ...(notes.length ? [] : [make("p", { class: "empty" }, about)]),
      ...tables,
    );
    return [make("div", { class: "roofline" }, text, ...(chart ? [this.#chart(chart)] : []))];
  }

  #chart({ x: across, y: up, roofs, loops }) {
    const { width, height } = ROOF_SIZE;
    const { x, y, top, grid } = placeAxes({ x: across, y: up }, width, height, ROOF_EDGES);
    const name = `Roofline: ${loops.map(({ line }) => `line ${line}`).join(", ")}, over ${across.label}`;
    const plot = draw("svg", { class: "roofs", role: "img", "aria-label": name });
    sizePlot(plot, width, height);
    plot.append(...grid, draw("text", { class: "tick", x: 4, y: top - 6 }, up.label));
    for (const roof of roofs)
      plot.append(draw("polyline", { class: "roof", points: roof.map(([at, rate]) => [x(at), y(rate)]).join(" ") }));
    for (const { at, rate, line, tone } of loops)
      plot.append(
        draw("circle", { class: `loop is-${tone}`, cx: x(at), cy: y(rate), r: 4 }),
        draw("text", { class: "tick", x: x(at) + 8, y: y(rate) + 4 }, `line ${line}`),
      );
    return plot;
  }
}
