/** The tools that Toolgate manages in an agent, which go with what MCP servers list. */
import type { StructuredToolInterface } from "@langchain/core/tools";

import type { Gatekeeper } from "../middleware.js";
import type { ListedMcp } from "./mcp.js";
import { searchTool } from "./tools.js";

/** Tools under model-facing names, and the search for them. */
export class ManagedTools {
  readonly #gatekeeper: Gatekeeper;
  readonly #mcp: ListedMcp | undefined;
  readonly #search: readonly StructuredToolInterface[];
  /** An agent keeps the tools that it was made with: one that a refresh took away is no tool of the agent's own. */
  readonly #taken = new WeakSet<object>();
  #listed: readonly StructuredToolInterface[] = [];
  #byName: ReadonlyMap<string, StructuredToolInterface> = new Map();

  /**
   * Takes tools over.
   *
   * @param gatekeeper is told of their names.
   * @param mcp lists the tools, where MCP servers have them.
   * @throws TypeError names that are not model-facing.
   */
  constructor(gatekeeper: Gatekeeper, tools: readonly StructuredToolInterface[], mcp?: ListedMcp) {
    this.#gatekeeper = gatekeeper;
    this.#mcp = mcp;
    this.#search = gatekeeper.searches ? [searchTool()] : [];
    this.takeOver(tools);
  }

  /** True if there may be other tools later. */
  get mayChange(): boolean {
    return this.#mcp !== undefined;
  }

  /** The tools without the search. */
  get listed(): readonly StructuredToolInterface[] {
    return this.#listed;
  }

  /** The search, where the model may search, and the tools. */
  get all(): StructuredToolInterface[] {
    return [...this.#search, ...this.#listed];
  }

  /** Finds a tool or the search by its name. */
  named(name: string): StructuredToolInterface | undefined {
    return this.#byName.get(name);
  }

  /** Tells whether a tool is or was one of these, and so none of the agent's own. */
  hasTaken(tool: object): boolean {
    return this.#taken.has(tool);
  }

  /**
   * Manages these tools instead.
   *
   * @throws TypeError names that are not model-facing.
   */
  takeOver(listed: readonly StructuredToolInterface[]): void {
    this.#gatekeeper.manage(listed.map(({ name }) => name));
    this.#listed = listed;
    this.#byName = new Map(this.all.map((tool) => [tool.name, tool]));
    for (const tool of this.all) this.#taken.add(tool);
  }

  /**
   * Takes over what MCP servers list that said since that their tools changed.
   *
   * @throws ToolgateError a registration failed.
   */
  async follow(): Promise<void> {
    if (this.#mcp === undefined) return;
    await this.#mcp.follow();
    if (this.#mcp.tools !== this.#listed) this.takeOver(this.#mcp.tools);
  }
}
