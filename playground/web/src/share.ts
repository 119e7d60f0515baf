// Programs in links: the text is compressed into the part of the address that no server sees.

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
    const binary = atob(fragment.slice(at + KEY.length).replaceAll("-", "+").replaceAll("_", "/"));
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
            throw new Error("the program of the link is larger than 1 MB");
        }
        parts.push(value);
    }
}
