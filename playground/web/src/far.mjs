// Repetitions that lie further apart than gzip sees, 32 KiB: the instances of a generic function in a module.
//
// The coded form is the number of repetitions; for each how many other bytes precede it, its length, and from how far back it is;
// then all other bytes. Numbers are in LEB128. `../module.mjs` codes.

/** Decodes pieces of a coded form as they arrive. */
export function decoding() {
    let out = new Uint8Array(1 << 20);
    let [end, told] = [0, 0];
    /** The numbers, as far as they are there; how many there are; the number that is being read. */
    const numbers = /** @type {number[]} */ ([]);
    let [count, value, shift] = [1, 0, 0];
    /** The next repetition, and how many other bytes precede it. */
    let [next, left] = [1, 0];
    const room = (/** @type {number} */ more) => {
        if (end + more > out.length) {
            const larger = new Uint8Array(Math.max(2 * out.length, end + more));
            larger.set(out.subarray(0, end));
            out = larger;
        }
    };
    const repeat = () => {
        while (left === 0 && next < count) {
            const [length, distance] = [numbers[next + 1] ?? 0, numbers[next + 2] ?? 0];
            if (distance < length || distance > end) {
                throw new Error("a repetition is of nothing");
            }
            room(length);
            out.copyWithin(end, end - distance, end - distance + length);
            end += length;
            next += 3;
            left = next < count ? numbers[next] ?? 0 : Infinity;
        }
    };
    const transform = (/** @type {Uint8Array} */ piece, /** @type {TransformStreamDefaultController<Uint8Array>} */ to) => {
        let at = 0;
        for (; numbers.length < count && at < piece.length; at++) {
            const byte = piece[at] ?? 0;
            value += (byte & 127) * 2 ** shift;
            shift += 7;
            if (byte < 128) {
                numbers.push(value);
                count = 1 + 3 * (numbers[0] ?? 0);
                left = count > 1 ? numbers[1] ?? 0 : Infinity;
                [value, shift] = [0, 0];
            }
        }
        while (numbers.length === count && at < piece.length) {
            repeat();
            const some = Math.min(left, piece.length - at);
            room(some);
            out.set(piece.subarray(at, at + some), end);
            [end, at, left] = [end + some, at + some, left - some];
        }
        if (numbers.length === count) {
            repeat();
        }
        to.enqueue(out.slice(told, end));
        told = end;
    };
    return new TransformStream({ transform });
}
