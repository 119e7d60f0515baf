// The editor: CodeMirror with the language server of the compiler.

import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, toggleComment } from "@codemirror/commands";
import { bracketMatching, indentService, indentUnit } from "@codemirror/language";
import { type Action, type Diagnostic, forceLinting, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import {
    formatKeymap, hoverTooltips, jumpToDefinition, jumpToDefinitionKeymap, LSPClient, LSPPlugin, renameKeymap, serverCompletion, signatureHelp,
} from "@codemirror/lsp-client";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, RangeSetBuilder, StateEffect, StateField, Transaction } from "@codemirror/state";
import {
    Decoration, type DecorationSet, drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers,
    type ViewUpdate, ViewPlugin, WidgetType,
} from "@codemirror/view";
import DOMPurify from "dompurify";
import type * as lsp from "vscode-languageserver-protocol";

import { ServerTransport } from "./engine.js";
import { element } from "./results.js";

/** The program for the language server. */
export const URI = "file:///main.tk";
/** The time without a key after which colors and hints are asked for, in milliseconds. */
const PAUSE = 60;
/** What can be edited has the focus anyway; that it says so is for tools which look for what scrolls. */
const FOCUS = { tabindex: "0" };
/** The servers that may end at one text: another one would end as well. */
const TRIES = 3;

/** What the page wants to know of the editor. */
export interface Listener {
    changed(text: string): void;
    /** The diagnostics are others; with the number of errors. */
    checked(errors: number, warnings: number): void;
    /** The language server is gone; whether another one is started at once. */
    lost(why: string, restarts: boolean): void;
    /** A file of the standard library is shown. */
    library(): void;
}

const capabilities = {
    textDocument: {
        // The server sends diagnostics: the client library says that it asks for them, and does not.
        diagnostic: false,
        publishDiagnostics: { relatedInformation: true },
        codeAction: {
            codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "refactor"] } },
        },
        semanticTokens: {
            requests: { full: true }, tokenTypes: [], tokenModifiers: [], formats: ["relative"],
        },
        inlayHint: {},
    },
    // The server has URIs for files of the standard library, which are on no disk here.
    workspace: { textDocumentContent: {} },
};

/** An effect with the decorations of one kind, and the field that holds them while the text changes. */
function decorations() {
    const set = StateEffect.define<DecorationSet>();
    const field = StateField.define<DecorationSet>({
        create: () => Decoration.none,
        update(value, transaction: Transaction) {
            value = value.map(transaction.changes);
            for (const effect of transaction.effects) {
                if (effect.is(set)) {
                    value = effect.value;
                }
            }
            return value;
        },
        provide: (field) => EditorView.decorations.from(field),
    });
    return { set, field };
}

const tokens = decorations();
const hints = decorations();

class Hint extends WidgetType {
    constructor(private readonly text: string, private readonly tooltip: string) {
        super();
    }
    override eq(other: Hint) {
        return other.text === this.text && other.tooltip === this.tooltip;
    }
    toDOM() {
        const span = document.createElement("span");
        span.className = "tk-hint";
        span.textContent = this.text;
        span.title = this.tooltip;
        return span;
    }
}

/** Asks for colors and hints when the text has been at rest for a moment. */
const shown = ViewPlugin.fromClass(
    class {
        private timer: ReturnType<typeof setTimeout> | undefined;
        constructor(private readonly view: EditorView) {
            this.later(0);
        }
        update(update: ViewUpdate) {
            if (update.docChanged) {
                this.later(PAUSE);
            }
        }
        later(pause: number) {
            clearTimeout(this.timer);
            this.timer = setTimeout(() => void show(this.view), pause);
        }
        destroy() {
            clearTimeout(this.timer);
        }
    },
);

