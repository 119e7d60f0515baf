// The compiler from its two files: `tk.wasm`, the code, and `tk.data`, the memory that it begins with (see `module.mjs`).

const HASH = 8;

/** The section of the module about its data: a hash, and the address of the memory.
 * @param {WebAssembly.Module} module */
function about(module) {
    const [section] = WebAssembly.Module.customSections(module, "data");
    return section && new DataView(section);
}

/** Returns true if both files are of one build.
 * @param {WebAssembly.Module} module
 * @param {Uint8Array} data */
export function fits(module, data) {
    const wanted = about(module);
    return wanted !== undefined && data.length > HASH && data.subarray(0, HASH).every((byte, i) => byte === wanted.getUint8(i));
}

/** An instance that has its memory, of files that fit.
 * @param {WebAssembly.Module} module
 * @param {Uint8Array} data
 * @param {(address: number, bytes: number) => void} said */
export function instance(module, data, said) {
    const { exports } = new WebAssembly.Instance(module, { page: { said } });
    const memory = /** @type {WebAssembly.Memory} */ (exports.memory);
    new Uint8Array(memory.buffer).set(data.subarray(HASH), about(module)?.getUint32(HASH, true));
    return exports;
}
