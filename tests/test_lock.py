import re
import sys
from collections import Counter

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.needs import skip_missing
from tools import lock

MARKERS = {
    "x86_64-manylinux_2_28": ("linux", "Linux", "x86_64", "posix"),
    "aarch64-manylinux_2_28": ("linux", "Linux", "aarch64", "posix"),
    "aarch64-apple-darwin": ("darwin", "Darwin", "arm64", "posix"),
    "x86_64-pc-windows-msvc": ("win32", "Windows", "AMD64", "nt"),
}
FIELDS = ("sys_platform", "platform_system", "platform_machine", "os_name")
TARGETS = [(platform, python) for platform in lock.PLATFORMS for python in lock.PYTHONS]

for_each_target = pytest.mark.parametrize(("platform", "python"), TARGETS)


def read_lock():
    lines = lock.LOCK.read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def read_set(name):
    """The requirements of a file in locks/, each with its checksums."""
    text = (lock.LOCKS / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    parts = [re.split(r"\s+--hash=", line.strip()) for line in lines]
    return [(Requirement(line), checksums) for line, *checksums in parts]


def applying(requirements, platform, python):
    environment = {**default_environment(), "extra": ""}
    environment |= dict(zip(FIELDS, MARKERS[platform], strict=True))
    environment |= {"python_version": python, "python_full_version": f"{python}.0"}
    environment |= {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
    return [r for r in requirements if r.marker is None or r.marker.evaluate(environment)]


def test_each_line_is_a_version_that_pip_accepts_as_a_constraint():
    for line in lock.LOCK.read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9.-]+==[0-9][\w.]*( ; .+)?", line)
        assert not re.search(r"https?:|file:|--|@|\\", line)
    assert not any(requirement.extras for requirement in read_lock())


@for_each_target
def test_the_lock_has_one_version_of_each_requirement(platform, python):
    locked = applying(read_lock(), platform, python)
    assert max(Counter(canonicalize_name(line.name) for line in locked).values()) == 1
    versions = {canonicalize_name(line.name): line.specifier for line in locked}
    required = applying(map(Requirement, lock.read_requirements()), platform, python)
    assert len(required) > 20
    for requirement in required:
        (pin,) = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version), requirement


@pytest.mark.parametrize("name", lock.SETS)
def test_pip_can_check_every_file_that_a_command_installs(name):
    versions = {(canonicalize_name(one.name), str(one.specifier)) for one in read_lock()}
    locked = read_set(name)
    for requirement, checksums in locked:
        assert (canonicalize_name(requirement.name), str(requirement.specifier)) in versions
        assert checksums
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in checksums)
    text = (lock.LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    assert not re.search(r"https?:|file:|@|--(?!hash=)", text)


@for_each_target
@pytest.mark.parametrize("name", lock.SETS)
def test_a_set_has_what_its_command_needs(name, platform, python):
    locked = applying([one for one, _ in read_set(name)], platform, python)
    versions = {canonicalize_name(one.name): one.specifier for one in locked}
    assert len(versions) == len(locked), "one version of each"
    required = applying(map(Requirement, lock.read_requirements(name)), platform, python)
    assert required
    for requirement in required:
        (pin,) = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version), requirement


def test_the_package_is_built_with_locked_tools_only():
    for name in ("run", "test"):
        assert {"hatchling", "editables", "pip"} <= {one.name for one, _ in read_set(name)}
    makefile = (lock.ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--require-hashes" in makefile
    assert "--no-build-isolation" in makefile


class Fake(lock.Resolver):
    """A resolver that needs no package index."""

    def __init__(self, folder):
        pass

    def resolve(self, requirements, *options):
        return ["pip==2 --hash=sha256:0"] if "--generate-hashes" in options else ["pip==2"]

    def check(self, platform, python, lock):
        assert lock.read_text(encoding="utf-8").endswith("pip==2\n")
        return ["pip==2"]


class FakeThatFails(Fake):
    def check(self, platform, python, lock):
        raise RuntimeError("no wheel")


@pytest.fixture
def old_lock(tmp_path, monkeypatch):
    old = tmp_path / "constraints.txt"
    old.write_text("pip==1\n", encoding="utf-8")
    monkeypatch.setattr(lock, "LOCK", old)
    monkeypatch.setattr(lock, "LOCKS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["lock.py"])
    return old


def test_a_lock_that_passes_its_check_replaces_the_old_one(old_lock, monkeypatch):
    monkeypatch.setattr(lock, "Resolver", Fake)
    lock.main()
    assert old_lock.read_text(encoding="utf-8") == lock.HEADER + "pip==2\n"
    for name in lock.SETS:
        found = old_lock.with_name(f"{name}.txt").read_text(encoding="utf-8")
        assert found == lock.HEADER + "pip==2 --hash=sha256:0\n"


def test_a_lock_that_fails_its_check_replaces_nothing(old_lock, monkeypatch):
    monkeypatch.setattr(lock, "Resolver", FakeThatFails)
    with pytest.raises(RuntimeError, match="no wheel"):
        lock.main()
    assert old_lock.read_text(encoding="utf-8") == "pip==1\n"
    assert [path.name for path in old_lock.parent.iterdir()] == [old_lock.name]


@pytest.fixture(scope="module")
def resolver(tmp_path_factory):
    try:
        resolver = lock.Resolver(tmp_path_factory.mktemp("uv"))
        resolver.resolve(["pip"])
    except ConnectionError:
        skip_missing("a package index")
    return resolver


@pytest.mark.full
def test_every_locked_version_has_a_wheel_for_each_target(resolver):
    for platform, python in TARGETS:
        locked = {f"{r.name}{r.specifier}" for r in applying(read_lock(), platform, python)}
        assert set(resolver.check(platform, python)) == locked


@pytest.mark.full
@pytest.mark.parametrize(
    ("package", "line"),
    [("catboost", "catboost==1.2.7\n"), ("colorama", "")],
    ids=["no wheel for Python 3.14", "not locked"],
)
def test_the_check_finds_faults_in_a_lock(resolver, tmp_path, package, line):
    faulty = tmp_path / "constraints.txt"
    good = lock.LOCK.read_text(encoding="utf-8")
    faulty.write_text(re.sub(f"(?m)^{package}==.*\n", line, good), encoding="utf-8")
    with pytest.raises(RuntimeError, match=package):
        resolver.check("x86_64-pc-windows-msvc", "3.14", faulty)
