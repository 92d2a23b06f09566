/** The messages, enums and services of toolgate.v1, generated from `proto/`. */
export * from "./gen/toolgate/v1/catalog_pb.js";
export * from "./gen/toolgate/v1/error_pb.js";
export * from "./gen/toolgate/v1/memory_pb.js";
export * from "./gen/toolgate/v1/policy_pb.js";
export * from "./gen/toolgate/v1/router_pb.js";
export * from "./gen/toolgate/v1/state_pb.js";
export * from "./gen/toolgate/v1/usage_pb.js";
