// One conversation with `tk lsp` by the protocol's own client library, on a copy of `workspace/`.

import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as lsp from "vscode-languageserver-protocol/node";

const TK = process.env.TK ?? fileURLToPath(new URL("../../../target/debug/tk", import.meta.url));
const WORKSPACE = fileURLToPath(new URL("../workspace", import.meta.url));
const TIMEOUT_MS = 30_000;

/** What the client says that it can do; `positionEncodings` and `pull` differ between tests. */
function capabilities({ encodings = ["utf-16"], pull = true }) {
  const markdown = [lsp.MarkupKind.Markdown, lsp.MarkupKind.PlainText];
  return {
    general: { positionEncodings: encodings },
    workspace: { workspaceEdit: { documentChanges: true }, workspaceFolders: true },
    textDocument: {
      publishDiagnostics: { relatedInformation: true, versionSupport: true, codeDescriptionSupport: true },
      ...(pull && { diagnostic: { relatedDocumentSupport: true } }),
      hover: { contentFormat: markdown },
      completion: { completionItem: { snippetSupport: true, documentationFormat: markdown } },
      signatureHelp: {
        signatureInformation: { documentationFormat: markdown, parameterInformation: { labelOffsetSupport: true } },
      },
      documentSymbol: { hierarchicalDocumentSymbolSupport: true },
      codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "refactor"] } } },
      rename: { prepareSupport: true },
      semanticTokens: { requests: { full: true, range: true }, tokenTypes: [], tokenModifiers: [], formats: ["relative"] },
    },
  };
}

export class Client {
  /** Starts the server and introduces itself; `options` as in `capabilities`. */
  static async start(options = {}) {
    const client = new Client();
    client.folder = mkdtempSync(join(tmpdir(), "tk-lsp-"));
    cpSync(WORKSPACE, client.folder, { recursive: true });
    client.process = spawn(TK, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
    client.ended = new Promise((resolve) => client.process.on("exit", (code, signal) => resolve(code ?? signal)));
    client.connection = lsp.createProtocolConnection(
      new lsp.StreamMessageReader(client.process.stdout),
      new lsp.StreamMessageWriter(client.process.stdin),
    );
    client.published = new Map();
    client.waiting = [];
    client.connection.onNotification(lsp.PublishDiagnosticsNotification.type, (params) => {
      client.published.set(params.uri, params);
      client.waiting = client.waiting.filter((check) => !check(params));
    });
    client.connection.onRequest(lsp.RegistrationRequest.type, () => undefined);
    client.connection.listen();
    const uri = pathToFileURL(client.folder).href;
    client.initialized = await client.ask(lsp.InitializeRequest.type, {
      processId: process.pid,
      rootUri: uri,
      workspaceFolders: [{ uri, name: "workspace" }],
      capabilities: capabilities(options),
    });
    await client.connection.sendNotification(lsp.InitializedNotification.type, {});
    return client;
  }

  /** Sends a request; fails when there is no answer in time. */
  ask(type, params) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer to ${type.method}`)), TIMEOUT_MS);
    });
    return Promise.race([this.connection.sendRequest(type, params), late]).finally(() => clearTimeout(timer));
  }

  tell(type, params) {
    return this.connection.sendNotification(type, params);
  }

  path(name) {
    return join(this.folder, name);
  }

  uri(name) {
    return pathToFileURL(this.path(name)).href;
  }

  /** Opens a file of the workspace, with another text if there is one. */
  async open(name, text = readFileSync(this.path(name), "utf8"), languageId = "tk") {
    const document = new Document(this.uri(name), text);
    await this.tell(lsp.DidOpenTextDocumentNotification.type, {
      textDocument: { uri: document.uri, languageId, version: 1, text },
    });
    return document;
  }

  /** Replaces the first `from` of an open document by `to`, as somebody who types there. */
  async edit(document, from, to) {
    const range = document.range(from);
    document.text = document.text.replace(from, () => to);
    document.version += 1;
    await this.tell(lsp.DidChangeTextDocumentNotification.type, {
      textDocument: { uri: document.uri, version: document.version },
      contentChanges: [{ range, text: to }],
    });
  }

  close(document) {
    return this.tell(lsp.DidCloseTextDocumentNotification.type, { textDocument: { uri: document.uri } });
  }

  write(name, text) {
    writeFileSync(this.path(name), text);
  }

  /** The diagnostics of a document as the server pushes them, once `check` agrees. */
  pushed(document, check = () => true) {
    const fits = (params) => params !== undefined && params.uri === document.uri && check(params.diagnostics, params);
    if (fits(this.published.get(document.uri))) return this.published.get(document.uri).diagnostics;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`pushed: ${JSON.stringify(this.published.get(document.uri))}`));
      }, TIMEOUT_MS);
      this.waiting.push((params) => {
        if (!fits(params)) return false;
        clearTimeout(timer);
        resolve(params.diagnostics);
        return true;
      });
    });
  }

  /** Ends the server as the protocol wants it; its exit code. */
  async stop() {
    await this.ask(lsp.ShutdownRequest.type);
    await this.tell(lsp.ExitNotification.type);
    const code = await this.ended;
    this.connection.dispose();
    rmSync(this.folder, { recursive: true, force: true });
    return code;
  }
}

/** An open document; places are found by the text around them. */
export class Document {
  constructor(uri, text) {
    Object.assign(this, { uri, text, version: 1 });
  }

  get id() {
    return { uri: this.uri };
  }

  position(offset) {
    const before = this.text.slice(0, offset).split("\n");
    return { line: before.length - 1, character: before.at(-1).length };
  }

  offset({ line, character }) {
    const lines = this.text.split("\n");
    return lines.slice(0, line).reduce((sum, text) => sum + text.length + 1, 0) + character;
  }

  /** The range of a text; `|` in it are its ends, where it is longer to be found only once. */
  range(pattern) {
    const [before, text, after] = pattern.includes("|") ? pattern.split("|") : ["", pattern, ""];
    const at = this.text.indexOf(before + text + after);
    if (at < 0) throw new Error(`${JSON.stringify(pattern)} does not occur`);
    const start = at + before.length;
    return { start: this.position(start), end: this.position(start + text.length) };
  }

  /** What a request about the first place of a range is asked with. */
  at(pattern) {
    return { textDocument: this.id, position: this.range(pattern).start };
  }

  textOf(range) {
    return this.text.slice(this.offset(range.start), this.offset(range.end));
  }

  /** The text after edits. */
  with(edits) {
    const last = [...edits].sort((a, b) => this.offset(b.range.start) - this.offset(a.range.start));
    return last.reduce(
      (text, edit) => text.slice(0, this.offset(edit.range.start)) + edit.newText + text.slice(this.offset(edit.range.end)),
      this.text,
    );
  }
}

export { lsp };
