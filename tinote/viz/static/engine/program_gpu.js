// Runs a captured program's functions on the reader's GPU, by WebGPU: what `lang/capture/webgpu.py` writes. With
// `engine/program.js`, in a Worker or a page.
//
//   const gpu = await GpuProgram.open(program);     // null where there is no GPU, or nothing for one
//   await gpu.run("step");                          // encoded; waited for only where something comes back
//   await gpu.refresh([], ["x"]);                   // then program.field("x") is as the device has it
//
// The device's memory is a copy of the program's: each block is at the same place in both. `newest` says which of them
// counts. Functions without shaders run as WebAssembly, for which all memory comes back, and goes there again.

const GPU_HEAD = { faults: 0, site: 1, payload: 2, bytes: 56, temporaries: 17 }; // Words of `wgsl/shader.py`.
const GPU_GROUP = 64;
const GPU_ALIGNMENT = 256; // Of the parameters of launches.
const GPU_PARAMS = 1 << 18;
const GPU_BATCH = 64; // Launches that are submitted together.
const GPU_SCRATCH = 1 << 26;
const GPU_ANSWERS = 1 << 12;
const GPU_AXES = 4;

/** Refuse what does not hold that is counted on later. What else a shader may say, the browser checks. */
function checkShaders(description) {
  let isSound = false;
  try {
    isSound = areShadersSound(description);
  } catch {
    // Something is of another kind than what is looked for in it.
  }
  need(isSound, "the shaders of this captured program are damaged");
}

function areShadersSound({ shaders, views, functions, places, memory }) {
  const whole = (n, end = 2 ** 32) => Number.isSafeInteger(n) && n >= 0 && n < end;
  const every = (value, holds) => Array.isArray(value) && value.every(holds);
  const text = (value) => typeof value === "string";
  const type = (name) => name in ARRAYS;
  const inside = (at, bytes) => whole(at) && at >= memory.base && whole(bytes) && at + bytes <= memory.end;
  const bound = (one, given) =>
    one === null || Number.isSafeInteger(one) || (one[0] === "argument" && whole(one[1], given));
  const isShader = (one) =>
    text(one.name) &&
    text(one.text) &&
    whole(one.params, 2 ** 14 + 1) &&
    one.params % 4 === 0 &&
    whole(one.words, 2 ** 24) &&
    one.words >= GPU_HEAD.temporaries &&
    every(one.entries, (entry) => text(entry[0]) && whole(entry[6])) &&
    every(
      one.sites,
      (site) => text(site.kind) && text(site.text) && whole(site.place, places.length) && every(site.types, type),
    );
  const operand = (one) =>
    Array.isArray(one) && (one[0] === "constant" ? /^-?\d{1,20}$/.test(one[2]) : "fibs".includes(one[0]));
  const register = (gpu, one) => whole(one) && inside(gpu.registers + 8 * one, 8);
  const launch = (gpu, [number, params, given, results, place]) => {
    const shader = shaders[number];
    return (
      shader &&
      every(params, (word) => whole(word)) &&
      params.length === shader.params &&
      every(
        given,
        ([at, name, value]) => whole(at, shader.params) && type(name) && operand(value) && isOf(gpu, value),
      ) &&
      every(
        results,
        ([at, name, one]) =>
          whole(at) && type(name) && 4 * at + ARRAYS[name].BYTES_PER_ELEMENT <= 4 * shader.words && register(gpu, one),
      ) &&
      shader.entries.every((entry) => bound(entry[2], given.length) && bound(entry[3], given.length)) &&
      whole(place, places.length)
    );
  };
  const isOf = (gpu, value) => value[0] === "constant" || register(gpu, value[1]);
  // The last byte of a view that begins at an address, which it does not pass.
  const isView = (at, bytes, axes, strides) =>
    every(axes, (one) => every(one, (n) => whole(n)) && one.length === 1 + strides) &&
    axes.length <= GPU_AXES &&
    inside(at, bytes + axes.reduce((sum, [extent, stride]) => sum + Math.max(extent - 1, 0) * stride, 0));
  const command = (gpu, [kind, ...rest]) => {
    if (kind === "launch") return launch(gpu, rest);
    if (kind === "clear") return inside(rest[0], rest[1]);
    if (kind === "copy") {
      const [bytes, to, from, axes] = rest;
      return isView(to, bytes, axes, 2) && isView(from, bytes, axes.map(([n, , stride]) => [n, stride]), 1);
    }
    if (kind === "fill") {
      const [name, value, address, axes, place] = rest;
      if (!type(name) || !operand(value) || !isOf(gpu, value) || !whole(place, places.length)) return false;
      return isView(address, ARRAYS[name].BYTES_PER_ELEMENT, axes, 1);
    }
    return kind === "load" && type(rest[0]) && register(gpu, rest[1]) && inside(rest[2], 1);
  };
  const node = (gpu, one, depth = 0) =>
    one &&
    depth < 100 &&
    every(
      one.stages,
      (stage) =>
        Array.isArray(stage) &&
        inside(stage[0], BLOCK.slots + 24) &&
        whole(stage[1]) &&
        every(stage[2], (given) => Array.isArray(given) && command(gpu, given)),
    ) &&
    one.stages.length > 0 &&
    (one.branch === null || register(gpu, one.branch)) &&
    every(one.sides, (side) => side === null || node(gpu, side, depth + 1));
  const isFunction = (gpu) =>
    inside(gpu.registers, 8) &&
    every(gpu.places, ([word, at]) => whole(word) && whole(at, places.length)) &&
    node(gpu, gpu.root);
  return every(shaders, isShader) && text(views) && functions.every(({ gpu }) => !gpu || isFunction(gpu));
}

