// The pages of the documentation in headless Chromium.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { pictures, root, serious, start } from "../browser.mjs";

/** The most steps from the first page. */
const STEPS = 3;
const PHONE = { width: 390, height: 800 };
const DESKTOP = { width: 1300, height: 800 };
// Pages of one form, of which axe sees every eighth.
const ALIKE = /^(spec\/errors|library)\//;

const pages = readdirSync(root, { recursive: true }).filter((name) => name.endsWith(".html") && !/^(_|playground)/.test(name)).sort();
let base, browser, end;

before(async () => {
    mkdirSync(pictures, { recursive: true });
    ({ base, browser, end } = await start());
});

after(() => end?.());

/** A page of a new visitor, and what goes wrong in it: requests that leave the site, files that are missing, errors. */
async function visitor(options) {
    const page = await (await browser.newContext({ bypassCSP: true, ...options })).newPage();
    const wrong = [];
    page.on("request", (request) => request.url().startsWith(base) || wrong.push(`request: ${request.url()}`));
    page.on("response", (response) => response.ok() || response.status() === 304 || wrong.push(`${response.status()}: ${response.url()}`));
    page.on("pageerror", (error) => wrong.push(error.message));
    return { page, wrong };
}

for (const [turn, colorScheme] of ["light", "dark"].entries()) {
    test(`on a phone, ${colorScheme}: nothing is wider than the screen, no request leaves the site, nothing is serious for axe`, async () => {
        const { page, wrong } = await visitor({ viewport: PHONE, colorScheme });
        const alike = pages.filter((name) => ALIKE.test(name));
        for (const name of pages) {
            // One scheme for each page, both for some that have everything.
            const both = ["index.html", "docs/tutorial/01-first-kernel.html", "docs/from-triton.html"].includes(name);
            const of = pages.indexOf(name) % 2 === turn || both;
            if (!of || (ALIKE.test(name) && alike.indexOf(name) % 16 !== turn)) {
                continue;
            }
            await page.goto(base + name);
            assert.equal(await serious(page), "", name);
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= PHONE.width, `${name} is wider than a phone`);
        }
        assert.deepEqual(wrong, []);
    });
}

test("every page is reached in three steps of links that are seen, and leads on", async () => {
    const { page, wrong } = await visitor({ viewport: DESKTOP });
    const links = new Map();
    for (const name of [...pages, "playground/index.html"]) {
        await page.goto(base + name);
        const seen = await page.evaluate(() => [...document.querySelectorAll("a[href]")].filter((a) => a.checkVisibility()).map((a) => a.href));
        links.set(name, [...new Set(seen.filter((href) => href.startsWith(base)).map((href) => decodeURIComponent(new URL(href).pathname.slice(1))))]);
    }
    assert.deepEqual(wrong, []);
    const dead = [...links].flatMap(([name, to]) => to.filter((path) => !existsSync(join(root, path))).map((path) => `${name}: ${path}`));
    assert.deepEqual(dead, []);
    const steps = new Map([["index.html", 0]]);
    for (const [name, step] of steps) {
        for (const next of links.get(name) ?? []) {
            if (!steps.has(next)) {
                steps.set(next, step + 1);
            }
        }
    }
    // The index of terms and the results of a search are no pages to read.
    const far = pages.filter((name) => !["genindex.html", "search.html"].includes(name) && !(steps.get(name) <= STEPS));
    assert.deepEqual(far, []);
    assert.ok(steps.get("playground/index.html") === 1);
    assert.deepEqual(pages.filter((name) => !links.get(name).includes("index.html")), []);
});

test("the search finds an operation and a diagnostic", async () => {
    const { page, wrong } = await visitor({ viewport: DESKTOP });
    for (const [words, title] of [["atomic_add", /Operations|atomic/i], ["W0504", /W0504/], ["coalesced", /slow/i]]) {
        await page.goto(`${base}search.html?q=${words}`);
        await page.waitForSelector("#search-results li a");
        assert.match(await page.textContent("#search-results"), title);
    }
    assert.deepEqual(wrong, []);
});

test("screenshots", async () => {
    for (const colorScheme of ["light", "dark"]) {
        for (const [name, viewport] of [["phone", PHONE], ["desktop", DESKTOP]]) {
            const { page } = await visitor({ viewport, colorScheme });
            for (const of of ["index", "docs/tutorial/01-first-kernel", "docs/from-triton", "docs/how-it-works", "docs/why-slow"]) {
                await page.goto(`${base}${of}.html`);
                await page.screenshot({ path: join(pictures, `site-${of.split("/").at(-1)}-${name}-${colorScheme}.png`) });
            }
        }
    }
});
