// state.js: what the reader of the page looks at: one state for all views, kept in the address.

const DEFAULTS = {
  view: "summary", metric: "total", mode: "calls", sel: "", zoom: "", q: "", file: "", sort: "", tab: "", range: "", time: "", pick: "", budget: "", gone: "", hot: "", rank: "",
};

export class State {
  constructor() {
    this.listeners = [];
    this.now = this.parse(location.hash);
    addEventListener("hashchange", () => {
      const next = this.parse(location.hash);
      if (this.encode(next) !== this.encode(this.now)) this.change(next, false);
    });
  }

  parse(hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const state = { ...DEFAULTS };
    for (const name of Object.keys(DEFAULTS)) if (given.has(name)) state[name] = given.get(name);
    return state;
  }

  encode(state) {
    const given = new URLSearchParams();
    for (const name of Object.keys(DEFAULTS)) if (state[name] !== DEFAULTS[name]) given.set(name, state[name]);
    return given.toString();
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  // A change of view is a step that "back" undoes; other changes are not.
  set(change) {
    this.change({ ...this.now, ...change }, true);
  }

  change(next, write) {
    const before = this.now;
    this.now = next;
    if (write) {
      const url = `#${this.encode(next)}`;
      if (next.view !== before.view) history.pushState(null, "", url);
      else history.replaceState(null, "", url);
    }
    for (const listener of this.listeners) listener(next, before);
  }
}
