"""What etcd says when it does not do what it was asked: the texts of etcd 3.4, with their gRPC codes."""

from __future__ import annotations

CANCELLED, UNKNOWN, INVALID, NOT_FOUND, DENIED, EXHAUSTED = 1, 2, 3, 5, 7, 8
PRECONDITION, OUT_OF_RANGE, UNAVAILABLE, UNAUTHENTICATED = 9, 11, 14, 16

HTTP_STATUS = {1: 408, 2: 500, 3: 400, 5: 404, 7: 403, 8: 429, 9: 412, 11: 400, 14: 503, 16: 401}
"""As the gateway translates a gRPC code."""
REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    412: "Precondition Failed",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
NAMES = {INVALID: "InvalidArgument", DENIED: "PermissionDenied", UNAUTHENTICATED: "Unauthenticated"}
"""Of a code, where a text names it."""


class RpcError(Exception):
    """A request that was refused. `of_gateway`: it did not come as far as etcd."""

    def __init__(self, code: int, message: str, of_gateway: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.of_gateway = code, message, of_gateway

    @property
    def described(self) -> str:
        """As a Go program prints it."""
        return f"rpc error: code = {NAMES[self.code]} desc = {self.message}"


def unreadable(message: str) -> RpcError:
    return RpcError(INVALID, message, of_gateway=True)


def _server(code: int, words: str) -> RpcError:
    return RpcError(code, f"etcdserver: {words}")


EMPTY_KEY = _server(INVALID, "key is not provided")
KEY_NOT_FOUND = _server(INVALID, "key not found")
VALUE_PROVIDED = _server(INVALID, "value is provided")
LEASE_PROVIDED = _server(INVALID, "lease is provided")
TOO_MANY_OPS = _server(INVALID, "too many operations in txn request")
DUPLICATE_KEY = _server(INVALID, "duplicate key given in txn request")
TOO_LARGE = _server(INVALID, "request is too large")
COMPACTED = _server(OUT_OF_RANGE, "mvcc: required revision has been compacted")
FUTURE_REVISION = _server(OUT_OF_RANGE, "mvcc: required revision is a future revision")
NO_SPACE = _server(EXHAUSTED, "mvcc: database space exceeded")
LEASE_NOT_FOUND = _server(NOT_FOUND, "requested lease not found")
LEASE_EXISTS = _server(PRECONDITION, "lease already exists")
TTL_TOO_LARGE = _server(OUT_OF_RANGE, "too large lease TTL")
NO_LEADER = _server(UNAVAILABLE, "no leader")
LEADER_CHANGED = _server(UNAVAILABLE, "leader changed")
TIMED_OUT = _server(UNAVAILABLE, "request timed out")
TIMED_OUT_BY_LEADER = _server(UNAVAILABLE, "request timed out, possibly due to previous leader failure")
DEADLINE_EXCEEDED = RpcError(UNKNOWN, "context deadline exceeded")
INVALID_TOKEN = _server(UNAUTHENTICATED, "invalid auth token")
OLD_REVISION = _server(INVALID, "revision of auth store is old")
USER_EMPTY = _server(INVALID, "user name is empty")
PERMISSION_DENIED = _server(DENIED, "permission denied")
AUTH_FAILED = _server(INVALID, "authentication failed, invalid user ID or password")
AUTH_NOT_ENABLED = _server(PRECONDITION, "authentication is not enabled")
ROOT_USER_NOT_EXIST = _server(PRECONDITION, "root user does not exist")
ROOT_ROLE_NOT_EXIST = _server(PRECONDITION, "root user does not have root role")
USER_EXISTS = _server(PRECONDITION, "user name already exists")
USER_NOT_FOUND = _server(PRECONDITION, "user name not found")
ROLE_EXISTS = _server(PRECONDITION, "role name already exists")
ROLE_NOT_FOUND = _server(PRECONDITION, "role name not found")


def message_too_large(size: int, limit: int) -> RpcError:
    return RpcError(EXHAUSTED, f"grpc: received message larger than max ({size} vs. {limit})")
