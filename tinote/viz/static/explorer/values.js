// The panel of observed values: a form for the iteration and the arguments, and what each line of the stage on the
// right evaluated to.

/** Labelled inputs for the scalar arguments of a kernel, with those of its last launch in them, and what they hold. */
function argumentInputs(parameters) {
  const inputs = parameters.map(({ name, last }) =>
    make("input", { type: "text", inputmode: "decimal", value: last, size: 6, "aria-label": `Argument ${name}` }),
  );
  return {
    labels: parameters.map(({ name }, n) => make("label", {}, `${name} `, inputs[n])),
    numbers: () => inputs.map((input) => Number(input.value) || 0),
  };
}

/**
 * `host.ask(question)` sends { iteration, arguments } to the kernel, `host.go(line)` selects a line of the right pane,
 * `host.pointed(line)` highlights it, `host.left()` nothing; `host.drawn()` asks for the panel to be drawn again.
 */
class Values {
  constructor(host) {
    this.host = host;
    this.iteration = make("input", {
      type: "text",
      inputmode: "numeric",
      value: "0",
      size: 8,
      "aria-label": "Iteration, one number per parallel loop",
      title: "One number for each parallel loop, outermost first",
    });
    this.button = make("button", { type: "submit" }, "Observe");
    this.seed = make("input", {
      type: "text",
      inputmode: "decimal",
      value: "1",
      size: 5,
      "aria-label": "Seed: the adjoint of the loss",
      title: "The adjoint of each scalar result. Empty: what its gradient holds now",
    });
    this.seeded = make("label", {}, "Seed ", this.seed);
    this.rest = make("span", { class: "arguments" });
    this.form = make(
      "form",
      { class: "observe", onsubmit: (event) => this.#ask(event) },
      make("label", {}, "Iteration ", this.iteration),
      this.rest,
      this.seeded,
      this.button,
    );
    this.answer = null;
  }

  /** Another view: which arguments its kernel takes, and whether it is a gradient of a result of one number. */
  offer(parameters, seeded) {
    this.seeded.hidden = !seeded;
    const { labels, numbers } = argumentInputs(parameters);
    this.numbers = numbers;
    this.rest.replaceChildren(...labels);
    this.answer = null;
  }

  /** Another stage: what was observed in the last one does not apply to it. */
  forget() {
    this.answer = null;
    this.host.drawn();
  }

  receive(answer) {
    this.answer = answer;
    this.host.drawn();
  }

  #ask(event) {
    event.preventDefault();
    const numbers = (text) => (text.match(/-?\d+/g) ?? []).map(Number);
    this.answer = { waiting: true };
    this.host.ask({
      iteration: numbers(this.iteration.value),
      arguments: this.numbers(),
      seed: this.seeded.hidden || !Number.isFinite(parseFloat(this.seed.value)) ? null : parseFloat(this.seed.value),
    });
    this.host.drawn();
  }

  draw() {
    return make("div", { class: "values" }, this.form, ...this.#found());
  }

  #found() {
    const { waiting, problem, rows, nan, limits, stopped, adjoints, missing } = this.answer ?? {};
    if (!this.answer)
      return [
        make(
          "p",
          { class: "empty" },
          "Runs this iteration of each parallel loop on a copy of the fields as they are now, in the stage on the " +
            "right. The program itself is unchanged. In a gradient, the adjoint of each variable is shown next to " +
            "its value: adjoints start from the seed, or from what the gradients of the results hold now.",
        ),
      ];
    if (waiting) return [make("p", { class: "empty" }, "running …")];
    if (problem) return [make("pre", { class: "panel-problem", role: "alert" }, problem)];
    const parts = [
      stopped && `stopped early: ${stopped}`,
      missing,
      nan >= 0 ? `the first NaN is ${rows[nan].cells[0]}` : "no NaN",
      limits.length && `iterations ${limits.map(([lo, hi]) => `${lo} … ${hi - 1}`).join(" × ")}`,
    ];
    const note = make(
      "p",
      { class: `empty${nan >= 0 ? " is-bad" : ""}`, role: "status" },
      parts.filter(Boolean).join(" · "),
    );
    const body = rows.map((row, number) => this.#row(row, number === nan, adjoints));
    const names = adjoints ? ["variable", "value", "adjoint", "times", ""] : ["variable", "value", "times", ""];
    const head = names.map((name) => make(name ? "th" : "td", name ? { scope: "col" } : {}, name));
    return [
      note,
      make(
        "table",
        { "aria-label": "Observed values" },
        make("thead", {}, make("tr", {}, ...head)),
        make("tbody", {}, ...body),
      ),
    ];
  }

  #row({ line, cells, adjoint, tone }, first, adjoints) {
    const name = make(
      "button",
      {
        type: "button",
        class: "to-source",
        title: "Show its line",
        onclick: () => this.host.go(line),
        onfocus: () => this.host.pointed(line),
        onblur: () => this.host.left(),
      },
      cells[0],
    );
    const last = first ? "← first NaN" : cells[3];
    const row = make("tr", {
      class: `${tone ? `is-${tone}` : ""}${first ? " is-first" : ""}`,
      onpointerenter: () => this.host.pointed(line),
      onpointerleave: () => this.host.left(),
    });
    row.append(
      make("th", { scope: "row" }, name),
      make("td", { class: "value" }, cells[1]),
      ...(adjoints ? [make("td", { class: "value adjoint-value" }, adjoint)] : []),
      make("td", {}, cells[2]),
      make("td", {}, last),
    );
    return row;
  }
}
