"""Processes of `toolgate llm` that share a routing plane: each has sets of its own there."""

from itertools import repeat
from pathlib import Path

from llm_provider import Json, Provider, Proxy, answer, serving
from llm_tools import PATIENT
from test_llm_proxy_envelope import anthropic_answer, anthropic_request
from toolgate_process import ToolgateProcess
from waiting import wait_until

from toolgate import ToolgateError

PATH = "/anthropic/v1/messages"
DONE = answer(anthropic_answer({"type": "text", "text": "No."}))
NUMBERS = "llm-numbers"
SHORT = PATIENT + 'toolset_lease = "1s"\n'
SERVERS = ["calendar", "files", "git", "mail", "weather"]


def listed(plane: ToolgateProcess, tenant: str) -> dict[str, str]:
    """The MCP servers of a tenant, with what they say of themselves."""
    with plane.client(tenant) as client:
        try:
            return {server.name: server.description for server in client.list_servers()}
        except ToolgateError as error:
            if "TENANT_NOT_FOUND" not in str(error):
                raise
            return {}


def holders(plane: ToolgateProcess) -> dict[str, str]:
    """The names of the processes that hold numbers, by these."""
    said = listed(plane, NUMBERS).items()
    return {number: text.split()[0] for number, text in said if text != "free"}


def sets(plane: ToolgateProcess, number: str) -> list[str]:
    """The tenants that the process of a number registered."""
    return list(listed(plane, f"llm-sets-{number}"))


class Company:
    """Proxies before one provider and over one plane."""

    def __init__(self, binary: Path, folder: Path, plane: ToolgateProcess, provider: str) -> None:
        self._binary, self._folder, self._provider = binary, folder, provider
        self._arguments = ("--server", f"http://{plane.target}")
        self._started: list[Proxy] = []
        # A proxy of another test may hold its number still.
        self._plane, self._others = plane, {*holders(plane).values()}

    def held(self) -> list[str]:
        """The numbers that its processes hold."""
        found = holders(self._plane).items()
        return [number for number, holder in found if holder not in self._others]

    def start(self, settings: str = PATIENT) -> Proxy:
        folder = self._folder / str(len(self._started))
        folder.mkdir()
        proxy = Proxy(self._binary, folder, self._provider, settings)
        proxy.start(*self._arguments)
        self._started.append(proxy)
        return proxy

    def end(self) -> None:
        for proxy in self._started:
            proxy.kill()


def ask(proxy: Proxy, **more: Json) -> str:
    """What is done with a request."""
    return proxy.ask(PATH, anthropic_request(**more)).note


def test_a_process_that_ends_takes_out_nothing_of_anothers(
    binary: Path, tmp_path: Path, server: ToolgateProcess
) -> None:
    with serving(Provider(*repeat(DONE, 4))) as provider:
        company = Company(binary, tmp_path, server, provider.url)
        try:
            first, second = company.start(), company.start()
            notes = [ask(first), ask(second)]
            numbers = company.held()
            tenants = [tenant for number in numbers for tenant in sets(server, number)]
            first.__exit__()
            notes += [ask(second), ask(second)]
            left = [tenant for tenant in tenants if listed(server, tenant)]
            second.__exit__()
        finally:
            company.end()
    assert [note.split(";")[0] for note in notes] == ["envelope"] * 4, notes
    assert len(numbers) == len(set(tenants)) == 2, tenants
    assert len({tenant.rsplit("-", 1)[1] for tenant in tenants}) == 1, "the same tools"
    assert len(left) == 1, "the other's stay"
    assert not company.held()
    assert not any(listed(server, tenant) for tenant in tenants)


def test_what_a_killed_process_left_is_taken_out_and_its_number_is_free(
    binary: Path, tmp_path: Path, server: ToolgateProcess
) -> None:
    with serving(Provider(*repeat(DONE, 2))) as provider:
        company = Company(binary, tmp_path, server, provider.url)
        try:
            killed = company.start(SHORT)
            assert ask(killed).startswith("envelope")
            [number] = company.held()
            [tenant] = sets(server, number)
            killed.kill()
            assert sorted(listed(server, tenant)) == SERVERS
            other = company.start(SHORT)
            assert ask(other).startswith("envelope")
            wait_until(lambda: listed(server, NUMBERS)[number] == "free", other.log)
            assert not sets(server, number)
            assert not listed(server, tenant)
            [of_other] = company.held()
            [kept] = sets(server, of_other)
            assert sorted(listed(server, kept)) == SERVERS
            other.__exit__()
        finally:
            company.end()
