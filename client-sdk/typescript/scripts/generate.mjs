#!/usr/bin/env node
// Regenerates src/gen from proto/toolgate/v1 and from the protos of gRPC's error details; `--check` writes
// nothing and says whether they are current. Takes protoc from the Python package grpcio-tools: $PYTHON, or the
// repository's .cache/venv. Without googleapis-common-protos beside it the error details have no source.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const sdk = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(dirname(sdk));
const committed = join(sdk, "src", "gen");
const python = process.env.PYTHON ?? join(root, ".cache", "venv", "bin", "python");
// The encoder is served by workers, not by the server: it is no part of this client.
const sources = ["catalog", "error", "memory", "policy", "router", "state", "usage"];
const rpc = ["google/rpc/error_details.proto", "google/rpc/status.proto"];

const check = process.argv.includes("--check");
const folder = mkdtempSync(join(tmpdir(), "toolgate-gen-"));
try {
  protoc(folder);
  process.exitCode = check ? compare(texts(folder)) : write(texts(folder));
} finally {
  rmSync(folder, { recursive: true });
}

function protoc(out) {
  const packages = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
  const site = execFileSync(python, ["-c", packages], { encoding: "utf8" }).trim();
  execFileSync(
    python,
    [
      "-m",
      "grpc_tools.protoc",
      `-I${join(root, "proto")}`,
      `-I${site}`,
      `--plugin=protoc-gen-es=${join(sdk, "node_modules", ".bin", "protoc-gen-es")}`,
      `--es_out=${out}`,
      "--es_opt=target=ts,import_extension=js",
      ...sources.map((name) => `toolgate/v1/${name}.proto`),
      ...rpc,
    ],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
}

/** The files below a folder: texts by path. */
function texts(below) {
  const found = new Map();
  for (const entry of readdirSync(below, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    found.set(relative(below, path), readFileSync(path, "utf8"));
  }
  return found;
}

function compare(fresh) {
  const held = texts(committed);
  const paths = new Set([...fresh.keys(), ...held.keys()]);
  const stale = [...paths].filter((path) => fresh.get(path) !== held.get(path));
  if (stale.length > 0) {
    console.error(`src/gen is not current: run \`npm run generate\`; stale: ${stale.join(", ")}`);
    return 1;
  }
  console.log(`${fresh.size} generated files are current`);
  return 0;
}

function write(fresh) {
  rmSync(committed, { recursive: true, force: true });
  for (const [path, text] of fresh) {
    mkdirSync(dirname(join(committed, path)), { recursive: true });
    writeFileSync(join(committed, path), text);
  }
  console.log(`wrote ${fresh.size} files`);
  return 0;
}
