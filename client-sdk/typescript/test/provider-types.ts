/** Requests held to the types of the providers' own packages, as installed from npm, by TypeScript's compiler. */
import { join } from "node:path";

import ts from "typescript";

import { repository } from "./folders.js";

const PACKAGE = join(repository, "client-sdk", "typescript");

/** Where each API's types are, and the names of those of a tool and of a message. */
const TYPES = {
  anthropic: {
    imports: 'import type Anthropic from "@anthropic-ai/sdk";',
    tool: "Anthropic.Beta.BetaToolUnion",
    message: "Anthropic.Beta.BetaMessageParam",
  },
  openai_chat: {
    imports: 'import type { OpenAI } from "openai";',
    tool: "OpenAI.ChatCompletionTool",
    message: "OpenAI.ChatCompletionMessageParam",
  },
  openai_responses: {
    imports: 'import type { OpenAI } from "openai";',
    tool: "OpenAI.Responses.Tool",
    message: "OpenAI.Responses.ResponseInputItem",
  },
  gemini: {
    imports: 'import type { Content, FunctionDeclaration as Declared, Type } from "@google/genai";',
    tool: "Declaration",
    message: "Content",
  },
} as const;

/** The API writes types as plain texts, which TypeScript does not take for members of an enumeration. */
const PLAIN =
  "type Plain<T> = T extends Type ? `${T}` : T extends (infer I)[] ? Plain<I>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;\n" +
  "type Declaration = Plain<Declared>;";

/** APIs whose types are known here. */
export type TypedApi = keyof typeof TYPES;

/** What a request has for its provider. */
export interface Typed {
  readonly name: string;
  readonly tools: readonly unknown[];
  readonly messages: readonly unknown[];
}

/**
 * A request of a framework's library, with what such libraries write in another way than the types say. The AI SDK leaves out
 * `strict` of OpenAI's functions, and of what the model said `type`, `id`, `status` and `annotations`. For Gemini the libraries write
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
  const { role, content } = item as { role?: string; content?: readonly object[] };
  if (role !== "assistant" || content === undefined) return item;
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

/** What the compiler says against requests of an API, by their names; each is checked as if it were written in a program. */
export function mistakesIn(
  api: TypedApi,
  requests: readonly Typed[],
): (readonly [name: string, mistake: string])[] {
  const { imports, tool, message } = TYPES[api];
  const heads = [imports, api === "gemini" ? PLAIN : ""].join("\n").split("\n");
  const lines = requests.map(({ tools, messages }, at) => {
    const checked = `{ tools: (${tool})[]; messages: (${message})[] }`;
    return `export const request${String(at)}: ${checked} = ${JSON.stringify({ tools, messages })};`;
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
