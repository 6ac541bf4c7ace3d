// Bundles src/ into dist/report.html, the page that tapescope html fills with data.
//   node build.mjs          writes it
//   node build.mjs --check  compares it with what is there; status 1 if they differ
// The page allows itself nothing but its own script and style, which it names by their hashes.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const MOST_BYTES = 200 * 1024;

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome111", "firefox113", "safari16.4"],
    charset: "utf8",
    legalComments: "none",
    write: false,
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

const script = (await bundle("main.js")).replaceAll("</script", "<\\/script");
const style = (await bundle("style.css")).replaceAll("</style", "<\\/style");
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
  "img-src data:; base-uri 'none'; form-action 'none'";
const parts = { policy, style, script };
const page = readFileSync(join(here, "src", "page.html"), "utf8")
  .replace(/@([a-z]+)@/g, (all, name) => parts[name] ?? all);

const out = join(here, "dist", "report.html");
const bytes = Buffer.byteLength(page);
if (bytes > MOST_BYTES) {
  console.error(`build: the page has ${bytes} bytes, at most ${MOST_BYTES} are allowed`);
  process.exit(1);
}
if (process.argv.includes("--check")) {
  if (readFileSync(out, "utf8") !== page) {
    console.error("build: dist/report.html is not what src/ makes: run npm run build");
    process.exit(1);
  }
  console.log(`dist/report.html is what src/ makes (${bytes} bytes)`);
} else {
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, page);
  console.log(`dist/report.html: ${bytes} bytes`);
}
