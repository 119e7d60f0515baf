// The module without a page: programs give the results that they have with the command. TK is the command.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

import { instance } from "../src/instance.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../../..");
const tk = process.env.TK ?? join(root, "target/debug/tk");
const file = (name) => readFileSync(join(root, "target/site/html/playground", name));
const [module, data] = [new WebAssembly.Module(file("tk.wasm")), file("tk.data")];
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** All that a new instance says to a request. */
function ask(request) {
    const said = [];
    const text = (address, bytes) => decoder.decode(new Uint8Array(compiler.memory.buffer, address >>> 0, bytes));
    const compiler = instance(module, data, (address, bytes) => said.push(JSON.parse(text(address, bytes))));
    const bytes = encoder.encode(JSON.stringify(request));
    // The memory may grow for it.
    const address = compiler.input(bytes.length) >>> 0;
    new Uint8Array(compiler.memory.buffer, address, bytes.length).set(bytes);
    compiler.ask();
    return said;
}

/** The results of the tests of a program, and its diagnostics. */
function inside(text) {
    const results = [];
    let name;
    for (const one of ask({ ask: "test", text, checked: true })) {
        name = one.test ?? name;
        const messages = (one.messages ?? one.diagnostics ?? []).map((d) => stripVTControlCharacters(d.text));
        if (one.failed !== undefined) {
            results.push({ name, failed: one.failed, printed: one.printed, messages });
        } else if (one.diagnostics) {
            results.push({ messages });
        }
    }
    return results;
}

/** The same by the command. */
function command(text) {
    const { stdout } = spawnSync(tk, ["test", "-", "--message-format", "json"], { input: text, encoding: "utf8", maxBuffer: 1 << 26 });
    const all = stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const rendered = (d) => d.rendered.replaceAll("<stdin>", "main.tk");
    // A file with errors is a test without a name.
    const tests = all.filter((one) => one.kind === "test" && one.name !== null).map((one) => (
        { name: one.name, failed: one.outcome !== "passed", printed: one.printed, messages: one.diagnostics.map(rendered) }));
    return [{ messages: all.filter((one) => one.kind === "diagnostic").map(rendered) }, ...tests];
}

const files = (folder) => readdirSync(join(root, folder)).filter((name) => name.endsWith(".tk")).map((name) => join(folder, name));
for (const folder of ["examples", "tests/device", "docs/tutorial/solutions", "playground/web/test"]) {
    test(`the programs of ${folder} end as with the command`, () => {
        for (const file of files(folder)) {
            const text = readFileSync(join(root, file), "utf8");
            const found = inside(text);
            assert.deepEqual(found, command(text), file);
            assert.ok(found.length > 1 || found[0].messages.length > 0, file);
        }
    });
}

test("more memory than the module can have is one sentence, however it is asked for", () => {
    const fits = /E0708.*a tensor of shape \[.*\] does not fit in memory/s;
    for (const [shape, dtype] of [["1073741824", "i32"], ["65536, 65536", "f32"], ["4294967297", "u8"], ["3000000000", "u8"]]) {
        const [, result] = inside(`test "a" { let _x = empty([${shape}], ${dtype}); }\n`);
        assert.match(result.messages.join(), fits, shape);
    }
    const buffers = (n, bytes) => Array.from({ length: n }, (_, i) => `    let _x${i} = empty([${bytes}], u8);\n`).join("");
    for (const [n, bytes] of [[3, 1900000000], [60, 100000000]]) {
        const [, result] = inside(`test "a" {\n${buffers(n, bytes)}}\n`);
        assert.match(result.messages.join(), fits, `${n} of ${bytes}`);
    }
});

test("what a program prints is text, whatever a terminal would make of it", () => {
    const link = "\u001b]8;;https://example.org\u0007a link\u001b]8;;\u0007";
    const said = ask({ ask: "test", text: `test "a" { print("${link}"); }\n`, checked: true });
    assert.ok(said.some((one) => one.printed?.includes("a link")));
    assert.ok(said.every((one) => !`${one.line ?? ""}${one.printed ?? ""}`.includes("\u001b")));
});

test("a test that prints without end keeps as many lines as a launch", () => {
    const [, result] = inside(`test "a" { for i in range(0, 10002) { print(i); } }\n`);
    assert.match(result.printed, /9999\n2 more lines are omitted\n$/);
});
