"""Reads a strongroom backup with nothing but docs/FORMAT.md and published libraries.

    read.py RECORDS KEYS KEYFILE                 the tenants
    read.py RECORDS KEYS KEYFILE TENANT          the paths of a tenant's files
    read.py RECORDS KEYS KEYFILE TENANT PATH     the bytes of one file

All of the backup is checked first: every hash, code, count and set of the tree.
"""

import json
import sys
from pathlib import Path

from derive import (
    CHUNK, Refused, expect, file_tag, hkdf, hmac, key_of_line, label, name_tag, padded_size,
    record_aad, set_hash, sha256, slot_aad, slot_of_key, slot_of_passphrase, state_slot,
    store_keys_aad, tenant_keys_aad, u32, unseal,
)  # fmt: skip

ROOT, HEAD, ENTRY, CHUNKS, POLICY, JOB, AUDIT, TOKEN = range(1, 9)
VERSIONS = bytes([1, 1, 254, 254])
NEVER = 2**64 - 1


class Fields:
    """Takes fields off the front of a record."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, count):
        taken = self.data[self.at : self.at + count]
        expect(len(taken) == count, "a record is too short")
        self.at += count
        return taken

    def number(self, count):
        return int.from_bytes(self.bytes(count), "big")

    def text(self):
        return self.bytes(self.number(2)).decode()

    def rest(self):
        return self.bytes(len(self.data) - self.at)

    def end(self):
        expect(self.at == len(self.data), "a record is too long")


def summary(fields):
    names = "files directories bytes accessed created levels path_bytes".split()
    entries, hash_ = fields.number(8), fields.bytes(32)
    return {"entries": entries, "hash": hash_} | {name: fields.number(8) for name in names}


def chain(fields):
    """First number, hash before it, newest number, its hash."""
    return fields.number(8), fields.bytes(32), fields.number(8), fields.bytes(32)


def sections(path, kind):
    """The header's fields and the sections of one file of a backup."""
    fields = Fields(Path(path).read_bytes())
    header = fields.bytes(53)
    expect(header[:12] == b"SRBACKUP" + VERSIONS and header[12] == kind, f"{path} is no such backup")
    found, chained, layer = [], sha256(header), 0
    while fields.at < len(fields.data):
        expect(not found or found[-1][0] != 5, "something follows the end")
        head = fields.bytes(9)
        expect(int.from_bytes(head[1:5], "big") >= layer, "layers descend")
        layer = int.from_bytes(head[1:5], "big")
        content = fields.bytes(int.from_bytes(head[5:], "big"))
        chained = sha256(chained, head, content)
        expect(fields.bytes(32) == chained, f"{path} is damaged")
        found.append((head[0], content))
    expect(found and found[-1][0] == 5, f"{path} has no end")
    return header[13:45], found


