// Keeps the files of the page, so that it opens without a network.
declare const FILES: string[];
declare const VERSION: string;

interface Life extends Event {
  waitUntil(p: Promise<unknown>): void;
}
interface Fetch extends Event {
  request: Request;
  respondWith(p: Promise<Response>): void;
}

const NAME = `skyhaul-lab-${VERSION}`;
const scope = self as unknown as {
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
} & EventTarget;

scope.addEventListener("install", (e) => {
  const keep = caches.open(NAME).then((c) => c.addAll(FILES.map((f) => new Request(f, { cache: "reload" }))));
  (e as Life).waitUntil(keep.then(() => scope.skipWaiting()));
});

scope.addEventListener("activate", (e) => {
  const old = caches.keys().then((keys) => keys.filter((k) => k.startsWith("skyhaul-lab-") && k !== NAME));
  (e as Life).waitUntil(old.then((keys) => Promise.all(keys.map((k) => caches.delete(k)))).then(() => scope.clients.claim()));
});

// The network comes first, so that a new build of the page is shown; the kept files answer where there is no network.
scope.addEventListener("fetch", (e) => {
  const { request } = e as Fetch;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  (e as Fetch).respondWith(
    fetch(request).catch(async () => (await caches.match(request, { ignoreSearch: true })) ?? Response.error()),
  );
});
