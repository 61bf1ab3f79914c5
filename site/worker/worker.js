// Keeps all files of one build, so that the page opens without a network after the first visit. The build writes the
// version and the list of files.

const VERSION = "__VERSION__";
const FILES = "__FILES__";
const CACHE = `plumbline-${VERSION}`;

self.addEventListener('install', (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(FILES.map((file) => new Request(file, { cache: 'reload' }))))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener('activate', (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((name) => name.startsWith('plumbline-') && name !== CACHE).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

// The page itself comes from the network while there is one, so that a new build is seen at once; the other files have
// their hash in their name and never change.
self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || new URL(request.url).origin !== self.location.origin) return;
  const kept = () => caches.match(request.mode === 'navigate' ? './' : request, { ignoreSearch: true, cacheName: CACHE });
  event.respondWith(
    request.mode === 'navigate'
      ? fetch(request).catch(() => kept().then((response) => response ?? Response.error()))
      : kept().then((response) => response ?? fetch(request)),
  );
});
