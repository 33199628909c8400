// The data-flow graph of what is selected: the lines that it is computed from, and those that use it.

const NODE = { width: 168, height: 24, across: 44, down: 8 };
const NARROW = { width: 104, across: 24, letter: 7.4, border: 22 };
const ZOOM = { least: 0.5, most: 2, step: 1.2 };
const MOST_NODES = 48;

/** The lines within that many steps of `centre`, nearest first, at most MOST_NODES. */
function nearby(centre, edges, steps) {
  const found = new Set(centre);
  let edge = [...centre];
  for (let step = 0; step < steps; step++) {
    const next = [];
    for (const line of edge) {
      for (const other of edges.get(line) ?? []) {
        if (found.has(other)) continue;
        if (found.size >= MOST_NODES) return found;
        found.add(other);
        next.push(other);
      }
    }
    edge = next;
  }
  return found;
}

/**
 * Column and row of each line: as far to the right as the longest way to it, in the order of the text within a column.
 */
function laidOut(lines, sources) {
  const columns = [];
  const places = new Map();
  for (const line of [...lines].sort((a, b) => a - b)) {
    const before = (sources.get(line) ?? []).filter((from) => places.has(from));
    const column = Math.max(-1, ...before.map((from) => places.get(from).column)) + 1;
    columns[column] ??= [];
    places.set(line, { column, row: columns[column].length });
    columns[column].push(line);
  }
  return { columns, places };
}

/** What a line is called in the graph: what it binds, and its operation. */
function nodeName(text) {
  const plain = text.trim();
  const bound = /^(%[\w.$-]+)/.exec(plain)?.[1];
  const word = / = ([\w.]+)/.exec(plain)?.[1] ?? /^\w+/.exec(plain)?.[0] ?? "";
  const memory = /@[\w.]+/.exec(plain)?.[0] ?? "";
  return [bound, word, memory].filter(Boolean).join(" ");
}

/**
 * The graph around the lines `centre` of a stage, in columns as narrow as they must be to fit a width of `room` pixels,
 * but not narrower than what stands in them. `host.go(line)` makes a line the selected one, `host.pointed(line)`
 * highlights it,
 * `host.left()` nothing.
 */
function flowGraph(stage, centre, room, host) {
  const { sources, users } = stage.names.flow;
  const lines = new Set([...nearby(centre, sources, 3), ...nearby(centre, users, 2)]);
  const { columns, places } = laidOut(lines, sources);
  const longest = Math.max(...[...lines].map((line) => nodeName(stage.texts[line]).length));
  const narrow = {
    width: Math.max(NARROW.width, Math.min(NODE.width, longest * NARROW.letter + NARROW.border)),
    across: NARROW.across,
  };
  const least = narrow.width + narrow.across;
  const most = NODE.width + NODE.across;
  const part = Math.max(0, Math.min(1, ((room - 16) / columns.length - least) / (most - least)));
  const [wide, across] = ["width", "across"].map((size) => narrow[size] + part * (NODE[size] - narrow[size]));
  const left = ({ column }) => 8 + column * (wide + across);
  const top = ({ row }) => 8 + row * (NODE.height + NODE.down);
  const width = 16 + columns.length * (wide + across) - across;
  const height = 16 + Math.max(...columns.map((column) => column.length)) * (NODE.height + NODE.down);
  let wires = "";
  for (const line of lines) {
    const to = places.get(line);
    for (const source of sources.get(line) ?? []) {
      const from = places.get(source);
      if (!from) continue;
      const [x1, y1, x2, y2] = [left(from) + wide, top(from) + NODE.height / 2, left(to), top(to) + NODE.height / 2];
      const near = centre.includes(line) || centre.includes(source) ? "is-near" : "";
      const bend = across / 2;
      wires += `<path class="${near}" d="M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}"/>`;
    }
  }
  const graph = make("div", { class: "graph", role: "group", "aria-label": "Data flow, from left to right" });
  graph.innerHTML = `<svg aria-hidden="true" width="${width}" height="${height}">${wires}</svg>`;
  graph.style.width = `${width}px`;
  graph.style.height = `${height}px`;
  const nodes = new Map();
  for (const line of [...lines].sort((a, b) => a - b)) {
    const [needs, used] = [sources.get(line) ?? [], users.get(line) ?? []].map((found) => found.length);
    const label = `${nodeName(stage.texts[line])}, from ${needs}, used by ${used}`;
    const node = make(
      "button",
      {
        type: "button",
        class: `node${centre.includes(line) ? " is-centre" : ""}${stage.adjoints.has(line) ? " is-adjoint" : ""}`,
        title: stage.texts[line].trim(),
        "aria-label": label,
        "aria-current": centre.includes(line) ? "true" : null,
        "data-line": line,
        tabindex: line === centre[0] ? 0 : -1,
      },
      nodeName(stage.texts[line]),
    );
    node.style.width = `${wide}px`;
    node.style.left = `${left(places.get(line))}px`;
    node.style.top = `${top(places.get(line))}px`;
    node.addEventListener("click", () => host.go(line));
    node.addEventListener("pointerenter", () => host.pointed(line));
    node.addEventListener("pointerleave", () => host.left());
    node.addEventListener("focus", () => host.pointed(line));
    nodes.set(line, node);
    graph.append(node);
  }
  graph.addEventListener("keydown", (event) => {
    const at = places.get(Number(event.target.dataset?.line));
    const [aside, down] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[
      event.key
    ] ?? [0, 0];
    const column = at && (aside || down) && columns[at.column + aside];
    if (!column) return;
    event.preventDefault();
    const target = nodes.get(column[Math.max(0, Math.min(column.length - 1, at.row + down))]);
    for (const node of nodes.values()) node.tabIndex = node === target ? 0 : -1;
    target.focus();
  });
  return graph;
}

