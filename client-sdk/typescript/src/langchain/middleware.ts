/** The middleware: routes before the model, shows it the active set, gates its calls after it. */
import type { StructuredToolInterface } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import { createMiddleware } from "langchain";
import { z } from "zod";

import type { RemoteClient } from "../client.js";
import type { McpClient } from "../mcp.js";
import { Gatekeeper, type Held } from "../middleware.js";
import { type Report, reportOf } from "../report.js";
import { ServedServers } from "../serving.js";
import { among, servingOf } from "../settings.js";
import { ManagedTools } from "./managed.js";
import { ListedMcp } from "./mcp.js";
import type { FromMcpOptions, ToolgateMiddlewareOptions } from "./options.js";
import { type AgentState, type Asking, Steps } from "./steps.js";
import { answeringErrors, registered } from "./tools.js";

/** Entry of the middleware in the graph's state, and so in its checkpoints. */
const stateSchema = z.object({ _toolgate: z.custom<Held>().optional() });

/** The steps of each middleware. */
const known = new WeakMap<object, Steps>();

/**
 * Returns the steps of a middleware.
 *
 * @throws TypeError another middleware than Toolgate's.
 */
export function stepsOf(middleware: object): Steps {
  const found = known.get(middleware);
  if (found === undefined) throw new TypeError("this is no middleware of Toolgate's: make one with fromMcp");
  return found;
}

/** Toolgate's middleware. */
export type ToolgateMiddleware = ReturnType<typeof toolgateMiddleware>;

/**
 * Shows the model the active set of its turn, and lets only calls run that Gate allows.
 *
 *     const agent = createAgent({ model, middleware: [toolgateMiddleware(client, tools)] });
 *
 * Each model call is routed by the user's last message and, within a turn, by what the last tool answered. Calls that
 * may not run, whatever names they have, are answered with the refusal, in words for the model, so that it can correct
 * itself. A middleware that adds tools of its own in `wrapModelCall` goes before this one: calls of tools that this one
 * does not know of are refused. Where tools are
 * deferred, the model also sees a search for them, whose calls are answered here: what it finds is in the active set from
 * then on. Everything that a conversation needs is in the graph's state: one instance serves any number of them, and a
 * checkpointed one goes on elsewhere.
 *
 * When Toolgate can't be reached, the model keeps the active set that it has, or sees all tools; calls are refused until
 * they can be checked.
 *
 * @param tools all tools that Toolgate manages, under model-facing names (`modelFacing`). They are registered with the
 *   agent; don't give them to `createAgent` too. Tools given there are always shown and never gated.
 * @throws TypeError tools under other names, or no such strategy.
 */
export function toolgateMiddleware(
  client: RemoteClient,
  tools: readonly StructuredToolInterface[],
  options: ToolgateMiddlewareOptions = {},
) {
  const gatekeeper = new Gatekeeper(client, [], options);
  return middlewareOf(gatekeeper, new ManagedTools(gatekeeper, tools), options);
}

/**
 * The middleware over tools that come from no MCP server, which are registered with their schemas, and again after the service
 * lost its catalog. Turns are routed among these servers alone, unless `route` names others.
 *
 *     const agent = createAgent({ model, middleware: [await fromTools(client, { notes: [find, erase] })] });
 *
 * @param tools the tools, by the names of the servers that they are to be in the catalog.
 * @throws TypeError settings of a server that is not among them.
 * @throws ToolgateError a registration failed.
 */
export async function fromTools(
  client: RemoteClient,
  tools: Readonly<Record<string, readonly StructuredToolInterface[]>>,
  options: FromMcpOptions = {},
) {
  const served = new ServedServers(client, Object.keys(tools), servingOf(options));
  const taken = await registered(served, tools);
  const settings = among(served.names, options);
  const gatekeeper = new Gatekeeper(client, [], settings, served);
  return middlewareOf(gatekeeper, new ManagedTools(gatekeeper, taken), settings);
}

/**
 * The middleware over MCP servers, whose tools are registered as the servers list them, and again after the service lost its
 * catalog. Turns are routed among these servers alone, unless `route` names others.
 *
 *     const mcp = new Client({ name: "agent", version: "1" });
 *     await mcp.connect(transport);
 *     const agent = createAgent({ model, middleware: [await fromMcp(client, { everything: mcp })] });
 *
 * A server that can't be listed is left out with a warning, and so is each tool that is rejected or waits for approval.
 *
 * After a server said that its tools changed (`notifications/tools/list_changed`), the next step registers and shows what it lists
 * by then, in agents that exist too. `refresh` of the middleware does so at once, for servers that don't say it. It throws
 * ToolgateError where a registration fails.
 *
 * @param servers connected clients of `@modelcontextprotocol/sdk`, by the servers' names in the catalog; the caller closes
 *   them.
 * @throws TypeError settings of a server that is not among them.
 * @throws ToolgateError a registration failed.
 */
export async function fromMcp(
  client: RemoteClient,
  servers: Readonly<Record<string, McpClient>>,
  options: FromMcpOptions = {},
) {
  const mcp = new ListedMcp(client, servers, servingOf(options));
  await mcp.load();
  const settings = among(mcp.served.names, options);
  const gatekeeper = new Gatekeeper(client, [], settings, mcp.served);
  const managed = new ManagedTools(gatekeeper, mcp.tools, mcp);
  const refresh = async (): Promise<void> => {
    await mcp.load();
    managed.takeOver(mcp.tools);
  };
  return Object.assign(middlewareOf(gatekeeper, managed, settings), { refresh });
}

/** @throws TypeError no such strategy. */
function middlewareOf(gatekeeper: Gatekeeper, managed: ManagedTools, options: ToolgateMiddlewareOptions) {
  const steps = new Steps(gatekeeper, managed, options);
  const middleware = createMiddleware({
    name: "ToolgateMiddleware",
    stateSchema,
    tools: managed.all,
    wrapModelCall: async (request, handler) => {
      const { changed, held } = await steps.routed(request as Asking);
      await handler({ ...request, ...changed } as typeof request);
      // LangChain adds the model's message by itself.
      return new Command({ update: { _toolgate: held } });
    },
    // Tools that came after the agent was made are not among those that it runs.
    ...(managed.mayChange ? { wrapToolCall: answeringErrors((name) => managed.named(name)) } : {}),
    ...reporting(options),
    afterModel: {
      canJumpTo: ["model"],
      hook: async (state, runtime) => {
        const gated = await steps.gated(state, runtime);
        if (gated === undefined) {
          return undefined;
        }
        const { update, isDone } = gated;
        // Where no call is left to run, LangChain would take the turn for over.
        return isDone ? { ...update, jumpTo: "model" as const } : update;
      },
    },
  });
  known.set(middleware, steps);
  return Object.assign(middleware, { report: reportIn });
}

/** The hook that reports after each run; none where nobody is to be told. */
function reporting({ onReport }: ToolgateMiddlewareOptions) {
  if (onReport === undefined) {
    return {};
  }
  const afterAgent = (state: AgentState, runtime: unknown): undefined => {
    onReport(reportIn(state), { state, runtime });
  };
  return { afterAgent };
}

/**
 * Reports what a conversation cost so far, beside sending all tools.
 *
 * @param state the graph's state, such as `(await agent.graph.getState(thread)).values`.
 */
function reportIn(state: { readonly _toolgate?: Held | undefined }): Report {
  return reportOf(state._toolgate?.spent);
}
