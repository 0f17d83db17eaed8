"""Certificates for servers of a run: a throw-away authority and one key pair, made by the openssl program."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .sandbox import DidNotStart, NotAvailable, Sandbox

_NEW = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where they lie: the authority that clients trust, and what a server shows."""

    authority: Path
    shown: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """For a client that trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.authority))


def certificates(sandbox: Sandbox, *hosts: str) -> Certificates:
    """Of a server that is reached by these addresses."""
    folder = sandbox.new_folder("certificates")
    made = Certificates(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    signing, request, names = folder / "ca.key", folder / "request.pem", folder / "names"
    addresses = ",".join(f"IP:{host}" for host in dict.fromkeys(hosts))
    names.write_text(f"subjectAltName={addresses}\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n")
    _openssl(
        *_NEW, "-x509", "-days", "2", "-subj", "/CN=torture", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        "-keyout", signing, "-out", made.authority,
    )  # fmt: skip
    _openssl(*_NEW, "-subj", "/CN=server", "-keyout", made.key, "-out", request)
    _openssl(
        "x509", "-req", "-in", request, "-CA", made.authority, "-CAkey", signing, "-CAcreateserial",
        "-days", "2", "-extfile", names, "-out", made.shown,
    )  # fmt: skip
    return made


def _openssl(*words: object) -> None:
    try:
        done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NotAvailable("openssl is not installed (Debian: openssl)") from error
    if done.returncode:
        raise DidNotStart(f"openssl made no certificate: {done.stderr.strip()}")
