// Operations that call the service.
import { calls, modelRequest, renderedTools, v1 } from "@toolgate/client";

import { clientOf, timed } from "./clients.mjs";
import { read, write } from "./messages.mjs";

const services = [v1.RouterService, v1.CatalogService, v1.PolicyService, v1.UsageService, v1.MemoryService];

/** Unary methods by their names on the wire: the client has a method of the same name for each. */
const unary = Object.fromEntries(
  services
    .flatMap((service) => service.methods)
    .filter(({ methodKind }) => methodKind === "unary")
    .map((method) => [method.name, (args, client) => callOnce(method, args, client)]),
);

async function callOnce({ localName, input, output }, args, settings) {
  const answer = await clientOf(settings)[localName](read(input, args.request), timed(args));
  return write(output, answer);
}

/** A listing through the client's iteration over all pages. */
function listing(method, requestSchema, itemSchema) {
  return async (args, settings) => {
    const items = [];
    for await (const item of clientOf(settings)[method](read(requestSchema, args.request), timed(args))) {
      items.push(write(itemSchema, item));
    }
    return { items };
  };
}

/** Routes, and gives the rendered tools of the answer. */
async function rendered(args, settings) {
  const turn = await clientOf(settings).route(read(v1.RouteRequestSchema, args.request), timed(args));
  const tools = renderedTools(turn);
  const losses = turn.rendered.losses.map(({ modelName, pointer, keyword, message }) => ({
    tool: modelName,
    pointer,
    keyword,
    note: message,
  }));
  return { tools, losses };
}

/** Routes, and gives what to send to the model. */
async function requested(args, settings) {
  const turn = await clientOf(settings).route(read(v1.RouteRequestSchema, args.request), timed(args));
  const { tools, messages, betas, ledger, strategy, reason, reasonMessage } = modelRequest(turn);
  return {
    ...{ tools, messages, betas, ledger },
    strategy: v1.PromptStrategy[strategy],
    reason: v1.StrategyReason[reason],
    reason_message: reasonMessage,
    handle: turn.activeSetHandle,
  };
}

async function answerSearch({ call, handle, state, detail, timeout }, settings, line) {
  const answer = await clientOf(settings).answerSearch(
    calls.of(call.tool, asWritten(call.arguments, line), call.call_id),
    {
      ...(handle ? { handle } : {}),
      ...(state ? { state: read(v1.AgentStateSchema, state) } : {}),
      ...(detail ? { detail: v1.Detail[detail.replace(/^DETAIL_/, "").toUpperCase()] } : {}),
    },
    timed({ timeout }),
  );
  const { text, failed, tools } = answer;
  return { text, failed, handle: answer.handle, tools: tools.map(({ modelName }) => modelName) };
}

/** A count such as 5.0 is whole once it is parsed: of such a request, the arguments are as the line has them. */
function asWritten(args, line) {
  const count = /"max_results"\s*:\s*([0-9]+\.0+)\b/.exec(line)?.[1];
  if (count === undefined || typeof args !== "object") return args;
  return JSON.stringify({ ...args, max_results: "" }).replace('"max_results":""', `"max_results":${count}`);
}

export const calling = {
  ...unary,
  list_servers: listing("listServers", v1.ListServersRequestSchema, v1.McpServerSchema),
  list_tools: listing("listTools", v1.ListToolsRequestSchema, v1.ToolSchema),
  check_policy: listing("checkPolicy", v1.CheckPolicyRequestSchema, v1.PolicyVerdictSchema),
  answer_search: answerSearch,
  rendered,
  model_request: requested,
};