class Backup:
    def __init__(self, records, keys, key=None, passphrase=None):
        ids, of_records = sections(records, 1)
        ids_of_keys, of_keys = sections(keys, 2)
        expect(ids == ids_of_keys, "records and keys are of two backups")
        self.store = ids[:16]
        self.records = {}
        for kind, content in of_records:
            if kind == 1:
                self._take(Fields(content))
        keyrings = [content for kind, content in of_keys if kind == 3]
        expect(len(keyrings) == 1, "one keyring")
        self._open_keyring(keyrings[0], key, passphrase)
        files = [(content[:16], content[16:]) for kind, content in of_keys if kind == 2]
        expect(of_keys[-1][1] == len(files).to_bytes(8, "big"), "number of key files")
        self._open_root(Fields(of_records[-1][1]))
        tenants = (Tenant(self, tag, data) for tag, data in files)
        self.tenants = {tenant.name: tenant for tenant in tenants}
        expect(len(self._of(bytes([HEAD]))) == len(self.tenants), "a head has no key file")
        self._check_audit()

    def _take(self, fields):
        while fields.at < len(fields.data):
            is_there = fields.number(1)
            record_key = fields.bytes(fields.number(1))
            if is_there:
                self.records[record_key] = fields.bytes(fields.number(2))
            else:
                self.records.pop(record_key, None)

    def _open_keyring(self, copy, key, passphrase):
        fields = Fields(copy)
        expect(fields.bytes(12) == b"SRKEYRNG" + VERSIONS, "no keyring of format 1")
        self.keyring_counter = fields.number(8)
        expect(fields.bytes(16) == self.store, "the keyring is of another store")
        slots = [fields.bytes(262) for _ in range(fields.number(1))]
        nonce, sealed, code = fields.bytes(24), fields.bytes(240), fields.bytes(32)
        fields.end()
        master = next(filter(None, (self._try(slot, key, passphrase) for slot in slots)), None)
        expect(master, "no slot opens with this key")
        expect(code == hmac(hkdf(master, label("keyring-mac")), copy[:-32]), "the keyring is forged")
        keys = unseal(
            hkdf(master, label("keyring-store-keys")), nonce, store_keys_aad(self.store), sealed, "the store keys"
        )
        names = "tag root audit policy state tenant tenant_before".split()
        self.keys = {name: keys[32 * n : 32 * n + 32] for n, name in enumerate(names)}

    def _try(self, slot, key, passphrase):
        """The master key, if the slot is for this credential."""
        expect(sha256(slot[:230]) == slot[230:], "a slot is damaged")
        salt, commitment = slot[94:126], slot[126:158]
        if slot[8] == 1 and passphrase is not None:
            costs = (int.from_bytes(slot[at : at + 4], "big") for at in (82, 86, 90))
            wrap, proof = slot_of_passphrase(passphrase, salt, *costs)
        elif slot[8] != 1 and key is not None:
            wrap, proof = slot_of_key(key, salt)
        else:
            return None
        if proof != commitment:
            return None
        return unseal(wrap, slot[158:182], slot_aad(self.store, slot[:158]), slot[182:230], "the master key")

    def _of(self, start):
        return sorted(item for item in self.records.items() if item[0].startswith(start))

    def unseal(self, key, record_key, epoch=None, value=None):
        """What is sealed in a record's envelope, with its padding."""
        value = self.records[record_key] if value is None else value
        expect(value[:1] == b"\x01", "no envelope")
        found = int.from_bytes(value[1:5], "big")
        if epoch is None:
            key = key.get(found)
            expect(key, "a record key is missing")
        else:
            expect(found == epoch, "an epoch is wrong")
        return unseal(key, value[5:29], record_aad(self.store, found, record_key), value[29:], "a record")

    def fields(self, key, record_key, epoch=None, value=None):
        padded = self.unseal(key, record_key, epoch, value)
        size = int.from_bytes(padded[:4], "big")
        text, rest = padded[4 : 4 + size], padded[4 + size :]
        expect(len(text) == size and len(padded) % 256 == 0 and len(rest) < 256 and not any(rest), "bad padding")
        return Fields(text)

    def _open_root(self, end):
        root = self.fields(self.keys["root"], bytes([ROOT]), 0)
        commit, self.era = root.number(8), root.number(4)
        listed, hash_, counter = root.number(8), root.bytes(32), root.number(8)
        root.number(8)
        self.chain = chain(root)
        root.bytes(8 * 8 + 4 * 8)
        root.end()
        records = [one for space in (HEAD, POLICY, JOB, TOKEN) for one in self._of(bytes([space]))]
        inventory = hkdf(self.keys["root"], label("store-inventory"))
        expect((listed, hash_) == (len(records), set_hash(inventory, records)), "the root's set is another")
        expect(self.keyring_counter >= counter, "the keyring is older than the root")
        expect(end.number(8) == commit, "the root is of another commit")
        slot = end.bytes(102)
        end.end()
        state = Fields(slot[17:])
        digest = sha256(self.records[bytes([ROOT])])
        genuine = state_slot(self.keys["state"], self.store, state.number(8), state.number(4), commit, digest, 1)
        expect(slot == genuine, "STATE is of another root")

    def _check_audit(self):
        """Every chain: numbers without a gap, each hash in the entry that follows, the newest in its owner."""
        chains = {bytes(16): self.chain}
        chains |= {tenant.id: tenant.chain for tenant in self.tenants.values()}
        for record_key, _ in self._of(bytes([JOB])):
            job = self.fields(self.keys["root"], record_key, 0)
            if job.number(1) == 3:
                job.bytes(16)
                owner = job.bytes(16)
                job.bytes(1 + 3 * 8)
                chains[owner] = chain(job)
        self.audit_entries = 0
        for owner, (first, before, last, newest) in chains.items():
            for number in range(first, last + 1):
                record_key = bytes([AUDIT]) + owner + number.to_bytes(8, "big")
                text = self.fields(self.keys["audit"], record_key, 0).rest()
                entry = json.loads(text)
                expect(entry["seq"] == number and entry["tenant"] == owner.hex(), "an audit entry is elsewhere")
                expect(entry["prev"] == before.hex(), "an audit chain is broken")
                before = sha256(text)
                self.audit_entries += 1
            expect(before == newest, "an audit chain ends elsewhere")
        expect(self.audit_entries == len(self._of(bytes([AUDIT]))), "an audit entry is in no chain")