/**
 * `graph` with buttons, keys (+ - 0) and the wheel (with Ctrl) to zoom it. At first it fits a width of `room` pixels if
 * it can still be read then; `zoom.factor` is what its reader made of that.
 */
function zoomable(graph, room, zoom) {
  const fit = Math.max(ZOOM.least, Math.min(1, room / parseFloat(graph.style.width)));
  const to = (factor) => {
    zoom.factor = Math.max(ZOOM.least / fit, Math.min(ZOOM.most / fit, factor));
    graph.style.zoom = String(fit * zoom.factor);
    size.textContent = `${Math.round(fit * zoom.factor * 100)} %`;
  };
  const steps = { "-": () => zoom.factor / ZOOM.step, 0: () => 1, "+": () => zoom.factor * ZOOM.step };
  const button = (key, text, label) =>
    make(
      "button",
      {
        type: "button",
        class: "step",
        "aria-label": label,
        title: `${label} (${key})`,
        onclick: () => to(steps[key]()),
      },
      text,
    );
  const size = make("span", { class: "size", role: "status" });
  const frame = make(
    "div",
    { class: "flow" },
    make(
      "div",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      size,
      button("-", "−", "Zoom out"),
      button("0", "↔", "Fit the width"),
      button("+", "+", "Zoom in"),
    ),
    graph,
  );
  frame.addEventListener("keydown", (event) => {
    const step = steps[event.key === "=" ? "+" : event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    to(step());
  });
  frame.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      to(zoom.factor * ZOOM.step ** (-event.deltaY / 100));
    },
    { passive: false },
  );
  to(zoom.factor);
  return frame;
}

const NOTHING_SELECTED = "Select a line of IR or LLVM IR, or of the source: click it, or press Enter on it.";

/**
 * Walks along the data flow, by click, key or graph. `host.panes` and `host.docs()` are the lines and stages in sight,
 * `host.pinned()` what is selected, `host.pin(focus, from)` selects, `host.hover(focus)` highlights,
 * `host.focusOf(side, line)` is what a line points at, `host.look(side, line)` how it is highlighted, `host.room()`
 * how many pixels the graph may be wide; `host.drawn()` asks for it to be drawn again.
 */
class Walker {
  constructor(host) {
    this.host = host;
    this.trail = []; // where it came from, as [side, line]
    this.zoom = { factor: 1 }; // of what fits
  }

  go(side, line, remember = true) {
    const pane = this.host.panes[side];
    if (!(pane.visualOf?.[line] >= 0)) return;
    const from = pane.lineAt(pane.current);
    if (remember && from >= 0) this.trail.push([side, from]);
    pane.moveTo(pane.visualOf[line], false);
    this.host.pin(this.host.focusOf(side, line), pane);
  }

  /** To where `name` is bound; false if that is here or nowhere. */
  toDefinition(side, line, name) {
    const definition = name ? this.host.docs()[side].names.definition(name, line) : -1;
    if (definition < 0 || definition === line) return false;
    this.go(side, definition);
    return true;
  }

  /** `d`: to the definition of what the current line uses; `u`: to the next use of what it binds; `b`: back. */
  walk(key) {
    if (key === "b") {
      const last = this.trail.pop();
      if (last) this.go(...last, false);
      return;
    }
    const side = this.host.panes[0].element === document.activeElement ? 0 : 1;
    const line = this.host.panes[side].lineAt(this.host.panes[side].current);
    const stage = this.host.docs()?.[side];
    if (!stage || line < 0) return;
    const { sources, users } = stage.names.flow;
    this.go(side, (key === "d" ? sources : users).get(line)?.[0] ?? -1);
  }

  /** The lines that the graph is about: the selected one, or those of the selected source. */
  #selected() {
    const focus = this.host.pinned();
    const docs = this.host.docs();
    if (!focus || !docs?.[0] || !docs[1]) return null;
    if (focus.side >= 0) return { side: focus.side, lines: [focus.line] };
    const lines = docs[1].byRow.get(focus.row) ?? [];
    const strong = lines.filter((line) => this.host.look(1, line) === "strong");
    return { side: 1, lines: (strong.length ? strong : lines).slice(0, 8) };
  }

  /** The graph, or how to get one. */
  draw() {
    const found = this.#selected();
    const stage = found && this.host.docs()[found.side];
    if (!found?.lines.length || !TEXT_KINDS[stage.kind]?.names) return make("p", { class: "empty" }, NOTHING_SELECTED);
    const { side, lines } = found;
    const room = this.host.room();
    const graph = flowGraph(stage, lines, room, {
      go: (line) => this.go(side, line),
      pointed: (line) => this.host.hover(this.host.focusOf(side, line)),
      left: () => this.host.hover(null),
    });
    return zoomable(graph, room, this.zoom);
  }

  /** Something else is selected: draw the graph again, and keep the keyboard in it. */
  follow() {
    const inGraph = document.activeElement?.classList.contains("node");
    const graph = this.host.drawn();
    if (inGraph) graph?.querySelector(".is-centre")?.focus();
  }
}
