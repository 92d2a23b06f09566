/** Requests as callers write them: names that are not in the contract are refused before anything is sent. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";

import { isObject } from "./json.js";

const OURS = "toolgate.";

/**
 * Refuses what is no request: TypeScript does so by itself, JavaScript does not.
 *
 * @param where the request's name in an error.
 * @throws TypeError no object, a name that the message does not have, or no list where one belongs.
 */
export function refuseUnknown(message: DescMessage, request: unknown, where: string): void {
  if (!isObject(request)) {
    throw new TypeError(`${where}: must be an object`);
  }
  if (request["$typeName"] === message.typeName) {
    return; // A message that was made or received already.
  }
  for (const [name, value] of Object.entries(request)) {
    if (!Object.hasOwn(message.field, name)) {
      if (message.oneofs.some(({ localName }) => localName === name)) continue;
      const known = message.fields.map(({ localName }) => localName).join(", ");
      throw new TypeError(`${where} has no ${name}; it has ${known}`);
    }
    const field = message.field[name];
    if (field !== undefined && value !== undefined) refuseWithin(field, value, `${where}.${name}`);
  }
}

function refuseWithin(field: DescField, value: unknown, where: string): void {
  if (field.fieldKind === "list") {
    if (!Array.isArray(value)) throw new TypeError(`${where}: must be a list`);
    if (field.listKind === "message") {
      for (const [at, item] of value.entries()) refuseOurs(field.message, item, `${where}[${String(at)}]`);
    }
  } else if (field.fieldKind === "message") {
    refuseOurs(field.message, value, where);
  }
}

/** Messages of others, such as timestamps and free JSON, have forms of their own. */
function refuseOurs(message: DescMessage, value: unknown, where: string): void {
  if (message.typeName.startsWith(OURS)) refuseUnknown(message, value, where);
}
