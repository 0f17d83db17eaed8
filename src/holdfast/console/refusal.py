"""A request that is refused, with the status of HTTP and the words for it."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response


class RequestRefused(Exception):
    """Why a request is not served."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status, self.problem = status, problem

    def response(self) -> Response:
        return JSONResponse({"problem": self.problem}, self.status)
