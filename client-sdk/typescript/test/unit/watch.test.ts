/** Watching the catalog across broken streams. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { setImmediate as immediate, setTimeout as pause } from "node:timers/promises";
import { test } from "node:test";

import { type CallOptions, Code, ConnectError, type HandlerContext } from "@connectrpc/connect";

import { Client, type ToolgateError, type v1 } from "../../src/node.js";
import { Client as WebClient } from "../../src/index.js";
import { watchCatalog } from "../../src/watch.js";
import { Fake } from "../fake.js";

interface Change {
  readonly catalogRevision: bigint;
}

/** A service whose streams are scripted one by one; says from which revision each was opened. */
function scripted(...streams: ((context: HandlerContext) => AsyncIterable<Change>)[]) {
  const opened: (bigint | undefined)[] = [];
  return {
    opened,
    catalog: {
      watchCatalog({ sinceRevision }: v1.WatchCatalogRequest, context: HandlerContext) {
        opened.push(sinceRevision);
        const stream = streams[opened.length - 1];
        assert.ok(stream, "one stream too many");
        return stream(context);
      },
    },
  };
}

async function* until(signal: AbortSignal, ...revisions: bigint[]): AsyncGenerator<Change> {
  for (const catalogRevision of revisions) yield { catalogRevision };
  await pause(60_000, undefined, { signal }).catch(() => undefined);
}

async function* then(end: () => void, ...revisions: bigint[]): AsyncGenerator<Change> {
  for (const catalogRevision of revisions) yield { catalogRevision };
  await pause(20);
  end();
}

function drain(): never {
  throw new ConnectError("draining", Code.Unavailable);
}

async function take(client: Client | WebClient, count: number, sinceRevision?: bigint): Promise<bigint[]> {
  const seen: bigint[] = [];
  const request = sinceRevision === undefined ? {} : { sinceRevision };
  for await (const { catalogRevision } of client.watchCatalog(request)) {
    seen.push(catalogRevision);
    if (seen.length === count) break;
  }
  return seen;
}

test("a stream that drains, or just ends, is opened again from the last revision seen", async () => {
  const service = scripted(
    () => then(drain, 4n, 5n),
    () => then(drain),
    () => then(() => undefined, 6n),
    ({ signal }) => until(signal, 7n),
  );
  await using fake = await Fake.http2(service);
  await using client = new Client(fake.target);
  assert.deepEqual(await take(client, 4), [4n, 5n, 6n, 7n]);
  assert.deepEqual(service.opened, [undefined, 5n, 5n, 6n]);
});

test("a lost connection is made again", async () => {
  const service = scripted(
    ({ signal }) => until(signal, 1n),
    ({ signal }) => until(signal, 2n),
  );
  await using fake = await Fake.http2(service);
  await using client = new Client(fake.target);
  const changes = client.watchCatalog({ sinceRevision: 0n });
  assert.equal((await changes.next()).value?.catalogRevision, 1n);
  fake.cut();
  assert.equal((await changes.next()).value?.catalogRevision, 2n);
  await changes.return();
  assert.deepEqual(service.opened, [0n, 1n]);
});

test("other errors are thrown", async () => {
  const service = scripted(() =>
    then(() => {
      throw new ConnectError("no", Code.PermissionDenied);
    }, 1n),
  );
  await using fake = await Fake.http2(service);
  await using client = new Client(fake.target);
  await assert.rejects(take(client, 2), (error: ToolgateError) => error.code === "PERMISSION_DENIED");
});

test("when nobody listens, opening is tried until its deadline", async () => {
  await using client = new Client("127.0.0.1:1");
  const begun = performance.now();
  await assert.rejects(
    client.watchCatalog({}, { timeoutMs: 5_000 }).next(),
    (error: ToolgateError) => error.code === "UNAVAILABLE" && error.message.includes("toolgate serve"),
  );
  assert.ok(performance.now() - begun > 1_000);
});

test("a service that does not begin to answer fails the opening", async () => {
  const service = scripted(async function* ({ signal }) {
    await pause(60_000, undefined, { signal }).catch(() => undefined);
    yield { catalogRevision: 1n };
  });
  await using fake = await Fake.http2(service);
  await using client = new Client(fake.target, { timeoutMs: 150 });
  await assert.rejects(take(client, 1), (error: ToolgateError) => error.code === "DEADLINE_EXCEEDED");
});

test("what is late after a refusal ends with the refusal", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const openingMs = 60_000;
  let opened = 0;
  const open = async function* (_since: bigint | undefined, { signal }: CallOptions): AsyncGenerator<never> {
    opened++;
    if (opened === 1) drain();
    assert.ok(signal);
    yield await once(signal, "abort").then(() => {
      throw signal.reason;
    });
  };
  const changes = watchCatalog({ open, since: undefined, openingMs, signal: new AbortController().signal });
  const ended = assert.rejects(changes.next(), { code: Code.Unavailable, rawMessage: "draining" });
  while (opened < 2) {
    t.mock.timers.tick(10);
    await immediate();
  }
  t.mock.timers.tick(openingMs);
  await ended;
  assert.equal(opened, 2);
});

test("the caller's signal and closing end it", async () => {
  const service = scripted(
    ({ signal }) => until(signal, 1n),
    ({ signal }) => until(signal, 1n),
  );
  await using fake = await Fake.http2(service);
  await using client = new Client(fake.target);
  const stop = new AbortController();
  const stopped = client.watchCatalog({}, { signal: stop.signal });
  await stopped.next();
  stop.abort();
  await assert.rejects(stopped.next(), (error: ToolgateError) => error.code === "CANCELLED");
  const closed = client.watchCatalog();
  await closed.next();
  client.close();
  await assert.rejects(closed.next(), (error: ToolgateError) => error.code === "CANCELLED");
});

test("it works over fetch too", async () => {
  const service = scripted(
    () => then(drain, 4n),
    ({ signal }) => until(signal, 5n),
  );
  await using fake = await Fake.http1(service);
  await using client = new WebClient(fake.target);
  assert.deepEqual(await take(client, 2), [4n, 5n]);
  assert.deepEqual(service.opened, [undefined, 4n]);
});
