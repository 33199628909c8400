// What the explorer knows of one stage and of places in the source, and the words for it.

/** Where a stage's lines come from, ready to be asked. */
class Stage {
  constructor({ text = "", places = [], further = {}, primals = {}, adjoints = [], problem }, kind) {
    this.problem = problem;
    this.kind = problem ? "plain" : kind;
    this.texts = (problem ?? text).split("\n");
    this.places = places;
    this.further = further;
    this.primals = primals;
    this.adjoints = new Set(adjoints);
    this.byRow = new Map();
    this.texts.forEach((_, line) => {
      for (const row of this.rows(line)) {
        if (!this.byRow.has(row)) this.byRow.set(row, []);
        this.byRow.get(row).push(line);
      }
    });
  }

  /** Where its names are bound and used; found out when first asked for. */
  get names() {
    this.known ??= new Names(this);
    return this.known;
  }

  /** The row of the source that a line begins in, -1 for none. */
  row(line) {
    return this.places[3 * line] ?? -1;
  }

  /** Its columns there: [first, last or -1]. */
  columns(line) {
    return [this.places[3 * line + 1], this.places[3 * line + 2]];
  }

  rows(line) {
    return this.further[line] ?? (this.row(line) >= 0 ? [this.row(line)] : []);
  }

  /**
   * The variable that a line binds, or the one whose operation it differentiates: what ties a primal to its adjoints.
   */
  tie(line) {
    if (this.kind !== "ir") return "";
    return this.primals[line] || known(this.texts[line].trim());
  }
}

/** What a place in the source, [row, first column, last column or -1], lights up. */
const placeFocus = ([row, column, end]) => ({
  side: -1,
  line: row,
  rows: new Set([row]),
  row,
  column: end >= 0 ? column : -1,
  end,
  tie: "",
});

/** What a place in the source points at: its line, and the smallest expression around it. */
function sourceFocus(docs, row, column) {
  let best = null;
  for (const stage of docs ?? []) {
    for (const line of stage?.byRow.get(row) ?? []) {
      const [begin, end] = stage.columns(line);
      if (stage.row(line) === row && column >= begin && column < end && (!best || end - begin < best[1] - best[0]))
        best = [begin, end];
    }
  }
  return { side: -1, line: row, rows: new Set([row]), row, column: best?.[0] ?? -1, end: best?.[1] ?? -1, tie: "" };
}

const duration = (seconds) => {
  if (!seconds) return "";
  if (seconds < 0.0995e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.0995) return `${(seconds * 1e3).toPrecision(2)} ms`;
  return seconds < 0.9995 ? `${Math.round(seconds * 1e3)} ms` : `${seconds.toPrecision(2)} s`;
};
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const nounOf = (kind) => ({ python: "node", ir: "operation", source: "line" })[kind] ?? "instruction";
