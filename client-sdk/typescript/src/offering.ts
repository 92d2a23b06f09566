/** Offering SearchTools to a model: the tool to define for it, and the answer to its call. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";

import { ToolgateError } from "./errors.js";
import {
  type ActiveTool,
  ActiveToolSchema,
  Detail,
  type RequestedCall,
  type SearchToolsRequestSchema,
  type SearchToolsResponse,
} from "./gen/toolgate/v1/router_pb.js";
import type { AgentStateSchema } from "./gen/toolgate/v1/state_pb.js";
import { objectIn } from "./json.js";
import { toToolResultText } from "./searching.js";

const NAME = "toolgate_search_tools";
const DESCRIPTION =
  "Finds tools that are not defined here and makes them callable: once it has answered, call " +
  "what it found. Search before you say that something can't be done.";
const QUERY =
  "`select:name,name` for tools by their names, a server's name for all of its tools, keywords, " +
  "of which `+word` must match, or a sentence that says what you want to do.";
const SCHEMA = {
  type: "object",
  properties: {
    query: { type: "string", description: QUERY },
    max_results: {
      type: "integer",
      minimum: 1,
      maximum: 100,
      description: "The most tools to find. Default: 5.",
    },
  },
  required: ["query"],
};
/** A count such as 5.0, which is 5 once it is parsed, and which no other client takes. */
const TENTHS = /"max_results"\s*:\s*[0-9]+\.0+\b/;
const QUERY_LIMIT = "limits.max_intent_size";

/**
 * The search as a tool to define for the model, beside the active set in `layout`; a request with `render` and its
 * `searchTool` has the service define it. Put it first and
 * leave it there, so that the cached prefix holds. Its calls are for `client.answerSearch`; `gate` does not know it.
 */
export const SEARCH_TOOL: ActiveTool = /*@__PURE__*/ Object.freeze(
  create(ActiveToolSchema, {
    name: NAME,
    modelName: NAME,
    description: DESCRIPTION,
    inputSchemaJson: JSON.stringify(SCHEMA),
    annotationsJson: '{"title":"Find tools","readOnlyHint":true}',
    signature: `${NAME}(query: string, max_results?: integer) - ${DESCRIPTION.split(". ")[0] ?? ""}.`,
    schemaTokens: 145,
    signatureLossy: true,
  }),
);

/** A model's call of `SEARCH_TOOL`, as `calls.fromAnthropic` and its like read it. */
export type SearchCall = Pick<RequestedCall, "argumentsJson">;

/** Settings of a search beside the model's call. */
export interface SearchTurn {
  /** The tenant. Default: the client's. */
  readonly tenant?: string;
  /** The handle of this turn, to add the tools to. Default: a new one. */
  readonly handle?: string;
  /** The agent's state. Default: nothing granted, nothing done. */
  readonly state?: MessageInitShape<typeof AgentStateSchema>;
  /**
   * Form of each tool in the text: with `REFERENCES` (the default) its name, since the next `route` with the
   * answer's handle brings the definition; with `SIGNATURES` or `SCHEMAS` that as well.
   */
  readonly detail?: Detail;
}

/** The answer to a model's call of `SEARCH_TOOL`. */
export interface SearchAnswer {
  /** The content of the tool result: a JSON object. */
  readonly text: string;
  /** True when the call was mistaken; the text says how. */
  readonly failed: boolean;
  /** The handle to carry on with: what was found may be called with it, and the next `route` keeps it. */
  readonly handle: string;
  /** The tools found. */
  readonly tools: readonly ActiveTool[];
  /** All that was found; undefined when the call was mistaken. */
  readonly found: SearchToolsResponse | undefined;
}

/** The answer with what was found; `route` reads it again among the messages. */
export function answerOf(found: SearchToolsResponse): SearchAnswer {
  const { tools, activeSetHandle: handle } = found;
  return { text: toToolResultText(found), failed: false, handle, tools, found };
}

/** Runs a model's call with a client's search; see `Client.answerSearch`. */
export async function answerSearch(
  search: (request: MessageInitShape<typeof SearchToolsRequestSchema>) => Promise<SearchToolsResponse>,
  call: SearchCall,
  { tenant = "", handle = "", state, detail = Detail.REFERENCES }: SearchTurn,
): Promise<SearchAnswer> {
  const asked = read(call.argumentsJson);
  if (typeof asked === "string") {
    return mistaken(asked, handle);
  }
  const stated = state === undefined ? {} : { state };
  try {
    return answerOf(await search({ ...asked, ...stated, tenant, detail, activeSetHandle: handle }));
  } catch (error) {
    if (error instanceof ToolgateError && isTheModels(error)) return mistaken(error.detail, handle);
    throw error;
  }
}

/** The query and the count of a model's call, or what is wrong with it. */
function read(written: string): { query: string; maxResults?: number } | string {
  const asked = objectIn(written);
  if (asked === undefined) {
    return "the arguments must be a JSON object";
  }
  const { query, max_results: most } = asked;
  // A lone surrogate is what JSON can carry and the wire can't.
  if (typeof query !== "string" || !query.isWellFormed()) {
    return "query: must be a text";
  }
  if (most === undefined || most === null) {
    return { query };
  }
  const isWhole = Number.isInteger(most) && !TENTHS.test(written);
  if (typeof most !== "number" || !isWhole || most < 1 || most > 100) {
    return "max_results: must be a whole number from 1 to 100";
  }
  return { query, maxResults: most };
}

function mistaken(message: string, handle: string): SearchAnswer {
  const text = JSON.stringify({ error: "arguments_invalid", message });
  return { text, failed: true, handle, tools: [], found: undefined };
}

/** Tells whether the service refused what the model wrote, and not what the caller gave. */
function isTheModels(error: ToolgateError): boolean {
  const fields = error.fieldViolations.map(({ field }) => field);
  const isWritten = (field: string) => field === "query" || field === "max_results";
  return error.metadata["limit"] === QUERY_LIMIT || (fields.length > 0 && fields.every(isWritten));
}
