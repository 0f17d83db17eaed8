"""tooz, file driver: fasteners' lock on a file, behind a condition shared by the threads of a process."""

from bench.tooz import tooz

CONTENDERS = (
    tooz(
        "file",
        lambda target: f"file://{target.folder / 'tooz'}",
        counted=False,
        cannot={"leases": "no expiry: nothing to keep alive"},
    ),
)
