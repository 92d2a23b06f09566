// Watches of the catalog, collected in the background.
import { v1 } from "@toolgate/client";

import { clientOf } from "./clients.mjs";
import { read, told, write } from "./messages.mjs";

const watches = new Map();
let started = 0;

function watchStart({ request, timeout }, settings) {
  const client = clientOf(settings);
  const stop = new AbortController();
  const watch = { events: [], error: undefined, wake: () => {}, stop };
  const options = { signal: stop.signal, ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }) };
  watch.done = collect(watch, client.watchCatalog(read(v1.WatchCatalogRequestSchema, request), options));
  started += 1;
  watches.set(started, watch);
  return { watch: started };
}

async function collect(watch, changes) {
  try {
    for await (const change of changes) {
      watch.events.push(write(v1.WatchCatalogResponseSchema, change));
      watch.wake();
    }
  } catch (error) {
    if (!watch.stop.signal.aborted) watch.error = told(error);
    watch.wake();
  }
}

async function watchTake({ watch: id, count, timeout }) {
  const watch = watches.get(id);
  const end = performance.now() + timeout * 1000;
  while (watch.events.length < count && watch.error === undefined && performance.now() < end) {
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, end - performance.now());
      watch.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
  const events = watch.events.splice(0, count);
  return watch.error === undefined ? { events } : { events, error: watch.error };
}

async function watchStop({ watch: id }) {
  const watch = watches.get(id);
  watches.delete(id);
  watch.stop.abort();
  await watch.done;
  return {};
}

export async function stopAll() {
  await Promise.all([...watches.keys()].map((watch) => watchStop({ watch })));
}

export const watching = { watch_start: watchStart, watch_take: watchTake, watch_stop: watchStop };
