// A field as a picture: bytes that stand for levels of numbers, or for colours, painted cell by cell and enlarged.

export default {
  render({ model, el }) {
    const canvas = make("canvas", { class: "tinote-stage", role: "img" });
    const [width, height] = [model.get("width"), model.get("height")];
    fitCanvas(canvas, width, height);
    const context = canvas.getContext("2d");
    const cells = document.createElement("canvas"); // As many pixels as there are cells.
    const inner = cells.getContext("2d");
    const table = Uint8Array.from(atob(model.get("colors")), (letter) => letter.charCodeAt(0));
    const packedTable = Uint32Array.from(
      { length: table.length / 3 },
      (_, at) => 0xff000000 | (table[3 * at + 2] << 16) | (table[3 * at + 1] << 8) | table[3 * at],
    );
    let image = null;

    const paint = () => {
      if (!image) return;
      context.imageSmoothingEnabled = model.get("smooth");
      context.drawImage(cells, 0, 0, canvas.width, canvas.height);
    };
    const number = (value) => Number(value.toPrecision(4)).toString();
    const show = (message, [bytes]) => {
      if (!image || image.width !== message.columns || image.height !== message.rows) {
        cells.width = message.columns;
        cells.height = message.rows;
        image = inner.createImageData(message.columns, message.rows);
      }
      const pixels = new Uint32Array(image.data.buffer);
      const parts = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      if ("low" in message) {
        for (let at = 0; at < pixels.length; at += 1) pixels[at] = packedTable[parts[at]];
      } else {
        for (let at = 0; at < pixels.length; at += 1)
          pixels[at] = 0xff000000 | (parts[3 * at + 2] << 16) | (parts[3 * at + 1] << 8) | parts[3 * at];
      }
      inner.putImageData(image, 0, 0);
      paint();
      const words = [message.shape.join(" × ")];
      if ("low" in message) words.push(`${number(message.low)} to ${number(message.high)}`);
      if (message.strange) words.push(`${message.strange.toLocaleString("en")} not finite`);
      canvas.setAttribute("aria-label", `${model.get("label")}: ${words.join(", ")}`);
      return words;
    };
    model.on("change:smooth", paint);
    const dispose = simulationView({ model, el, stage: canvas, show, repaint: paint });
    return () => {
      model.off("change:smooth", paint);
      dispose();
    };
  },
};
