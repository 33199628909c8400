// The controls of a view in a page, by kind: what `KINDS` of `viz/live/controls.py` are in a notebook. Each is made of
// its description and of `send(numbers, choice)`, which tells the simulation the numbers of the value, or which of the
// choices it is.

const CONTROLS = {
  slider: (one, send) => rangeInputs(one, [one.value], send),
  range: (one, send) => rangeInputs(one, one.value, send),
  number: (one, send) => {
    const { label, low, high, step, value } = one;
    const ends = { min: low, max: high, step: step ?? "any" };
    const input = make("input", { type: "number", ...ends, value, "aria-label": label });
    input.addEventListener("change", () => {
      const given = Number.isNaN(input.valueAsNumber) ? value : input.valueAsNumber;
      const number = Math.min(Math.max(given, low ?? -Infinity), high ?? Infinity);
      input.value = String(number);
      send([number]);
    });
    return [input];
  },
  checkbox: (one, send) => {
    const input = make("input", { type: "checkbox", checked: one.value === 1, "aria-label": one.label });
    input.addEventListener("change", () => choose(one, Number(input.checked), send));
    return [input];
  },
  dropdown: (one, send) => {
    const options = one.options.map((name, at) => make("option", { selected: at === one.value }, name));
    const select = make("select", { "aria-label": one.label }, ...options);
    select.addEventListener("change", () => choose(one, select.selectedIndex, send));
    return [select];
  },
  button: (one, send) => [make("button", { type: "button", onclick: () => choose(one, 0, send) }, one.label)],
  color: (one, send) => {
    const parts = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
    const input = make("input", { type: "color", value: one.value, "aria-label": one.label });
    input.addEventListener("input", () => send(parts(input.value)));
    return [input];
  },
};

/** A choice: the numbers that a field gets for it, or which program is run. */
const choose = ({ sent }, choice, send) => send(sent ? sent[choice] : [], choice);

/** A slider with a handle for each of `values`, of which none passes another, and the values next to it. */
function rangeInputs({ label, low, high, step, digits, log }, values, send) {
  const written = (value) => Number(value.toPrecision(digits)).toString().replace("-", "−");
  const shown = make("output", {});
  const now = () => inputs.map(({ value }) => (log ? 10 ** Number(value) : Number(value)));
  const show = () => {
    const texts = now().map(written);
    shown.textContent = texts.join(" to ");
    inputs.forEach((input, at) => input.setAttribute("aria-valuetext", texts[at]));
  };
  const inputs = values.map((value, at) => {
    const name = values.length > 1 ? `${label}, ${["from", "to"][at]}` : label;
    const input = make("input", { type: "range", min: low, max: high, step, "aria-label": name });
    input.value = String(log ? Math.log10(value) : value); // Once its bounds hold.
    input.addEventListener("input", () => {
      for (const [other, { value }] of inputs.entries())
        if ((other - at) * (Number(value) - Number(input.value)) < 0) inputs[other].value = input.value;
      show();
      send(now());
    });
    return input;
  });
  show();
  return [...inputs, shown];
}

/** All controls of a view in their order; those of one folder are together, where the first one is. */
function controlPanel(model, controls) {
  const folders = new Map();
  const rows = [];
  controls.forEach((one, control) => {
    const send = (numbers, choice = 0) => say(model, { kind: "change", control, choice, numbers });
    const name = one.kind === "button" ? [] : [make("span", {}, one.label)];
    const parts = [...name, ...CONTROLS[one.kind](one, send)];
    const row = make(name.length ? "label" : "div", { class: "tinote-control" }, ...parts);
    if (one.folder === undefined) rows.push(row);
    else if (folders.has(one.folder)) folders.get(one.folder).append(row);
    else {
      const title = make("summary", {}, one.folder);
      const folder = make("details", { class: "tinote-folder", open: !one.closed }, title, row);
      folders.set(one.folder, folder);
      rows.push(folder);
    }
  });
  return rows;
}
