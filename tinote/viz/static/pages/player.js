// The first script of a page in a page (`labextensions/tinote/static/remoteEntry.js`), in which a view of a saved
// notebook runs. The page around it has made the document, with scripts of its own alone, and sends what the notebook
// holds as a message. That may come from anybody, and is read here, where it can ask nobody for anything: a document
// without an origin, whose policy allows no other script and no request.

// Bytes that the programs of an output get: as `LARGEST_MEMORY` of `pages/stored.py`.
const MOST_MEMORY = 256 * 2 ** 20;
const MOST_UNPACKED = 64 * 2 ** 20;
const LONGEST_SIDE = 4096; // Pixels.
const MOST_TIMELINE = 64; // Megabytes of frames that the views of an output keep.
const MOST_PARTS = 64; // Controls, or lines of a plot.
const PATIENCE_SECONDS = 10; // A step that takes longer ends the run.
const LONGEST_START = 60; // Seconds until something is painted.
const PLAYED = ["particles", "image", "plot", "scene"];

/** The description in `text`, and its binary parts; refused if it is larger than it may be. */
async function payload(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MOST_UNPACKED) {
      reader.cancel().catch(() => {});
      throw new Error("this view is too large");
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const at = 4 + length;
  return JSON.parse(new TextDecoder().decode(bytes.subarray(4, at)), (_, value) =>
    Array.isArray(value?.$bytes) ? bytes.slice(at + value.$bytes[0], at + value.$bytes[0] + value.$bytes[1]) : value,
  );
}

/** What a page gets of a view, if it is one. What it says of the program is checked where that runs. */
function checked({ kind, described }, _, { length }) {
  const { traits, controls, plots, program } = described;
  const side = (n) => Number.isInteger(n) && n >= 1 && n <= LONGEST_SIDE;
  const few = (list) => Array.isArray(list) && list.length <= MOST_PARTS;
  if (!PLAYED.includes(kind) || described.kind !== kind || !(program instanceof Uint8Array))
    throw new Error("this is not a view");
  if (![traits.width, traits.height, traits.chart_height].every(side)) throw new Error("this view has no size");
  if (![controls, plots, traits.series].every(few)) throw new Error("this view has too many parts");
  traits.timeline = Math.min(Number(traits.timeline) || 0, MOST_TIMELINE / length);
  return { ...described, mostBytes: Math.floor(MOST_MEMORY / length) };
}

/** End a Worker that does not answer: one of its steps never ends. */
function watch(model) {
  let [asked, time] = [null, 0]; // The Worker that has not answered yet, and since when.
  const receive = model.receive.bind(model);
  model.receive = (message, buffers) => {
    if (message.kind === "pong") asked = null;
    receive(message, buffers);
  };
  const look = setInterval(() => {
    if (model.get("state") === "stopped" && model.get("error_card")) asked = null;
    else if (asked !== model.worker) {
      [asked, time] = [model.worker, performance.now()];
      asked.postMessage({ kind: "ping" });
    } else if (performance.now() - time > 1000 * PATIENCE_SECONDS) {
      clearInterval(look);
      model.worker.terminate();
      model.fail({ message: "a step took too long and was stopped" });
    }
  }, 1000);
}

/** Run a script of the page around this one. */
function run(source) {
  const script = document.createElement("script");
  script.nonce = NONCE;
  script.textContent = source;
  document.body.append(script);
}

/** Show the views of `texts`, and tell `port` how high they are, and when they are painted. */
async function play({ texts, page, engine, plays }, port) {
  const views = (await Promise.all(texts.map(payload))).map(checked);
  const main = document.createElement("main");
  for (const at of views.keys()) {
    const place = document.createElement("div");
    place.className = "tinote-live";
    place.dataset.tinoteView = String(at);
    main.append(place);
  }
  document.body.append(main);
  globalThis.tinote = { views, engine, takesTheme: true };
  run(page);
  const { models } = globalThis.tinote;
  models.forEach(watch);
  new ResizeObserver(() => port.postMessage({ height: main.getBoundingClientRect().height })).observe(main);
  const painted = () => models.every((model) => Number(model.el.dataset.painted) || model.get("error_card"));
  const begin = performance.now();
  while (!painted()) {
    if (performance.now() - begin > 1000 * LONGEST_START) throw new Error("this view shows nothing");
    await new Promise((go) => setTimeout(go, 30));
  }
  port.postMessage({ painted: true });
  if (plays) for (const model of models) if (model.get("can_step")) model.send({ kind: "play" });
}

addEventListener(
  "message",
  ({ data, ports: [port] }) => {
    const show = ({ dark, paper }) => {
      document.documentElement.className = dark ? "dark" : "light";
      document.documentElement.style.setProperty("--paper", paper);
    };
    port.onmessage = ({ data: message }) => show(message);
    show(data);
    play(data, port).catch((error) => port.postMessage({ failed: String(error) }));
  },
  { once: true },
);
