// A page in a frame of another one, such as a site's: it tells that one how high it is, and takes the theme from there.

if (parent !== window) {
  const root = document.documentElement;
  const tell = () => {
    const height = Math.ceil(document.body.getBoundingClientRect().height);
    parent.postMessage({ kind: "tinote-size", height }, "*");
  };
  root.classList.add("framed");
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || data?.kind !== "tinote-theme") return;
    for (const name of ["light", "dark"]) root.classList.toggle(name, name === data.theme);
  });
  new ResizeObserver(tell).observe(document.body);
}
