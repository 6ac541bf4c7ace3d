// findings.js: what the profile says, in words. Each finding: how much it weighs, its text in
// pieces, the place it is about and the view that shows more of it.

import { bytes, count, ratio, share, time } from "./format.js";
import { ratioOf, timeOf } from "./cost.js";

const b = (text) => ({ strong: text });

function place(entry) {
  const ops = [...(entry.ops ?? [])].join(", ") || entry.place.ops;
  return [{ key: entry.place.key }, ops && !entry.place.own ? ` (${ops}${entry.place.function ? ` in ${entry.place.function}` : ""})` : ""];
}

function largest(entries, value) {
  let best = null;
  for (const entry of entries) if (!best || value(entry) > value(best)) best = entry;
  return best && value(best) > 0 ? best : null;
}

function slowest(model, out) {
  const sum = model.sum;
  const about = model.sampled ? "An estimated " : "";
  const { places } = model;
  const notOwn = (i) => !places.at(i).place.own;
  const back = places.largest("backward", notOwn);
  if (back && sum.backward > 0)
    out.push({ kind: "bwd", title: "The slowest backward pass", view: "source", key: back.place.key,
      text: [...place(back), " takes ", b(share(back.cost.backward, sum.backward)), ` of all backward time: ${about.toLowerCase()}${timeOf(back.cost, "backward")}`,
        model.sampled ? "" : ` in ${count(back.cost.calls)} call${back.cost.calls === 1 ? "" : "s"}`,
        !model.sampled && back.cost.forward > 0 ? `, ${ratioOf(back.cost)} times its forward time.` : "."] });
  const fwd = places.largest("forward", notOwn);
  if (fwd && sum.forward > 0 && fwd !== back)
    out.push({ kind: "fwd", title: "The slowest forward pass", view: "source", key: fwd.place.key,
      text: [...place(fwd), " takes ", b(share(fwd.cost.forward, sum.forward)), ` of all forward time: ${about.toLowerCase()}${timeOf(fwd.cost, "forward")}.`] });
}

function outliers(model, out) {
  const slow = model.slowRows().sort((x, y) => y.cost.backward - x.cost.backward);
  for (const row of slow.slice(0, 3))
    out.push({ kind: "warn", title: "A backward pass out of proportion", view: "roofline", key: row.place.key,
      text: [...place(row), ": backward takes ", ...(row.cost.forward > 0
        ? [b(`${ratio(row.cost.backward, row.cost.forward)} times`), ` its forward time (${time(row.cost.backward)})`] : [b(time(row.cost.backward)), " and forward 0"]),
      `; its flops and bytes let expect ${row.expected.toFixed(2)}${row.cost.forward > 0 ? "" : " times its forward time"}.`] });
}

function space(model, out) {
  const peak = model.total.peak_bytes;
  const holder = model.places.largest("peak");
  if (holder && peak > 0)
    out.push({ kind: "mem", title: "Who holds the tape at its peak", view: "residuals", key: holder.place.key,
      text: ["Of the ", b(bytes(peak)), " at the peak ", ...place(holder), " holds ", b(share(holder.cost.peak, peak)), ` (${bytes(holder.cost.peak)}).`] });
  const values = model.holders().filter((row) => row.kinds === 2); // read by no pullback
  const unread = values.reduce((sum, row) => sum + row.held, 0);
  if (unread >= 0.1 * peak && unread > 0)
    out.push({ kind: "warn", title: "Kept, and read by no pullback", view: "residuals", key: largest(values, (row) => row.held).place.key,
      text: [b(share(unread, peak)), ` of the peak (${bytes(unread)}) are values that no pullback reads, most of them of `, ...place(largest(values, (row) => row.held)),
        ": ad_release or a frame gives them back sooner."] });
  const dead = largest(model.holders().filter((row) => row.kinds & 1), (row) => row.dead);
  if (dead)
    out.push({ kind: "warn", title: "Saved in vain", view: "residuals", tab: "dead", key: dead.place.key,
      text: [b(bytes(dead.dead)), " that ", ...place(dead), " saved were given back without being read by any pullback."] });
}

function checkpoint(model, out) {
  const options = model.options().filter((o) => o.best && o.peak < model.document.whatif.peak_bytes);
  const before = model.document.whatif?.peak_bytes;
  const run = model.document.whatif?.run_ns;
  const cheap = options.filter((o) => o.cost <= 0.1 * run);
  const best = largest(cheap, (o) => before - o.peak) ?? largest(options, (o) => before - o.peak);
  if (best)
    out.push({ kind: "good", title: "The best single checkpoint", view: "whatif", key: best.place.key,
      text: ["Computing what ", ...place(best), " saves again would lower the peak by ", b(share(before - best.peak, before)),
        ` (${bytes(before - best.peak)})${run > 0 ? ` for ${share(best.cost, run)} more time` : ""}.`] });
}

function growth(model, out) {
  const rows = model.document.growth?.rows ?? [];
  const total = rows[0];
  const steep = model.growthRows().slice(1).filter((row) => (row.bytesFit.low ?? row.bytesFit.exponent ?? 0) > 1.1)
    .sort((x, y) => y.bytes.at(-1) - x.bytes.at(-1))[0];
  if (steep)
    out.push({ kind: "warn", title: "Growing faster than the problem", view: "growth", key: steep.place.key,
      text: [...place(steep), ": its tape bytes grow as ", b(`n^${steep.bytesFit.exponent.toFixed(2)}`), ` with ${model.document.growth.size}.`] });
  else if (total?.bytes_fit.exponent !== undefined)
    out.push({ kind: "good", title: "Growth", view: "growth", key: "",
      text: ["The tape grows as ", b(`n^${total.bytes_fit.exponent.toFixed(2)}`), ` with ${model.document.growth.size}; no line grows faster than n^1.1.`] });
}

function difference(model, out) {
  const diff = model.document.diff;
  if (!diff) return;
  const now = model.total;
  const was = diff.base_total;
  const change = (a, c, format) => `${a >= c ? "+" : "−"}${format(Math.abs(a - c))}`;
  out.push({ kind: "plain", title: "Against the base", view: "diff", key: "",
    text: ["Forward ", b(change(now.forward_ns, was.forward_ns, time)), ", backward ", b(change(now.backward_ns, was.backward_ns, time)),
      ", tape ", b(change(now.tape_bytes, was.tape_bytes, bytes)), ", peak ", b(change(now.peak_bytes, was.peak_bytes, bytes)), "."] });
}

export function findings(model) {
  const out = [];
  for (const find of [slowest, outliers, space, checkpoint, growth, difference]) find(model, out);
  return out;
}
