// The first script of a page, and the only one that it holds as it is: the other one is compressed with its data. The
// page's policy knows both by their digests.

/** What the page holds: a description, in which binary parts are named, and these. */
async function payload(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const at = 4 + length;
  return JSON.parse(new TextDecoder().decode(bytes.subarray(4, at)), (_, value) =>
    Array.isArray(value?.$bytes) ? bytes.slice(at + value.$bytes[0], at + value.$bytes[0] + value.$bytes[1]) : value,
  );
}

const held = await payload(document.getElementById("tinote-data").textContent);
const joined = (numbers) => numbers.map((number) => held.texts[number]).join("\n");
const sheet = new CSSStyleSheet();
sheet.replaceSync(held.styles);
document.adoptedStyleSheets.push(sheet);
globalThis.tinote = { views: held.views, engine: joined(held.engine) };
const script = document.createElement("script");
script.textContent = joined(held.script);
document.body.append(script);
