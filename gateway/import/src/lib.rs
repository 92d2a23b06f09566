//! MCP servers in the configuration files of their hosts: read from them, and a gateway written into them.
