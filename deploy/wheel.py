"""Writes wheels of the Python package fspda, each with the program for one system.

usage: wheel.py FOLDER [SYSTEM...]

SYSTEM is linux/amd64, linux/arm64, darwin/arm64 or windows/amd64; all of them by default. The script needs Python's standard library and Go. Equal
sources and Go releases give equal wheels.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# the platform tags of the systems: the program needs no library but, on Linux, the C library's loader
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
}

METADATA = """Metadata-Version: 2.1
Name: fspda
Version: {version}
Summary: Decentralized training of your own models over random networks
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Description-Content-Type: text/markdown

"""

WHEEL = """Wheel-Version: 1.0
Generator: fspda
Root-Is-Purelib: false
{tags}"""


def build(system, folder):
    """Build the program for a system, and return its path."""
    goos, goarch = system.split("/")
    path = folder / f"fspda-{goos}-{goarch}"
    environment = {**os.environ, "GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "0"}
    command = ["go", "build", "-trimpath", "-buildvcs=auto", "-ldflags", "-s -w", "-o", str(path), "./cmd/fspda"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return path


def files(program, windows):
    """List the files of the package: their names in the wheel, contents and permissions."""
    for path in sorted((ROOT / "python" / "fspda").rglob("*")):
        if path.is_file() and path.suffix in (".py", ".typed"):
            yield f"fspda/{path.relative_to(ROOT / 'python' / 'fspda').as_posix()}", path.read_bytes(), 0o644
    yield "fspda/bin/fspda" + (".exe" if windows else ""), program.read_bytes(), 0o755


def write(folder, system, version, program):
    """Write the wheel of a system, and return its path."""
    tags = TAGS[system]
    path = folder / f"fspda-{version}-py3-none-{tags}.whl"
    info = f"fspda-{version}.dist-info"
    readme = (ROOT / "docs" / "external-models.md").read_bytes()
    lines = "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
    everything = [
        *files(program, system.startswith("windows")),
        (f"{info}/METADATA", METADATA.format(version=version).encode() + readme, 0o644),
        (f"{info}/WHEEL", WHEEL.format(tags=lines).encode(), 0o644),
        (f"{info}/entry_points.txt", b"[console_scripts]\nfspda = fspda.training:main\n", 0o644),
        (f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
    ]
    record = ""
    for name, content, _ in everything:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    record += f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content, mode in [*everything, (f"{info}/RECORD", record.encode(), 0o644)]:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    return path


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    text = (ROOT / "cli" / "command" / "version.go").read_text()
    version = re.search(r'const release = "([^"]+)"', text).group(1)
    for system in sys.argv[2:] or TAGS:
        program = build(system, folder)
        print(write(folder, system, version, program))
        program.unlink()


main()
