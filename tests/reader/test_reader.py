"""What `read.py` reads from a backup is what the command says is there."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

import derive
import read
import vectors

GOLDEN = Path(__file__).parent.parent / "golden"
FORMAT_1 = GOLDEN / "format-1"
SIZES = [0, 1, 255, 256, 257, 5_887, 5_888, 5_889, 11_776, 11_777, 100_000, 262_144]
POLICY = 'schema = 1\nextends = ["default"]\n[audit]\nenabled = true\n'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


class Store:
    def __init__(self, home):
        self.home = home

    def run(self, *words, given=""):
        own = {name: value for name, value in os.environ.items() if not name.startswith("STRONGROOM_")}
        done = subprocess.run(
            [os.environ["STRONGROOM_BIN"], *words], cwd=self.home, env=own, input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def on(self, *words, given=""):
        return self.run(*words, "--store", "s", "--key-file", "k", given=given)

    def calls(self, tenant, *calls):
        given = "".join(json.dumps(call) + "\n" for call in calls)
        answers = [json.loads(line) for line in self.on("exec", "--tenant", tenant, given=given).splitlines()]
        assert len(answers) == len(calls)
        assert not any(answer.get("is_error") for answer in answers), answers
        return [answer["content"] for answer in answers]

    def backup(self, name):
        self.on("backup", "--to", f"{name}.records", "--keys", f"{name}.keys")
        key = derive.key_of_line((self.home / "k").read_text())
        return read.Backup(self.home / f"{name}.records", self.home / f"{name}.keys", key)

    def exported(self, tenant, to):
        self.on("export", "--to", to, "--tenant", tenant)
        files = (path for path in (self.home / to).rglob("*") if path.is_file())
        return {f"/memories/{path.relative_to(self.home / to)}": path.read_bytes() for path in files}


def tree(home):
    """Files of every size that matters, with names and depths that do."""
    chosen = random.Random(7)
    words = ["tea", "naïve", "日本語", "emoji 🙂", "", "a\ttab", "end"]
    root = home / "from"
    for size in SIZES:
        text = b""
        while len(text) < size:
            text += (" ".join(chosen.choices(words, k=8)) + "\n").encode()
        text = text[:size].decode(errors="ignore")
        path = root / f"sizes/{size}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((text + "x" * (size - len(text.encode()))).encode())
    for name in ["日本/naïve/ünï.md", "a/b/c/d/e/f/g/h/i/j/k/deep.md", "with blank/and & more.md"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"in {name}\nno line end")
    (root / "picture.png").write_bytes(PNG)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with all that a backup can hold: rotated, erased, deleted, held."""
    home = tmp_path_factory.mktemp("reader")
    store = Store(home)
    (home / "p.toml").write_text(POLICY)
    store.run("init", "--store", "s", "--generate-key", "k", "--policy", "./p.toml")
    tree(home)
    store.on("import", "--from", "from", "--images", "--tenant", "team/a")
    create = {"command": "create", "path": "/memories/note.md", "file_text": "one\ntwo\nthree\n"}
    for tenant in ["b", "gone"]:
        store.calls(tenant, create)
    store.on("hold", "add", "/memories/note.md", "--reason", "a case", "--tenant", "b")
    store.on("key", "rotate", "--tenant", "team/a")
    store.calls(
        "team/a",
        create,
        {"command": "str_replace", "path": "/memories/note.md", "old_str": "two", "new_str": "zwei"},
        {"command": "create", "path": "/memories/away/x.md", "file_text": "x\n"},
        {"command": "delete", "path": "/memories/away"},
        {"command": "rename", "old_path": "/memories/with blank", "new_path": "/memories/moved"},
    )
    store.on("tenant", "erase", "gone", "--yes")
    return store


def assert_same(store, backup, mark):
    assert sorted(backup.tenants) == ["b", "team/a"]
    compared = 0
    for number, (name, tenant) in enumerate(sorted(backup.tenants.items())):
        exported = store.exported(name, f"out-{mark}-{number}")
        assert sorted(tenant.files) == sorted(exported)
        for path, content in exported.items():
            assert tenant.read(path) == content, path
            compared += 1
    assert compared == len(SIZES) + 6


def test_every_file_of_every_tenant_is_read_as_export_writes_it(store):
    backup = store.backup("first")
    assert_same(store, backup, "first")
    assert backup.tenants["b"].holds == ["/memories/note.md"]
    assert list(backup.tenants["team/a"].record_keys) == [2]
    assert backup.audit_entries > 5


