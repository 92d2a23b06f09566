// One client for each distinct set of settings, kept until the end.
import { readFileSync } from "node:fs";

import { Client } from "@toolgate/client";

const clients = new Map();

/** The client of these settings. */
export function clientOf(settings) {
  const key = JSON.stringify(settings);
  if (!clients.has(key)) clients.set(key, openClient(settings));
  return clients.get(key);
}

/** A client of its own with these settings. */
export function openClient({ target, tenant, timeout, api_key, token, tls, allow_insecure_credentials }) {
  return new Client(target, {
    ...(tenant === undefined ? {} : { tenant }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }),
    ...(api_key === undefined ? {} : { apiKey: api_key }),
    ...(token === undefined ? {} : { token: () => Promise.resolve(token) }),
    ...(tls === undefined ? {} : { tls: tlsOf(tls) }),
    allowInsecureCredentials: allow_insecure_credentials ?? false,
  });
}

/** Settings of one call. */
export function timed({ timeout }) {
  return timeout === undefined ? {} : { timeoutMs: timeout * 1000 };
}

export function closeAll() {
  for (const client of clients.values()) client.close();
}

function tlsOf({ ca, cert, key, server_name }) {
  return {
    ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
    ...(cert === undefined ? {} : { cert: readFileSync(cert) }),
    ...(key === undefined ? {} : { key: readFileSync(key) }),
    ...(server_name === undefined ? {} : { serverName: server_name }),
  };
}
