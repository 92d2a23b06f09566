/**
 * Preconditions: what must hold of an agent's state before a tool is shown or called. At most 64 nodes, nested 8
 * deep.
 *
 *     allOf(isAuthenticated("repo:write"), not(milestoneReached("frozen")))
 */
import { create } from "@bufbuild/protobuf";

import { type Precondition, PreconditionListSchema, PreconditionSchema } from "./gen/toolgate/v1/state_pb.js";

/** Holds when the agent's state grants the scope. */
export function isAuthenticated(scope: string): Precondition {
  return of({ case: "isAuthenticated", value: filled(scope, "isAuthenticated") });
}

/** Holds when a succeeded prior call's tool name begins with the prefix. */
export function hasPriorToolOutput(prefix: string): Precondition {
  return of({ case: "hasPriorToolOutput", value: filled(prefix, "hasPriorToolOutput") });
}

/** Holds when the agent's state names the milestone. */
export function milestoneReached(name: string): Precondition {
  return of({ case: "milestoneReached", value: filled(name, "milestoneReached") });
}

/** Holds when the CEL expression over `state`, `tool`, `principal` and `now` is true. */
export function cel(expression: string): Precondition {
  return of({ case: "cel", value: filled(expression, "cel") });
}

/**
 * Holds when each operand does; an `allOf` among them is merged into this one.
 *
 * @throws TypeError no operand.
 */
export function allOf(...operands: Precondition[]): Precondition {
  return of({ case: "all", value: merged("all", operands) });
}

/**
 * Holds when at least one operand does; an `anyOf` among them is merged into this one.
 *
 * @throws TypeError no operand.
 */
export function anyOf(...operands: Precondition[]): Precondition {
  return of({ case: "any", value: merged("any", operands) });
}

/** Holds when the operand does not; of a `not`, its operand. */
export function not(operand: Precondition): Precondition {
  const { condition } = operand;
  return condition.case === "not" ? condition.value : of({ case: "not", value: operand });
}

function of(condition: Precondition["condition"]): Precondition {
  return create(PreconditionSchema, { condition });
}

function filled(argument: string, predicate: string): string {
  if (argument === "") {
    throw new TypeError(`${predicate} needs a text that is not empty`);
  }
  return argument;
}

type Lists = Extract<Precondition["condition"], { case: "all" | "any" }>;

function merged(kind: Lists["case"], operands: readonly Precondition[]): Lists["value"] {
  const preconditions = operands.flatMap((operand) =>
    operand.condition.case === kind ? operand.condition.value.preconditions : [operand],
  );
  if (preconditions.length === 0) {
    throw new TypeError("at least one precondition is needed");
  }
  return create(PreconditionListSchema, { preconditions });
}
