// Runs captured steps without Python: what `lang/capture/portable.py` writes. A classic script without imports, for a
// Worker, a page or Node.js.
//
//   const program = await Program.open(bytes);
//   program.call("step", 0.001);
//   program.field("x").array
//
// The module's own replay runs a function's list of launches, copies and arithmetic; this gives it memory, inputs and a
// limit, and reads results and faults. What a file says is not believed: it is checked here, and WebAssembly keeps what
// runs inside its memory.

const PROGRAM_MAGIC = "tinote\0P";
const PROGRAM_VERSION = 1;
const PAGE_BYTES = 65536;
const MODULE_SECTIONS = [1, 2, 3, 4, 6, 7, 9, 10, 11]; // Types to data; no memory, start, tag or name.
const MOST_IN_TABLE = 65536;

// Of `runtime/layout.py`.
const BLOCK = { site: 4, payload: 8, payloadWords: 6, slots: 128 };
const CONTROL = { stop: 0, polls: 8, heap: 16, top: 24, limit: 32, bytes: 40 };
const STATUSES = ["", "interrupt", "bounds", "division", "assert", "memory", "overflow", "lost", "finite", "recursion"];
const INTERRUPT = 1;
const RING = { head: 8, tail: 16, dropped: 24, words: 64 };
const MOST_PRINTED = 1 << 16; // Characters that wait to be taken.

const ARRAYS = {
  f16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  u1: Uint8Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
};

/**
 * What went wrong: `kind`, and where it is known, the sentence `what` and its place `file`, `line`, `column`, `source`.
 */
class ProgramError extends Error {
  constructor(kind, what, place) {
    const [file, line, column, source] = place?.[1] ? place : ["", 0, 0, ""];
    super(line ? `${file}, line ${line}: ${what}` : what);
    Object.assign(this, { name: "ProgramError", kind, what, file, line, column, source });
  }
}

function need(condition, what) {
  if (!condition) throw new ProgramError("damaged", what);
}

/** The parts of a file; refused with `damaged` if it is not whole, or asks for more than `mostBytes` of memory. */
async function decodeProgram(data, mostBytes = 2 ** 31) {
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  need(
    bytes.length > 16 && String.fromCharCode(...bytes.subarray(0, 8)) === PROGRAM_MAGIC,
    "this is not a captured program",
  );
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  need(head.getUint32(8, true) === PROGRAM_VERSION, "this captured program was made by another version");
  const size = head.getUint32(12, true);
  need(size <= mostBytes, "this captured program needs too much memory");
  const body = await inflated(bytes.subarray(16), size);
  need(body !== null, "this captured program is damaged");
  const view = new DataView(body.buffer);
  const part = (at) => {
    need(at + 4 <= size, "this captured program is damaged");
    const length = view.getUint32(at, true);
    need(at + 4 + length <= size, "this captured program is damaged");
    return body.subarray(at + 4, at + 4 + length);
  };
  const described = part(0);
  const module = part(4 + described.length);
  let description;
  try {
    description = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(described));
  } catch {
    need(false, "this captured program is damaged");
  }
  const memory = body.subarray(8 + described.length + module.length);
  checkDescription(description, memory.length, mostBytes);
  return { description, module, memory };
}

/** `size` bytes, or null for what becomes more or fewer. */
async function inflated(bytes, size) {
  const found = new Uint8Array(size);
  let at = 0;
  try {
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return at === size ? found : null;
      if (at + value.length > size) {
        reader.cancel().catch(() => {});
        return null;
      }
      found.set(value, at);
      at += value.length;
    }
  } catch {
    return null;
  }
}

