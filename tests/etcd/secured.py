"""Clusters that ask who comes: TLS with an authority of their own, client certificates, users and passwords."""

from __future__ import annotations

import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.etcd.cluster import Cluster, b64, planned, running

USER, PASSWORD = "keeper", "s3cret/&?"


@contextmanager
def with_tls(count: int = 1) -> Iterator[tuple[Cluster, Path]]:
    """Members that speak TLS and want a client certificate; and the folder with ca, cert and key."""
    with tempfile.TemporaryDirectory(prefix="hf-etcd-") as name:
        folder = Path(name)
        make_certificates(folder)
        words = ["--cert-file", f"{folder}/cert.pem", "--key-file", f"{folder}/key.pem"]
        words += ["--client-cert-auth", "--trusted-ca-file", f"{folder}/ca.pem"]
        cluster = planned(folder / "data", count, False, *words, scheme="https")
        context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
        context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
        for member in cluster.members:
            member.tls = context
        cluster.scheme = "etcds"
        cluster.query = f"?ca={folder}/ca.pem&cert={folder}/cert.pem&key={folder}/key.pem"
        try:
            cluster.start()
            yield cluster, folder
        finally:
            cluster.stop()


def make_certificates(folder: Path) -> None:
    """A throw-away authority, and one certificate for the member and for its clients."""
    new = ("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    run(*new, "-x509", "-subj", "/CN=test authority", "-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem")
    run(*new[:-2], "-subj", "/CN=localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/request.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    run(
        *("openssl", "x509", "-req", "-in", f"{folder}/request.pem", "-CA", f"{folder}/ca.pem", "-CAcreateserial"),
        *("-CAkey", f"{folder}/ca.key", "-days", "2", "-extfile", f"{folder}/names", "-out", f"{folder}/cert.pem"),
    )


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def jwt_words(folder: Path) -> list[str]:
    """Tokens that a member signs and remembers nothing of."""
    run("openssl", "genrsa", "-out", f"{folder}/jwt.key", "2048")
    run("openssl", "rsa", "-in", f"{folder}/jwt.key", "-pubout", "-out", f"{folder}/jwt.pem")
    keys = f"pub-key={folder}/jwt.pem,priv-key={folder}/jwt.key"
    return ["--auth-token", f"jwt,{keys},sign-method=RS256,ttl=10m"]


@contextmanager
def with_password(*more: str) -> Iterator[Cluster]:
    """A member with roles: one user, who may touch the namespace `holdfast` and nothing else."""
    with running(1, *more) as cluster:
        [member] = cluster.members
        member.rpc("/v3/auth/user/add", name="root", password="root")
        member.rpc("/v3/auth/user/grant", user="root", role="root")
        member.rpc("/v3/auth/role/add", name="locks")
        whole = {"permType": "READWRITE", "key": b64(b"holdfast/"), "range_end": b64(b"holdfast0")}
        member.rpc("/v3/auth/role/grant", name="locks", perm=whole)
        member.rpc("/v3/auth/user/add", name=USER, password=PASSWORD)
        member.rpc("/v3/auth/user/grant", user=USER, role="locks")
        member.rpc("/v3/auth/enable")
        yield cluster
