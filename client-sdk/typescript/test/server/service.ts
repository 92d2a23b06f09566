/** The service that these tests ask: the one at TOOLGATE_TARGET, else the binary that TOOLGATE_BIN names. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";

/** Time limit for a start. It is long enough for a busy machine. */
const START_MS = 120_000;

/** A service to test against; at the end of its scope it stops, when it was started here. */
export class Service implements AsyncDisposable {
  readonly target: string;
  readonly #stop: () => Promise<void>;
  readonly #configure: (settings: string) => void;

  private constructor(
    target: string,
    stop: () => Promise<void> = () => Promise.resolve(),
    configure: (settings: string) => void = () => assert.fail("it was started elsewhere"),
  ) {
    this.target = target;
    this.#stop = stop;
    this.#configure = configure;
  }

  /** Starts a service of one's own, whose configuration can be changed; needs TOOLGATE_BIN. */
  static async own(): Promise<Service> {
    const { TOOLGATE_BIN: binary } = process.env;
    assert.ok(binary, "name a binary with TOOLGATE_BIN");
    return await Service.#start(binary);
  }

  /** Has it read this configuration (TOML) in the place of its own, as soon as it comes to it. */
  configure(settings: string): void {
    this.#configure(settings);
  }

  static async get(): Promise<Service> {
    const { TOOLGATE_TARGET: target, TOOLGATE_BIN: binary } = process.env;
    if (target) {
      return new Service(target);
    }
    if (!binary) {
      throw new Error("say where a service is with TOOLGATE_TARGET, or name a binary with TOOLGATE_BIN");
    }
    return Service.#start(binary);
  }

  static async #start(binary: string): Promise<Service> {
    const folder = mkdtempSync(join(tmpdir(), "toolgate-"));
    const settings = join(folder, "config", "toolgate");
    mkdirSync(settings, { recursive: true });
    writeFileSync(join(settings, "toolgate.toml"), "");
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TOOLGATE_"));
    const child = spawn(binary, ["serve"], {
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
      env: {
        ...Object.fromEntries(inherited),
        TOOLGATE_LOG_FORMAT: "json",
        TOOLGATE_SERVER_LISTEN: "127.0.0.1:0",
        TOOLGATE_SERVER_ADMIN_LISTEN: "127.0.0.1:0",
        TOOLGATE_STORE_PATH: join(folder, "data"),
        XDG_CONFIG_HOME: join(folder, "config"),
      },
    });
    const stop = async () => {
      await end(child);
      rmSync(folder, { recursive: true });
    };
    let target: string;
    try {
      const { grpc, admin } = await addresses(child.stderr);
      await ready(child, admin);
      target = grpc;
    } catch (error) {
      await stop();
      throw error;
    }
    return new Service(target, stop, (text) => {
      writeFileSync(join(settings, "toolgate.toml"), text);
      child.kill("SIGHUP");
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop();
  }
}

/** Keeps warnings, without those of conversations that are as short as these. */
export function told(warnings: string[]): (warning: string) => void {
  return (warning) => {
    if (!warning.startsWith("tools and system prompt are")) warnings.push(warning);
  };
}

/** A tenant that no other test has. */
export function freshTenant(): string {
  return `ts-${crypto.randomUUID()}`;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill();
  await once(child, "exit");
}

interface Addresses {
  readonly grpc: string;
  readonly admin: string;
}

/** Where a service says that it serves. Its log is read on, so that it never waits for a reader. */
async function addresses(log: Readable): Promise<Addresses> {
  const said: string[] = [];
  const lines = createInterface({ input: log });
  return await new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      said.push(line);
      if (!line.startsWith("{")) return;
      const { grpc, admin } = JSON.parse(line) as Partial<Addresses>;
      if (grpc !== undefined && admin !== undefined) resolve({ grpc, admin });
    });
    lines.once("close", () => {
      reject(new Error(`the service ended:\n${said.join("\n")}`));
    });
  });
}

async function ready(child: ChildProcess, admin: string): Promise<void> {
  const giveUp = performance.now() + START_MS;
  while (performance.now() < giveUp) {
    if (child.exitCode !== null) throw new Error(`the service exited with ${String(child.exitCode)}`);
    const answer = await fetch(`http://${admin}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return;
    await pause(50);
  }
  throw new Error(`the service is not ready within ${String(START_MS)} ms`);
}
