/** Toolgate's client for Node: gRPC over HTTP/2. `@toolgate/client/web` is the one over `fetch`. */
import { RemoteClient } from "./client.js";
import { connectHttp2 } from "./http2.js";
import { type ClientOptions, readOptions } from "./options.js";
import { DEFAULT_TARGET } from "./target.js";

export * from "./api.js";

/** A client of Toolgate over HTTP/2. It connects on its first call. */
export class Client extends RemoteClient {
  /**
   * @param target `host:port`, `http://host:port`, or `https://host:port` for TLS.
   * @throws TypeError a target without a port or with a path, or options that can't be.
   */
  constructor(target: string = DEFAULT_TARGET, options: ClientOptions = {}) {
    const settings = readOptions(target, options, ["grpc"]);
    super(settings, connectHttp2(settings));
  }
}
