// What an operation of the IR, an instruction of LLVM or of x86 does, and which number a pattern of bits stands for.

class Instructions {
  /**
   * `tables` have rows [pattern, sentence] for each kind of text; under "operands", what a group of a pattern says of
   * the operands.
   */
  constructor({ operands, ...tables }) {
    this.operands = operands;
    this.tables = Object.fromEntries(
      Object.entries(tables).map(([kind, rows]) => [
        kind,
        rows.map(([pattern, sentence]) => [new RegExp(`^(?:${pattern})$`), sentence]),
      ]),
    );
  }

  /** A sentence about an operation, "" for none. */
  meaning(word, kind) {
    for (const [pattern, sentence] of word ? (this.tables[kind] ?? []) : []) {
      const match = pattern.exec(word);
      if (match) return [sentence, this.operands[match.slice(1).find(Boolean)]].filter(Boolean).join(", ");
    }
    return "";
  }
}

/** The word of a line that says what it does, "" for none. */
const operationWord = (text, kind) => matched(kind, "operation", text)?.[1] ?? "";

/** The shortest text of a number of single precision that is read as the same number. */
function shortest(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}

/** What a number of LLVM or of assembly means if it is the pattern of a number with a point, "" otherwise. */
function decoded(word, kind, text) {
  const bits = /^\$?(-?(?:0x[0-9a-f]+|\d{8,}))$/i.exec(word)?.[1];
  if (!bits || !TEXT_KINDS[kind]?.native) return "";
  const view = new DataView(new ArrayBuffer(8));
  view.setBigInt64(0, BigInt.asIntN(64, bits[0] === "-" ? -BigInt(bits.slice(1)) : BigInt(bits)));
  const type = /.*\b(float|double)\b/.exec(text.slice(0, text.indexOf(word)))?.[1];
  const single = kind === "llvm" ? type === "float" : !/\.quad|movabs/.test(text);
  const value = kind !== "llvm" && single ? view.getFloat32(4) : view.getFloat64(0);
  if (!Number.isFinite(value) || (value && (Math.abs(value) < 1e-30 || Math.abs(value) > 1e30))) return "";
  return single ? `${shortest(Math.fround(value))} as f32` : `${value} as f64`;
}