async function show(view: EditorView) {
    const plugin = LSPPlugin.get(view);
    if (!plugin) {
        return;
    }
    const { client } = plugin;
    await client.initializing;
    client.sync();
    const doc = view.state.doc;
    const textDocument = { uri: plugin.uri };
    const range = { start: plugin.toPosition(0), end: plugin.toPosition(doc.length) };
    try {
        const [colors, labels] = await Promise.all([
            client.request<lsp.SemanticTokensParams, lsp.SemanticTokens | null>("textDocument/semanticTokens/full", { textDocument }),
            client.request<lsp.InlayHintParams, lsp.InlayHint[] | null>("textDocument/inlayHint", { textDocument, range }),
        ]);
        if (view.state.doc !== doc) {
            return;
        }
        const legend = client.serverCapabilities?.semanticTokensProvider?.legend;
        const effects = [
            tokens.set.of(colored(view.state, colors?.data ?? [], legend)),
            hints.set.of(hinted(view.state, plugin, labels ?? [])),
        ];
        view.dispatch({ effects });
    } catch {
        // An answer about a text that has changed since: the next one is asked for.
    }
}

function colored(state: EditorState, data: number[], legend: lsp.SemanticTokensLegend | undefined): DecorationSet {
    const builder = new RangeSetBuilder<Decoration>();
    let line = 1;
    let character = 0;
    for (let i = 0; i + 4 < data.length; i += 5) {
        const [lines, start, length, type, modifiers] = data.slice(i, i + 5) as [number, number, number, number, number];
        line += lines;
        character = lines > 0 ? start : character + start;
        if (line > state.doc.lines) {
            break;
        }
        const from = state.doc.line(line).from + character;
        const names = (legend?.tokenModifiers ?? []).filter((_, bit) => (modifiers >> bit) & 1);
        const kind = [legend?.tokenTypes[type] ?? "", ...names].map((name) => `tk-${name}`).join(" ");
        builder.add(from, Math.min(from + length, state.doc.length), Decoration.mark({ class: kind }));
    }
    return builder.finish();
}

function hinted(state: EditorState, plugin: LSPPlugin, labels: lsp.InlayHint[]): DecorationSet {
    const all = labels.map((hint) => {
        const label = typeof hint.label === "string" ? hint.label : hint.label.map((part) => part.value).join("");
        const text = `${hint.paddingLeft ? " " : ""}${label}${hint.paddingRight ? " " : ""}`;
        const tooltip = typeof hint.tooltip === "string" ? hint.tooltip : (hint.tooltip?.value ?? "");
        const at = Math.min(plugin.fromPosition(hint.position), state.doc.length);
        return Decoration.widget({ widget: new Hint(text, tooltip), side: 1 }).range(at);
    });
    return Decoration.set(all, true);
}

/** A fix of the server as an action of a message. */
function action(view: EditorView, fix: lsp.CodeAction): Action {
    return { name: fix.title, apply: () => apply(view, fix) };
}

function apply(view: EditorView, fix: lsp.CodeAction) {
    const documents = fix.edit?.documentChanges ?? [];
    const of = documents.flatMap((change) => ("edits" in change ? (change.edits as lsp.TextEdit[]) : []));
    change(view, [...(fix.edit?.changes?.[URI] ?? []), ...of], "input.fix");
}

/** Makes the edits of the server. */
function change(view: EditorView, edits: lsp.TextEdit[], userEvent: string) {
    const plugin = LSPPlugin.get(view);
    if (plugin) {
        const one = ({ range, newText }: lsp.TextEdit) => ({
            from: plugin.fromPosition(range.start), to: plugin.fromPosition(range.end), insert: newText,
        });
        view.dispatch({ changes: edits.map(one), userEvent });
    }
}

/** What the program and files of the library have: lines, colors, keys that lead elsewhere. */
function reading(): Extension {
    return [
        lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), drawSelection(), highlightSelectionMatches(),
        tokens.field, hints.field, shown,
        keymap.of([...searchKeymap, ...jumpToDefinitionKeymap]),
        // As F12 does, for the name under the pointer.
        EditorView.domEventHandlers({
            mousedown(event, view) {
                const at = event.button === 0 && (event.ctrlKey || event.metaKey) ? view.posAtCoords(event) : null;
                if (at === null) {
                    return false;
                }
                view.dispatch({ selection: { anchor: at } });
                return jumpToDefinition(view);
            },
        }),
    ];
}

