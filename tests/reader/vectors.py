"""What the derivations of docs/FORMAT.md give for fixed inputs.

    vectors.py > tests/golden/derivations.json

The tests in src/ are held against that file. Where the code draws at random, the n-th draw is
bytes of the value n, from 1.
"""

import json
import sys

from derive import (
    checkpoint_line, envelope, file_tag, hkdf, hmac, key_line, label, name_tag, padded_record,
    padded_size, seal, set_hash, sha256, slot_aad, slot_of_key, slot_of_passphrase, state_slot,
    store_keys_aad, tenant_keys_aad, term, token_text, u32, u64,
)  # fmt: skip

KEY = bytes(range(32))
STORE = bytes([1]) * 16
VERSIONS = bytes([1, 1, 254, 254])
CREATED = 1_700_000_000_000
FLOOR = (19 * 1024, 2, 1)
# 'ä' as two code points: it is brought to NFC first.
PASSPHRASE = "pa\u0308ssword of a test"


def drawn(number, size=32):
    return bytes([number]) * size


def slot(number, kind, name, costs, salt, keys, nonce, master):
    wrap, commitment = keys
    text = name.encode()
    head = u64(number) + bytes([kind, len(text)]) + text.ljust(64, b"\0") + u64(CREATED)
    head += b"".join(map(u32, costs)) + salt + commitment
    body = head + nonce + seal(wrap, nonce, slot_aad(STORE, head), master)
    return body + sha256(body)


def keyring(count):
    """Draws: store id, master, six store keys, their nonce, then salt and nonce of each slot."""
    master, store_keys = drawn(2), b"".join(drawn(n) for n in range(3, 9))
    # In the file the keys lie as tag root audit policy state tenant, which is how they are drawn.
    nonce = drawn(9, 24)
    sealed = seal(hkdf(master, label("keyring-store-keys")), nonce, store_keys_aad(STORE), store_keys + bytes(32))
    by_key = slot(1, 2, "first", (0, 0, 0), drawn(10), slot_of_key(KEY, drawn(10)), drawn(11, 24), master)
    derived = slot_of_passphrase(PASSPHRASE, drawn(12), *FLOOR)
    by_passphrase = slot(2, 1, "second", FLOOR, drawn(12), derived, drawn(13, 24), master)
    slots = [by_key, by_passphrase][:count]
    body = b"SRKEYRNG" + VERSIONS + u64(count) + STORE + bytes([count]) + b"".join(slots) + nonce + sealed
    return body + hmac(hkdf(master, label("keyring-mac")), body)


def tenant_key_file():
    """Draws: tenant id, base, record key, the record key of the second epoch, a nonce for each half."""
    tag, name = drawn(2, 16), b"team/a"
    content = drawn(1, 16) + drawn(2) + bytes([len(name)]) + name + u32(2)
    content += u32(1) + drawn(3) + u32(2) + drawn(4)
    content += bytes(-len(content) % 256)
    wrap = hkdf(drawn(8), label("tenant-keys"))
    file = b""
    for nonce in (drawn(5, 24), drawn(6, 24)):
        sealed = seal(wrap, nonce, tenant_keys_aad(STORE, tag), content)
        half = b"SRTENANT" + VERSIONS + u32(len(sealed)) + nonce + sealed
        file += half + sha256(half)
    return file


def audit_entry():
    members = {
        "seq": 7, "time": CREATED, "tenant": drawn(1, 16).hex(), "actor": 'dr "x"', "command": "create",
        "path": "c2VhbGVk", "outcome": "ok", "rules": {"email": 1, "password": 2}, "bytes": 10,
        "detail": "ü", "prev": bytes(32).hex(),
    }  # fmt: skip
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False)


def vectors():
    base, entry_key = drawn(2), bytes([3]) + drawn(1, 16) + drawn(5, 16) + drawn(6, 16)
    inventory = hkdf(base, label("inventory"))
    record = envelope(drawn(3), 2, drawn(1, 24), STORE, entry_key, padded_record(b"fields of a record"))
    chunk_key = bytes([4]) + drawn(1, 16) + drawn(7, 16) + u32(1)
    chunk = envelope(drawn(3), 2, drawn(1, 24), STORE, chunk_key, b"a piece".ljust(300, b"\0"))
    records = [(bytes([3]) + bytes([n]) * 48, bytes([n]) * 100) for n in range(1, 6)]
    entry = audit_entry()
    token = token_text(drawn(1, 8), drawn(2))
    found = {
        "key_line": key_line(KEY),
        "keyring_one_slot": keyring(1),
        "keyring_two_slots": keyring(2),
        "control_proof": hmac(hkdf(drawn(2), label("control")), b"a challenge"),
        "tenant_key_file": tenant_key_file(),
        "file_tag": file_tag(drawn(3), "team/a"),
        "store_inventory": hmac(hkdf(drawn(4), label("store-inventory")), b"text"),
        "certificate": hmac(hkdf(drawn(5), label("erasure-certificate")), b"text"),
        "state_mac": hmac(drawn(7), b"text"),
        "names": hkdf(base, label("name")),
        "inventory": inventory,
        "pseudonyms": hkdf(base, label("pseudonym")),
        "audit_paths": hkdf(base, label("audit-path")),
        "name_tag": name_tag(base, drawn(5, 16), "naïve.md"),
        "pseudonym": hmac(hkdf(base, label("pseudonym")), b"a value"),
        "record": record,
        "chunk": chunk,
        "record_term": term(inventory, entry_key, record),
        "set_terms": "".join(term(inventory, *one).hex() for one in records),
        "set_hash": set_hash(inventory, records),
        "state_slot": state_slot(drawn(7), STORE, 5, 3, 50, drawn(3), 1),
        "audit_entry": entry,
        "audit_entry_hash": sha256(entry.encode()),
        "token": token,
        "token_hash": sha256(token.encode()),
        "checkpoint_line": checkpoint_line(STORE, 12, drawn(9, 16).hex()),
        "padded_sizes": " ".join(str(padded_size(size)) for size in (0, 1, 256, 257, 1_000, 5_889, 262_144, 300_000)),
    }
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in found.items()}


if __name__ == "__main__":
    json.dump(vectors(), sys.stdout, indent=2, ensure_ascii=False)
    print()
