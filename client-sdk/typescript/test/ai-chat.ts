/** The script of the model, for the models of the Vercel AI SDK. */
import type { MockLanguageModelV3 } from "ai/test";

import { answer, assistant, type ChatTool, next } from "./talk.js";

type Asked = Parameters<MockLanguageModelV3["doGenerate"]>[0];
type Answer = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;
type Message = Asked["prompt"][number];
type Output = Extract<
  Extract<Message, { role: "tool" }>["content"][number],
  { type: "tool-result" }
>["output"];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Answers a request by the script. */
export function respond({ prompt, tools = [] }: Asked): Promise<Answer> {
  const call = next(tools.map(definition), prompt.flatMap(chat));
  const [content, reason] =
    call === undefined
      ? [{ type: "text" as const, text: answer }, "stop" as const]
      : [
          {
            ...{ type: "tool-call" as const, toolCallId: `call_${String(prompt.length)}` },
            ...{ toolName: call.name, input: JSON.stringify(call.args) },
          },
          "tool-calls" as const,
        ];
  const finishReason = { unified: reason, raw: undefined };
  return Promise.resolve({ content: [content], finishReason, usage, warnings: [] });
}

/** A definition as Chat Completions take it. */
function definition(tool: NonNullable<Asked["tools"]>[number]): ChatTool {
  if (tool.type !== "function") throw new TypeError(`${tool.name} is none of ours`);
  const { name, description, inputSchema } = tool;
  const described = { name, description, parameters: inputSchema };
  return { type: "function", function: described };
}

/** A result as a text. */
function written(output: Output): string {
  if (output.type === "text" || output.type === "error-text") return output.value;
  if (output.type !== "content") return JSON.stringify("value" in output ? output.value : output);
  return output.value.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}

/** A message as Chat Completions take it; results are one each. */
function chat(message: Message): object[] {
  if (message.role === "system") return [{ role: "system", content: message.content }];
  if (message.role === "tool") {
    const results = message.content.filter((part) => part.type === "tool-result");
    return results.map(({ toolCallId, output }) => ({
      ...{ role: "tool", tool_call_id: toolCallId },
      content: written(output),
    }));
  }
  const parts: { type: string; text?: string }[] = message.content;
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  if (message.role === "user") return [{ role: "user", content: text }];
  const made = message.content.filter((part) => part.type === "tool-call");
  const calls = made.map(({ toolCallId: id, toolName: name, input }) => ({
    ...{ id, name },
    arguments: JSON.stringify(input),
  }));
  return [assistant(text, calls)];
}
