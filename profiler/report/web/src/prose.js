// prose.js: sections of docs/, which are Markdown, as elements: headings, paragraphs, lists, code. What
// leads elsewhere is text here, since the page loads nothing. Of a table each row
// is an item.

import { h } from "./dom.js";

// The text in blocks: {kind: "head", "text", "item", "code", text}.
export function blocks(text) {
  const out = [];
  let open = /** @type {any} */ (null); // the block that lines are added to
  let code = false;
  const begin = (kind, line) => out.push(open = { kind, text: line });
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) {
      code = !code;
      open = null;
    } else if (code) {
      if (open) open.text += `\n${line}`;
      else begin("code", line);
    } else if (!line.trim() || /^(<!--|!\[)/.test(line)) open = null;
    else if (line.startsWith("#")) {
      begin("head", line.replace(/^#+ */, ""));
      open = null;
    } else if (line.startsWith("|")) {
      if (/^\|[-:| ]+$/.test(line)) out.pop(); // the heads
      else begin("item", line.replace(/^\| *| *\|$/g, "").replaceAll(" | ", ": "));
      open = null;
    } else if (line.startsWith("    ") && open?.kind !== "item") {
      if (open?.kind === "code") open.text += `\n${line}`;
      else begin("code", line);
    } else if (/^([-*]|\d+\.) /.test(line)) begin("item", line.replace(/^\S+ +/, ""));
    else if (open && open.kind !== "code") open.text += ` ${line.trim()}`;
    else begin("text", line);
  }
  return out;
}

// A text in pieces: plain ones, and {code} or {strong}.
export function inline(text) {
  const plain = text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1");
  return plain.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/).filter(Boolean)
    .map((part) => (part[0] === "`" ? { code: part.slice(1, -1) } : part[0] === "*" && part.length > 2 ? { strong: part.replace(/^\*+|\*+$/g, "") } : part));
}

export function prose(text) {
  const words = (block) => inline(block.text).map((part) => (part.code ? h("code", {}, part.code) : part.strong ? h("strong", {}, part.strong) : part));
  return blocks(text).map((block) => (block.kind === "code" ? h("pre", { class: "call" }, block.text)
    : block.kind === "head" ? h("h4", {}, words(block)) : h("p", { class: block.kind }, words(block))));
}
