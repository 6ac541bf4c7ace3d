// format.js: numbers for people, with their units.

function scaled(value, step, units, space) {
  let i = 0;
  let size = Math.abs(value);
  while (i < units.length - 1 && Math.round(size * 100) / 100 >= step) {
    size /= step;
    i++;
  }
  const digits = i === 0 && Number.isInteger(value) ? 0 : size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)}${space}${units[i]}`;
}

const NS = "\u202f"; // a narrow space that does not break

export const time = (ns) => (ns === null ? "–" : ns === 0 ? "0" : ns < 1e9 ? scaled(ns, 1000, ["ns", "µs", "ms", "s"], NS)
  : scaled(ns / 1e9, Infinity, ["s"], NS));
// Times along an axis, with as many digits as tell them apart.
export function times(all) {
  const plain = all.map(time);
  if (new Set(plain).size === plain.length) return plain;
  const most = Math.max(...all.map(Math.abs));
  const [unit, size] = /** @type {[string, number][]} */ ([["s", 1e9], ["ms", 1e6], ["µs", 1e3]]).find(([, n]) => most >= n) ?? ["ns", 1];
  const step = Math.min(...all.slice(1).map((t, i) => t - all[i]).filter((d) => d > 0));
  const digits = Number.isFinite(step) ? Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9))) : 0;
  return all.map((t) => `${(t / size).toFixed(digits)}${NS}${unit}`);
}
export const bytes = (b) => (b === null ? "–" : b === 0 ? "0" : scaled(b, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], NS));
// The bytes that a text such as "4096", "64KiB" or "1.5 MiB" says; NaN: none.
export function bytesOf(text) {
  const said = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:([KMGT])i?B?|B)?\s*$/i.exec(text);
  return said ? Math.floor(Number(said[1]) * 1024 ** (said[2] ? "KMGT".indexOf(said[2].toUpperCase()) + 1 : 0)) : NaN;
}

const large = (n) => scaled(n, 1000, ["", "k", "M", "G", "T", "P", "E"], "");
export const count = (n) => (n === null ? "–" : Math.abs(n) < 1e5 ? group(Math.round(n)) : large(n));
// Of bytes times nanoseconds, in the unit of time with which there is a whole byte at least.
export function byteSeconds(x) {
  if (x === 0) return "0";
  const [size, unit] = /** @type {[number, string][]} */ ([[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]).find(([n]) => Math.abs(x) >= n) ?? [1, "ns"];
  return `${bytes(x / size)}·${unit}`;
}

function group(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, NS);
}

export function share(part, whole) {
  if (!(whole > 0)) return "–";
  const p = (100 * part) / whole;
  return `${p.toFixed(p >= 99.95 ? 0 : 1)}${NS}%`;
}

export function ratio(a, b) {
  if (!(b > 0)) return "–";
  const r = a / b;
  return r >= 9999.5 ? large(r) : r >= 99.95 ? r.toFixed(0) : r >= 9.995 ? r.toFixed(1) : r.toFixed(2);
}

export const by = { ns: time, B: bytes, n: count, Bs: byteSeconds };

export function date(ns) {
  return new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}
