// What an explorer shows and what is selected in it, by names that outlast a re-run of the cell: plain texts that stand
// in the fragment of a page's address, in a widget's state, or in the option `state=` of `ti.viz.explore`.

/** A state as the fragment of an address, without its "#". What only helps to find a line again is left out. */
function fragmentOf({ text, ...state }) {
  return new URLSearchParams(state).toString();
}

const stateOf = (fragment) => Object.fromEntries(new URLSearchParams(fragment.replace(/^#/, "")));

/** The stages that a state is about: its own as far as `shown` has them, else those of `usual`. */
function stagesOf({ stage, left }, shown, usual) {
  const number = (key) => (key === undefined ? -1 : shown.stages.findIndex((other) => other.key === key));
  const right = stage === undefined ? usual.right : number(stage);
  if (right < 0 || (stage === undefined && left === undefined)) return usual;
  if (left === ALONE) return { left, right };
  if (left === PREVIOUS) return { left: shown.previous ? PREVIOUS : null, right };
  return { left: number(left) >= 0 ? number(left) : null, right };
}

/** Where the line `text` stands: at `line` if it still does, else the nearest one; -1 where it has gone. */
function foundAgain(texts, line, text) {
  if (text === undefined) return line < texts.length ? line : -1;
  const alike = texts.map((_, at) => at).filter((at) => texts[at].trim() === text);
  return alike.sort((a, b) => Math.abs(a - line) - Math.abs(b - line))[0] ?? -1;
}

const SIDES = ["left", "right"];

/** What is selected, as part of a state. `source` and `panes` show the lines. */
function selectionOf(focus, source, panes) {
  if (!focus) return {};
  if (focus.side >= 0)
    return { in: SIDES[focus.side], line: String(focus.line + 1), text: panes[focus.side].texts[focus.line]?.trim() };
  const columns = focus.end > focus.column && focus.column >= 0 ? { columns: `${focus.column}-${focus.end}` } : {};
  return { in: "source", line: String(source.numbers[focus.row]), ...columns, text: source.texts[focus.row]?.trim() };
}

/** What a state has selected, or null; `focusOf(side, line)` is what a line of a stage points at. */
function selectedIn({ in: where, line, columns, text }, source, panes, focusOf) {
  if (where === "source") {
    const row = foundAgain(source.texts, source.numbers.indexOf(Number(line)), text);
    const [column, end] = (columns ?? "").split("-").map(Number);
    return row >= 0 ? placeFocus([row, column, end >= 0 ? end : -1]) : null;
  }
  const side = SIDES.indexOf(where);
  const at = side >= 0 ? foundAgain(panes[side].texts, Number(line) - 1, text) : -1;
  return at >= 0 ? focusOf(side, at) : null;
}