class GpuProgram {
  #shaders = [];
  #encoder = null;
  #pass = null;
  #params = new Uint32Array(GPU_PARAMS / 4);
  #taken = 0; // Bytes of the parameters that are encoded.
  #launches = 0;
  #used = new Set();
  #staging = null;
  #between = null;
  #problem = "";

  /** The program on a GPU; null where it has no shaders, or this browser no GPU that takes them. */
  static async open(program) {
    const { shaders, functions, memory } = program.description;
    if (!functions.some(({ gpu }) => gpu) || !globalThis.navigator?.gpu) return null;
    checkShaders(program.description);
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    const bytes = Math.max(memory.end - memory.base, GPU_SCRATCH);
    const names = ["maxStorageBufferBindingSize", "maxBufferSize"];
    if (!adapter || names.some((name) => adapter.limits[name] < bytes)) return null;
    const device = await adapter.requestDevice({
      requiredLimits: Object.fromEntries(names.map((name) => [name, Math.max(bytes, 2 ** 27)])),
    });
    const made = new GpuProgram(program, device);
    await made.#compile(shaders);
    return made;
  }

  constructor(program, device) {
    Object.assign(this, { program, device, newest: "host", isLost: false });
    const { base, end } = program.description.memory;
    this.base = base;
    this.size = Math.ceil((end - base) / 16) * 16;
    const { STORAGE, UNIFORM, COPY_SRC, COPY_DST } = GPUBufferUsage;
    this.arena = device.createBuffer({ size: this.size, usage: STORAGE | COPY_SRC | COPY_DST });
    this.ring = device.createBuffer({ size: GPU_PARAMS, usage: UNIFORM | COPY_DST });
    this.answers = device.createBuffer({ size: GPU_ANSWERS, usage: COPY_SRC | COPY_DST });
    const saves = program.description.shaders.some(({ entries }) => entries.some((entry) => entry[4]));
    this.scratch = device.createBuffer({ size: saves ? GPU_SCRATCH : 16, usage: STORAGE });
    device.onuncapturederror = ({ error }) => (this.#problem = error.message);
    device.lost.then(({ message }) => {
      this.isLost = true;
      this.#problem = message || "the device was lost";
    });
  }

  async #compile(shaders) {
    const { device } = this;
    const kinds = ["uniform", "storage", "storage", "storage"];
    const layout = device.createBindGroupLayout({
      entries: kinds.map((type, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type, hasDynamicOffset: type === "uniform" },
      })),
    });
    const pipelineLayout = device.createPipelineLayout({ bindGroupLayouts: [layout] });
    const made = async (text, names, params, words) => {
      const module = device.createShaderModule({ code: text });
      const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
      const size = Math.ceil(words / 4) * 16;
      const block = device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST });
      const buffers = [this.ring, block, this.scratch, this.arena];
      const entries = buffers.map((buffer, binding) => ({
        binding,
        resource: binding ? { buffer } : { buffer, size: 4 * params },
      }));
      const group = device.createBindGroup({ layout, entries });
      const pipelines = names.map((entryPoint) =>
        device.createComputePipelineAsync({ layout: pipelineLayout, compute: { module, entryPoint } }),
      );
      return { pipelines: await Promise.all(pipelines), group, block };
    };
    const parts = shaders.map(async (one) => ({
      ...one,
      ...(await made(one.text, one.entries.map(([name]) => name), one.params, one.words)),
    }));
    this.views = await made(this.program.description.views, ["fill", "copy"], 16, 4);
    this.#shaders = await Promise.all(parts);
  }

  /** Run a function, with these parameters from now on. Gives what it returns; throws a `ProgramError`. */
  async run(name, parameters = {}) {
    const { program } = this;
    const called = program.function(name);
    if (!called.gpu) {
      await this.toHost();
      this.newest = "host";
      return program.run(name, parameters);
    }
    this.#demand();
    for (const [key, value] of Object.entries(parameters)) program.set(key, value);
    this.#toDevice();
    const { registers, root } = called.gpu;
    program.begin(called, registers);
    let [node, block] = [root, 0];
    for (;;) {
      for (const [replayed, word, commands] of node.stages) {
        block = replayed;
        program.replay(called.gpu, block, word);
        if (commands.length) await this.#command(called, commands);
      }
      if (node.branch === null) break;
      const taken = program.view.getBigInt64(registers + 8 * node.branch, true) !== 0n;
      node = node.sides[taken ? 0 : 1];
      if (!node) throw new ProgramError("trap", "the program ended at an unknown place");
    }
    if (this.#launches >= GPU_BATCH) this.#submit();
    return program.end(called, registers, block);
  }

  /** Encode commands. A promise only where something of theirs comes back: it is there when that is kept. */
  #command(called, commands) {
    const answers = [];
    this.newest = "device";
    for (const [kind, ...rest] of commands) {
      if (kind === "launch") this.#launch(called, rest, answers);
      else if (kind === "clear") this.#commands().clearBuffer(this.arena, rest[0] - this.base, rest[1]);
      else if (kind === "copy") this.#copy(...rest);
      else if (kind === "fill") this.#fill(called, ...rest);
      else this.#answer(answers, this.arena, rest[2] - this.base, rest[0], rest[1]);
    }
    return answers.length ? this.#keepAnswers(called.gpu.registers, answers) : null;
  }

  async #keepAnswers(registers, answers) {
    const [found] = await this.#collect([{ buffer: this.answers, offset: 0, size: 8 * answers.length }]);
    const { view } = this.program;
    answers.forEach(([type, register, shift], at) => {
      const value = wordValue(type, found.getBigUint64(8 * at, true) >> BigInt(shift));
      if (type[0] === "f") view.setFloat64(registers + 8 * register, value, true);
      else view.setBigInt64(registers + 8 * register, BigInt(value), true);
    });
  }

  /** Run these functions, and have what these fields hold in the program's memory, unless that counts itself. */
  async refresh(programs, fields) {
    if (this.newest !== "device") return;
    for (const name of programs) await this.run(name);
    if (this.newest !== "device") return; // One of them runs as WebAssembly.
    const spans = fields.map((name) => this.program.span(name)).filter(([, bytes]) => bytes > 0);
    const parts = spans.map(([address, bytes]) => {
      const offset = (address - this.base) & ~3;
      return { buffer: this.arena, offset, size: Math.ceil((address - this.base + bytes - offset) / 4) * 4 };
    });
    this.#keep(parts, await this.#collect(parts));
  }

  /** Have all that the device's memory holds in the program's. */
  async toHost() {
    if (this.newest !== "device") return;
    const parts = [{ buffer: this.arena, offset: 0, size: (this.program.description.memory.end - this.base) & ~3 }];
    this.#keep(parts, await this.#collect(parts));
    this.newest = "both";
  }

  #keep(parts, found) {
    const bytes = new Uint8Array(this.program.memory.buffer);
    parts.forEach(({ offset, size }, at) => {
      const { buffer, byteOffset } = found[at];
      bytes.set(new Uint8Array(buffer, byteOffset, size), this.base + offset);
    });
  }

  #toDevice() {
    if (this.newest !== "host") return;
    this.#submit();
    const { memory, description } = this.program;
    const size = Math.min(description.memory.end - this.base, this.size) & ~3;
    this.device.queue.writeBuffer(this.arena, 0, memory.buffer, this.base, size);
    this.newest = "both";
  }

  #demand() {
    if (this.#problem) throw new ProgramError("gpu", `the GPU has stopped: ${this.#problem}`);
  }

  // ---- what is encoded, and submitted together

  #commands() {
    this.#pass?.end();
    this.#pass = null;
    this.#encoder ??= this.device.createCommandEncoder();
    return this.#encoder;
  }

  #submit() {
    if (!this.#encoder) return;
    const encoder = this.#commands();
    this.device.queue.writeBuffer(this.ring, 0, this.#params.buffer, 0, this.#taken);
    this.device.queue.submit([encoder.finish()]);
    this.#encoder = null;
    this.#taken = this.#launches = 0;
  }

  /** A pass in which something is to be dispatched with these words of parameters. */
  #begin(words, group) {
    let start = Math.ceil(this.#taken / GPU_ALIGNMENT) * GPU_ALIGNMENT;
    if (start + words.byteLength > GPU_PARAMS) {
      this.#submit();
      start = 0;
    }
    this.#params.set(words, start / 4);
    this.#taken = start + words.byteLength;
    this.#encoder ??= this.device.createCommandEncoder();
    this.#pass ??= this.#encoder.beginComputePass();
    this.#pass.setBindGroup(0, group, [start]);
    return this.#pass;
  }

  #launch(called, [number, params, given, results, place], answers) {
    const shader = this.#shaders[number];
    const words = Uint32Array.from(params);
    const numbers = given.map(([at, type, operand]) => {
      const value = this.#number(called, operand, type, place);
      words.set(wordsOf(type, value), at);
      return value;
    });
    const { temporaries } = GPU_HEAD;
    if (shader.words > temporaries)
      this.#commands().clearBuffer(shader.block, 4 * temporaries, 4 * (shader.words - temporaries));
    const pass = this.#begin(words, shader.group);
    shader.entries.forEach((entry, at) => {
      pass.setPipeline(shader.pipelines[at]);
      pass.dispatchWorkgroups(groupsOf(entry, numbers, this.scratch.size));
    });
    this.#launches += 1;
    if (shader.sites.length) this.#used.add(shader);
    for (const [at, type, register] of results) this.#answer(answers, shader.block, 4 * at, type, register);
  }

  #copy(bytes, to, from, axes) {
    const [target, source] = [to - this.base, from - this.base];
    const count = axes.reduce((product, [extent]) => product * extent, 1);
    if (!bytes || !count) return;
    if (axes.length) {
      const words = axes.map(([extent, ...strides]) => [extent, ...strides.map((stride) => stride / 4)]);
      const [extents, tos, froms] = this.#axes(words, 2);
      const total = (count * bytes) / 4;
      this.#views(1, [target / 4, source / 4, bytes / 4, total, ...extents, ...tos, ...froms], total);
      return;
    }
    if (!this.#between || this.#between.size < bytes) {
      const { COPY_SRC, COPY_DST } = GPUBufferUsage;
      this.#between = this.device.createBuffer({ size: bytes, usage: COPY_SRC | COPY_DST });
    }
    const encoder = this.#commands(); // A buffer is not copied to itself.
    encoder.copyBufferToBuffer(this.arena, source, this.#between, 0, bytes);
    encoder.copyBufferToBuffer(this.#between, 0, this.arena, target, bytes);
  }

  #fill(called, type, operand, address, axes, place) {
    const [low, high] = wordsOf(type, this.#number(called, operand, type, place));
    const count = axes.reduce((product, [extent]) => product * extent, 1);
    const [extents, strides] = this.#axes(axes, 1);
    const head = [address - this.base, count, ARRAYS[type].BYTES_PER_ELEMENT, 0];
    if (count) this.#views(0, [...head, ...extents, ...strides, low, high ?? 0, 0, 0], count);
  }

  /** The extents of four axes, and their strides. */
  #axes(axes, strides) {
    const all = [...Array(GPU_AXES - axes.length).fill([1, ...Array(strides).fill(0)]), ...axes];
    return Array.from({ length: 1 + strides }, (_, part) => all.map((axis) => axis[part]));
  }

  #views(number, words, count) {
    const pass = this.#begin(Uint32Array.from(words), this.views.group);
    pass.setPipeline(this.views.pipelines[number]);
    pass.dispatchWorkgroups(Math.min(Math.ceil(count / GPU_GROUP), 4096));
  }

  /** Have a number of a buffer, as it is by then, in a register. */
  #answer(answers, buffer, offset, type, register) {
    if (8 * (answers.length + 1) > GPU_ANSWERS)
      throw new ProgramError("gpu", "a step reads too many numbers back from the GPU");
    const size = ARRAYS[type].BYTES_PER_ELEMENT === 8 ? 8 : 4;
    this.#commands().copyBufferToBuffer(buffer, offset & ~3, this.answers, 8 * answers.length, size);
    answers.push([type, register, 8 * (offset % 4)]);
  }

  /** An operand's value, which must fit a type as where Python stores it. */
  #number(called, operand, type, place) {
    const value = operandValue(this.program.view, called.gpu.registers, operand);
    if (!fitsType(type, value))
      throw this.program.errorAt("overflow", "a number in a captured step does not fit its type", place);
    return value;
  }

  /** Bytes of buffers after all that is encoded, as a `DataView` each. Throws the first fault of what has run. */
  async #collect(parts) {
    const shaders = [...this.#used];
    this.#used.clear();
    const heads = shaders.map(({ block }) => ({ buffer: block, offset: 0, size: GPU_HEAD.bytes }));
    const all = [...parts, ...heads];
    let size = 0;
    const places = all.map((part) => {
      const at = size;
      size += Math.ceil(part.size / 8) * 8;
      return at;
    });
    if (!this.#staging || this.#staging.size < size) {
      this.#staging?.destroy();
      const { MAP_READ, COPY_DST } = GPUBufferUsage;
      this.#staging = this.device.createBuffer({ size: Math.max(size, 4096), usage: MAP_READ | COPY_DST });
    }
    const encoder = this.#commands();
    all.forEach((part, at) =>
      encoder.copyBufferToBuffer(part.buffer, part.offset, this.#staging, places[at], part.size),
    );
    this.#submit();
    try {
      await this.#staging.mapAsync(GPUMapMode.READ, 0, Math.max(size, 8));
    } catch (error) {
      this.#problem ||= error.message;
    }
    this.#demand();
    const bytes = this.#staging.getMappedRange(0, Math.max(size, 8)).slice(0);
    this.#staging.unmap();
    const found = all.map((part, at) => new DataView(bytes, places[at], part.size));
    shaders.forEach((shader, at) => this.#check(shader, found[parts.length + at]));
    return found.slice(0, parts.length);
  }

  #check(shader, head) {
    if (!head.getUint32(4 * GPU_HEAD.faults, true)) return;
    this.device.queue.writeBuffer(shader.block, 0, new Uint8Array(GPU_HEAD.bytes));
    const site = shader.sites[head.getUint32(4 * GPU_HEAD.site, true)];
    if (!site) throw new ProgramError("trap", "a kernel reported an unknown fault");
    const words = site.types.slice(0, BLOCK.payloadWords).map((type, at) => {
      const bits = head.getBigUint64(4 * GPU_HEAD.payload + 8 * at, true);
      return ARRAYS[type].BYTES_PER_ELEMENT === 8
        ? BigInt.asIntN(64, bits)
        : BigInt.asIntN(type[0] === "i" ? 32 : 64, bits & 0xffffffffn);
    });
    const kind = site.kind === "assert" ? "assertion" : site.kind;
    throw this.program.errorAt(kind, faultMessage(site, words), site.place);
  }
}

