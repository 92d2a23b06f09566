/** Tests what the package says of itself, and what importing it brings along. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { build } from "esbuild";

import { VERSION } from "../../src/node.js";
import { sdkFolder } from "../folders.js";

interface Manifest {
  readonly version: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

const manifest = JSON.parse(readFileSync(join(sdkFolder, "package.json"), "utf8")) as Manifest;

/** Returns what an entry imports from outside of this package when it is bundled; a module of Node's fails the bundling. */
async function importsOf(entry: string): Promise<string[]> {
  const bundled = await build({
    ...{ entryPoints: [join(sdkFolder, "build", "src", entry)], bundle: true, write: false },
    ...{ platform: "browser", format: "esm", metafile: true, logLevel: "silent" },
    external: ["ai", "langchain", "@langchain/*"],
  });
  const outside = Object.keys(bundled.metafile.inputs).flatMap(
    (path) => /node_modules\/((@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
  );
  return [...new Set(outside)].sort();
}

test("the version is the package's", () => {
  assert.equal(VERSION, manifest.version);
});

test("the main entry needs no module of Node's, and no vendor's package", async () => {
  assert.deepEqual(await importsOf("index.js"), [
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "@connectrpc/connect-web",
  ]);
});

test("Node's entry can't be bundled for a browser", async () => {
  await assert.rejects(importsOf("node.js"), /Could not resolve "node:http2"|node:/);
});
