// Many calls: soak, opening and closing, latency.
import { ToolgateError, v1 } from "@toolgate/client";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { clientOf, openClient } from "./clients.mjs";
import { read } from "./messages.mjs";

async function soak({ request, calls, concurrency }, settings) {
  const client = clientOf(settings);
  const asked = read(v1.RouteRequestSchema, request);
  const failed = {};
  let left = calls;
  const begun = performance.now();
  const work = async () => {
    while (left-- > 0) {
      try {
        await client.route(asked);
      } catch (error) {
        if (!(error instanceof ToolgateError)) throw error;
        failed[error.code] = (failed[error.code] ?? 0) + 1;
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return { calls, failed, seconds: (performance.now() - begun) / 1000 };
}

async function openClose({ request, times }, settings) {
  const asked = read(v1.GetServerRequestSchema, request);
  for (let time = 0; time < times; time++) {
    const client = openClient(settings);
    try {
      await client.getServer(asked);
    } finally {
      client.close();
    }
  }
  return { times };
}

async function bench({ request, calls, raw }, settings) {
  const asked = read(v1.RouteRequestSchema, request);
  const [route, close] = raw
    ? rawRoute(settings)
    : [(message) => clientOf(settings).route(message), () => {}];
  const micros = [];
  try {
    for (let call = 0; call < calls; call++) {
      const begun = performance.now();
      await route(asked);
      micros.push((performance.now() - begun) * 1000);
    }
  } finally {
    close();
  }
  return { micros };
}

/** Route through the generated stub on a channel opened once, without the package's own layer. */
function rawRoute({ target, tenant = "" }) {
  const baseUrl = target.includes("://") ? target : `http://${target}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const stub = createClient(v1.RouterService, createGrpcTransport({ baseUrl, sessionManager }));
  return [
    (message) => stub.route({ ...message, tenant: message.tenant || tenant }),
    () => sessionManager.abort(),
  ];
}

export const measuring = { soak, open_close: openClose, bench };
