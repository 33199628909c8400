// Pages that this one holds in frames, such as explorers: they take its theme.

{
  const frames = [...document.querySelectorAll("iframe.tinote-framed")];
  const root = document.documentElement;
  const tell = (frame) => {
    const theme = ["light", "dark"].find((name) => root.classList.contains(name)) ?? "";
    frame.contentWindow?.postMessage({ kind: "tinote-theme", theme }, "*");
  };
  addEventListener("message", ({ source, data }) => {
    const frame = frames.find((one) => one.contentWindow === source);
    if (frame && data?.kind === "tinote-size") tell(frame); // It has begun, and listens.
  });
  new MutationObserver(() => frames.forEach(tell)).observe(root, { attributeFilter: ["class"] });
}