/** The editor with its server, and where a file of the library is read. */
export class Editor {
    readonly view: EditorView;
    private readonly language = new Compartment();
    private readonly client: LSPClient;
    private library: EditorView | undefined;
    private published = 0;
    /** The servers that ended since the text was changed. */
    private ended = 0;

    constructor(parent: HTMLElement, private readonly shelf: HTMLElement, text: string, private readonly listener: Listener) {
        this.client = new LSPClient({
            rootUri: "file:///",
            timeout: 20_000,
            sanitizeHTML: (html) => DOMPurify.sanitize(html),
            notificationHandlers: {
                "textDocument/publishDiagnostics": (_, params: lsp.PublishDiagnosticsParams) => {
                    if (params.uri === URI) {
                        void this.publish(params.diagnostics);
                    }
                    return true;
                },
            },
            extensions: [{ clientCapabilities: capabilities }, serverCompletion(), hoverTooltips(), signatureHelp()],
        });
        this.client.workspace.displayFile = (uri) => (uri === URI ? Promise.resolve(this.view) : this.read(uri));
        this.connect();
        this.view = new EditorView({ parent, state: EditorState.create({ doc: text, extensions: this.extensions() }) });
    }

    get text(): string {
        return this.view.state.doc.toString();
    }

    /** Another program: nothing of the one before can be undone into it. */
    open(text: string) {
        this.view.setState(EditorState.create({ doc: text, extensions: this.extensions() }));
    }

    /** Shows a line. */
    go(line: number) {
        const place = this.view.state.doc.line(Math.min(Math.max(line, 1), this.view.state.doc.lines));
        this.view.dispatch({ selection: { anchor: place.from }, effects: EditorView.scrollIntoView(place.from, { y: "center" }) });
        this.view.focus();
    }

    /** Formats the program; returns whether the formatter took it. */
    async format(): Promise<boolean> {
        this.client.sync();
        const doc = this.view.state.doc;
        const params = { textDocument: { uri: URI }, options: { tabSize: 4, insertSpaces: true } };
        const edits = await this.client.request<typeof params, lsp.TextEdit[] | null>("textDocument/formatting", params);
        if (edits && this.view.state.doc === doc) {
            change(this.view, edits, "format");
        }
        return edits !== null;
    }

    /** Whether predicted costs are shown beside lines. */
    costs(on: boolean) {
        const settings = { tk: { costs: on ? { lens: true, hints: true } : null } };
        this.client.notification("workspace/didChangeConfiguration", { settings });
        void show(this.view);
    }

    private connect() {
        const transport = new ServerTransport((why) => {
            this.client.disconnect();
            this.library?.destroy();
            this.library = undefined;
            this.view.dispatch({ effects: this.language.reconfigure([]) });
            this.ended++;
            const restarts = this.ended < TRIES;
            if (restarts) {
                this.restart();
            }
            this.listener.lost(why, restarts);
        });
        this.client.connect(transport);
    }

    private restart() {
        this.connect();
        // The editor opens its file in the new server.
        this.view.dispatch({ effects: this.language.reconfigure(this.client.plugin(URI, "tk")) });
    }

    /** Shows a file of the library, of which the server has the text. */
    private async read(uri: string): Promise<EditorView> {
        const params: lsp.TextDocumentContentParams = { uri };
        const { text } = await this.client.request<typeof params, lsp.TextDocumentContentResult>("workspace/textDocumentContent", params);
        this.library?.destroy();
        const name = uri.replace("std:/", "std/");
        this.shelf.replaceChildren(element("h2", { text: name }));
        const language = uri.endsWith(".tk") ? this.client.plugin(uri, "tk") : [];
        const extensions = [
            reading(), language, EditorState.readOnly.of(true), EditorView.contentAttributes.of({ "aria-label": name, "aria-readonly": "true", ...FOCUS }),
            keymap.of(defaultKeymap),
            // A definition is shown with what is around it.
            EditorState.transactionExtender.of((transaction) => {
                const to = transaction.isUserEvent("select.definition") ? transaction.newSelection.main.from : undefined;
                return to === undefined ? null : { effects: EditorView.scrollIntoView(to, { y: "center" }) };
            }),
        ];
        this.library = new EditorView({ parent: this.shelf, state: EditorState.create({ doc: text, extensions }) });
        this.listener.library();
        return this.library;
    }

