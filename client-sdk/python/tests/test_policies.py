"""The policy calls of both clients against a small service."""

import asyncio
import json

import grpc
import pytest
from conftest import FakeService, fail
from google.protobuf.timestamp_pb2 import Timestamp

from toolgate import AsyncClient, Client, RefusalCode, RuleCoverage, ToolgateError
from toolgate._gen.v1 import error_pb2, policy_pb2

STORED = policy_pb2.Policy(
    document="{}", etag="p2", revision=2, update_time=Timestamp(seconds=1, nanos=5_000_000)
)
LOCKED = policy_pb2.PolicyVerdict(
    server="git",
    name="push",
    code=error_pb2.REFUSAL_CODE_PRECONDITION_UNMET,
    rule="plan-first",
    unlock=["planned"],
)
RULES = [
    policy_pb2.RuleCoverage(rule="plan-first", tools=1),
    policy_pb2.RuleCoverage(rule="typo", hint="no tool is named so"),
]
COVERAGE = (RuleCoverage("plan-first", 1, ""), RuleCoverage("typo", 0, "no tool is named so"))


def pages(request: policy_pb2.CheckPolicyRequest, _: object) -> policy_pb2.CheckPolicyResponse:
    if request.page_token:
        return policy_pb2.CheckPolicyResponse(verdicts=[LOCKED])
    allowed = policy_pb2.PolicyVerdict(server="git", name="log", allowed=True)
    return policy_pb2.CheckPolicyResponse(verdicts=[allowed], next_page_token="more", rules=RULES)


def test_a_policy_is_set_and_read(service: FakeService) -> None:
    service.answer("SetPolicy", policy_pb2.SetPolicyResponse(policy=STORED, rules=RULES))
    service.answer("GetPolicy", policy_pb2.GetPolicyResponse(policy=policy_pb2.Policy()))
    with Client(service.target, tenant="acme") as client:
        stored = client.set_policy("{}", etag="p1")
        none = client.get_policy()
    assert (stored.document, stored.etag, stored.revision) == ("{}", "p2", 2)
    assert stored.update_time is not None
    assert stored.update_time.timestamp() == 1.005
    assert stored.rules == COVERAGE
    assert (none.document, none.etag, none.update_time, none.rules) == ("", "", None, ())
    sent = service.requests[0]
    assert (sent.tenant, sent.document, sent.etag) == ("acme", "{}", "p1")


def test_a_mapping_is_sent_as_json(service: FakeService) -> None:
    policy = {"version": 1, "rules": [{"name": "größer"}]}
    service.answer("SetPolicy", policy_pb2.SetPolicyResponse(policy=STORED))
    service.answer("CheckPolicy", policy_pb2.CheckPolicyResponse())
    with Client(service.target) as client:
        client.set_policy(policy)
        assert list(client.check_policy(policy)) == []
        with pytest.raises(TypeError, match="text or a mapping, not list"):
            client.set_policy(["rules"])  # type: ignore[arg-type]
    assert [json.loads(request.document) for request in service.requests] == [policy, policy]


def test_verdicts_are_fetched_page_by_page(service: FakeService) -> None:
    service.answer("CheckPolicy", pages)
    with Client(service.target) as client:
        log, push = client.check_policy("{}", state={"scopes": ["a"]})
    assert (log.name, log.allowed, log.code) == ("log", True, RefusalCode.UNSPECIFIED)
    assert (push.allowed, push.rule, push.unlock) == (False, "plan-first", ("planned",))
    assert push.code is RefusalCode.PRECONDITION_UNMET
    assert [list(request.state.scopes) for request in service.requests] == [["a"], ["a"]]


def test_a_check_says_how_far_rules_reach(service: FakeService) -> None:
    service.answer("CheckPolicy", pages)
    with Client(service.target) as client:
        check = client.check_policy("{}")
        assert not service.requests, "nothing is asked for before it is wanted"
        assert check.rules() == COVERAGE
        assert [verdict.name for verdict in check] == ["log", "push"]
        assert (check.rules(), list(check)) == (COVERAGE, [])
    assert [request.page_token for request in service.requests] == ["", "more"]


def test_a_check_that_fails_is_raised_where_it_is_read(service: FakeService) -> None:
    service.answer("CheckPolicy", fail(grpc.StatusCode.INVALID_ARGUMENT, "no"))
    with Client(service.target) as client:
        check = client.check_policy("[")
        with pytest.raises(ToolgateError):
            next(check)
        with pytest.raises(ToolgateError):
            check.rules()


def test_the_asyncio_client_does_the_same(service: FakeService) -> None:
    service.answer("CheckPolicy", pages)
    service.answer("SetPolicy", policy_pb2.SetPolicyResponse(policy=STORED, rules=RULES))
    service.answer("GetPolicy", policy_pb2.GetPolicyResponse(policy=STORED))

    async def ask() -> None:
        async with AsyncClient(service.target) as client:
            stored = await client.set_policy("{}")
            assert (stored.etag, stored.rules) == ("p2", COVERAGE)
            assert (await client.get_policy()).revision == 2
            check = client.check_policy()
            assert await check.rules() == COVERAGE
            assert [v.name async for v in check] == ["log", "push"]
            assert [r.page_token for r in service.requests[2:]] == ["", "more"]

    asyncio.run(ask())
