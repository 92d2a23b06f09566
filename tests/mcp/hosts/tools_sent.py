"""The tables of docs/llm-proxy.md, "Real hosts": what they send with and without the proxy.

    TOOLGATE_BIN=target/debug/toolgate python tests/mcp/hosts/tools_sent.py \\
        --results FILE --write docs/llm-proxy.md

Each host has the same conversation (`working_script`) once without the proxy, once behind `toolgate
run` by each strategy, and, if it has one, once with its own search for tools; its MCP server has 60
and 200 tools. The results are kept in the file, from which conversations are not run again.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# Behind the folders of this one: they have modules of the same names.
sys.path.append(str(Path(__file__).resolve().parents[2] / "e2e"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from catalog_server import catalog_server
from document import rewrite
from hosts import WITH_MODEL, Run
from installing import install
from prompts import Json, Prompt, prompt_of, tokens
from rates import Rates
from scripted_model import DONE, scripted_model
from working_script import REQUEST, Working

COUNTS = (60, 200)
METHODS = ("none", "own", "pass", "envelope", "native", "auto")
NAMES = {"none": "no proxy", "own": "its own search"} | {
    name: f"`{name}`" for name in ("pass", "envelope", "native", "auto")
}


@dataclass(frozen=True)
class Host:
    """A host, and what there is of it."""

    run: str
    package: str
    group: str = "hosts"
    has_search: bool = False
    is_native: bool = False

    @property
    def key(self) -> str:
        """The name by which it is chosen."""
        return self.run if self.group == "hosts" else f"later-{self.run}"

    @property
    def name(self) -> str:
        """The host with its version."""
        folder = install(self.group) / "node_modules" / self.package
        version = json.loads((folder / "package.json").read_text())["version"]
        titles = {"claude-code": "Claude Code", "codex": "Codex", "gemini-cli": "Gemini CLI"}
        return f"{titles.get(self.run, self.run)} {version}"

    def methods(self) -> list[str]:
        """The ways of its conversation."""
        left_out = {"own"} if not self.has_search else set()
        left_out |= set() if self.is_native else {"native"}
        return [method for method in METHODS if method not in left_out]


CLAUDE = "@anthropic-ai/claude-code"
HOSTS = [
    Host("claude-code", CLAUDE, has_search=True, is_native=True),
    Host("claude-code", CLAUDE, "later-hosts", has_search=True, is_native=True),
    Host("codex", "@openai/codex", is_native=True),
    Host("opencode", "opencode-ai"),
    Host("gemini-cli", "@google/gemini-cli"),
]


@dataclass(frozen=True)
class Sent:
    """Measurements of a conversation."""

    host: str
    count: int
    method: str
    api: str
    model: str
    requests: int
    searches: int
    first_tools: int
    first_tool_tokens: int
    last_tools: int
    last_tool_tokens: int
    first_tokens: int
    last_tokens: int
    all_tokens: int
    shared_tokens: int
    price: float
    # Requests that begin with the whole of one before.
    kept: int
    calls: list[dict[str, object]]
    is_done: bool
    given_up: list[str]
    said: str


def conversation(host: Host, count: int, method: str, binary: Path, keep: Path | None) -> Sent:
    """Runs one conversation and measures what the model was sent."""
    working = Working()
    is_behind = method not in ("none", "own")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        catalog_server(count) as catalog,
        scripted_model(working) as model,
    ):
        run = Run(Path(home), catalog.url, model.url, prompt=REQUEST, group=host.group)
        run.llm = binary if is_behind else None
        run.strategy = method if is_behind else ""
        run.seconds = 360
        run.is_own_search = method == "own"
        run.is_model_unknown = method != "own"
        output = WITH_MODEL[host.run](run)
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        file = keep / f"{host.key}-{count}-{method}.json"
        file.write_text(json.dumps(model.requests, indent=1))
        file.with_suffix(".txt").write_text(output)
    sent = counted(model.requests)
    return Sent(
        host=host.name,
        count=count,
        method=method,
        searches=working.searches,
        calls=catalog.calls,
        is_done=DONE in output,
        given_up=working.given_up,
        said=output[-600:],
        **sent,
    )


def counted(requests: Sequence[Json]) -> Json:
    """Counts of requests: definitions, tokens, price, and prefixes that were kept.

    Raises:
        ValueError: No request has tools.
    """
    found = [prompt_of(one["path"], one["body"]) for one in requests]
    prompts = [prompt for prompt in found if prompt]
    if not prompts:
        raise ValueError("no request has tools")
    shared = [_shared(prompts[:index], prompt) for index, prompt in enumerate(prompts)]
    lengths = [tokens(prompt.text) for prompt in prompts]
    kept = sum(
        any(prompt.text.startswith(before.text) for before in prompts[max(0, index - 3) : index])
        for index, prompt in enumerate(prompts)
    )
    first, last = prompts[0], prompts[-1]
    rates = Rates.of(first.api, first.model)
    return {
        "api": first.api,
        "model": first.model,
        "requests": len(prompts),
        "first_tools": len(first.tools),
        "first_tool_tokens": first.tool_tokens,
        "last_tools": len(last.tools),
        "last_tool_tokens": last.tool_tokens,
        "first_tokens": lengths[0],
        "last_tokens": lengths[-1],
        "all_tokens": sum(lengths),
        "shared_tokens": sum(shared),
        "price": sum(map(rates.price, lengths, shared)),
        "kept": kept,
    }


def _shared(earlier: Sequence[Prompt], prompt: Prompt) -> int:
    """The tokens of the longest beginning that an earlier request has too."""
    longest = max((_common(one.text, prompt.text) for one in earlier), default=0)
    return tokens(prompt.text[:longest])


def _common(one: str, other: str) -> int:
    """The number of characters that two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def results(file: Path, wanted: Iterable[tuple[Host, int, str]], keep: Path | None) -> list[Sent]:
    """The results of conversations; those that the file has not are run."""
    known = [Sent(**one) for one in json.loads(file.read_text())] if file.exists() else []
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    found = []
    for host, count, method in wanted:
        same = [
            one for one in known if (one.host, one.count, one.method) == (host.name, count, method)
        ]
        if not same:
            try:
                same = [conversation(host, count, method, binary, keep)]
            except ValueError:
                print(f"{host.name} {count} {method}: FAILED, no request with tools", flush=True)
                continue
            known += same
            file.write_text(json.dumps([asdict(one) for one in known], indent=1))
        one = same[0]
        state = "finished" if one.is_done else "NOT FINISHED"
        print(
            f"{one.host:22} {count:4} {method:9} {one.model} requests {one.requests} searches "
            f"{one.searches} calls {len(one.calls)} tools {one.first_tools}/{one.last_tools} "
            f"price {one.price:,.0f} kept {one.kept} {state} {one.given_up}",
            flush=True,
        )
        found.append(one)
    return found


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text."""
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *lines]) + "\n"


def by_conversation(found: Iterable[Sent]) -> dict[tuple[str, int], dict[str, Sent]]:
    """The results by host and number of tools, each by method."""
    grouped: dict[tuple[str, int], dict[str, Sent]] = {}
    for one in found:
        grouped.setdefault((one.host, one.count), {})[one.method] = one
    return {place: methods for place, methods in grouped.items() if "none" in methods}


def sent_table(found: Iterable[Sent]) -> str:
    """Tells what was sent, and whether the conversation was the same as without the proxy."""
    lines = []
    for (host, count), methods in by_conversation(found).items():
        for method, one in methods.items():
            is_same = one.calls == methods["none"].calls and one.is_done
            lines.append(
                [
                    host,
                    str(count),
                    NAMES[method],
                    f"{one.first_tools} ({one.first_tool_tokens:,})",
                    f"{one.last_tools} ({one.last_tool_tokens:,})",
                    f"{one.first_tokens:,}",
                    f"{one.last_tokens:,}",
                    str(one.searches),
                    f"{one.kept} of {one.requests - 1}",
                    f"{len(one.calls)}, {'as without' if is_same else 'OTHERS'}",
                ]
            )
    heads = ["host", "tools", "by", "definitions in the first request", "in the last"]
    heads += ["tokens of the first", "of the last", "searches", "prefix kept", "calls"]
    return table(heads, lines)


def price_table(found: Iterable[Sent]) -> str:
    """The price of each conversation by method, and to that without the proxy."""
    lines = []
    for (host, count), methods in by_conversation(found).items():
        base = methods["none"].price
        cells = [
            f"{methods[name].price:,.0f} ({methods[name].price / base:.0%})"
            if name in methods
            else "-"
            for name in METHODS
        ]
        sums = [
            f"{one.all_tokens:,}" for name, one in methods.items() if name in ("none", "envelope")
        ]
        lines.append([host, str(count), *cells, " / ".join(sums)])
    heads = ["host", "tools", *(NAMES[name] for name in METHODS)]
    return table([*heads, "all tokens, no proxy / `envelope`"], lines)


def main() -> None:
    """Runs what was not run yet, and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="file that keeps the results")
    parser.add_argument("--only", nargs="*", help="names of hosts")
    parser.add_argument("--methods", nargs="*", choices=METHODS)
    parser.add_argument("--counts", nargs="*", type=int, default=list(COUNTS))
    parser.add_argument("--keep", type=Path, help="folder for requests and what hosts said")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page to write the tables into")
    asked = parser.parse_args()
    wanted = [
        (host, count, method)
        for host in HOSTS
        for count in asked.counts
        for method in host.methods()
        if host.key in (asked.only or [one.key for one in HOSTS])
        if method in (asked.methods or METHODS)
    ]
    found = results(asked.results, wanted, asked.keep)
    for name, text in {"hosts-sent": sent_table(found), "hosts-price": price_table(found)}.items():
        if asked.write:
            rewrite(asked.write, name, f"\n{text}")
        else:
            print(text)


if __name__ == "__main__":
    main()
