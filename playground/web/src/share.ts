// Programs in links: the text is compressed into the part of the address that no server sees.

import { Sentence } from "./results.js";

const KEY = "code=";

async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
    const body = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair);
    return new Uint8Array(await new Response(body).arrayBuffer());
}

/** The fragment of a link to a program. */
export async function fragment(text: string): Promise<string> {
    const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
    let binary = "";
    bytes.forEach((byte) => (binary += String.fromCharCode(byte)));
    return "#" + KEY + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The most bytes of a program from a link: a link of a few kilobytes can stand for gigabytes. */
const MOST = 1 << 20;

/** The program of a fragment; nothing if it has none. */
export async function linked(fragment: string): Promise<string | undefined> {
    const at = fragment.indexOf(KEY);
    if (at < 0) {
        return undefined;
    }
    if (!("DecompressionStream" in globalThis)) {
        throw new Sentence("This browser is too old to unpack the program of the link.");
    }
    try {
        return await unpacked(fragment.slice(at + KEY.length));
    } catch (error) {
        // What the browser says is about its functions.
        throw error instanceof Sentence ? error : new Sentence("The link does not hold a program: a part of it is missing or was changed. Copy all of it, or ask for it again.");
    }
}

async function unpacked(code: string): Promise<string> {
    const binary = atob(code.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const parts: Uint8Array[] = [];
    for (let size = 0; ; ) {
        const { done, value } = await reader.read();
        if (done) {
            return new TextDecoder().decode(await new Blob(parts as BlobPart[]).arrayBuffer());
        }
        size += value.length;
        if (size > MOST) {
            await reader.cancel();
            throw new Sentence("The link does not hold a program that can be read: it is larger than 1 MB.");
        }
        parts.push(value);
    }
}
