// The files of the compiler from the module that Cargo has made: smaller.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const optimizer = join(dirname(fileURLToPath(import.meta.url)), "node_modules/binaryen/bin/wasm-opt");
const [CUSTOM, START, DATA, DATA_COUNT] = [0, 8, 11, 12];

/** The least distance of what is repeated. */
const FAR = 30_000;
/** The fewest bytes that are repeated: three numbers take five. */
const LEAST = 36;
/** Bytes by which repetitions are found. */
const KEY = 12;
const BITS = 22;

/** What LLVM leaves: of all passes those that make the packed module smaller, in less than a minute. */
const smaller = [
    "--dae", "--remove-unused-module-elements", "--dce", "--vacuum", "--coalesce-locals", "--reorder-locals",
    "--duplicate-function-elimination",
    "--remove-unused-brs", "--merge-blocks", "--rse", "--coalesce-locals", "--reorder-locals", "--vacuum",
    "--optimize-instructions", "--code-folding", "--remove-unused-names", "--duplicate-function-elimination",
    "--simplify-locals-notee-nostructure", "--coalesce-locals", "--reorder-locals", "--vacuum",
    "--precompute-propagate", "--optimize-instructions", "--remove-unused-brs", "--remove-unused-names", "--merge-blocks",
    "--simplify-locals-notee-nostructure", "--coalesce-locals", "--reorder-locals", "--vacuum", "--remove-unused-brs",
    "--code-folding", "--merge-blocks", "--remove-unused-names", "--duplicate-function-elimination", "--vacuum",
];

/** The module in a file with its functions by name and without names. Instances of a generic function are alike and have
 * one name: as neighbours they fit into the 32 KiB that gzip sees at once, which saves a tenth of the code. */
export function ordered(file) {
    const out = `${file}.ordered`;
    execFileSync(process.execPath, [optimizer, file, "-o", out, ...smaller, "--reorder-functions-by-name", "--strip-debug", "--strip-producers"]);
    const bytes = readFileSync(out);
    rmSync(out);
    return bytes;
}

/** A module without its initial memory, and that as a file of its own: the library, the reference, the puzzles, messages and
 * tables. `data` is 8 bytes of a hash, then memory; the section `data` of the module has that hash and the memory's address. */
export function split(bytes) {
    let at = 8;
    const number = () => {
        let value = 0;
        for (let shift = 0; ; shift += 7) {
            const byte = bytes[at++];
            value += (byte & 127) * 2 ** shift;
            if (byte < 128) {
                return value;
            }
        }
    };
    const sections = [bytes.subarray(0, 8)];
    let memory = [];
    while (at < bytes.length) {
        const begin = at++;
        const id = bytes[begin];
        const size = number();
        const end = at + size;
        if (id === START) {
            throw new Error("the module has a function that starts before its memory is there");
        } else if (id === DATA) {
            memory = Array.from({ length: number() }, () => {
                // Flag 0: a segment of memory 0 at a constant address, `i32.const ADDRESS end`.
                if (number() !== 0 || bytes[at++] !== 0x41) {
                    throw new Error("a segment of data is not at a constant address");
                }
                const [address, _end, length] = [number(), at++, number()];
                at += length;
                return { address, bytes: bytes.subarray(at - length, at) };
            });
        } else if (id !== DATA_COUNT) {
            sections.push(bytes.subarray(begin, end));
        }
        at = end;
    }
    const first = Math.min(...memory.map((part) => part.address));
    const image = Buffer.alloc(Math.max(...memory.map((part) => part.address + part.bytes.length)) - first);
    memory.forEach((part) => image.set(part.bytes, part.address - first));
    const hash = createHash("sha256").update(bytes).digest().subarray(0, 8);
    const where = Buffer.alloc(4);
    where.writeUInt32LE(first);
    const custom = Buffer.concat([Buffer.from([4]), Buffer.from("data"), hash, where]);
    return { code: Buffer.concat([...sections, Buffer.from([CUSTOM, custom.length]), custom]), data: Buffer.concat([hash, image]) };
}

/** Bytes as `src/far.mjs` decodes them: what repeats something far away refers to it. */
export function coded(bytes) {
    const places = new Int32Array(1 << BITS).fill(-1);
    const key = (at) => {
        let hash = 0;
        for (let i = 0; i < KEY; i++) {
            hash = Math.imul(hash ^ bytes[at + i], 0x9e3779b1);
            hash ^= hash >>> 15;
        }
        return hash >>> (32 - BITS);
    };
    const numbers = [0];
    const others = [];
    let [from, known] = [0, 0];
    for (let at = 0; at + KEY <= bytes.length; at++) {
        for (; known <= at - FAR; known++) {
            places[key(known)] = known;
        }
        const place = places[key(at)];
        let length = 0;
        while (place >= 0 && at + length < bytes.length && bytes[place + length] === bytes[at + length]) {
            length++;
        }
        if (length >= LEAST) {
            numbers.push(at - from, length, at - place);
            others.push(bytes.subarray(from, at));
            from = at + length;
            at = from - 1;
        }
    }
    others.push(bytes.subarray(from));
    numbers[0] = others.length - 1;
    const head = [];
    for (let n of numbers) {
        for (; n > 127; n >>>= 7) {
            head.push((n & 127) | 128);
        }
        head.push(n);
    }
    return Buffer.concat([Uint8Array.from(head), ...others]);
}
