/** Runs in the page: the package as a bundler for browsers takes it, one conversation by each protocol. */
import { calls, Client, type Protocol, renderedTools, ToolgateError, v1 } from "@toolgate/client/web";

/** Says what to do, and where. */
export interface Task {
  readonly target: string;
  readonly tenant: string;
  readonly protocol: Protocol;
  /** The text of an MCP server's `tools/list`. */
  readonly toolsList: string;
}

/** Reports the outcome. */
export interface Outcome {
  readonly first: string | undefined;
  readonly verdicts: boolean[];
  readonly listed: number;
  readonly refused: { code: string; reason: string; field: string };
  readonly revision: string;
}

/** Registers, routes, gates, lists, fails a call, and watches, which Connect with JSON can't. */
export async function run({ target, tenant, protocol, toolsList }: Task): Promise<Outcome> {
  const client = new Client(target, { tenant, protocol, timeoutMs: 30_000 });
  try {
    await client.registerServer({ server: "slack", toolsListJson: toolsList });
    const render = { format: v1.ToolFormat.ANTHROPIC };
    const turn = await client.route({ intents: [{ text: "post in the team's channel" }], render });
    const tools = renderedTools<{ name: string }>(turn);
    const post = "mcp__slack__slack_post_message";
    const { verdicts } = await client.gate({
      activeSetHandle: turn.activeSetHandle,
      calls: [calls.of(post, { channel_id: "C1", text: "größer \u{1F600}" }), calls.of(post, {})],
    });
    let listed = 0;
    for await (const tool of client.listTools({ pageSize: 3 })) listed += tool.name === "" ? 0 : 1;
    return {
      first: tools[0]?.name,
      verdicts: verdicts.map(({ allowed }) => allowed),
      listed,
      refused: await refusal(client),
      revision: protocol === "connect" ? "" : await firstRevision(client),
    };
  } finally {
    client.close();
  }
}

async function refusal(client: Client): Promise<Outcome["refused"]> {
  try {
    await client.route({});
  } catch (error) {
    if (!(error instanceof ToolgateError)) throw error;
    const { code, reason, fieldViolations } = error;
    return { code, reason, field: fieldViolations[0]?.field ?? "" };
  }
  throw new Error("a request without intents was taken");
}

async function firstRevision(client: Client): Promise<string> {
  for await (const { catalogRevision } of client.watchCatalog()) {
    return String(catalogRevision);
  }
  throw new Error("the watch ended");
}

Object.assign(globalThis, { run });
