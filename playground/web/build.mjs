// Puts the page into a folder: node build.mjs MODULE.wasm OUT

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

import { build } from "esbuild";

import { ordered, split } from "./module.mjs";

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
// For servers that send compressed files as they are: what they compress at each request is larger.
const { BROTLI_PARAM_LGWIN, BROTLI_PARAM_QUALITY } = constants;
const params = { [BROTLI_PARAM_QUALITY]: 10, [BROTLI_PARAM_LGWIN]: 24 };
for (const [name, bytes] of [["tk.wasm", code], ["tk.data", data]]) {
    writeFileSync(join(out, name), bytes);
    writeFileSync(join(out, `${name}.br`), brotliCompressSync(bytes, { params }));
}
const folder = join(here, "../../examples");
const examples = readdirSync(folder).filter((name) => name.endsWith(".tk")).sort();
const text = (name) => readFileSync(join(folder, name), "utf8");
writeFileSync(join(out, "examples.json"), JSON.stringify(Object.fromEntries(examples.map((name) => [name.slice(0, -3), text(name)]))));
// A page is as old as the oldest of its files: all of them make its version.
const files = ["index.html", "style.css", "main.js", "worker.js", "tk.wasm", "tk.data", "examples.json"];
const hash = createHash("sha256");
files.forEach((name) => hash.update(readFileSync(join(out, name))));
const kept = ["", ...files].map((name) => `${basename(out)}/${name}`);
await bundle("offline", dirname(out), { FILES: JSON.stringify(kept), VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)) });
