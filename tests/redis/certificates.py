"""Certificates for one test run, made by openssl: an authority of its own, a server, a client."""

import subprocess
from pathlib import Path

from msgspec import Struct

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_DAYS = ("-days", "2")


class Certificates(Struct, frozen=True):
    """Where they lie. The server's is for 127.0.0.1 and localhost only."""

    authority: Path
    server_certificate: Path
    server_key: Path
    client_certificate: Path
    client_key: Path


def make_certificates(folder: Path) -> Certificates:
    """Make them in a folder."""
    made = Certificates(
        authority=folder / "authority.pem",
        server_certificate=folder / "server.pem",
        server_key=folder / "server.key",
        client_certificate=folder / "client.pem",
        client_key=folder / "client.key",
    )
    authority_key = folder / "authority.key"
    _openssl(
        *("req", "-x509", *_CURVE, *_DAYS, "-subj", "/CN=authority of the tests"),
        *("-keyout", str(authority_key), "-out", str(made.authority)),
    )
    for name, certificate, key in (
        ("server", made.server_certificate, made.server_key),
        ("client", made.client_certificate, made.client_key),
    ):
        asked = folder / f"{name}.csr"
        names = folder / f"{name}.ext"
        names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        _openssl("req", *_CURVE, "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(asked))
        _openssl(
            *("x509", "-req", "-in", str(asked), "-CA", str(made.authority), *_DAYS),
            *("-CAkey", str(authority_key), "-CAcreateserial"),
            *("-extfile", str(names), "-out", str(certificate)),
        )
    return made


def _openssl(*words: str) -> None:
    done = subprocess.run(
        ["openssl", *words], capture_output=True, check=False, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
