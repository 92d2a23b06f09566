/** A service in this process: what a test says it answers, over HTTP/2 or HTTP/1.1, on a free port. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createSecureServer, createServer as createServer2, type SecureServerOptions } from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";

import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

import { v1 } from "../src/node.js";

/** Answers by method. */
export interface Answers {
  readonly router?: Partial<ServiceImpl<typeof v1.RouterService>>;
  readonly catalog?: Partial<ServiceImpl<typeof v1.CatalogService>>;
}

/** A listening service; at the end of its scope it closes. */
export class Fake implements AsyncDisposable {
  readonly target: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    this.target = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  /** Serves gRPC, gRPC-Web and Connect over HTTP/2. */
  static http2(answers: Answers): Promise<Fake> {
    return Fake.listen(createServer2(connectNodeAdapter({ routes: routesOf(answers) })));
  }

  /** Serves the same over TLS. */
  static tls(answers: Answers, options: SecureServerOptions): Promise<Fake> {
    return Fake.listen(createSecureServer(options, connectNodeAdapter({ routes: routesOf(answers) })));
  }

  /** Serves gRPC-Web and Connect over HTTP/1.1, as `fetch` asks for them. */
  static http1(answers: Answers): Promise<Fake> {
    const adapter = connectNodeAdapter({ routes: routesOf(answers) });
    return Fake.listen(createServer(adapter as (request: IncomingMessage, response: ServerResponse) => void));
  }

  /** Listens with any server. */
  static async listen(server: Server): Promise<Fake> {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Fake(server);
  }

  /** Counts the open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Cuts all connections, as a process that dies does. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}

function routesOf({ router, catalog }: Answers): (routes: ConnectRouter) => void {
  return (routes) => {
    if (router !== undefined) routes.service(v1.RouterService, router);
    if (catalog !== undefined) routes.service(v1.CatalogService, catalog);
  };
}
