/** Requests held to the types of the providers' own packages, as installed from npm, by TypeScript's compiler. */
import { join } from "node:path";

import ts from "typescript";

import { repository } from "./folders.js";

const PACKAGE = join(repository, "client-sdk", "typescript");

/** Names the package of each API's types, and those of a tool, of a message and of a beta. */
const TYPES = {
  anthropic: {
    imports: 'import type Anthropic from "@anthropic-ai/sdk";',
    tool: "Anthropic.Beta.BetaToolUnion",
    message: "Anthropic.Beta.BetaMessageParam",
    beta: "Named<Anthropic.Beta.AnthropicBeta>",
  },
  openai_chat: {
    imports: 'import type { OpenAI } from "openai";',
    tool: "OpenAI.ChatCompletionTool",
    message: "OpenAI.ChatCompletionMessageParam",
    beta: "never",
  },
  openai_responses: {
    imports: 'import type { OpenAI } from "openai";',
    tool: "OpenAI.Responses.Tool",
    message: "OpenAI.Responses.ResponseInputItem",
    beta: "never",
  },
  gemini: {
    imports: 'import type { Content, FunctionDeclaration as Declared, Type } from "@google/genai";',
    tool: "Declaration",
    message: "Content",
    beta: "never",
  },
} as const;

/** The API writes types as plain texts, which TypeScript does not take for members of an enumeration. */
const PLAIN =
  "type Plain<T> = T extends Type ? `${T}` : T extends (infer I)[] ? Plain<I>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;\n" +
  "type Declaration = Plain<Declared>;";

/** The names of a union that takes any text as well. */
const NAMED = "type Named<T> = T extends unknown ? (string extends T ? never : T) : never;";

/** APIs whose types are known here. */
export type TypedApi = keyof typeof TYPES;

/** Holds what a request has for its provider. */
export interface Typed {
  readonly name: string;
  readonly tools: readonly unknown[];
  readonly messages: readonly unknown[];
  /** Names of betas; absent: none. */
  readonly betas?: readonly string[];
}

/**
 * A request of a framework's library, with what such libraries write in another way than the types say. The AI SDK leaves out
 * `strict` of OpenAI's functions, and of what the model said `type`, `id`, `status` and `annotations`; its version 7 writes a text there. For Gemini the libraries write
 * `type` of schemas in small letters.
 */
export function asTyped(api: "openai_responses" | "gemini", { name, tools, messages }: Typed): Typed {
  if (api === "gemini") {
    return { name, tools: tools.map(inCapitals), messages };
  }
  const strict = tools.map((tool) => ({ strict: null, ...(tool as object) }));
  return { name, tools: strict, messages: messages.map(annotated) };
}

function annotated(item: unknown): unknown {
  const { role, content } = item as { role?: string; content?: string | readonly object[] };
  if (role !== "assistant" || content === undefined || typeof content === "string") return item;
  const parts = content.map((part) => ({ annotations: [], ...part }));
  return { type: "message", id: "", status: "completed", ...(item as object), content: parts };
}

function inCapitals(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inCapitals);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, part]: [string, unknown]) => {
    return [key, key === "type" && typeof part === "string" ? part.toUpperCase() : inCapitals(part)];
  });
  return Object.fromEntries(entries);
}

/** Returns what the compiler says against requests of an API, by their names; each is checked as if a program had it. */
export function mistakesIn(
  api: TypedApi,
  requests: readonly Typed[],
): (readonly [name: string, mistake: string])[] {
  const { imports, tool, message, beta } = TYPES[api];
  const heads = [imports, NAMED, api === "gemini" ? PLAIN : ""].join("\n").split("\n");
  const lines = requests.map(({ tools, messages, betas = [] }, at) => {
    const checked = `{ tools: (${tool})[]; messages: (${message})[]; betas: (${beta})[] }`;
    return `export const request${String(at)}: ${checked} = ${JSON.stringify({ tools, messages, betas })};`;
  });
  const source = [...heads, ...lines].join("\n");
  const path = join(PACKAGE, `checked-${api}.ts`);
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    types: ["node"],
  };
  const host = ts.createCompilerHost(options);
  const files = { ...host };
  host.getSourceFile = (file, ...rest) =>
    file === path
      ? ts.createSourceFile(file, source, ts.ScriptTarget.ES2022)
      : files.getSourceFile(file, ...rest);
  host.fileExists = (file) => file === path || files.fileExists(file);
  host.getCurrentDirectory = () => PACKAGE;
  const program = ts.createProgram([path], options, host);
  const checked = program.getSourceFile(path);
  return ts.getPreEmitDiagnostics(program, checked).map(({ messageText, start = 0 }) => {
    const line = source.slice(0, start).split("\n").length;
    const { name = "the imports" } = requests[line - heads.length - 1] ?? {};
    return [name, ts.flattenDiagnosticMessageText(messageText, "\n")] as const;
  });
}
