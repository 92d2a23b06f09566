/** gRPC-Web's frames: bounds messages, and mends trailers, which travel as the last frame of a body. */
import { Code, ConnectError } from "@connectrpc/connect";

import { MAX_RECEIVED_BYTES } from "./connection.js";
import { mend } from "./details.js";

const PREFIX_BYTES = 5;
const TRAILER = 0x80;

/** Passes frames on, with trailers that the transport can read. */
export function mendedFrames(): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let held: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  let wanted = PREFIX_BYTES;
  return new TransformStream({
    transform(chunk, controller) {
      held.push(chunk);
      bytes += chunk.length;
      while (bytes >= wanted) {
        const all = joined(held, bytes);
        const size = PREFIX_BYTES + lengthOf(all);
        if (size > MAX_RECEIVED_BYTES) {
          throw new ConnectError(
            `the answer has ${String(size)} bytes, more than ${String(MAX_RECEIVED_BYTES)}`,
            Code.ResourceExhausted,
          );
        }
        const isWhole = bytes >= size;
        if (isWhole) controller.enqueue(mended(all.subarray(0, size)));
        const rest = isWhole ? all.subarray(size) : all;
        held = [rest];
        bytes = rest.length;
        wanted = isWhole ? PREFIX_BYTES : size;
      }
    },
    flush(controller) {
      // A frame that was cut short is for the transport to find.
      if (bytes > 0) controller.enqueue(joined(held, bytes));
    },
  });
}

function mended(frame: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const flags = frame[0] ?? 0;
  if ((flags & TRAILER) === 0) {
    return frame;
  }
  const headers = new Headers();
  for (const line of new TextDecoder().decode(frame.subarray(PREFIX_BYTES)).split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.append(line.slice(0, colon).trim(), line.slice(colon + 1).trim());
  }
  mend(headers);
  const lines = [...headers].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return framed(flags, new TextEncoder().encode(lines));
}

function framed(flags: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(PREFIX_BYTES + data.length);
  frame[0] = flags;
  new DataView(frame.buffer).setUint32(1, data.length);
  frame.set(data, PREFIX_BYTES);
  return frame;
}

function lengthOf(frame: Uint8Array<ArrayBuffer>): number {
  return new DataView(frame.buffer, frame.byteOffset, frame.byteLength).getUint32(1);
}

function joined(chunks: Uint8Array<ArrayBuffer>[], bytes: number): Uint8Array<ArrayBuffer> {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) {
    return first;
  }
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
