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
