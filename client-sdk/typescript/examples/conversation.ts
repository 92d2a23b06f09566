import {
  agentState,
  type Client,
  calls,
  renderedTools,
  SEARCH_TOOL,
  toToolError,
  v1,
} from "@toolgate/client";

export class Conversation {
  messages: object[] = [];
  #handle = "";
  #snapshot = "";

  constructor(
    readonly client: Client,
    readonly anthropic: Anthropic,
    readonly model: string,
    readonly runTool: (server: string, name: string, args: object) => Promise<string>,
  ) {}

  async say(text: string): Promise<string> {
    this.messages.push({ role: "user", content: text });
    for (;;) {
      const scopes = ["chat:write"];
      // Discoveries and calls are read from the messages, so that preconditions know of them.
      const said = agentState({ messages: this.messages, snapshot: this.#snapshot, scopes });
      const activeSetHandle = this.#handle;
      // The few tools with schemas, and the search that makes any other of them callable.
      const render = { format: v1.ToolFormat.ANTHROPIC, searchTool: true };
      const turn = await this.client.route({ intents: [{ text }], state: said, activeSetHandle, render });
      this.#handle = turn.activeSetHandle;
      this.#snapshot = turn.conversationSnapshot;
      const { content } = await this.anthropic.messages.create({
        model: this.model,
        max_tokens: 1024,
        system: "Be brief.",
        tools: renderedTools(turn),
        messages: this.messages,
      });
      this.messages.push({ role: "assistant", content });
      const uses = content.filter((block) => block.type === "tool_use");
      if (uses.length === 0) {
        return content.map((block) => (block.type === "text" ? block.text : "")).join("");
      }
      // Within the turn, the snapshot stands for the messages.
      const state = agentState({ snapshot: this.#snapshot, scopes });
      const results: object[] = [];
      for (const use of uses) results.push(await this.result(use, state));
      this.messages.push({ role: "user", content: results });
    }
  }

  async result(use: ToolUse, state: v1.AgentState): Promise<object> {
    const call = calls.fromAnthropic(use);
    const done = { type: "tool_result", tool_use_id: use.id };
    if (call.tool === SEARCH_TOOL.modelName) {
      const answer = await this.client.answerSearch(call, { handle: this.#handle, state });
      // The next `route` keeps what was found, with its schemas.
      this.#handle = answer.handle;
      return { ...done, content: answer.text, is_error: answer.failed };
    }
    const asked = { activeSetHandle: this.#handle, calls: [call], state };
    const [verdict] = (await this.client.gate(asked)).verdicts;
    if (!verdict?.allowed) {
      // The refusal says what to do instead: the model corrects itself.
      return { ...done, content: JSON.stringify(verdict && toToolError(verdict)), is_error: true };
    }
    const args = verdict.argumentsJson ? (JSON.parse(verdict.argumentsJson) as object) : use.input;
    return { ...done, content: await this.runTool(verdict.server, verdict.name, args) };
  }

  compact(summary: string): void {
    // Discoveries and calls are in the snapshot, and outlive the messages that said so.
    this.messages = [{ role: "user", content: summary }];
  }
}

// The part of Anthropic's SDK that is needed here.
interface Anthropic {
  messages: { create(request: object): Promise<{ content: (ToolUse | { type: "text"; text: string })[] }> };
}
interface ToolUse {
  type: "tool_use";
  id: string;
  name: string;
  input: object;
}
