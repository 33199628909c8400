// Which line of one stage is next to which line of another: lines are aligned by the variables they bind, others by
// their text. The pictures align lines by the same algorithm (explorer/align.py).

/** What happened to a row of two aligned stages. */
const SAME = 0;
const CHANGED = 1;
const GONE = 2;
const NEW = 3;
const MOVED = 4;
const FOLDED = 5;

const matchers = new Map();

/** What a pattern of a kind of text finds in a line, null for nothing. */
function matched(kind, pattern, text) {
  const source = TEXT_KINDS[kind]?.[pattern] || "(?!)";
  if (!matchers.has(source)) matchers.set(source, new RegExp(source));
  return matchers.get(source).exec(text);
}

/** The variable that a line binds, "" for none. */
const bound = (text, kind) => matched(kind, "key", text)?.[1] ?? "";

/** The word of an operation: `mul`, `load`, `for`. */
const operation = (text) => / = ([a-z]\w*)/.exec(text)?.[1] ?? /^\w*/.exec(text)[0];

/**
 * The key of each line: its variable, or its text without indentation. What a gradient recomputes takes the primal's
 * variable. Names of LLVM, and labels, count within their function.
 */
function identities(texts, kind, recomputed) {
  let scope = "";
  return texts.map((text, line) => {
    const opens = matched(kind, "scope", text);
    if (opens) scope = opens[1];
    const named = matched(kind, "key", text);
    const key = recomputed(line) || named?.[1] || named?.[2] || "";
    return key || opens ? `${scope} ${key}` : text;
  });
}

/** What lines have in common that may be one line before and after a change: the operation and, if any, the memory. */
const shape = (text, kind) => (matched(kind, "shape", text) ?? []).slice(1).join("");

/**
 * Align the lines of two stages. Returns rows as [left, right, mark] with index -1 where a side has nothing. A line
 * that stands in both lists out of order is MOVED: a row of its own on either side.
 */
function align(leftStage, rightStage, kind) {
  const left = leftStage.texts.map((text) => text.trim());
  const right = rightStage.texts.map((text) => text.trim());
  const derived = (stage) => Object.keys(stage.primals).length > 0;
  // Only where one side is a gradient and the other is not do primal and recomputed lines correspond.
  const across = derived(leftStage) !== derived(rightStage);
  const recomputed = (stage) => (line) => (across && !stage.adjoints.has(line) ? stage.primals[line] : "");
  const partner = new Int32Array(left.length).fill(-1);
  const moved = [new Set(), new Set()];
  const keys = (texts, stage) => {
    const found = identities(texts, kind, recomputed(stage));
    // What saves a value names the same primal as what computes it.
    return across ? found.map((key, line) => `${key} ${operation(texts[line])}`) : found;
  };
  const leftKeys = keys(left, leftStage);
  const rightKeys = keys(right, rightStage);
  const nameless = (text) => text.replace(/%[\w.]+/g, "%");
  const equal = (a, b) => left[a] === right[b] || (across && nameless(left[a]) === nameless(right[b]));

  // Lines whose key is unique on both sides, in the longest order that both share; the rest of them moved.
  const once = (keys) => {
    const found = new Map();
    keys.forEach((key, index) => found.set(key, found.has(key) ? -1 : index));
    return found;
  };
  const onceLeft = once(leftKeys);
  const onceRight = once(rightKeys);
  const pairs = [];
  for (const [key, index] of onceLeft) {
    const other = onceRight.get(key);
    if (index >= 0 && other >= 0) pairs.push([index, other]);
  }
  const kept = increasing(pairs.map((pair) => pair[1]));
  pairs.forEach(([index, other], at) => {
    if (kept[at]) partner[index] = other;
    else if (left[index].length > 5) moved[0].add(index) && moved[1].add(other);
  });

  // Between them: equal keys in order, then lines of one shape.
  const free = (side, index) => !moved[side].has(index);
  const between = (a, b, c, d) => {
    while (a < b && c < d && leftKeys[a] === rightKeys[c]) partner[a++] = c++;
    while (a < b && c < d && leftKeys[b - 1] === rightKeys[d - 1]) partner[--b] = --d;
    const rows = range(a, b).filter((index) => free(0, index));
    const columns = range(c, d).filter((index) => free(1, index));
    if (!rows.length || !columns.length || rows.length * columns.length > 250000) return;
    const shapes = [rows.map((index) => shape(left[index], kind)), columns.map((index) => shape(right[index], kind))];
    const weight = (i, j) =>
      leftKeys[rows[i]] === rightKeys[columns[j]]
        ? 3
        : shapes[0][i] && shapes[0][i] === shapes[1][j] && !bound(left[rows[i]], kind)
          ? 1
          : 0;
    for (const [i, j] of heaviest(rows.length, columns.length, weight)) partner[rows[i]] = columns[j];
  };
  let a = 0;
  let c = 0;
  for (let index = 0; index <= left.length; index++) {
    const other = index < left.length ? partner[index] : right.length;
    if (other < 0) continue;
    between(a, index, c, other);
    a = index + 1;
    c = other + 1;
  }

  const rows = [];
  let at = 0;
  const news = (stop) => {
    for (; at < stop; at++) rows.push([-1, at, moved[1].has(at) ? MOVED : NEW]);
  };
  left.forEach((_, index) => {
    const other = partner[index];
    if (other < 0) {
      rows.push([index, -1, moved[0].has(index) ? MOVED : GONE]);
    } else {
      news(other);
      rows.push([index, other, equal(index, other) ? SAME : CHANGED]);
      at = other + 1;
    }
  });
  news(right.length);
  return rows;
}

