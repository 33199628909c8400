// The frames of a view of a field: what `viz/live/image.py` and `grid_marks.py` make of arrays.

const MOST_CELLS = 1024;

FRAMES_OF.image = class extends Frames {
  capture() {
    const { data, type, shape } = this.sources.read(this.look.field);
    const [columns, rows] = shape;
    const parts = shape.length === 3 ? 3 : 1;
    const { width, height } = this.traits;
    const [across, down] = [
      [columns, width],
      [rows, height],
    ].map(([count, pixels]) => Math.ceil(count / Math.min(MOST_CELLS, 2 * pixels)));
    const [wide, high] = [Math.ceil(columns / across), Math.ceil(rows / down)];
    const isSingle = type === "f32";
    let spaced = data; // Column after column.
    if (across > 1 || down > 1) {
      spaced = new (isSingle ? Float32Array : Float64Array)(wide * high * parts);
      for (let i = 0; i < wide; i += 1)
        for (let j = 0; j < high; j += 1)
          for (let part = 0; part < parts; part += 1)
            spaced[(i * high + j) * parts + part] = data[(i * across * rows + j * down) * parts + part];
    }
    const message = { columns: wide, rows: high, shape: [columns, rows] };
    const marks = {};
    let bytes;
    if (parts === 1) {
      const { codes, low, high: top, strange } = levelsOf(spaced, isSingle, this.map);
      bytes = codes;
      Object.assign(message, { low, high: top, strange });
      if (this.look.contours) this.layContours(spaced, [wide, high], [low, top], marks);
    } else {
      bytes = type === "u8" ? Uint8Array.from(spaced) : asBytes(spaced);
    }
    const shown = new Uint8Array(bytes.length); // Row after row, from the top.
    for (let i = 0; i < wide; i += 1)
      for (let j = 0; j < high; j += 1)
        for (let part = 0; part < parts; part += 1)
          shown[((high - 1 - j) * wide + i) * parts + part] = bytes[(i * high + j) * parts + part];
    if (this.look.vectors) message.longest = this.layArrows([columns, rows], marks);
    return frameOf(message, [shown], marks);
  }
  layContours(values, [columns, rows], [low, high], marks) {
    const { contours } = this.look;
    const [kind, bend] = [this.map.norm].flat();
    const scale = new Scale(kind, low, high, bend);
    const levels = Array.isArray(contours) ? contours : roundLevels(scale, contours);
    const { lines, numbers } = contourLines(values, columns, rows, levels);
    const shape = [columns, rows];
    const [begin, end] = [[], []];
    for (let at = 0; at < lines.length; at += 4) {
      for (let axis = 0; axis < 2; axis += 1) {
        begin.push((lines[at + axis] + 0.5) / shape[axis]);
        end.push((lines[at + 2 + axis] + 0.5) / shape[axis]);
      }
    }
    const { ends, index } = asStrokes(begin, end);
    marks.contours = ends;
    if (this.traits.marks.contours.color) return;
    const inks = levels.map((level) => {
      const known = kind === "log" ? Math.max(level, 0) : level;
      const at = Math.trunc(Math.min(Math.max(scale.place(known) * LEVELS, 0), LEVELS - 1));
      const color = this.map.colors.subarray(3 * at, 3 * at + 3);
      const towards = isLight(...color) ? 0 : 255 * CONTRAST;
      return [...color].map((part) => Math.trunc(part * (1 - CONTRAST) + towards));
    });
    marks.contours_inks = Uint8Array.from(index.flatMap((one) => inks[numbers[one]]));
  }
  layArrows(shape, marks) {
    const { data } = this.sources.read(this.look.vectors);
    const spacing = [this.traits.width, this.traits.height].map((side, axis) =>
      Math.max(1, Math.ceil(ARROW_SPACING / (side / shape[axis]))),
    );
    const [columns, rows] = shape.map((count, axis) => spacedNumbers(count, spacing[axis]));
    const chosen = [];
    for (const i of columns)
      for (const j of rows) {
        const vector = [0, 1].map((part) => data[2 * (i * shape[1] + j) + part]);
        if (vector.every(Number.isFinite)) chosen.push([i + 0.5, j + 0.5, ...vector]);
      }
    const longest = Math.sqrt(chosen.reduce((most, [, , x, y]) => Math.max(most, x * x + y * y), 0));
    const scale = this.look.arrow_scale ?? (longest > 0 ? (LONGEST_GRID_ARROW * Math.min(...spacing)) / longest : 0);
    const side = (sign) =>
      chosen.flatMap(([i, j, x, y]) => [
        (i + sign * 0.5 * scale * x) / shape[0],
        (j + sign * 0.5 * scale * y) / shape[1],
      ]);
    marks.arrows = asStrokes(side(-1), side(1)).ends;
    return longest;
  }
  /** The position in cells, and the cell there; outside of the view the nearest one. */
  pick(across, up) {
    const shape = this.look.field.shape;
    const position = [across * shape[0], up * shape[1]];
    return {
      position,
      element: position.map((part, axis) => Math.min(Math.max(Math.trunc(part), 0), shape[axis] - 1)),
    };
  }
};
