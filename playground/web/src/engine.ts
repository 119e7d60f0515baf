// The workers of the page.

import { decoding } from "./far.mjs";
import { fits } from "./instance.mjs";
import { Sentence } from "./results.js";
import type { FromWorker, ToWorker } from "./worker.js";

/** The time after which a run is ended, in milliseconds. */
const LIMIT = 30_000;
/** The time after which the language server counts as stuck, in milliseconds. */
const PATIENCE = 15_000;

/** The compiler, as every worker gets it. */
type Compiler = { module: WebAssembly.Module; data: Uint8Array };

const compiled = load();
compiled.catch(() => {}); // Whoever awaits it is told.

async function load(): Promise<Compiler> {
    if (!("WebAssembly" in globalThis)) {
        throw new Sentence("The playground does not work in this browser: it has no WebAssembly, or it is switched off, as in some strict modes.");
    }
    // Both at once, and the code is compiled while it is loaded.
    const [module, data] = await Promise.all([unpacked("tk.wasm").then(compile), unpacked("tk.data").then(bytes)]);
    const compiler = { module, data };
    if (!fits(compiler.module, compiler.data)) {
        throw new Sentence("The compiler's files, tk.wasm and tk.data, are of different versions. Load the page again without its cache (Ctrl+Shift+R).");
    }
    return compiler;
}

async function file(name: string): Promise<Response> {
    const response = await fetch(name).catch(() => undefined);
    if (!response?.ok) {
        const why = response ? `the server answered ${response.status}` : "there is no connection to the server";
        throw new Sentence(`A part of the compiler, ${name}, could not be loaded: ${why}. Load the page again.`);
    }
    return response;
}

/** A file that is there packed too, unpacked here while it is loaded: few servers of files pack what they send. */
async function unpacked(name: string): Promise<Response> {
    if (!("DecompressionStream" in globalThis)) {
        return file(name);
    }
    const { body } = await file(`${name}.packed`);
    return new Response(body!.pipeThrough(new DecompressionStream("gzip")).pipeThrough(decoding()), { headers: { "content-type": "application/wasm" } });
}

/** The module; compiled while it is loaded. */
async function compile(response: Response): Promise<WebAssembly.Module> {
    try {
        if (response.headers.get("content-type") === "application/wasm") {
            return await WebAssembly.compileStreaming(response);
        }
        return await WebAssembly.compile(await response.arrayBuffer());
    } catch {
        throw damaged("tk.wasm");
    }
}

async function bytes(response: Response): Promise<Uint8Array> {
    try {
        return new Uint8Array(await response.arrayBuffer());
    } catch {
        throw damaged("tk.data");
    }
}

function damaged(name: string): Sentence {
    return new Sentence(`A part of the compiler, ${name}, arrived damaged, or this browser is too old for it. Load the page again without its cache (Ctrl+Shift+R), or try a newer browser.`);
}

function start(hear: (message: FromWorker) => void): Promise<Worker> {
    const worker = begin(hear);
    worker.catch(() => {}); // As above.
    return worker;
}

async function begin(hear: (message: FromWorker) => void): Promise<Worker> {
    const worker = new Worker("worker.js", { type: "module" });
    worker.onmessage = (event: MessageEvent<FromWorker>) => hear(event.data);
    worker.onerror = (event) => hear({ failed: event.message || "A part of the page, worker.js, could not be loaded. Load the page again." });
    worker.postMessage((await compiled) satisfies ToWorker);
    return worker;
}

/** What an error says; what a browser says of one that nobody expected. */
export function sentence(error: unknown): string {
    const said = error instanceof Error ? error.message : String(error);
    return error instanceof Sentence ? said : `Something unexpected went wrong in the page: ${said}. Load it again.`;
}

/** Runs requests, one at a time, each of which can be ended. */
export class Runner {
    private worker: Promise<Worker> | undefined;
    private number = 0;
    private hear: (said: any) => void = () => {};
    private end: ((why: string | undefined) => void) | undefined;

    /** Begins before the first request, so that it does not wait. */
    prepare() {
        this.worker ??= start((message) => this.heard(message));
    }

    /** Ends what runs, asks, and hears what is said; resolves with a sentence if it was ended. */
    async ask(request: unknown, hear: (said: any) => void): Promise<string | undefined> {
        this.stop("Another run began.");
        this.prepare();
        const id = ++this.number;
        const timer = setTimeout(() => this.stop(`Ended after ${LIMIT / 1000} seconds: a loop may never end.`), LIMIT);
        const ended = new Promise<string | undefined>((resolve) => (this.end = resolve));
        this.hear = hear;
        this.worker!.then(
            (worker) => id === this.number && this.end && worker.postMessage({ id, ask: request } satisfies ToWorker),
            (error) => id === this.number && this.finish(sentence(error)),
        );
        return ended.finally(() => clearTimeout(timer));
    }

    /** Whether something runs. */
    get runs(): boolean {
        return this.end !== undefined;
    }

    /** Ends what runs. */
    stop(why: string) {
        if (!this.end) {
            return;
        }
        const worker = this.worker;
        this.worker = undefined;
        void worker?.then((w) => w.terminate(), () => undefined);
        this.finish(why);
        this.prepare();
    }

    private finish(why: string | undefined) {
        const end = this.end;
        this.end = undefined;
        this.hear = () => {};
        end?.(why);
    }

    private heard(message: FromWorker) {
        if ("failed" in message) {
            this.stop(message.failed);
        } else if ("said" in message && message.id === this.number) {
            if (message.said.done) {
                this.finish(undefined);
            } else {
                this.hear(message.said);
            }
        }
    }
}

/** A transport to the language server of a worker: messages wait until it is there. */
export class ServerTransport {
    private handlers = new Set<(message: string) => void>();
    private waiting: string[] = [];
    private busy = false;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private closed = false;
    private worker: Promise<Worker>;

    /** `lost` is told when the server is gone. */
    constructor(private readonly lost: (why: string) => void) {
        this.worker = start((message) => this.heard(message));
    }

    send(message: string) {
        this.waiting.push(message);
        // What the editor sends at once arrives together, so that the server sees what is outdated.
        queueMicrotask(() => void this.flush());
    }

    subscribe(handler: (message: string) => void) {
        this.handlers.add(handler);
    }

    unsubscribe(handler: (message: string) => void) {
        this.handlers.delete(handler);
    }

    private async flush() {
        if (this.busy || this.closed || this.waiting.length === 0) {
            return;
        }
        this.busy = true;
        const worker = await this.worker.catch(() => undefined);
        if (!worker) {
            return; // Without the module nothing works, which the page says.
        }
        const messages = `[${this.waiting.join(",")}]`;
        this.waiting = [];
        this.timer = setTimeout(() => this.close("The language server did not answer."), PATIENCE);
        worker.postMessage({ serve: messages } satisfies ToWorker);
    }

    private close(why: string) {
        if (this.closed) {
            return;
        }
        this.closed = true;
        clearTimeout(this.timer);
        void this.worker.then((worker) => worker.terminate(), () => undefined);
        this.lost(why);
    }

    private heard(message: FromWorker) {
        if ("failed" in message) {
            this.close(message.failed);
        } else if ("serve" in message) {
            clearTimeout(this.timer);
            this.busy = false;
            for (const one of JSON.parse(message.serve)) {
                const text = JSON.stringify(one);
                this.handlers.forEach((handler) => handler(text));
            }
            void this.flush();
        }
    }
}
