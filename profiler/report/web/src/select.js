// select.js: some of many numbers, without all the others in order.

export function pick(values, chosen) {
  const picked = new Float64Array(chosen.length);
  for (let i = 0; i < picked.length; i++) picked[i] = values[chosen[i]];
  return picked;
}

// The first of the chosen of which the value is greatest; undefined: none is chosen.
export function greatest(values, chosen) {
  let best = chosen[0];
  for (let i = 1; i < chosen.length; i++) if (values[chosen[i]] > values[best]) best = chosen[i];
  return best;
}

// Where the first k of finite values are, in descending or else ascending order; equal ones as they
// come.
export function firstOf(values, k, down) {
  const compare = (a, b) => (down ? values[b] - values[a] : values[a] - values[b]) || a - b;
  let bound = down ? -Infinity : Infinity; // what is not before it is not among the first
  let first = [];
  for (let i = 0; i < values.length; i++) {
    if (!(down ? values[i] > bound : values[i] < bound)) continue;
    first.push(i);
    if (first.length < 4 * k) continue;
    first = first.sort(compare).slice(0, k);
    bound = values[first[k - 1]];
  }
  return first.sort(compare).slice(0, k);
}
