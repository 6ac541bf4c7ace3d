// replay.js: the tape's peak if some lines' saved values were computed again, as `tapescope whatif`
// has it: analyze_space.h says what the columns are and what a choice's peak is, and fit() chooses as
// analyze_whatif_fit() does, to the same answer.

const SLICE = 2e6; // steps between two rests

export class Replay {
  /** @type {any} */ again;
  /** @type {any} */ backward;
  /** @type {any} */ changes;
  /** @type {any} */ class;
  /** @type {any} */ delta;
  /** @type {any} */ option;
  /** @type {any} */ rest;
  constructor(whatif) {
    Object.assign(this, whatif.replay);
    this.whole = whatif.peak_bytes;
    this.triesAll = whatif.tries_all;
    this.cost = whatif.options.cost_ns;
    this.saved = whatif.options.saved_bytes;
    this.n = this.cost.length;
    this.classes = this.option.map((_, i) => i);
  }

  costOf(chosen) {
    return chosen.reduce((sum, k) => sum + this.cost[k], 0);
  }

  // chosen: numbers of options.
  peakOf(chosen) {
    const out = new Uint8Array(this.n);
    for (const k of chosen) out[k] = 1;
    return this.peak(out);
  }

  // out[k]: option k is computed again.
  peak(out) {
    const live = new Float64Array(this.option.length);
    const made = this.classes.filter((i) => out[this.option[i]] && this.again[i] > 0);
    let sum = 0; // live of the classes that stay
    let again = 0; // the most that is live at once of what is computed again
    let old = false; // again is of other values than now
    let peak = 0;
    for (let m = 0, at = 0; m < this.rest.length; m++) {
      for (const end = at + this.changes[m]; at < end; at++) {
        const i = this.class[at];
        live[i] += this.delta[at];
        if (out[this.option[i]]) old = true;
        else sum += this.delta[at];
      }
      let now = this.rest[m] + sum;
      if (this.backward[m]) {
        if (old) again = made.reduce((most, i) => Math.max(most, Math.min(this.again[i], live[i])), 0);
        old = false;
        now += again;
      }
      if (now > peak) peak = now;
    }
    return peak;
  }

  // A generator, which rests now and then; at its end {chosen, fits, optimal}.
  *fit(budget) {
    if (this.whole <= budget) return { chosen: [], peak: this.whole, optimal: true };
    const chosen = this.triesAll ? this.best(yield* this.tryAll(), budget) : yield* this.greedy(budget);
    return { chosen, peak: this.peakOf(chosen), optimal: this.triesAll };
  }

  // The cheapest of all choices that fit, or the one with the least peak; bit k: option k.
  best(peaks, budget) {
    let best = 0;
    let bestCost = Infinity;
    for (let bits = 0; bits < peaks.length; bits++) {
      const fits = peaks[bits] <= budget;
      const fitted = bestCost < Infinity && peaks[best] <= budget;
      if (fitted && !fits) continue;
      let cost = 0;
      for (let k = 0; k < this.n; k++) if (bits & (1 << k)) cost += this.cost[k];
      const fewer = peaks[bits] - (bestCost < Infinity ? peaks[best] : Infinity);
      if (fits ? !fitted || cost < bestCost || (cost === bestCost && fewer < 0) : fewer < 0 || (fewer === 0 && cost < bestCost)) {
        best = bits;
        bestCost = cost;
      }
    }
    return Array.from({ length: this.n }, (_, k) => k).filter((k) => best & (1 << k));
  }

  // The peak of every choice, once for all budgets: each option in turn is taken or not, on arrays of
  // what is then live at each moment, and of what is made again there.
  *tryAll() {
    if (this.peaks) return this.peaks;
    const { n } = this;
    const size = this.rest.length;
    const live = Array.from({ length: n }, () => new Float64Array(size));
    const again = Array.from({ length: n }, () => new Float64Array(size));
    this.fill(live, again);
    const sums = Array.from({ length: n + 1 }, () => new Float64Array(size));
    const made = Array.from({ length: n + 1 }, () => new Float64Array(size));
    for (let m = 0; m < size; m++) sums[n][m] = live.reduce((sum, one) => sum + one[m], this.rest[m]);
    const peaks = new Float64Array(2 ** n);
    let steps = 0;
    const walk = function* (level, bits) {
      const sum = sums[level];
      const most = made[level];
      steps += size;
      if (level === 0) {
        let peak = 0;
        for (let m = 0; m < size; m++) if (sum[m] + most[m] > peak) peak = sum[m] + most[m];
        peaks[bits] = peak;
        return;
      }
      const k = level - 1;
      sums[k].set(sum);
      made[k].set(most);
      yield* walk(k, bits);
      for (let m = 0; m < size; m++) {
        sums[k][m] = sum[m] - live[k][m];
        made[k][m] = Math.max(most[m], again[k][m]);
      }
      yield* walk(k, bits + 2 ** k);
      if (steps > SLICE) {
        steps = 0;
        yield;
      }
    };
    yield* walk(n, 0);
    return (this.peaks = peaks);
  }

  // By option and moment: what is live, and what of it is made again.
  fill(live, again) {
    const now = new Float64Array(this.option.length);
    for (let m = 0, at = 0; m < this.rest.length; m++) {
      for (const end = at + this.changes[m]; at < end; at++) now[this.class[at]] += this.delta[at];
      for (const i of this.classes) {
        const k = this.option[i];
        live[k][m] += now[i];
        if (this.backward[m]) again[k][m] = Math.max(again[k][m], Math.min(this.again[i], now[i]));
      }
    }
  }

  *greedy(budget) {
    const out = new Uint8Array(this.n);
    let peak = this.whole;
    let least = peak;
    for (let k = 0; k < this.n && peak > budget; k++) {
      peak = yield* this.addOne(out, peak);
      least = Math.min(least, peak);
    }
    yield* this.dropNeedless(out, peak <= budget ? budget : least);
    return Array.from({ length: this.n }, (_, k) => k).filter((k) => out[k]);
  }

  *addOne(out, peak) {
    let best = -1;
    let bestGain = -1;
    let bestPeak = 0;
    for (let k = 0; k < this.n; k++) {
      if (out[k]) continue;
      out[k] = 1;
      const now = this.peak(out);
      out[k] = 0;
      const cost = this.cost[k] + 1;
      const gain = now < peak ? 1 + (peak - now) / cost : 1 - 1 / (1 + this.saved[k] / cost);
      if (gain > bestGain) {
        best = k;
        bestGain = gain;
        bestPeak = now;
      }
      yield;
    }
    out[best] = 1;
    return bestPeak;
  }

  *dropNeedless(out, limit) {
    for (let below = Infinity; ; ) {
      let dearest = -1;
      for (let k = 0; k < this.n; k++)
        if (out[k] && this.cost[k] < below && (dearest < 0 || this.cost[k] > this.cost[dearest])) dearest = k;
      if (dearest < 0) return;
      below = this.cost[dearest];
      out[dearest] = 0;
      if (this.peak(out) > limit) out[dearest] = 1;
      yield;
    }
  }
}

// Runs a generator to its end without keeping the page from anything; done(result). Returns how to
// stop it.
export function inSlices(work, done) {
  let timer = 0;
  const run = () => {
    const until = performance.now() + 12;
    do {
      const { value, done: ended } = work.next();
      if (ended) return done(value);
    } while (performance.now() < until);
    timer = setTimeout(run);
  };
  run();
  return () => clearTimeout(timer);
}