/** What is counted on later is so: addresses are in memory, numbers name what exists. */
function checkDescription(description, stored, mostBytes) {
  const damaged = "this captured program is damaged";
  const whole = (n, end = Infinity) => Number.isSafeInteger(n) && n >= 0 && n < end;
  const list = (value) => Array.isArray(value);
  const text = (value) => typeof value === "string";
  const every = (value, holds) => list(value) && value.every(holds);
  const { memory, parameters, fields, codes, functions, places, launches, prints } = description ?? {};
  need(memory && whole(memory.base) && whole(memory.end) && whole(memory.control), damaged);
  need(memory.end <= mostBytes, "this captured program needs too much memory");
  need(memory.base % 8 === 0 && memory.base + stored <= memory.end && memory.control % 8 === 0, damaged);
  need(memory.control + CONTROL.bytes <= memory.base && whole(launches), damaged);
  const inside = (at, bytes) => whole(at) && at % 8 === 0 && at + bytes <= memory.end;
  const isPower = (n) => whole(n, 2 ** 24) && n > 0 && (n & (n - 1)) === 0;
  need(!prints || (isPower(prints.words) && inside(prints.ring, RING.words + 8 * prints.words)), damaged);
  need(
    every(parameters, (one) => one && text(one.name) && "fibs".includes(one.kind)),
    damaged,
  );
  need(
    every(places, (one) => list(one) && text(one[0]) && whole(one[1]) && whole(one[2]) && text(one[3])),
    damaged,
  );
  need(
    every(
      codes,
      (one) =>
        one &&
        text(one.name) &&
        every(one.sites, (site) => site && text(site.kind) && text(site.text) && whole(site.place, places.length)),
    ),
    damaged,
  );
  const fits = ({ address, shape, strides, type }) => {
    if (!ARRAYS[type] || !every(shape, (n) => whole(n)) || !list(strides) || strides.length !== shape.length)
      return false;
    const size = ARRAYS[type].BYTES_PER_ELEMENT;
    if (!whole(address) || address % size || !strides.every((n) => whole(n) && n % size === 0)) return false;
    return address + size + shape.reduce((sum, n, axis) => sum + Math.max(n - 1, 0) * strides[axis], 0) <= memory.end;
  };
  need(
    every(fields, (one) => one && text(one.name) && fits(one)),
    damaged,
  );
  const operand = (one) =>
    list(one) && (one[0] === "constant" ? /^-?\d{1,20}$/.test(one[2]) : "fibs".includes(one[0]) && whole(one[1]));
  const result = (one, depth = 0) => {
    if (!list(one) || depth > 20) return false;
    if (one[0] === "constant") return one[1] === null || text(one[1]);
    if (one[0] === "number" || one[0] === "bool") return operand(one[1]);
    if (one[0] === "vector" || one[0] === "matrix") return every(one[1], (n) => whole(n)) && every(one[2], operand);
    if (one[0] === "dict") return every(one[1], (pair) => list(pair) && text(pair[0]) && result(pair[1], depth + 1));
    return every(one[1], (part) => result(part, depth + 1));
  };
  const place = (n) => whole(n, places.length);
  need(
    every(
      functions,
      (one) =>
        one &&
        text(one.name) &&
        inside(one.block, BLOCK.slots + 24) &&
        inside(one.registers, 8) &&
        whole(one.arguments) &&
        (one.counter === null || inside(one.registers + 8 * one.counter, 8)) &&
        every(
          one.inputs,
          ([n, register, kind]) =>
            whole(n, parameters.length) && inside(one.registers + 8 * register, 8) && "fibs".includes(kind),
        ) &&
        every(
          one.ends,
          (end) =>
            end &&
            result(end.result) &&
            every(end.updates, ([n, value]) => whole(n, parameters.length) && operand(value)),
        ) &&
        every(
          one.launches,
          ([word, code, block, at]) =>
            whole(word) && whole(code, codes.length) && inside(block, BLOCK.slots) && place(at),
        ) &&
        every(one.places, ([word, at]) => whole(word) && place(at)),
    ),
    damaged,
  );
}

/**
 * A module is as our linker makes them (`runtime/wasm.py`): functions of numbers, the memory that it is given, and one
 * small table that cannot grow. What else it could fill (memories and tables of its own, objects that are
 * collected) is refused before it is compiled.
 */
