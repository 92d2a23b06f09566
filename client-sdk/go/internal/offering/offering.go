// Package offering holds what the client and package history both know of the search tool.
package offering

// SearchToolName is the name of the search tool.
const SearchToolName = "toolgate_search_tools"
