/** Settings of integrations that register their tools themselves. Knows no framework. */
import type { MiddlewareOptions } from "./middleware.js";
import type { ServingOptions } from "./serving.js";

/** Settings of registrations whose tenant is `route.tenant`. */
export type Registering = Omit<ServingOptions, "tenant">;

/** The settings of registrations, with the tenant that turns are routed for. */
export function servingOf(options: MiddlewareOptions & Registering): ServingOptions {
  const tenant = options.route?.tenant;
  return tenant === undefined ? options : { ...options, tenant };
}

/** The settings of turns that are routed among these servers alone, unless the caller names others. */
export function among<O extends MiddlewareOptions>(names: readonly string[], options: O): O {
  const servers = [...names];
  return { ...options, route: { ...options.route, options: { servers, ...options.route?.options } } };
}
