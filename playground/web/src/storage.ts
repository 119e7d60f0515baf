// What the page remembers. Where that is not possible, because storage is full or forbidden, everything else works.

const PREFIX = "tk-playground.";
let failed: ((why: string) => void) | undefined;

/** Who is told, once, that nothing is remembered. */
export function onFailure(tell: (why: string) => void) {
    failed = tell;
}

export function remember(name: string, value: string) {
    try {
        localStorage.setItem(PREFIX + name, value);
    } catch {
        failed?.("This browser keeps nothing for this page (storage is full or forbidden): copy the link to keep a program.");
        failed = undefined;
    }
}

export function remembered(name: string): string | undefined {
    try {
        return localStorage.getItem(PREFIX + name) ?? undefined;
    } catch {
        return undefined;
    }
}