/** How many groups of invocations a task runs in, as `Device.groups` has it. */
function groupsOf([, isParallel, lo, hi, saves, sums, scratch], numbers, scratchBytes) {
  if (!isParallel) return 1;
  const [first, last] = [lo, hi].map((end) => (Array.isArray(end) ? Number(numbers[end[1]]) : end));
  let most = 4096;
  if (sums) most = 1024;
  if (saves) most = Math.max(1, Math.min(128, Math.floor(scratchBytes / (4 * GPU_GROUP * (2 * scratch + 1)))));
  if (first === null || last === null) return most;
  return Math.min(Math.max(Math.ceil((last - first) / GPU_GROUP), 1), most);
}

/** Whether a type has a number, as Python stores it. */
function fitsType(type, value) {
  if (type[0] === "f") {
    const size = Number(value);
    if (!Number.isFinite(size) || type === "f64") return true;
    return type === "f32" ? Number.isFinite(Math.fround(size)) : Math.abs(size) < 65520;
  }
  if (type === "u1") return true;
  if (!Number.isInteger(Number(value))) return false;
  const bits = Number(type.slice(1));
  const whole = BigInt(value);
  return type[0] === "u" ? BigInt.asUintN(bits, whole) === whole : BigInt.asIntN(bits, whole) === whole;
}

/** A number as the words in which a launch has it. */
function wordsOf(type, value) {
  if (type === "f32") {
    scratch.setFloat32(0, Number(value));
    return [scratch.getUint32(0)];
  }
  if (type === "f16") return [halfBits(Number(value))];
  if (type === "f64") {
    scratch.setFloat64(0, Number(value));
    return [scratch.getUint32(4), scratch.getUint32(0)];
  }
  if (type === "u1") return [value ? 1 : 0];
  const bits = BigInt.asUintN(64, BigInt(value));
  const words = [Number(bits & 0xffffffffn), Number(bits >> 32n)];
  return ARRAYS[type].BYTES_PER_ELEMENT === 8 ? words : words.slice(0, 1);
}
