// Frames of the site: as high as what is in them, and of the page's theme.

const theme = () => document.documentElement.dataset.theme;
const frames = () => document.querySelectorAll(".tinote-frame iframe");
const tell = (frame) => frame.contentWindow?.postMessage({ kind: "tinote-theme", theme: theme() }, "*");

addEventListener("message", ({ source, data }) => {
  if (data?.kind !== "tinote-size") return;
  for (const frame of frames()) {
    if (frame.contentWindow !== source) continue;
    tell(frame); // It has begun, and listens.
    if (frame.closest(".is-live")) frame.style.height = `${data.height}px`;
  }
});
new MutationObserver(() => frames().forEach(tell)).observe(document.documentElement, {
  attributes: true,
  attributeFilter: ["data-theme"],
});

// The chooser of versions: `versions.json` is in the newest version's folder, and older ones are in folders of their
// names there. From the disk a page cannot read it, and shows the version alone.
const chooser = async (shown) => {
  const version = shown.dataset.version;
  const own = new URL(document.documentElement.dataset.content_root, location.href);
  const newest = own.pathname.endsWith(`/${version}/`) ? new URL("..", own) : own;
  const answer = await fetch(new URL("versions.json", newest));
  const versions = answer.ok ? await answer.json() : [];
  if (versions.length < 2) return;
  const select = document.createElement("select");
  select.ariaLabel = "Version of tinote";
  for (const { version: name, url } of versions)
    select.add(new Option(name, new URL(url, newest).href, false, name === version));
  select.addEventListener("change", async () => {
    const page = new URL(location.href.slice(own.href.length), select.value);
    const there = await fetch(page, { method: "HEAD" });
    location.href = there.ok ? page.href : select.value;
  });
  shown.replaceChildren(select);
};
if (location.protocol.startsWith("http"))
  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".tinote-version").forEach(chooser));
