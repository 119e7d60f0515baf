// What the tests have in common: the folder of the site, served on loopback, and a headless Chromium.

import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
/** The folder of the site. */
export const root = join(here, "../../target/site/html");
/** The folder for screenshots. */
export const pictures = join(here, "../../out/playground");

const types = {
    ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json",
    ".svg": "image/svg+xml",
};
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** Serves the site and starts a browser: the address, the browser, and what ends both. */
export async function start() {
    const server = createServer((request, response) => {
        const path = join(root, normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)));
        const file = path.endsWith("/") ? join(path, "index.html") : path;
        if (!file.startsWith(root) || !existsSync(file) || statSync(file).isDirectory()) {
            response.writeHead(404).end();
            return;
        }
        const bytes = readFileSync(file);
        const type = types[extname(file)] ?? "application/octet-stream";
        response.writeHead(200, { "content-type": type, "content-length": bytes.length }).end(bytes);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const browser = await chromium.launch({ executablePath: browserPath, args: flags });
    const end = async () => {
        await browser.close();
        server.close();
    };
    return { base: `http://127.0.0.1:${server.address().port}/`, browser, end };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds serious or critical in a page, a line each; `ignores` says of an element whether a rule does not concern it. */
export async function serious(page, ignores = () => false) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
    const bad = violations.filter((v) => ["serious", "critical"].includes(v.impact));
    return bad.flatMap((v) => v.nodes.filter((n) => !ignores(v.id, n.html)).map((n) => `${v.id}: ${n.html}`)).join("\n");
}
