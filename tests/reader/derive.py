"""The primitives and derivations of docs/FORMAT.md, by libsodium, libargon2 and Python's own hashes."""

import base64
import hashlib
import hmac as hmac_of_python
import math
import unicodedata

import argon2.low_level
import nacl.bindings

FORMAT = SUITE = VERSION = 1
CHUNK = 5_888


class Refused(Exception):
    """Something is not as docs/FORMAT.md says."""


def expect(holds, what):
    if not holds:
        raise Refused(what)


# Primitives


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def hmac(key, *parts):
    return hmac_of_python.digest(key, b"".join(parts), "sha256")


def hkdf(key, label, salt=b"", size=32):
    """RFC 5869; no salt is one of zeros, and HMAC pads its key with zeros."""
    extracted = hmac(salt, key)
    out = block = b""
    for number in range(1, math.ceil(size / 32) + 1):
        block = hmac(extracted, block, label, bytes([number]))
        out += block
    return out[:size]


def argon2id(passphrase, salt, kib, passes, lanes):
    return argon2.low_level.hash_secret_raw(
        passphrase, salt, passes, kib, lanes, 32, argon2.low_level.Type.ID, version=0x13
    )


def seal(key, nonce, aad, plain):
    return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, aad, nonce, key)


def unseal(key, nonce, aad, sealed, what):
    try:
        return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, aad, nonce, key)
    except nacl.exceptions.CryptoError:
        raise Refused(f"{what} does not open") from None


# The project's own


def u16(number):
    return number.to_bytes(2, "big")


def u32(number):
    return number.to_bytes(4, "big")


def u64(number):
    return number.to_bytes(8, "big")


def label(name):
    return b"strongroom/v1/" + name.encode()


def key_line(key):
    checksum = sha256(b"strongroom-key-1 checksum", key)[:4]
    return "strongroom-key-1 " + base64.urlsafe_b64encode(key + checksum).decode()


def key_of_line(text):
    words = text.split()
    expect(len(words) == 2 and words[0] == "strongroom-key-1", "no key line")
    key = base64.urlsafe_b64decode(words[1])[:32]
    expect(key_line(key) == " ".join(words), "the key line is mistyped")
    return key


def slot_of_key(key, salt):
    """Wrap and commitment."""
    return tuple(hkdf(key, label(f"slot-raw-key/{use}"), salt) for use in ("wrap", "commitment"))


def slot_of_passphrase(passphrase, salt, kib, passes, lanes):
    text = unicodedata.normalize("NFC", passphrase).encode()
    key = argon2id(text, salt, kib, passes, lanes)
    return tuple(hkdf(key, label(f"slot-passphrase/{use}"), salt) for use in ("wrap", "commitment"))


def versions():
    return bytes([FORMAT, SUITE])


def slot_aad(store, slot_head):
    return label("slot") + versions() + store + slot_head


def store_keys_aad(store):
    return label("store-keys") + versions() + store


def tenant_keys_aad(store, file_tag):
    return label("tenant-keys") + versions() + store + file_tag


def file_tag(tag_key, tenant):
    return hmac(hkdf(tag_key, label("file-tag")), tenant.encode())[:16]


def name_tag(base, directory, name):
    return hmac(hkdf(base, label("name")), directory, name.encode())[:16]


def record_aad(store, epoch, record_key):
    return versions() + bytes([VERSION]) + u32(epoch) + store + record_key


def envelope(key, epoch, nonce, store, record_key, padded):
    """`padded` sealed for its place."""
    sealed = seal(key, nonce, record_aad(store, epoch, record_key), padded)
    return bytes([VERSION]) + u32(epoch) + nonce + sealed


def padded_record(fields):
    text = u32(len(fields)) + fields
    return text + bytes(-len(text) % 256)


def padded_size(size):
    """P(size)."""
    if size == 0:
        return 0
    size = max(size, 256)
    exponent = size.bit_length() - 1
    unit = 1 << (exponent - exponent.bit_length())
    return -(-size // unit) * unit


def term(inventory, record_key, value):
    """What a record adds to its set's hash."""
    return hmac(inventory, u16(len(record_key)), record_key, value[5:29], value[-16:])


def set_hash(inventory, records):
    total = sum(int.from_bytes(term(inventory, *record), "big") for record in records)
    return (total % (1 << 256)).to_bytes(32, "big")


def state_slot(state_key, store, counter, generation, commit, root_digest, closed):
    body = bytes([FORMAT]) + store + u64(counter) + u32(generation) + u64(commit)
    body += root_digest + bytes([closed])
    return body + hmac(state_key, body)


def token_text(token_id, secret):
    return f"srt1_{token_id.hex()}_" + base64.urlsafe_b64encode(secret).decode().rstrip("=")


def checkpoint_line(store, number, detail):
    return f"strongroom-checkpoint-1 {store.hex()} {number} {detail}"
