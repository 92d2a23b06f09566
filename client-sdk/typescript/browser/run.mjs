// Bundles the page, serves it, and runs it in a browser against the service at TOOLGATE_TARGET.
//
//     npm run build && CHROMIUM=/usr/bin/chromium TOOLGATE_TARGET=127.0.0.1:7070 npm run test:browser
//
// The page's origin is http://127.0.0.1:PAGE_PORT (default: 7099): the service must allow it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { chromium } from "playwright-core";

const { CHROMIUM, TOOLGATE_TARGET, PAGE_PORT = "7099" } = process.env;
if (!CHROMIUM || !TOOLGATE_TARGET) {
  throw new Error("name a Chromium with CHROMIUM, and say where a service is with TOOLGATE_TARGET");
}
const catalog = new URL("../../../tests/data/servers/slack.json", import.meta.url);
const expected = {
  first: "mcp__slack__slack_post_message",
  verdicts: [true, false],
  listed: 8,
  refused: { code: "INVALID_ARGUMENT", reason: "INVALID_FIELD", field: "intents" },
};
const server = await serve(await bundle());
try {
  await drive();
} finally {
  server.close();
}

async function bundle() {
  const bundled = await build({
    ...{ entryPoints: [fileURLToPath(new URL("page.ts", import.meta.url))], bundle: true, write: false },
    // The built package, by its own name, as a user's bundler finds it.
    ...{ platform: "browser", format: "iife", tsconfigRaw: "{}" },
  });
  return bundled.outputFiles[0].text;
}

async function serve(script) {
  const pages = {
    "/": [
      "text/html",
      '<!doctype html><meta charset="utf-8"><title>Toolgate</title><script src="/page.js"></script>',
    ],
    "/page.js": ["text/javascript", script],
  };
  const answering = createServer((request, response) => {
    const [type, body] = pages[request.url] ?? ["text/plain", ""];
    response.writeHead(body === "" ? 404 : 200, { "content-type": type }).end(body);
  });
  answering.listen(Number(PAGE_PORT), "127.0.0.1");
  await once(answering, "listening");
  return answering;
}

async function drive() {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  try {
    for (const protocol of ["grpc-web", "connect"]) {
      const page = await browser.newPage();
      page.on("pageerror", (error) => console.error(error));
      await page.goto(`http://127.0.0.1:${PAGE_PORT}/`);
      const task = {
        ...{ target: TOOLGATE_TARGET, protocol, tenant: `browser-${crypto.randomUUID()}` },
        toolsList: readFileSync(catalog, "utf8"),
      };
      const { revision, ...outcome } = await page.evaluate((given) => globalThis.run(given), task);
      assert.deepEqual(outcome, expected);
      assert.equal(revision, protocol === "connect" ? "" : "1");
      console.log(`${protocol}: all is well in Chromium ${browser.version()}`);
    }
  } finally {
    await browser.close();
  }
}
