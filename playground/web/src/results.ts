// What the page shows beside the editor. Texts of programs are text everywhere, never markup.

import { AnsiUp } from "ansi_up";

/** The most characters of an output that are shown. */
const MOST = 100_000;

/** An error in the words of the page. */
export class Sentence extends Error {}

/** The most messages of a test or file that are shown. */
const MOST_MESSAGES = 100;

/** An element with text or children. */
export function element<K extends keyof HTMLElementTagNameMap>(
    name: K, options: { class?: string; text?: string } = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
    const made = document.createElement(name);
    if (options.class) {
        made.className = options.class;
    }
    if (options.text !== undefined) {
        made.textContent = options.text;
    }
    made.append(...children);
    return made;
}

/** Text with the colors of a terminal. */
export function terminal(text: string): HTMLPreElement {
    const ansi = new AnsiUp();
    ansi.use_classes = true;
    const left = text.length - MOST;
    const pre = element("pre");
    pre.tabIndex = 0;
    // Escapes what is markup.
    pre.innerHTML = ansi.ansi_to_html(left > 0 ? text.slice(0, MOST) : text);
    if (left > 0) {
        pre.append(`\n… ${left} more characters`);
    }
    return pre;
}

/** Messages, as far as they are shown. */
export function messages(all: { text: string }[]): HTMLElement[] {
    const left = all.length - MOST_MESSAGES;
    const shown: HTMLElement[] = all.slice(0, MOST_MESSAGES).map((d) => terminal(d.text));
    return left > 0 ? [...shown, element("p", { text: `… ${left} more messages` })] : shown;
}

/** A line of text in which what is between backticks is code. */
export function inline(text: string): (Node | string)[] {
    return text.split("`").map((part, i) => (i % 2 === 1 ? element("code", { text: part }) : part));
}

/** Paragraphs, whose lines flow; one with an indented line keeps its lines. */
export function prose(text: string): Node[] {
    return text.trim().split(/\n\s*\n/).map((paragraph) => {
        const lines = paragraph.split("\n");
        return lines.some((line) => /^\s/.test(line)) ? terminal(paragraph) : element("p", {}, ...inline(lines.join(" ")));
    });
}

/** A button that shows a line of the program. */
export function lineButton(line: number, go: (line: number) => void): HTMLButtonElement {
    const button = element("button", { class: "line", text: `line ${line}` });
    button.onclick = () => go(line);
    return button;
}

/** Shows the objects of a run, as they come. */
export class Run {
    private current: HTMLElement | undefined;
    /** What the current test has printed until now. */
    private printing: HTMLPreElement | undefined;
    private passed = 0;
    private failed = 0;
    private count: number | undefined;
    /** Whether a puzzle is solved; nothing if none was asked about. */
    solved: boolean | undefined;

    constructor(private readonly into: HTMLElement, private readonly go: (line: number) => void) {
        into.replaceChildren();
    }

    hear(said: any) {
        if (said.diagnostics) {
            this.into.append(...messages(said.diagnostics));
        } else if (said.error) {
            this.into.append(element("p", { class: "error", text: said.error }));
        } else if (said.count !== undefined) {
            this.count = said.count;
        } else if (said.test !== undefined) {
            this.current = element("div", { class: "test" }, element("span", { class: "mark", text: "…" }));
            this.current.append(`${said.hidden ? "hidden test " : ""}“${said.test}”`);
            if (said.line) {
                this.current.append(lineButton(said.line, this.go));
            }
            this.into.append(this.current);
        } else if (said.line !== undefined) {
            this.printed(said.line);
        } else if (said.failed !== undefined) {
            this.ended(said);
        } else if (said.source) {
            this.into.append(element("p", { text: "The test:" }), terminal(said.source));
        } else if (said.picture) {
            this.into.append(terminal(said.picture));
        } else if (said.solved !== undefined) {
            this.solved = said.solved;
        }
    }

    private printed(line: string) {
        if (!this.printing) {
            this.printing = element("pre") as HTMLPreElement;
            this.printing.tabIndex = 0;
            this.into.append(this.printing);
        }
        this.printing.append(line);
    }

    private ended(said: any) {
        this.printing?.remove();
        this.printing = undefined;
        said.failed ? this.failed++ : this.passed++;
        this.current?.classList.add(said.failed ? "failed" : "passed");
        const mark = this.current?.querySelector(".mark");
        if (mark) {
            mark.textContent = said.failed ? "FAIL" : "ok";
        }
        if (said.printed) {
            this.into.append(terminal(said.printed));
        }
        this.into.append(...messages(said.messages));
    }

    /** The last line; `why` says why it was ended. */
    end(why: string | undefined): string {
        const parts: string[] = [];
        if (this.count === 0) {
            parts.push("The program has no test blocks.");
        } else if (this.count !== undefined) {
            parts.push(`${this.passed} passed, ${this.failed} failed`);
        }
        if (why) {
            this.current?.classList.add("failed");
            this.into.append(element("p", { class: "error", text: why }));
            parts.push("ended early");
        } else if (this.count !== undefined) {
            this.into.append(element("p", { class: this.failed ? "error" : "", text: parts.join(" ") }));
        } else if (this.into.childElementCount > 0) {
            parts.push("not run");
        }
        return parts.join(", ");
    }
}

/** Shows the forms of a kernel. */
export function form(forms: any, which: string, go: (line: number) => void): Node[] {
    const remarks = (forms.remarks as any[]).map((r) => {
        const item = element("li", { text: r.text });
        if (r.place) {
            item.append(lineButton(r.place.line, go));
        }
        return item;
    });
    const shown: Node[] = [];
    if (which === "pictures") {
        // As an image, in which nothing runs.
        const image = element("img");
        image.alt = "Which thread owns each element of each tile";
        image.src = URL.createObjectURL(new Blob([forms.pictures], { type: "image/svg+xml" }));
        image.onload = () => URL.revokeObjectURL(image.src);
        shown.push(element("div", { class: "scroll" }, image));
    } else if (which === "cost") {
        shown.push(...cost(forms.cost, go));
    } else {
        shown.push(terminal(forms[which]));
    }
    if (remarks.length > 0) {
        shown.push(element("p", { text: "What does not apply, and why:" }), element("ul", {}, ...remarks));
    }
    return shown;
}

function cost(cost: any, go: (line: number) => void): Node[] {
    if (!cost) {
        return [element("p", { text: "Nothing is known of the speed of a GPU for this target." })];
    }
    const about = cost.guess ? "about " : "";
    const row = (...cells: (Node | string)[]) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
    const facts = element("table", {},
        row("time", `${about}${cost.us.toPrecision(3)} µs`),
        row("registers of a lane", `${cost.registers}${cost.spilled ? `, and ${cost.spilled} spilled` : ""}`),
        row("shared memory", `${(cost.shared / 1024).toFixed(1)} KiB`),
        row("occupancy", cost.blocks),
        ...(cost.limits as [string, number][]).slice(0, 4).map(([name, us]) => row(`${name} alone`, `${us.toPrecision(3)} µs`)),
    );
    const lines = (cost.lines as [number, number][]).map(([line, share]) =>
        element("tr", {}, element("td", {}, lineButton(line, go)), element("td", { text: `${(100 * share).toFixed(0)} %` })));
    return [
        element("p", { text: `Predicted, not measured: one launch on an ${cost.gpu}${cost.extents ? ` with ${cost.extents}` : ""}.` }), facts,
        ...(lines.length > 0 ? [element("p", { text: `Share of ${cost.unit} by line:` }), element("table", {}, ...lines)] : []),
    ];
}
