// Strokes and lights, painted into the pixels of a canvas by the rules of `viz/live/strokes.py` and `marks.py`.

const HIDDEN = 0xffff;
const [HEAD_LENGTH, HEAD_SLOPE] = [9, 0.45];
const [MOST_HEAD, SHORTEST_ARROW] = [0.6, 1.5];
const [HALO, HALO_LIGHT] = [3.5, 0.4];
const [TRAIL_COVER, TRAIL_END, JUMP] = [0.7, 0.3, 0.5];
const [OUTLINE, OUTLINE_COVER] = [1, 0.5];
const NO_LENGTH = 1e-6;

/** "#rrggbb" as the bytes of an opaque pixel. */
function packed(css) {
  const value = parseInt(css.slice(1), 16);
  return 0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
}

/** Three bytes as those of an opaque pixel. */
function packedParts([red, green, blue]) {
  return 0xff000000 | (blue << 16) | (green << 8) | red;
}

/**
 * `below` with `cover`/256 of `above` over it; both colours as packed bytes 0xAABBGGRR, two of them computed at a
 * time.
 */
function blend(below, above, cover) {
  const rest = 256 - cover;
  const redBlue = (((below & 0xff00ff) * rest + (above & 0xff00ff) * cover) >>> 8) & 0xff00ff;
  const green = (((below & 0xff00) * rest + (above & 0xff00) * cover) >>> 8) & 0xff00;
  return 0xff000000 | redBlue | green;
}

/** The lowest bytes of two colours: that of `below` with `part`/256 of the light of `above` added. */
function lightened(below, above, part) {
  const dark = below & 255;
  const light = ((above & 255) * part) >> 8;
  const both = dark * light;
  return dark + light - ((both + 1 + (both >> 8)) >> 8); // The last is both / 255, rounded down.
}

/** `below` with `part`/256 of the light of `above` added. */
function lighten(below, above, part) {
  const green = lightened(below >> 8, above >> 8, part);
  const blue = lightened(below >> 16, above >> 16, part);
  return 0xff000000 | (blue << 16) | (green << 8) | lightened(below, above, part);
}

/** A canvas's pixels, packed; what is painted here is `width` × `height` of them, `scale` to a CSS pixel. */
function pixelsOf(image, scale) {
  return { pixels: new Uint32Array(image.data.buffer), width: image.width, height: image.height, scale };
}

/**
 * Paint a stroke from (x0, y0) to (x1, y1), `h0` and `h1` half as wide at these ends, of which `cover`/256 covers what
 * is below. The ends are cut off or `rounded`; what is `glowing` adds its light.
 */
function paintStroke({ pixels, width, height }, x0, y0, x1, y1, h0, h1, ink, cover, rounded, glowing) {
  const dx = x1 - x0;
  const dy = y1 - y0;
  const length = Math.sqrt(dx * dx + dy * dy);
  const ux = length > NO_LENGTH ? dx / length : 1;
  const uy = length > NO_LENGTH ? dy / length : 0;
  const reach = Math.max(h0, h1) + 1;
  const top = Math.max(Math.trunc(Math.min(y0, y1) - reach), 0);
  const bottom = Math.min(Math.trunc(Math.max(y0, y1) + reach) + 1, height);
  for (let row = top; row < bottom; row += 1) {
    const down = row + 0.5 - y0;
    let low = -x0;
    let high = width - x0;
    if (Math.abs(uy) > NO_LENGTH) {
      const a = (down * ux - reach) / uy;
      const b = (down * ux + reach) / uy;
      low = Math.max(low, Math.min(a, b));
      high = Math.min(high, Math.max(a, b));
    }
    if (Math.abs(ux) > NO_LENGTH) {
      const a = (-reach - down * uy) / ux;
      const b = (length + reach - down * uy) / ux;
      low = Math.max(low, Math.min(a, b));
      high = Math.min(high, Math.max(a, b));
    }
    const last = Math.min(Math.trunc(high + x0) + 1, width);
    for (let column = Math.max(Math.trunc(low + x0), 0); column < last; column += 1) {
      const right = column + 0.5 - x0;
      const along = right * ux + down * uy;
      let away = Math.abs(right * uy - down * ux);
      const half = h0 + (h1 - h0) * Math.min(Math.max(along / Math.max(length, NO_LENGTH), 0), 1);
      let within = 1;
      if (rounded) {
        const over = Math.max(-along, along - length, 0);
        away = Math.sqrt(away * away + over * over);
      } else {
        within = Math.min(Math.max(Math.min(along, length - along) + 0.5, 0), 1);
      }
      const part = Math.trunc(Math.min(Math.max(half + 0.5 - away, 0), 1) * within * cover + 0.5);
      if (part <= 0) continue;
      const at = row * width + column;
      pixels[at] = glowing ? lighten(pixels[at], ink, part) : blend(pixels[at], ink, part);
    }
  }
}