class Tenant:
    def __init__(self, backup, tag, key_file):
        self.backup = backup
        content = Fields(self._key_file(tag, key_file))
        self.id, self.base = content.bytes(16), content.bytes(32)
        self.name = content.bytes(content.number(1)).decode()
        self.record_keys = {content.number(4): content.bytes(32) for _ in range(content.number(4))}
        expect(not any(content.rest()), "a key file goes on")
        expect(file_tag(backup.keys["tag"], self.name) == tag, "a key file is of another tenant")
        self.inventory = hkdf(self.base, label("inventory"))

        head = backup.fields(backup.keys["root"], bytes([HEAD]) + tag, 0)
        expect(head.bytes(16) == self.id, "the head is of another tenant")
        head.number(8)
        memories, holds = summary(head), summary(head)
        self.chain = chain(head)
        epoch, retired = head.number(4), head.number(4)
        head.end()
        expect(epoch in self.record_keys, "the key file is older than the head")
        self.record_keys = {n: key for n, key in self.record_keys.items() if retired < n <= epoch}
        self.files = {}
        self._walk(bytes(16), memories, "/memories")
        self.holds = [name for name, *_ in self._entries(b"\xff" * 16, holds)]

    def _key_file(self, tag, data):
        keys = self.backup.keys
        opened = None
        for half in (data[: len(data) // 2], data[len(data) // 2 :]):
            fields = Fields(half)
            expect(fields.bytes(12) == b"SRTENANT" + VERSIONS, "no key file of format 1")
            size = fields.number(4)
            nonce, sealed, checksum = fields.bytes(24), fields.bytes(size), fields.bytes(32)
            fields.end()
            expect(sha256(half[:-32]) == checksum, "a key file is damaged")
            aad = tenant_keys_aad(self.backup.store, tag)
            try:
                content = unseal(hkdf(keys["tenant"], label("tenant-keys")), nonce, aad, sealed, "a key file")
            except Refused:
                content = unseal(hkdf(keys["tenant_before"], label("tenant-keys")), nonce, aad, sealed, "a key file")
            expect(opened in (None, content), "two halves differ")
            opened = content
        return opened

    def _entries(self, directory, expected):
        """Name, node id, kind and further fields of each entry, once the set is the expected one."""
        start = bytes([ENTRY]) + self.id + directory
        records = self.backup._of(start)
        counted = len(records), set_hash(self.inventory, records)
        expect(counted == (expected["entries"], expected["hash"]), "a directory's set is another")
        for record_key, _ in records:
            fields = self.backup.fields(self.record_keys, record_key)
            name = fields.text()
            expect(fields.bytes(16) == directory, "an entry is elsewhere")
            expect(record_key == start + name_tag(self.base, directory, name), "an entry has another name")
            yield name, fields.bytes(16), fields.number(1), fields

    def _walk(self, directory, expected, path):
        """Takes all files below and holds their counts against the summary."""
        found = {"files": 0, "directories": 0, "bytes": 0}
        for name, node, kind, fields in self._entries(directory, expected):
            below = f"{path}/{name}"
            if kind == 0:
                fields.number(8)
                its = summary(fields)
                self._walk(node, its, below)
                its["directories"] += 1
            else:
                expect(kind in (1, 2), "no such kind of entry")
                content, size = fields.bytes(16), fields.number(8)
                fields.bytes(4 * 8 + 32)
                self.files[below] = content, size
                its = {"files": 1, "directories": 0, "bytes": size}
            fields.end()
            found = {what: count + its[what] for what, count in found.items()}
        expect(all(expected[what] == count for what, count in found.items()), "a summary is wrong")

    def read(self, path):
        content, size = self.files[path]
        start = bytes([CHUNKS]) + self.id + content
        count = -(-padded_size(size) // CHUNK)
        expect(len(self.backup._of(start)) == count, "chunks are missing or left over")
        padded = b"".join(self.backup.unseal(self.record_keys, start + u32(number)) for number in range(count))
        expect(len(padded) == padded_size(size) and not any(padded[size:]), "a content's padding is wrong")
        return padded[:size]


def main(records, keys, key_file, tenant=None, path=None):
    backup = Backup(records, keys, key_of_line(Path(key_file).read_text()))
    if tenant is None:
        print(*sorted(backup.tenants), sep="\n")
    elif path is None:
        print(*sorted(backup.tenants[tenant].files), sep="\n")
    else:
        sys.stdout.buffer.write(backup.tenants[tenant].read(path))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refused as refused:
        sys.exit(f"read.py: {refused}")
