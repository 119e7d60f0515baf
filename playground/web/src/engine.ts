// The workers of the page.

import type { FromWorker, ToWorker } from "./worker.js";

/** The time after which a run is ended, in milliseconds. */
const LIMIT = 30_000;
/** The time after which the language server counts as stuck, in milliseconds. */
const PATIENCE = 15_000;

const compiled = compile();
compiled.catch(() => {}); // Whoever awaits it is told.

/** The module; compiled while it is loaded, where the server says what it is. */
async function compile(): Promise<WebAssembly.Module> {
    const response = await fetch("tk.wasm");
    if (response.headers.get("content-type") === "application/wasm") {
        return WebAssembly.compileStreaming(response);
    }
    return WebAssembly.compile(await response.arrayBuffer());
}

async function start(hear: (message: FromWorker) => void): Promise<Worker> {
    const worker = new Worker("worker.js", { type: "module" });
    worker.onmessage = (event: MessageEvent<FromWorker>) => hear(event.data);
    worker.onerror = (event) => hear({ failed: event.message });
    worker.postMessage({ module: await compiled } satisfies ToWorker);
    return worker;
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
        const worker = await this.worker!;
        if (id === this.number) {
            worker.postMessage({ id, ask: request } satisfies ToWorker);
        }
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
        void worker?.then((w) => w.terminate());
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
        const worker = await this.worker;
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
        void this.worker.then((worker) => worker.terminate());
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
