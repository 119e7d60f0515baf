// The page: the list of programs, the buttons, the panels.

import { Editor } from "./editor.js";
import { Runner, sentence } from "./engine.js";
import { element, form, inline, lineButton, messages, prose, Run, Sentence, terminal } from "./results.js";
import { fragment, linked } from "./share.js";
import { onFailure, remember, remembered } from "./storage.js";

interface Puzzle {
    number: number;
    title: string;
    task: string;
    text: string;
    hints: string[];
    solution: string;
}

const get = <T extends HTMLElement = HTMLElement>(id: string) => document.getElementById(id) as T;
const [program, target, instance, which] = ["program", "target", "instance", "form"].map((id) => get<HTMLSelectElement>(id)) as [
    HTMLSelectElement, HTMLSelectElement, HTMLSelectElement, HTMLSelectElement,
];
const state = get("state");
const runner = new Runner();
const builder = new Runner();
let puzzles: Puzzle[] = [];
let examples: Record<string, string> = {};
/** The program of the list that is open: `puzzle 3`, `example add`, `link`, or the reader's own. */
let open = "own";
/** What the last check found. */
let verdict = "";
let forms: any;
/** Whether the state is about a run of this text. */
let ran = false;

/** The notices that are shown at once. */
const MOST_NOTICES = 3;

/** A new program. */
const EMPTY = `// A kernel says what one program does; a test block launches it.

kernel double[BLOCK: i32 = 16](x: view[f32, 1], y: mut view[f32, 1])
    grid(cdiv(y.shape[0], BLOCK))
    require(x.shape == y.shape)
{
    let at = program_id(0) * BLOCK;
    y.store([at], 2.0 * x.load([at], [BLOCK]));
}

test "twice each element" {
    let x = buffer(arange(0, 20) as f32);
    let y = buffer(zeros([20], f32));
    double(x, y);
    print(y.tile());
    assert(all(y.tile() == 2.0 * x.tile()));
}
`;

function say(text: string) {
    state.textContent = text;
}

/** Says what the last check found, unless there is something newer to say. */
function sayFound() {
    if (verdict && !runner.runs && !ran) {
        say(verdict);
    }
}

/** What stays until it is closed: nothing that is said later takes its place. */
function notice(text: string) {
    if (get("notices").childElementCount === MOST_NOTICES) {
        get("notices").firstElementChild?.remove();
    }
    const close = element("button", { text: "Close" });
    const shown = element("p", { text }, close);
    close.onclick = () => shown.remove();
    get("notices").append(shown);
}

const editor = new Editor(get("editor"), get("library"), EMPTY, {
    changed(text) {
        ran = false;
        remember(`text.${open}`, text);
        remember("open", open);
        if (location.hash) {
            history.replaceState(null, "", location.pathname);
        }
        laterForms();
    },
    checked(errors, warnings) {
        document.documentElement.dataset["checked"] = String(errors);
        const parts = [errors && `${errors} error${errors > 1 ? "s" : ""}`, warnings && `${warnings} warning${warnings > 1 ? "s" : ""}`];
        verdict = parts.filter(Boolean).join(", ") || "no errors";
        sayFound();
    },
    lost(why, restarts) {
        notice(`${why} The language server ${restarts ? "was started again" : "is started again when the program is changed"}.`);
    },
    library() {
        select(get("tab-library"));
    },
});
const go = (line: number) => editor.go(line);

// Panels.

const tabs = [...document.querySelectorAll<HTMLButtonElement>("[role=tab]")];

function select(tab: HTMLButtonElement) {
    for (const other of tabs) {
        const is = other === tab;
        other.setAttribute("aria-selected", String(is));
        other.tabIndex = is ? 0 : -1;
        get(other.getAttribute("aria-controls")!).hidden = !is;
    }
    if (tab.id === "tab-kernel") {
        void showForms();
    }
}
for (const [i, tab] of tabs.entries()) {
    tab.onclick = () => select(tab);
    tab.onkeydown = (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) {
            const next = tabs[(i + step + tabs.length) % tabs.length]!;
            next.focus();
            select(next);
        }
    };
}

// Runs.

