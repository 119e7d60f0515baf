// The service worker: keeps the files of the page, so that it works without a network once it was loaded.

declare const FILES: string[];
declare const VERSION: string;
const worker = self as unknown as ServiceWorkerGlobalScope;
const CACHE = `tk-playground-${VERSION}`;

worker.addEventListener("install", (event) => {
    event.waitUntil(
        (async () => {
            const cache = await caches.open(CACHE);
            await cache.addAll(FILES);
            await worker.skipWaiting();
        })(),
    );
});

worker.addEventListener("activate", (event) => {
    event.waitUntil(
        (async () => {
            const old = (await caches.keys()).filter((name) => name.startsWith("tk-playground-") && name !== CACHE);
            await Promise.all(old.map((name) => caches.delete(name)));
            await worker.clients.claim();
        })(),
    );
});

worker.addEventListener("fetch", (event) => {
    if (event.request.method !== "GET") {
        return;
    }
    const { pathname, search } = new URL(event.request.url);
    const here = worker.registration.scope;
    if (pathname === new URL(here).pathname) {
        event.respondWith(Response.redirect(`${here}/${search}`));
        return;
    }
    event.respondWith(
        (async () => {
            const cache = await caches.open(CACHE);
            const kept = await cache.match(event.request, { ignoreSearch: true });
            return kept ?? fetch(event.request);
        })(),
    );
});
