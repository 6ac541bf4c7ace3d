// search.js: a regular expression over the places of the profile.

// The expression, or null where there is none; `error` says what is wrong with it.
export function compile(text) {
  if (!text) return { expression: null, error: "" };
  try {
    return { expression: new RegExp(text, "i"), error: "" };
  } catch (error) {
    return { expression: null, error: error.message };
  }
}

const AT_ONCE = 512; // frames between two rests

// Which frames match, by number. A generator, which rests now and then.
export function* matchFrames(calls, expression) {
  const matched = new Uint8Array(calls.nFrames);
  for (let frame = 1; frame < matched.length; frame++) {
    matched[frame] = expression.test(calls.label(frame)) ? 1 : 0;
    if (frame % AT_ONCE === 0) yield;
  }
  return matched;
}

// What of a hierarchy is in matching frames, each part of it once, and the outermost such nodes.
export function matchedValue(hierarchy, matched) {
  const inside = new Uint8Array(hierarchy.n);
  const nodes = [];
  let value = 0;
  for (let i = 0; i < hierarchy.n; i++) {
    const up = hierarchy.parent[i];
    inside[i] = (up >= 0 && inside[up]) || matched[hierarchy.frame[i]] ? 1 : 0;
    if (matched[hierarchy.frame[i]] && hierarchy.value[i] > 0) {
      nodes.push(i);
      if (!(up >= 0 && inside[up])) value += hierarchy.value[i];
    }
  }
  return { value, nodes };
}

export function matchesPlace(expression, place, ops) {
  return expression.test(`${place.function} ${place.key} ${ops ?? place.ops}`);
}