async function run() {
    const puzzle = puzzles.find((p) => open === `puzzle ${p.number}`);
    const into = puzzle ? get("judged") : get("output");
    select(get(puzzle ? "tab-puzzle" : "tab-output"));
    // On a small screen they are below it.
    get("side").scrollIntoView({ block: "nearest" });
    const results = new Run(into, go);
    get<HTMLButtonElement>("stop").disabled = false;
    say("running…");
    ran = true;
    const text = editor.text;
    const request = puzzle
        ? { ask: "answer", puzzle: puzzle.number, text }
        : { ask: "test", text, checked: get<HTMLInputElement>("checked").checked };
    const why = await runner.ask(request, (said) => results.hear(said));
    get<HTMLButtonElement>("stop").disabled = true;
    const end = results.end(why);
    say(end);
    document.documentElement.dataset["ran"] = String(Number(document.documentElement.dataset["ran"] ?? 0) + 1);
    if (puzzle && results.solved !== undefined) {
        solved(puzzle, results.solved, into);
    }
}

function solved(puzzle: Puzzle, is: boolean, into: HTMLElement) {
    if (!is) {
        into.append(element("p", { text: "Not solved yet." }));
        return;
    }
    remember(`solved.${puzzle.number}`, "yes");
    into.append(element("p", { class: "solved", text: `Puzzle ${puzzle.number} is done.` }));
    const next = puzzles.find((p) => p.number > puzzle.number && !remembered(`solved.${p.number}`));
    if (next) {
        const button = element("button", { text: `Next: ${next.title}` });
        button.onclick = () => void choose(`puzzle ${next.number}`);
        into.append(button);
    }
    list();
}

// Kernels.

let formsTimer: ReturnType<typeof setTimeout> | undefined;

function laterForms() {
    if (!get("kernel").hidden) {
        clearTimeout(formsTimer);
        formsTimer = setTimeout(() => void showForms(), 500);
    }
}

async function showForms() {
    const into = get("forms");
    const beside: Node[] = [];
    let found: any;
    const request = { ask: "forms", text: editor.text, target: target.value || "sm_90a", chosen: Math.max(instance.selectedIndex, 0) };
    const why = await builder.ask(request, (said) => {
        if (said.instances) {
            const at = instance.selectedIndex;
            const known = [...instance.options].map((o) => o.value).join("\n") === said.instances.join("\n");
            if (!known) {
                instance.replaceChildren(...said.instances.map((label: string) => element("option", { text: label })));
                instance.selectedIndex = at >= 0 && at < said.instances.length ? at : 0;
            }
        } else if (said.forms) {
            found = said.forms;
        } else if (said.error) {
            beside.push(element("p", { class: "error", text: said.error }));
        } else if (said.diagnostics) {
            beside.push(...messages(said.diagnostics));
        }
    });
    if (why === "Another run began.") {
        return;
    }
    if (why) {
        beside.push(element("p", { class: "error", text: why }));
    }
    forms = found;
    into.replaceChildren(...(forms ? form(forms, which.value, go) : []), ...beside);
}

// Programs.

function list() {
    const option = (value: string, text: string) => {
        const made = element("option", { text });
        made.value = value;
        return made;
    };
    const group = (label: string, ...options: HTMLOptionElement[]) => {
        const made = element("optgroup", {}, ...options);
        made.label = label;
        return made;
    };
    program.replaceChildren(
        option("own", "your program"),
        ...(remembered("text.link") === undefined ? [] : [option("link", "the program of a link")]),
        group("Examples", ...Object.keys(examples).map((name) => option(`example ${name}`, name))),
        group("Puzzles", ...puzzles.map((p) => option(`puzzle ${p.number}`, `${remembered(`solved.${p.number}`) ? "✓ " : ""}${p.number} ${p.title}`))),
    );
    program.value = open;
}

function original(name: string): string {
    const puzzle = puzzles.find((p) => name === `puzzle ${p.number}`);
    return puzzle?.text ?? examples[name.replace("example ", "")] ?? EMPTY;
}

async function choose(name: string) {
    runner.stop("Another program was opened.");
    open = name;
    ran = false;
    remember("open", name);
    editor.open(remembered(`text.${name}`) ?? original(name));
    list();
    const puzzle = puzzles.find((p) => name === `puzzle ${p.number}`);
    showPuzzle(puzzle);
    select(get(puzzle ? "tab-puzzle" : "tab-output"));
}