function checkModule(module) {
  const damaged = "the module of this captured program is damaged";
  const more = "the module of this captured program imports more than its memory";
  let at = 0;
  const byte = () => {
    need(at < module.length, damaged);
    at += 1;
    return module[at - 1];
  };
  const number = () => {
    let value = 0;
    for (let scale = 1; scale < 2 ** 35; scale *= 128) {
      const next = byte();
      value += (next & 127) * scale;
      if (next < 128) return value;
    }
    return need(false, damaged);
  };
  need("\0asm\x01\0\0\0" === String.fromCharCode(...module.subarray(0, 8)), damaged);
  at = 8;
  while (at < module.length) {
    const kind = byte();
    const end = number() + at;
    need(end <= module.length, damaged);
    need(MODULE_SECTIONS.includes(kind), more);
    if (kind === 1)
      for (let left = number(); left > 0; left -= 1) {
        need(byte() === 0x60, more); // A function, which takes and gives numbers.
        for (const _ of ["takes", "gives"]) for (let n = number(); n > 0; n -= 1) need(byte() >= 0x7b, more);
      }
    else if (kind === 4) {
      need(number() === 1 && byte() === 0x70 && byte() === 1, more);
      const first = number();
      need(number() === first && first <= MOST_IN_TABLE, more);
    }
    need(at <= end, damaged);
    at = end;
  }
}

class Program {
  #codes = new Map(); // By the block that launches them.
  #printed = "";
  #exports;
  #functions;
  #fields;
  #parameters;
  #initial;
  #launches;

  /** Of the parts that `decodeProgram` gives. Compiles: in a page, that takes a moment. `shared`: memory that another
   * thread sees, too, where the page may have it. */
  constructor({ description, module, memory }, { mostBytes = 2 ** 31, shared = false } = {}) {
    checkModule(module);
    const compiled = new WebAssembly.Module(module);
    const wanted = WebAssembly.Module.imports(compiled);
    if (wanted.length !== 1 || wanted[0].kind !== "memory" || wanted[0].module !== "env" || wanted[0].name !== "memory")
      throw new ProgramError("damaged", "the module of this captured program imports more than its memory");
    const pages = Math.ceil(description.memory.end / PAGE_BYTES) + 1;
    const most = Math.max(pages, Math.floor(mostBytes / PAGE_BYTES));
    this.description = description;
    this.memory = new WebAssembly.Memory({ initial: pages, maximum: most, shared });
    this.#initial = memory;
    this.#exports = new WebAssembly.Instance(compiled, { env: { memory: this.memory } }).exports;
    this.#functions = new Map(description.functions.map((one) => [one.name, readFunction(one)]));
    this.#fields = new Map(description.fields.map((one) => [one.name, one]));
    this.#parameters = description.parameters;
    for (const { launches } of description.functions)
      for (const [, code, block] of launches) this.#codes.set(block, description.codes[code]);
    this.limit = Infinity;
    const { control, end } = description.memory;
    this.view.setBigUint64(control + CONTROL.heap, BigInt(end), true);
    this.view.setBigUint64(control + CONTROL.limit, BigInt(most * PAGE_BYTES), true);
    this.restore();
  }

  static async open(bytes, options = {}) {
    return new Program(await decodeProgram(bytes, options.mostBytes), options);
  }

  get view() {
    return new DataView(this.memory.buffer);
  }