/** Paint a disc, anti-aliased, or what is `glowing` with its halo, whose light is added. */
function paintDisc({ pixels, width, height }, x, y, radius, ink, glowing) {
  const reach = (glowing ? radius * HALO : radius) + 1;
  const bottom = Math.min(Math.trunc(y + reach) + 1, height);
  const last = Math.min(Math.trunc(x + reach) + 1, width);
  for (let row = Math.max(Math.trunc(y - reach), 0); row < bottom; row += 1) {
    for (let column = Math.max(Math.trunc(x - reach), 0); column < last; column += 1) {
      const away = Math.sqrt((column + 0.5 - x) ** 2 + (row + 0.5 - y) ** 2);
      let cover = Math.min(radius + 0.5 - away, 1);
      if (glowing) {
        const fall = Math.max(1 - away / (radius * HALO), 0);
        cover = Math.max(cover, HALO_LIGHT * fall * fall);
      }
      const part = Math.trunc(256 * cover + 0.5);
      if (part <= 0) continue;
      const at = row * width + column;
      pixels[at] = glowing ? lighten(pixels[at], ink, part) : blend(pixels[at], ink, part);
    }
  }
}


/** The bytes of a DataView as an array of `Kind`, copied, since a message's parts may lie at odd places. */
function copied(view, Kind) {
  return new Kind(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

/** The inks of `count` parts of a mark from their bytes: codes of a colour map, or colours; null for neither. */
function inksOf(bytes, count, table) {
  if (!bytes?.length) return null;
  const inks = new Uint32Array(count);
  if (bytes.length === count) for (let at = 0; at < count; at += 1) inks[at] = table[bytes[at]];
  else
    for (let at = 0; at < count; at += 1)
      inks[at] = 0xff000000 | (bytes[3 * at + 2] << 16) | (bytes[3 * at + 1] << 8) | bytes[3 * at];
  return inks;
}

/** Paint lines between `ends`, four fractions each, `look.width` pixels wide. */
function paintEdges(target, ends, inks, look) {
  const { width, height, scale } = target;
  const half = 0.5 * look.width * scale;
  const color = look.color && packedParts(look.color);
  for (let at = 0; at < ends.length; at += 4) {
    const [x0, y0] = [ends[at] * width, (1 - ends[at + 1]) * height];
    const [x1, y1] = [ends[at + 2] * width, (1 - ends[at + 3]) * height];
    paintStroke(target, x0, y0, x1, y1, half, half, inks ? inks[at >> 2] : color, 256, true, false);
  }
}

/**
 * Paint arrows from and to `ends`, four fractions each: a shaft `look.width` pixels wide, and a head as large in all;
 * with an edge of the colour `look.outline`, if there is one.
 */
function paintArrows(target, ends, inks, look) {
  const { width, height, scale } = target;
  const paint = (outline, cover, inkAt) => {
    // A triangle grows by `outline` on all sides where its base and its tip move outwards by so much.
    const beyond = (outline * Math.hypot(1, HEAD_SLOPE)) / HEAD_SLOPE;
    for (let at = 0; at < ends.length; at += 4) {
      const [x0, y0] = [ends[at] * width, (1 - ends[at + 1]) * height];
      const [x1, y1] = [ends[at + 2] * width, (1 - ends[at + 3]) * height];
      const length = Math.hypot(x1 - x0, y1 - y0);
      if (length < SHORTEST_ARROW * scale) continue;
      const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
      const head = Math.min(HEAD_LENGTH * Math.max(1, look.width / 2) * scale, MOST_HEAD * length);
      const [xn, yn] = [x1 - head * ux, y1 - head * uy];
      const half = Math.min(0.5 * look.width * scale, 0.5 * HEAD_SLOPE * head) + outline;
      const base = HEAD_SLOPE * (head + outline + beyond);
      const [xb, yb] = [xn - outline * ux, yn - outline * uy];
      const ink = inkAt(at >> 2);
      paintStroke(target, x0 - outline * ux, y0 - outline * uy, xn, yn, half, half, ink, cover, false, false);
      paintStroke(target, xb, yb, x1 + beyond * ux, y1 + beyond * uy, base, 0, ink, cover, false, false);
    }
  };
  const outline = look.outline && packedParts(look.outline);
  if (look.outline) paint(OUTLINE * scale, 256 * OUTLINE_COVER, () => outline);
  paint(0, 256, (index) => (inks ? inks[index] : packedParts(look.color)));
}

/**
 * Paint trails through `rows`, arrays of two fractions a particle, the oldest first, the last where they are now:
 * fainter and narrower the older they are. A jump over half of the picture interrupts one.
 */
function paintTrails(target, rows, inkAt, look, glowing) {
  const { width, height, scale } = target;
  for (let row = 0; row + 1 < rows.length; row += 1) {
    const [from, to] = [rows[row], rows[row + 1]];
    const age = rows.length - 1 - row;
    const halfAt = (older) => 0.5 * look.width * scale * (TRAIL_END + (1 - TRAIL_END) * (1 - older / look.length));
    const [h0, h1] = [halfAt(age), halfAt(age - 1)];
    const cover = 256 * TRAIL_COVER * (1 - (age - 1) / look.length);
    for (let at = 0; at < to.length; at += 2) {
      const moved = Math.max(Math.abs(to[at] - from[at]), Math.abs(to[at + 1] - from[at + 1]));
      if (!(moved <= JUMP)) continue; // NaN is not, either.
      const [x0, y0] = [from[at] * width, (1 - from[at + 1]) * height];
      const [x1, y1] = [to[at] * width, (1 - to[at + 1]) * height];
      paintStroke(target, x0, y0, x1, y1, h0, h1, inkAt(at >> 1), cover, false, glowing);
    }
  }
}