function showPuzzle(puzzle: Puzzle | undefined) {
    const into = get("puzzle");
    if (!puzzle) {
        into.replaceChildren(element("p", { text: "Choose a puzzle in the list of programs." }));
        return;
    }
    const hints = element("ol");
    const hint = element("button", { text: "Hint" });
    hint.onclick = () => {
        hints.append(element("li", {}, ...inline(puzzle.hints[hints.childElementCount] ?? "")));
        hint.disabled = hints.childElementCount === puzzle.hints.length;
    };
    const solution = element("button", { text: "Solution" });
    solution.onclick = () => solution.replaceWith(terminal(puzzle.solution));
    const again = element("button", { text: "Begin again" });
    again.onclick = () => {
        editor.open(puzzle.text);
        remember(`text.${open}`, puzzle.text);
    };
    const judged = element("div");
    judged.id = "judged";
    const line = puzzle.text.split("\n").findIndex((text) => text.includes("TODO")) + 1;
    const where = element("p", { text: "Complete the kernel where it says TODO" }, lineButton(line || 1, go), ", then run it.");
    into.replaceChildren(
        element("h2", { text: `Puzzle ${puzzle.number}: ${puzzle.title}` }), ...prose(puzzle.task), where,
        element("div", { class: "controls" }, hint, solution, again), hints, judged,
    );
}

// Buttons.

get("run").onclick = () => void run();
get("stop").onclick = () => runner.stop("You ended it.");
get("format").onclick = async () => {
    if (!(await editor.format().catch(() => false))) {
        say("a program with syntax errors is not formatted");
    }
};
get("share").onclick = async () => {
    history.replaceState(null, "", await fragment(editor.text));
    try {
        await navigator.clipboard.writeText(location.href);
        say("the link is in the clipboard");
    } catch {
        say("the link is in the address bar");
    }
};
get<HTMLInputElement>("costs").onchange = (event) => editor.costs((event.target as HTMLInputElement).checked);
program.onchange = () => void choose(program.value);
target.onchange = instance.onchange = () => void showForms();
which.onchange = () => forms && get("forms").replaceChildren(...form(forms, which.value, go));
// Before the editor, for which it is a blank line.
window.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        event.stopPropagation();
        void run();
    }
}, { capture: true });

/** Opens the program of the address, if it has one, beside the reader's own. */
async function follow(): Promise<boolean> {
    const first = await linked(location.hash).catch((error) => {
        notice(sentence(error));
        return undefined;
    });
    if (first === undefined) {
        return false;
    }
    remember("text.link", first);
    open = "link";
    ran = false;
    editor.open(first);
    list();
    return true;
}

window.addEventListener("hashchange", () => {
    runner.stop("Another program was opened.");
    void follow().then((is) => is && showPuzzle(undefined));
});

async function begin() {
    onFailure(notice);
    const first = await follow();
    runner.prepare();
    examples = await fetch("examples.json").then((response) => response.json()).catch(() => {
        throw new Sentence("The examples could not be loaded: there is no connection to the server. Load the page again.");
    });
    const why = await runner.ask({ ask: "puzzles" }, (said) => (puzzles = said.puzzles));
    if (why) {
        throw new Sentence(why);
    }
    await runner.ask({ ask: "targets" }, (said) => target.replaceChildren(...said.targets.map((name: string) => element("option", { text: name }))));
    target.value = "sm_90a";
    if (!first) {
        const asked = new URLSearchParams(location.search).get("program");
        const last = asked ?? remembered("open") ?? "own";
        const known = last === "own" || last === "link" && remembered("text.link") !== undefined || last.replace("example ", "") in examples || puzzles.some((p) => last === `puzzle ${p.number}`);
        await choose(known ? last : "own");
    } else {
        list();
    }
    document.documentElement.dataset["ready"] = "yes";
    sayFound();
    if ("serviceWorker" in navigator) {
        // The script is beside the folder of the page, so that the address without the slash at its end is its concern, too.
        const scope = location.pathname.replace(/\/[^/]*$/, "");
        await navigator.serviceWorker.register("../offline.js", { scope }).catch(() => undefined);
    }
}

begin().catch((error) => {
    say("");
    notice(sentence(error));
});
