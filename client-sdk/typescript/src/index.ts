/** Toolgate's client over `fetch`, for browsers and edge runtimes: gRPC-Web, or Connect with JSON. */
import { RemoteClient } from "./client.js";
import { type ClientOptions, readOptions } from "./options.js";
import { DEFAULT_TARGET } from "./target.js";
import { connectWeb } from "./web.js";

export * from "./api.js";

/** A client of Toolgate over `fetch`. */
export class Client extends RemoteClient {
  /**
   * @param target `host:port`, `http://host:port`, or `https://host:port` for TLS.
   * @throws TypeError a target without a port or with a path, or options that can't be.
   */
  constructor(target: string = DEFAULT_TARGET, options: ClientOptions = {}) {
    const settings = readOptions(target, options, ["grpc-web", "connect"]);
    super(settings, connectWeb(settings));
  }
}
