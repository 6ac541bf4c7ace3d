// colors.js: what things are drawn in, from the style sheet, so that themes are in one place.
// Forward is blue and backward orange (Okabe and Ito's palette, told apart with any colour vision);
// recomputation is hatched as well. A frame has one of three shades, by its place.

let cached = null;

export function forget() {
  cached = null;
}

export function palette() {
  if (!cached) {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    const shades = (name) => [1, 2, 3].map((i) => get(`--${name}-${i}`));
    cached = {
      forward: shades("fwd"), backward: shades("bwd"), recompute: shades("rec"), space: shades("mem"), plain: shades("gray"),
      text: get("--text"), soft: get("--soft"), line: get("--line"), accent: get("--accent"), panel: get("--panel"),
      ink: get("--flame-text"), blur: get("--flame-blur"), match: get("--match"),
      more: get("--more"), less: get("--less"),
    };
  }
  return cached;
}

const kinds = {
  total: "plain", forward: "forward", backward: "backward", recompute: "recompute", other: "plain", calls: "plain",
  tape: "space", peak: "space", lifetime: "space",
};

export const shadesOf = (metric) => palette()[kinds[metric] ?? "plain"];

// A colour between two of the style sheet's: part of the way from a to b.
export function mix(a, b, part) {
  const digits = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
  const to = digits(b);
  return `rgb(${digits(a).map((x, i) => Math.round(x + (to[i] - x) * part)).join(" ")})`;
}
