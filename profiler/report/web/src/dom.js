// dom.js: elements in one expression. Text is always a text node, never markup.

// h("td", {class: "n", onclick: f, style: {width: "3px"}}, "text", child, [more])
export function h(name, props, ...children) {
  return fill(document.createElement(name), props, children);
}

// The same for SVG.
export function svg(name, props, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), props, children);
}

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child);
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Runs what may make elements anew. Where the focus was on one that is gone, it goes to the one that
// has the same name now (data-focus).
export function keepFocus(root, act) {
  const { activeElement: before } = document;
  const name = root.contains(before) && /** @type {HTMLElement | null} */ (before.closest("[data-focus]"))?.dataset.focus;
  act();
  if (name && !before.isConnected) root.querySelector(`[data-focus="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });
}

export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