def test_texts_are_read_as_view_shows_them(store):
    tenant = store.backup("views").tenants["team/a"]
    paths = [path for path in tenant.files if path.endswith(".md") and tenant.files[path][1] <= 12_000]
    assert len(paths) == len(SIZES) - 2 + 4
    views = store.calls("team/a", *({"command": "view", "path": path} for path in paths))
    for path, view in zip(paths, views, strict=True):
        header = f"Here's the content of {path} with line numbers:\n"
        text = tenant.read(path).decode().removesuffix("\n")
        lines = text.split("\n") if tenant.files[path][1] else []
        if not lines:
            assert view == header + "Note: the file is empty (0 lines)."
        else:
            shown = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))
            assert view == header + shown, path


def test_the_command_line_prints_one_file(store):
    backup = store.backup("line")
    command = [os.sys.executable, read.__file__, "line.records", "line.keys", "k", "team/a", "/memories/picture.png"]
    assert subprocess.run(command, cwd=store.home, capture_output=True, check=True).stdout == PNG
    assert backup.tenants["team/a"].read("/memories/picture.png") == PNG


def test_a_store_under_a_new_master_key_is_read(store):
    store.on("key", "rotate", "--master")
    assert_same(store, store.backup("master"), "master")


@pytest.mark.parametrize("passphrase", [None, "a passphrase of the golden store"])
def test_the_golden_backup_says_what_it_said(passphrase):
    key = None if passphrase else derive.key_of_line((FORMAT_1 / "key").read_text())
    backup = read.Backup(FORMAT_1 / "records", FORMAT_1 / "keys", key, passphrase)
    views = json.loads((FORMAT_1 / "said.json").read_text())["views"]
    read_text = backup.tenants["team/a"].read("/memories/deep/er/long.md").decode()
    shown = [line.split("\t", 1)[1] for line in views["team/a:/memories/deep/er/long.md"].split("\n")[1:]]
    assert read_text == "\n".join(shown) + "\n" and len(shown) == 600
    assert backup.tenants["b"].read("/memories/empty.md") == b""


def forged(change):
    """The golden records with some changed and all hashes of the file made anew."""
    data = (FORMAT_1 / "records").read_bytes()
    ids, found = read.sections(FORMAT_1 / "records", 1)
    out, chained = data[:53], derive.sha256(data[:53])
    for kind, content in found:
        if kind == 1:
            content = b"".join(change(*record) for record in records_of(content))
        head = bytes([kind]) + bytes(4) + derive.u32(len(content))
        chained = derive.sha256(chained, head, content)
        out += head + content + chained
    return out


def records_of(content):
    fields = read.Fields(content)
    while fields.at < len(content):
        assert fields.number(1) == 1
        yield fields.bytes(fields.number(1)), fields.bytes(fields.number(2))


def as_it_is(record_key, value):
    return bytes([1, len(record_key)]) + record_key + derive.u16(len(value)) + value


def test_a_record_that_is_missing_or_altered_is_refused(tmp_path):
    """Every record of every kind: the file's own hashes are right, what refuses is the tree."""
    key = derive.key_of_line((FORMAT_1 / "key").read_text())

    def reads(change):
        (tmp_path / "records").write_bytes(forged(change))
        backup = read.Backup(tmp_path / "records", FORMAT_1 / "keys", key)
        for tenant in backup.tenants.values():
            for path in tenant.files:
                tenant.read(path)

    reads(as_it_is)
    _, found = read.sections(FORMAT_1 / "records", 1)
    known = [record_key for kind, content in found if kind == 1 for record_key, _ in records_of(content)]
    assert {record_key[0] for record_key in known} == {1, 2, 3, 4, 5, 6, 7}
    for target in known:

        def missing(record_key, value):
            return b"" if record_key == target else as_it_is(record_key, value)

        def altered(record_key, value):
            flipped = value[:-1] + bytes([value[-1] ^ 1])
            return as_it_is(record_key, flipped if record_key == target else value)

        for change in (missing, altered):
            with pytest.raises((read.Refused, KeyError)):
                reads(change)


def test_the_vectors_are_those_in_the_tree():
    assert json.loads((GOLDEN / "derivations.json").read_text()) == vectors.vectors()


def test_a_wrong_key_opens_nothing():
    with pytest.raises(read.Refused, match="no slot opens"):
        read.Backup(FORMAT_1 / "records", FORMAT_1 / "keys", bytes(32))
