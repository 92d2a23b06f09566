// Operations on the helpers: nothing is sent.
import {
  allOf,
  announce,
  anyOf,
  answerOf,
  applyPool,
  calls,
  hasPriorToolOutput,
  isAuthenticated,
  layout,
  milestoneReached,
  not,
  SEARCH_TOOL,
  toToolError,
  toToolReferences,
  v1,
} from "@toolgate/client";

import { read, write } from "./messages.mjs";

const readers = {
  anthropic: calls.fromAnthropic,
  openai: calls.fromOpenAI,
  openai_responses: calls.fromOpenAIResponses,
  gemini: calls.fromGemini,
};
const builders = {
  is_authenticated: isAuthenticated,
  has_prior_tool_output: hasPriorToolOutput,
  milestone_reached: milestoneReached,
  all_of: (operands) => allOf(...operands.map(built)),
  any_of: (operands) => anyOf(...operands.map(built)),
  not: (operand) => not(built(operand)),
};

function built(expression) {
  const [[kind, operand]] = Object.entries(expression);
  return builders[kind](operand);
}

function ofWire(tool) {
  return read(v1.ActiveToolSchema, tool);
}

function laidOut({ system, summaries, content, tools }) {
  const defined = tools.map(ofWire);
  return {
    anthropic_system: layout.anthropicSystem(system, summaries),
    openai_system: layout.openaiSystem(system, summaries),
    user_message: layout.userMessage(content, defined),
    responses_input: layout.responsesInput(content, defined),
  };
}

function announced(args) {
  const { added, ...said } = announce(args.searchable, {
    loaded: args.loaded ?? [],
    announced: args.announced ?? undefined,
  });
  return { ...said, added: [...added] };
}

function searchTool() {
  return {
    name: SEARCH_TOOL.name,
    model_name: SEARCH_TOOL.modelName,
    description: SEARCH_TOOL.description,
    input_schema: JSON.parse(SEARCH_TOOL.inputSchemaJson),
    annotations: JSON.parse(SEARCH_TOOL.annotationsJson),
    signature: SEARCH_TOOL.signature,
    signature_lossy: SEARCH_TOOL.signatureLossy,
    schema_tokens: SEARCH_TOOL.schemaTokens,
  };
}

function searchAnswer({ found }) {
  const { text, failed } = answerOf(read(v1.SearchToolsResponseSchema, found));
  return { text, failed };
}

export const helping = {
  layout: laidOut,
  announce: announced,
  search_tool: searchTool,
  search_answer: searchAnswer,
  search_references: ({ found }) => ({
    content: toToolReferences(read(v1.SearchToolsResponseSchema, found)),
  }),
  tool_error: ({ verdict }) => toToolError(read(v1.GateVerdictSchema, verdict)),
  read_call: ({ provider, call }) =>
    write(v1.RequestedCallSchema, readers[provider](call), { alwaysEmitImplicit: true }),
  apply_pool: ({ pool, held }) => ({ held: [...applyPool(read(v1.SummaryPoolDeltaSchema, pool), held)] }),
  precondition: ({ expr }) => write(v1.PreconditionSchema, built(expr)),
};
