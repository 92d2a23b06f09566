"""RPCs of the contract that this version does not serve: UNIMPLEMENTED, with a reason."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from catalogs import refused
from google.rpc import error_details_pb2, status_pb2

from toolgate._gen.v1 import encoder_pb2, encoder_pb2_grpc

Caller = Callable[[grpc.Channel], Any]

UNSERVED: dict[str, Caller] = {
    "Embed": lambda c: encoder_pb2_grpc.EncoderServiceStub(c).Embed(
        encoder_pb2.EmbedRequest(texts=["x"])
    ),
    "Describe": lambda c: encoder_pb2_grpc.EncoderServiceStub(c).Describe(
        encoder_pb2.DescribeRequest()
    ),
}


@pytest.mark.parametrize("name", UNSERVED)
def test_unserved(channel: grpc.Channel, name: str) -> None:
    with refused(grpc.StatusCode.UNIMPLEMENTED, "NOT_IMPLEMENTED"):
        UNSERVED[name](channel)


def test_the_reason_is_in_our_domain(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        UNSERVED["Embed"](channel)
    trailers: dict[str, bytes] = dict(caught.value.trailing_metadata())  # type: ignore[arg-type]
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.domain, info.reason) == ("toolgate", "NOT_IMPLEMENTED")