    private extensions(): Extension {
        return [
            reading(), history(), bracketMatching(), closeBrackets(), lintGutter(),
            indentUnit.of("    "), indentService.of(indentation),
            EditorState.tabSize.of(4), EditorState.languageData.of(() => [{ commentTokens: { line: "//" } }]),
            EditorView.contentAttributes.of({ "aria-label": "Program", "aria-describedby": "leave", spellcheck: "false", ...FOCUS }),
            autocompletion(),
            keymap.of([
                { key: "Tab", run: acceptCompletion }, { key: "Mod-/", run: toggleComment },
                ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap, ...formatKeymap,
                ...renameKeymap, indentWithTab,
            ]),
            this.language.of(this.client.plugin(URI, "tk")),
            EditorView.updateListener.of((update) => {
                if (update.docChanged) {
                    const isGone = this.ended >= TRIES;
                    this.ended = 0;
                    if (isGone) {
                        // Not while the editor is being updated.
                        queueMicrotask(() => this.restart());
                    }
                    this.listener.changed(this.text);
                }
            }),
        ];
    }

    /** Shows diagnostics, then, where the server has some, the fixes of each. */
    private async publish(found: lsp.Diagnostic[]) {
        const number = ++this.published;
        const plugin = LSPPlugin.get(this.view);
        if (!plugin) {
            return;
        }
        const doc = this.view.state.doc;
        const place = (range: lsp.Range) => {
            const from = Math.min(plugin.fromPosition(range.start, plugin.syncedDoc), doc.length);
            return { from, to: Math.min(Math.max(plugin.fromPosition(range.end, plugin.syncedDoc), from), doc.length) };
        };
        const severities = ["error", "warning", "info", "hint"] as const;
        const message = (d: lsp.Diagnostic): Diagnostic => ({
            ...place(d.range), severity: severities[(d.severity ?? 1) - 1] ?? "error", source: String(d.code ?? ""),
            message: typeof d.message === "string" ? d.message : d.message.value,
        });
        const shown = found.map(message);
        const count = (severity: string) => shown.filter((d) => d.severity === severity).length;
        this.view.dispatch(setDiagnostics(this.view.state, shown));
        this.listener.checked(count("error"), count("warning"));
        const fixes = await Promise.all(found.slice(0, 20).map((d) => this.fixes(d).catch(() => [])));
        if (number !== this.published || this.view.state.doc !== doc || fixes.every((of) => of.length === 0)) {
            return;
        }
        const fixed = shown.map((d, i) => ({ ...d, actions: (fixes[i] ?? []).map((fix) => action(this.view, fix)) }));
        this.view.dispatch(setDiagnostics(this.view.state, fixed));
        forceLinting(this.view);
    }

    private async fixes(of: lsp.Diagnostic): Promise<lsp.CodeAction[]> {
        const params: lsp.CodeActionParams = {
            textDocument: { uri: URI }, range: of.range, context: { diagnostics: [of], only: ["quickfix"] },
        };
        const found = await this.client.request<lsp.CodeActionParams, (lsp.CodeAction | lsp.Command)[] | null>(
            "textDocument/codeAction", params,
        );
        return (found ?? []).filter((a): a is lsp.CodeAction => "edit" in a);
    }
}

/** Four blanks more than the line before where that opens a bracket; four fewer for one that closes it. */
function indentation(context: { state: EditorState; lineAt(pos: number, bias?: -1 | 1): { text: string; from: number } }, pos: number) {
    const line = context.lineAt(pos, 1);
    const number = context.state.doc.lineAt(Math.min(line.from, context.state.doc.length)).number;
    let before = context.lineAt(pos, -1).text;
    if (before === line.text && number > 1) {
        before = context.state.doc.line(number - 1).text;
    }
    const own = /^ */.exec(before)?.[0].length ?? 0;
    const opens = /[([{]\s*(\/\/.*)?$/.test(before) ? 4 : 0;
    const closes = /^\s*[)\]}]/.test(line.text) ? 4 : 0;
    return Math.max(own + opens - closes, 0);
}
