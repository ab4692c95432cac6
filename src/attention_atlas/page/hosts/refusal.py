"""How does the server say no? With a packet, so that the page shows the sentence."""

from fastapi import Response

from attention_atlas.page.wire.packing import Failure, pack

PACKET = "application/octet-stream"


def refused(why: str, status: int) -> Response:
    """Return the answer that carries a sentence."""
    return Response(pack(Failure(why)), status, media_type=PACKET)