  get programs() {
    return [...this.#functions.keys()];
  }

  get parameters() {
    return this.#parameters.map((one) => ({ ...one }));
  }

  get fields() {
    return [...this.#fields.values()].map(({ name, type, shape }) => ({ name, type, shape }));
  }

  /** One word: what is not zero there ends a call. */
  get stopWord() {
    return new Int32Array(this.memory.buffer, this.description.memory.control + CONTROL.stop, 1);
  }

  /** Memory, parameters and the sequence of random numbers as they were when the file was made. */
  restore() {
    const { base, end } = this.description.memory;
    const bytes = new Uint8Array(this.memory.buffer, base, end - base);
    bytes.set(this.#initial);
    bytes.fill(0, this.#initial.length);
    this.#launches = BigInt(this.description.launches);
    this.values = Object.fromEntries(
      this.#parameters.map(({ name, kind, value }) => [name, kind === "f" ? Number(value) : value]),
    );
  }

  step(parameters = {}) {
    return this.run("step", parameters);
  }

  /** A parameter has this value from now on. */
  set(name, value) {
    const parameter = this.#parameters.find((one) => one.name === name);
    if (!parameter) throw new RangeError(`the program has no parameter '${name}'`);
    registerBits(parameter.kind, value, name);
    this.values[name] = value;
  }

  /** Run a function with these arguments. */
  call(name, ...numbers) {
    return this.run(name, this.parametersOf(name, numbers));
  }

  /** The parameters that a function's arguments are. */
  parametersOf(name, numbers) {
    const called = this.function(name);
    if (numbers.length > called.arguments)
      throw new RangeError(`'${name}' has ${called.arguments} arguments, not ${numbers.length}`);
    return Object.fromEntries(numbers.map((number, k) => [this.#parameters[called.inputs[k][0]].name, number]));
  }

  /** Run a function, with these parameters from now on. Gives what it returns; throws a `ProgramError`. */
  run(name, parameters = {}) {
    const called = this.function(name);
    for (const [key, value] of Object.entries(parameters)) this.set(key, value);
    this.begin(called, called.registers);
    this.replay(called, called.block);
    return this.end(called, called.registers, called.block);
  }

  // ---- the parts of a run, of which a GPU does others (`engine/program_gpu.js`)

  /** Give a function its inputs, in the registers at this address. */
  begin(called, registers) {
    const { view } = this;
    for (const [parameter, register, kind] of called.inputs) {
      const { name: key } = this.#parameters[parameter];
      view.setBigInt64(registers + 8 * register, registerBits(kind, this.values[key], key), true);
    }
    if (called.counter !== null) view.setBigInt64(registers + 8 * called.counter, this.#launches, true);
  }

  /** Replay the instructions of a launch block, which begin at this `word` of those that `given` has places of. */
  replay(given, block, word = 0) {
    const { control } = this.description.memory;
    let { view } = this;
    view.setInt32(control + CONTROL.stop, 0, true);
    view.setBigInt64(
      control + CONTROL.polls,
      Number.isFinite(this.limit) ? BigInt(Math.floor(this.limit)) : 2n ** 62n,
      true,
    );
    view.setInt32(block, 0, true);
    view.setInt32(block + BLOCK.site, -1, true);
    let status;
    try {
      status = this.#exports.tn_replay(block);
    } catch (error) {
      throw new ProgramError("trap", `the program has stopped: ${error.message}`);
    }
    view = this.view; // memory may have grown
    if (this.description.prints) this.#keepPrints(view);
    if (!status) return;
    // What has failed has counted its launches, too.
    if (given.counter !== null) this.#launches = view.getBigInt64(given.registers + 8 * given.counter, true);
    throw this.#fault(given, status, view, word + view.getInt32(block + BLOCK.site, true));
  }

  /** What a function returns whose instructions have ended in this block; parameters that it assigns are set. */
  end(called, registers, block) {
    const { view } = this;
    if (called.counter !== null) this.#launches = view.getBigInt64(registers + 8 * called.counter, true);
    const end = called.ends[Number(view.getBigInt64(block + BLOCK.slots + 16, true))];
    if (!end) throw new ProgramError("trap", "the program ended at an unknown place");
    const number = (operand) => operandValue(view, registers, operand);
    for (const [parameter, operand] of end.updates) this.values[this.#parameters[parameter].name] = number(operand);
    return resultValue(end.result, number);
  }

  /** What is as it is now once it is put back: memory, parameters, and the sequence of random numbers. */
  keep() {
    const { base, end } = this.description.memory;
    const bytes = new Uint8Array(this.memory.buffer, base, end - base).slice();
    return { bytes, launches: this.#launches, values: { ...this.values } };
  }
  putBack({ bytes, launches, values }) {
    new Uint8Array(this.memory.buffer).set(bytes, this.description.memory.base);
    this.#launches = launches;
    this.values = { ...values };
  }

  errorAt(kind, what, place) {
    return new ProgramError(kind, what, this.description.places[place]);
  }

  /** What kernels have printed since this was asked last. */
  takePrints() {
    const found = this.#printed;
    this.#printed = "";
    return found;
  }

  #keepPrints(view) {
    const { ring, words } = this.description.prints;
    const at = (word) => ring + RING.words + 8 * (word & (words - 1));
    const head = Number(view.getBigUint64(ring + RING.head, true));
    let tail = Number(view.getBigUint64(ring + RING.tail, true));
    const dropped = view.getBigUint64(ring + RING.dropped, true);
    if (tail === head && !dropped) return;
    const texts = [];
    while (tail < head && head - tail <= words) {
      const length = view.getUint32(at(tail) + 4, true);
      const sites = this.#codes.get(view.getUint32(at(tail + 1), true))?.sites;
      const site = sites?.[view.getUint32(at(tail), true)];
      const numbers = [];
      for (let k = 2; k <= length && k < words; k += 1) numbers.push(view.getBigInt64(at(tail + k), true));
      if (site && length) texts.push(partsText(site, numbers));
      tail += 1 + length;
    }
    view.setBigUint64(ring + RING.tail, BigInt(head), true);
    view.setBigUint64(ring + RING.dropped, 0n, true);
    if (dropped) texts.push(`[${dropped} more prints were dropped: the kernel prints faster than they can be shown]\n`);
    this.#printed = (this.#printed + texts.join("")).slice(-MOST_PRINTED);
  }

  /** Where a field begins in memory, and how many bytes it takes. */
  span(name) {
    const { type, address, shape, strides } = this.#field(name);
    if (shape.includes(0)) return [address, 0];
    const size = ARRAYS[type].BYTES_PER_ELEMENT;
    return [address, size + shape.reduce((sum, n, axis) => sum + (n - 1) * strides[axis], 0)];
  }

  /** A field as it lies in memory until the next call; `array` begins with its first number; `strides` in numbers. */
  field(name) {
    const { type, address, shape, strides } = this.#field(name);
    const size = ARRAYS[type].BYTES_PER_ELEMENT;
    const steps = strides.map((stride) => stride / size);
    const length = shape.includes(0) ? 0 : 1 + shape.reduce((sum, n, axis) => sum + (n - 1) * steps[axis], 0);
    return { array: new ARRAYS[type](this.memory.buffer, address, length), type, shape, strides: steps };
  }

  /** The same numbers in a row, in an array of their own. */
  read(name) {
    const { array, type, shape, strides } = this.field(name);
    const count = shape.reduce((product, n) => product * n, 1);
    const found = new ARRAYS[type](count);
    if (array.length === count && isInOrder(shape, strides)) {
      found.set(array);
      return found;
    }
    const index = shape.map(() => 0);
    for (let k = 0, at = 0; k < count; k += 1) {
      found[k] = array[at];
      for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
        at += strides[axis];
        index[axis] += 1;
        if (index[axis] < shape[axis]) break;
        at -= strides[axis] * shape[axis];
        index[axis] = 0;
      }
    }
    return found;
  }

  /** Set one number. */
  write(name, index, value) {
    const { array, type, shape, strides } = this.field(name);
    if (index.length !== shape.length || !index.every((n, axis) => Number.isInteger(n) && n >= 0 && n < shape[axis]))
      throw new RangeError(`'${name}' of shape ${shape} has no index ${index}`);
    const at = index.reduce((sum, n, axis) => sum + n * strides[axis], 0);
    array[at] =
      type === "i64" || type === "u64" ? BigInt(value) : type === "f16" ? halfBits(Number(value)) : Number(value);
  }

  function(name) {
    const found = this.#functions.get(name);
    if (!found) throw new RangeError(`the program has no function '${name}'`);
    return found;
  }

  #field(name) {
    const found = this.#fields.get(name);
    if (!found) throw new RangeError(`the program has no field '${name}'`);
    return found;
  }

  #fault(called, status, view, word) {
    const { codes, places } = this.description;
    const launch = called.launches?.get(word);
    if (!launch) {
      const place = places[called.places.get(word)];
      if (status === INTERRUPT) return new ProgramError("interrupt", "the program was stopped", place);
      if (STATUSES[status] === "division")
        return new ProgramError("division", "division by zero in a captured step", place);
      return new ProgramError(STATUSES[status] ?? "trap", "a number in a captured step does not fit its type", place);
    }
    const [code, block, from] = launch;
    const site = codes[code].sites[view.getInt32(block + BLOCK.site, true)];
    if (status === INTERRUPT)
      return new ProgramError("interrupt", `the kernel '${codes[code].name}' was stopped`, places[site?.place ?? from]);
    if (!site || site.kind !== STATUSES[status])
      return new ProgramError("trap", `a kernel returned status ${status} and no known site`);
    const words = Array.from({ length: BLOCK.payloadWords }, (_, k) =>
      view.getBigInt64(block + BLOCK.payload + 8 * k, true),
    );
    return new ProgramError(
      site.kind === "assert" ? "assertion" : site.kind,
      faultMessage(site, words),
      places[site.place],
    );
  }
}

function readFunction(one) {
  return {
    ...one,
    launches: new Map(one.launches.map(([word, ...rest]) => [word, rest])),
    places: new Map(one.places),
    gpu: one.gpu && { ...one.gpu, counter: one.counter, places: new Map(one.gpu.places) },
  };
}

function isInOrder(shape, strides) {
  let wanted = 1;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    if (shape[axis] !== 1 && strides[axis] !== wanted) return false;
    wanted *= shape[axis];
  }
  return true;
}

// ---- numbers in registers

const scratch = new DataView(new ArrayBuffer(8));

function registerBits(kind, value, name) {
  if (kind === "f") {
    if (typeof value !== "number" && typeof value !== "bigint")
      throw new TypeError(`'${name}' is a number, not ${value}`);
    scratch.setFloat64(0, Number(value));
    return scratch.getBigInt64(0);
  }
  if (kind === "b") return value ? 1n : 0n;
  let whole;
  try {
    whole = BigInt(value);
  } catch {
    throw new TypeError(`'${name}' is a whole number, not ${value}`);
  }
  if (BigInt.asIntN(64, whole) !== whole) throw new RangeError(`'${name}' has 64 bits; ${value} has more`);
  return whole;
}

function exact(whole) {
  const number = Number(whole);
  return Number.isSafeInteger(number) ? number : whole;
}

function operandValue(view, registers, operand) {
  const [kind, at, bits] = operand;
  if (kind === "constant") {
    if (at !== "f") return exact(BigInt(bits));
    scratch.setBigInt64(0, BigInt(bits));
    return scratch.getFloat64(0);
  }
  const address = registers + 8 * at;
  if (kind === "f") return view.getFloat64(address, true);
  if (kind === "b") return view.getBigInt64(address, true) !== 0n;
  return exact(kind === "s" ? view.getBigUint64(address, true) : view.getBigInt64(address, true));
}

function resultValue([kind, parts, operands], number) {
  if (kind === "constant") return parts;
  if (kind === "number") return number(parts);
  if (kind === "bool") return Boolean(number(parts));
  if (kind === "vector") return operands.map(number);
  if (kind === "matrix")
    return Array.from({ length: parts[0] }, (_, row) =>
      operands.slice(row * parts[1], (row + 1) * parts[1]).map(number),
    );
  if (kind === "dict") return Object.fromEntries(parts.map(([key, one]) => [key, resultValue(one, number)]));
  return parts.map((one) => resultValue(one, number));
}

function halfBits(value) {
  // Ten bits of fraction, ties to even; what is too small counts units of 2^-24.
  scratch.setFloat64(0, value);
  const sign = scratch.getUint8(0) & 0x80 ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size !== size) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(Math.floor(Math.log2(size || 1)), -14);
  const units = size / 2 ** (exponent - 10);
  const low = Math.floor(units);
  const rounded = units - low > 0.5 || (units - low === 0.5 && low % 2) ? low + 1 : low;
  return sign | (exponent === -14 ? rounded : ((exponent + 14) << 10) + rounded);
}

// ---- messages, as `runtime/sites.py` words them

function tupleText(numbers) {
  return `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`;
}

function validText(extent, first = 0) {
  return extent > 0 ? `valid are ${first} to ${first + extent - 1}` : "it has no elements";
}

function boundsMessage({ text, bounds }, words) {
  const index = bounds.indices.map((k) => Number(words[k]));
  const shape = bounds.shape ?? bounds.extents.map((k) => Number(words[k]));
  const { axis, first } = bounds;
  if (axis !== null) {
    const whole = bounds.shape !== null || shape.length > 1;
    const known = whole ? ` of shape ${tupleText(shape)}` : "";
    const valid = validText(shape[whole ? axis : 0], first);
    return `index ${index[0] + first} is out of bounds for axis ${axis} of '${text}'${known}: ${valid}`;
  }
  const shown = index.length === 1 ? `${index[0]}` : tupleText(index);
  const wrong = index.findIndex((n, k) => n < 0 || n >= shape[k]);
  const message = `index ${shown} is out of bounds for '${text}' of shape ${tupleText(shape)}`;
  if (wrong < 0) return message;
  return `${message}: ${index.length > 1 ? `axis ${wrong}: ` : ""}${validText(shape[wrong])}`;
}

function faultMessage(site, words) {
  switch (site.kind) {
    case "bounds":
      return boundsMessage(site, words);
    case "division":
      return `integer ${site.text === "%" ? "remainder" : "division"} by zero`;
    case "memory":
      return `${site.text || "the saved values of this launch"} need more memory than there is`;
    case "assert":
      return partsText(site, words) || "assertion failed";
    case "overflow":
      return partsText(site, words) || "integer overflow";
    default:
      return partsText(site, words);
  }
}

function partsText({ parts, text }, words) {
  if (!parts?.length) return text;
  let taken = 0;
  return parts.map((part) => (typeof part === "string" ? part : valueText(part[0], part[1], words[taken++]))).join("");
}

/** The number that sixteen bits stand for in half precision. */
function halfNumber(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size =
    exponent === 31
      ? fraction
        ? NaN
        : Infinity
      : exponent
        ? (1 + fraction / 1024) * 2 ** (exponent - 15)
        : fraction * 2 ** -24;
  return bits & 0x8000 ? -size : size;
}

function wordValue(type, word) {
  if (type === "f64") {
    scratch.setBigInt64(0, word);
    return scratch.getFloat64(0);
  }
  if (type === "f32") {
    scratch.setInt32(0, Number(BigInt.asIntN(32, word)));
    return scratch.getFloat32(0);
  }
  if (type === "f16") return halfNumber(Number(BigInt.asUintN(16, word)));
  if (type === "u1") return Boolean(word & 1n);
  const bits = Number(type.slice(1));
  return exact(type[0] === "u" ? BigInt.asUintN(bits, word) : BigInt.asIntN(bits, word));
}

/** As Python prints a number: a narrow float by the fewest digits that read back as itself. */
function valueText(type, spec, word) {
  const value = wordValue(type, word);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (type[0] !== "f") return spec ? formatted(value, spec) : `${value}`;
  if (spec) return formatted(value, spec);
  if (value !== value) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  let near = value;
  if (type === "f32" && !(value % 1 === 0 && Math.abs(value) < 2 ** 24)) {
    for (let digits = 6; digits < 10; digits += 1) {
      near = Number(value.toPrecision(digits));
      if (Math.fround(near) === value) break;
    }
  }
  return floatText(near);
}

function floatText(value) {
  if (Object.is(value, -0)) return "-0.0";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [digits, exponent] = value.toExponential().split("e");
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }
  return Number.isInteger(value) ? value.toFixed(1) : `${value}`;
}

/** Formats of fixed and scientific notation with sign, width and precision; of others the number as it is. */
function formatted(value, spec) {
  const found = /^([-+ ]?)(0?)(\d*)(?:\.(\d+))?([defg%]?)$/.exec(spec);
  if (!found) return `${value}`;
  const [, sign, zeros, width, precision, letter] = found;
  const digits = precision === undefined ? 6 : Number(precision);
  const size = Math.abs(Number(value));
  let text = `${size}`;
  if (letter === "f" || letter === "%")
    text = (letter === "%" ? 100 * size : size).toFixed(digits) + (letter === "%" ? "%" : "");
  else if (letter === "e") text = size.toExponential(digits).replace(/e([+-])(\d)$/, "e$10$2");
  else if (letter === "g" || precision !== undefined) text = `${Number(size.toPrecision(Math.max(digits, 1)))}`;
  const prefix = Number(value) < 0 ? "-" : sign.replace("-", "");
  return zeros ? prefix + text.padStart(Number(width) - prefix.length, "0") : (prefix + text).padStart(Number(width));
}
