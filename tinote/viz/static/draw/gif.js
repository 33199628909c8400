// Frames as a looping GIF, in the 256 colours that stand best for a sample of them (median cut). The format is
// CompuServe's "Graphics Interchange Format, version 89a" (1990).

const GIF_FRAMES = 300; // Later ones are left out.
const GIF_INTERVAL = 40; // Milliseconds from one frame to the next, at least.
const GIF_WIDTH = 480; // Pixels, at most.
const GIF_LEVELS = 1 << 15; // Colours are distinguished by five bits of red, green and blue.

/** What a canvas shows from time to time. */
class GifRecorder {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.frames = []; // 15 bits a pixel.
    this.times = [];
  }
  add(shown) {
    const now = performance.now();
    if (this.frames.length === GIF_FRAMES || now - this.times.at(-1) < GIF_INTERVAL) return;
    if (!this.frames.length) {
      const scale = Math.min(1, GIF_WIDTH / shown.width);
      this.canvas.width = Math.round(shown.width * scale);
      this.canvas.height = Math.round(shown.height * scale);
    }
    const { width, height } = this.canvas;
    const context = this.canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(shown, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, width, height);
    const frame = new Uint16Array(width * height);
    for (let at = 0; at < frame.length; at += 1)
      frame[at] = ((data[4 * at] >> 3) << 10) | ((data[4 * at + 1] >> 3) << 5) | (data[4 * at + 2] >> 3);
    this.frames.push(frame);
    this.times.push(now);
  }
  /** The film, at the mean pace of the recording. The page goes on meanwhile. */
  async file() {
    const { width, height } = this.canvas;
    const last = this.times.length - 1;
    const delay = last ? Math.max(2, Math.round((this.times[last] - this.times[0]) / last / 10)) : 100;
    const { table, indexOf } = gifPalette(this.frames);
    const word = (value) => [value & 255, value >> 8];
    const text = (letters) => [...letters].map((letter) => letter.charCodeAt(0));
    const size = [...word(width), ...word(height)];
    const loop = [0x21, 0xff, 11, ...text("NETSCAPE2.0"), 3, 1, 0, 0, 0];
    const parts = [Uint8Array.from([...text("GIF89a"), ...size, 0xf7, 0, 0, ...table, ...loop])];
    for (const frame of this.frames) {
      const begin = [0x21, 0xf9, 4, 0, ...word(delay), 0, 0, 0x2c, 0, 0, 0, 0, ...size, 0, 8];
      parts.push(Uint8Array.from(begin), gifCodes(frame, indexOf));
      await new Promise((go) => setTimeout(go));
    }
    return new Blob([...parts, Uint8Array.of(0x3b)], { type: "image/gif" });
  }
}

/** 256 colours, three bytes each, for a sample of frames, and which of them is nearest to each value of 15 bits. */
function gifPalette(frames) {
  const counts = new Uint32Array(GIF_LEVELS);
  const occurs = new Uint8Array(GIF_LEVELS);
  frames.forEach((frame, at) => {
    const weight = at % Math.ceil(frames.length / 4) ? 0 : 1;
    for (const color of frame) {
      counts[color] += weight;
      occurs[color] = 1;
    }
  });
  const part = (color, axis) => (color >> (10 - 5 * axis)) & 31;
  /** A box of colours with its longest side; the most populous one of the longest is cut next. */
  const box = (colors) => {
    const sides = [0, 1, 2].map((axis) => {
      const parts = colors.map((color) => part(color, axis));
      return Math.max(...parts) - Math.min(...parts);
    });
    const axis = sides.indexOf(Math.max(...sides));
    const weight = colors.reduce((sum, color) => sum + counts[color], 0);
    return { colors, axis, cost: sides[axis] ** 2 * weight };
  };
  const used = Array.from(counts.keys()).filter((color) => counts[color]);
  const boxes = [box(used)];
  while (boxes.length < 256) {
    const largest = boxes.reduce((best, one, at) => (one.cost > boxes[best].cost ? at : best), 0);
    const { colors, axis, cost } = boxes[largest];
    if (!cost) break;
    colors.sort((a, b) => part(a, axis) - part(b, axis));
    const half = colors.reduce((sum, color) => sum + counts[color], 0) / 2;
    let [at, passed] = [0, 0];
    while (at < colors.length - 2 && passed + counts[colors[at]] < half) passed += counts[colors[at++]];
    boxes.splice(largest, 1, box(colors.slice(0, at + 1)), box(colors.slice(at + 1)));
  }
  const table = new Uint8Array(768);
  const indexOf = new Uint8Array(GIF_LEVELS);
  boxes.forEach(({ colors }, number) => {
    const weight = colors.reduce((sum, color) => sum + counts[color], 0);
    for (let axis = 0; axis < 3; axis += 1) {
      const sum = colors.reduce((total, color) => total + counts[color] * part(color, axis), 0);
      table[3 * number + axis] = Math.round((sum / weight) * (255 / 31));
    }
  });
  for (let color = 0; color < GIF_LEVELS; color += 1) {
    if (!occurs[color]) continue;
    let least = Infinity;
    for (let number = 0; number < boxes.length; number += 1) {
      let distance = 0;
      for (let axis = 0; axis < 3; axis += 1)
        distance += (table[3 * number + axis] - part(color, axis) * (255 / 31)) ** 2;
      if (distance < least) [least, indexOf[color]] = [distance, number];
    }
  }
  return { table, indexOf };
}

/** A frame's pixels by Lempel, Ziv and Welch's codes of 9 to 12 bits, in blocks of at most 255 bytes. */
function gifCodes(frame, indexOf) {
  const [clear, end, most] = [256, 257, 4096];
  const longer = new Int16Array(most * 256); // By a code and the pixel behind it: the code of both; 0 for none.
  const packed = new Uint8Array(2 * frame.length + 16);
  let [at, bits, count, width, following] = [0, 0, 0, 9, end + 1];
  const put = (code) => {
    bits |= code << count;
    for (count += width; count >= 8; count -= 8) {
      packed[at++] = bits & 255;
      bits >>>= 8;
    }
  };
  put(clear);
  let code = indexOf[frame[0]];
  for (let k = 1; k < frame.length; k += 1) {
    const pixel = indexOf[frame[k]];
    const both = longer[256 * code + pixel];
    if (both) {
      code = both;
      continue;
    }
    put(code);
    if (following === most) {
      put(clear);
      longer.fill(0);
      [width, following] = [9, end + 1];
    } else {
      if (following === 1 << width) width += 1;
      longer[256 * code + pixel] = following;
      following += 1;
    }
    code = pixel;
  }
  put(code);
  put(end);
  if (count) packed[at++] = bits & 255;
  const blocks = new Uint8Array(at + Math.ceil(at / 255) + 1); // The last one is empty.
  for (let from = 0, to = 0; from < at; from += 255) {
    const block = packed.subarray(from, Math.min(from + 255, at));
    blocks[to] = block.length;
    blocks.set(block, to + 1);
    to += 1 + block.length;
  }
  return blocks;
}
