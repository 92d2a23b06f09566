//! The MCP gateway: an MCP server that stands for many. A host sees a few tools that search and call; the tools behind
//! them are found by the routing plane, and each call is judged by its Gate.
