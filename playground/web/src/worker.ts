// A worker with one instance of the compiler. The page has two: one for the language server, which answers while tests run in
// the other, and ends the other where a test does not end.
//
//   page -> worker   { module, data }, then { id, ask } or { serve: messages }
//   worker -> page   { ready }, then { id, said } for each object of an answer, or { serve: messages }

import { instance } from "./instance.mjs";

/** What the page sends. */
export type ToWorker = { module: WebAssembly.Module; data: Uint8Array } | { id: number; ask: unknown } | { serve: string };
/** What the worker sends. */
export type FromWorker = { ready: true } | { id: number; said: any } | { serve: string } | { failed: string };

interface Exports extends WebAssembly.Exports {
    memory: WebAssembly.Memory;
    input(bytes: number): number;
    serve(): number;
    output(): number;
    ask(): void;
}

/** Bytes; a module that stopped with more has asked for too much. */
const NEARLY_ALL = 3 * 2 ** 30;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
let compiler: Exports | undefined;
let current = 0;

const post = (message: FromWorker) => self.postMessage(message);
const read = (address: number, bytes: number) =>
    decoder.decode(new Uint8Array(compiler!.memory.buffer, address, bytes));

function write(text: string) {
    const bytes = encoder.encode(text);
    const address = compiler!.input(bytes.length);
    new Uint8Array(compiler!.memory.buffer, address, bytes.length).set(bytes);
}

function start(module: WebAssembly.Module, data: Uint8Array) {
    const said = (address: number, bytes: number) => post({ id: current, said: JSON.parse(read(address >>> 0, bytes)) });
    compiler = instance(module, data, said) as Exports;
    post({ ready: true });
}

self.onmessage = (event: MessageEvent<ToWorker>) => {
    const message = event.data;
    try {
        if ("module" in message) {
            start(message.module, message.data);
        } else if ("serve" in message) {
            write(message.serve);
            const bytes = compiler!.serve();
            post({ serve: read(compiler!.output() >>> 0, bytes) });
        } else {
            current = message.id;
            write(JSON.stringify(message.ask));
            compiler!.ask();
        }
    } catch (error) {
        // The instance is in no state that anybody knows: the page starts another worker.
        post({ failed: reason(error) });
    }
};

/** What a trap means. */
function reason(error: unknown): string {
    const text = String(error);
    if (error instanceof RangeError || text.includes("call stack")) {
        return "The program nests deeper than the stack of a browser's worker allows.";
    }
    if (compiler && compiler.memory.buffer.byteLength > NEARLY_ALL) {
        return "The program needs more than the 4 GiB of memory that a page has.";
    }
    return `The compiler stopped: memory did not suffice, or this is a bug in it (${text}).`;
}