const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);

/** Which members of `values` belong to a longest increasing subsequence. */
function increasing(values) {
  const ends = []; // ends[k]: where the subsequence of length k + 1 with the smallest end ends
  const before = new Int32Array(values.length).fill(-1);
  values.forEach((value, index) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[ends[middle]] < value) low = middle + 1;
      else high = middle;
    }
    if (low > 0) before[index] = ends[low - 1];
    ends[low] = index;
  });
  const kept = new Uint8Array(values.length);
  for (let index = ends.length ? ends[ends.length - 1] : -1; index >= 0; index = before[index]) kept[index] = 1;
  return kept;
}

/** The heaviest common subsequence of two sequences of `m` and `n` members, as pairs. */
function heaviest(m, n, weight) {
  const width = n + 1;
  const best = new Int32Array((m + 1) * width);
  const weights = new Uint8Array(m * n);
  for (let i = m - 1; i >= 0; i--) {
    for (let j = n - 1; j >= 0; j--) {
      const w = (weights[i * n + j] = weight(i, j));
      const skip = Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
      best[i * width + j] = w ? Math.max(skip, w + best[(i + 1) * width + j + 1]) : skip;
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < m && j < n;) {
    const w = weights[i * n + j];
    if (w && best[i * width + j] === w + best[(i + 1) * width + j + 1]) pairs.push([i++, j++]);
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
}

/**
 * The rows with every run of others than those to be `shown`, and `context` rows around them, replaced by one
 * FOLDED row [first left, first right, FOLDED, count].
 */
function foldRows(rows, context, shown) {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, index) => {
    if (shown(row)) near.fill(1, Math.max(0, index - context), Math.min(rows.length, index + context + 1));
  });
  const found = [];
  for (let index = 0; index < rows.length;) {
    if (near[index]) {
      found.push(rows[index++]);
      continue;
    }
    let stop = index;
    while (stop < rows.length && !near[stop]) stop++;
    if (stop - index > 1 || !context) found.push([rows[index][0], rows[index][1], FOLDED, stop - index]);
    else found.push(rows[index]);
    index = stop;
  }
  return found;
}

/** Where each run of differences begins, from the marks of aligned rows. */
function differencesIn(marks) {
  const differs = (mark) => mark !== SAME && mark !== FOLDED && mark !== undefined;
  return marks.map((_, row) => row).filter((row) => differs(marks[row]) && !differs(marks[row - 1]));
}
