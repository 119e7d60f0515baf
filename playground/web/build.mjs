// Puts the page into a folder: node build.mjs MODULE.wasm OUT

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { gzipAsync } from "@gfx/zopfli";
import { build } from "esbuild";

import { coded, ordered, split } from "./module.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [module, out] = process.argv.slice(2).map((path) => resolve(path));
mkdirSync(out, { recursive: true });
const bundle = (name, folder = out, define = {}) => build({
    entryPoints: [join(here, "src", `${name}.ts`)], outfile: join(folder, `${name}.js`), bundle: true, minify: true, format: "esm",
    target: "es2022", define, logLevel: "warning", legalComments: "eof",
});
await Promise.all(["main", "worker"].map((name) => bundle(name)));
for (const name of ["index.html", "style.css"]) {
    copyFileSync(join(here, name), join(out, name));
}
const { code, data } = split(ordered(module));
// The page unpacks both itself, so that every server of files sends few bytes. Zopfli makes a 20th less of the code than
// `gzip -9`, in 40 seconds; fifteen iterations save 100 bytes over five. No server knows the name's end: some say of `.gz`
// that a browser is to unpack it.
await Promise.all([["tk.wasm", code], ["tk.data", data]].map(async ([name, bytes]) => {
    writeFileSync(join(out, name), bytes);
    writeFileSync(join(out, `${name}.packed`), await gzipAsync(coded(bytes), { numiterations: 5 }));
}));
const folder = join(here, "../../examples");
const examples = readdirSync(folder).filter((name) => name.endsWith(".tk")).sort();
const text = (name) => readFileSync(join(folder, name), "utf8");
writeFileSync(join(out, "examples.json"), JSON.stringify(Object.fromEntries(examples.map((name) => [name.slice(0, -3), text(name)]))));
// A page is as old as the oldest of its files: all of them make its version.
const files = ["index.html", "style.css", "main.js", "worker.js", "tk.wasm.packed", "tk.data.packed", "examples.json"];
const hash = createHash("sha256");
files.forEach((name) => hash.update(readFileSync(join(out, name))));
const kept = ["", ...files].map((name) => `${basename(out)}/${name}`);
await bundle("offline", dirname(out), { FILES: JSON.stringify(kept), VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)) });
